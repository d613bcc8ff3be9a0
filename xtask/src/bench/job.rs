//! How much an ordinary job slows while it is recorded: a parallel build and a compression.

use std::fs;

use anyhow::Result;

use super::{Bench, least};
use crate::{measure, table};

pub fn run(bench: &Bench) -> Result<()> {
    let input = bench.file("job.input");
    write_input(&input)?;
    let sources = bench.root.join("scenarios");
    let build = format!(
        "cd '{}' && for i in 1 2 3 4 5 6 7 8; do ls *.c; done | xargs -P2 -n1 gcc -O2 -g -c -o /dev/null",
        sources.display()
    );
    let compress = format!("(gzip -6 -c '{input}' & gzip -6 -c '{input}'; wait) > /dev/null");
    let trace = bench.file("job.holdup");
    let mut rows = Vec::new();
    for (name, job) in [("build", build), ("compression", compress)] {
        let (mut bare, mut recorded) = (Vec::new(), Vec::new());
        for round in 0..bench.rounds {
            eprintln!("{name}: round {} of {}", round + 1, bench.rounds);
            bare.push(measure::run(&["sh", "-c", &job], &bench.scratch)?.wall_s);
            let seconds = bench.file("job.seconds");
            let timed = format!("s=$(date +%s%N); {job}; echo $(($(date +%s%N) - s)) > '{seconds}'");
            measure::run(
                &[bench.holdup.path(), "record", "-a", "-o", &trace, "--", "sh", "-c", &timed],
                &bench.scratch,
            )?;
            recorded.push(fs::read_to_string(&seconds)?.trim().parse::<f64>()? / 1e9);
        }
        let (bare, recorded) = (least(&bare), least(&recorded));
        let slower = format!("{:+.1} %", (recorded / bare - 1.0) * 100.0);
        rows.push(vec![name.to_owned(), format!("{bare:.2}"), format!("{recorded:.2}"), slower]);
    }
    println!("\nordinary jobs, {} rounds, wall-clock minima", bench.rounds);
    table::print(&["job", "bare s", "recorded s", "slower"], &rows);
    Ok(())
}

/// 96 MB that compress, but not too well.
fn write_input(path: &str) -> Result<()> {
    let mut state = 1_u64;
    let words = (0..12_000_000).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33 & 0x0f0f_0f0f).to_le_bytes()
    });
    Ok(fs::write(path, words.collect::<Vec<u8>>())?)
}
