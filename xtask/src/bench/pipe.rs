//! The cost of recording every switch and wake-up: `perf bench sched pipe`, pinned, bare and under recorders.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Bench, least};
use crate::table;

/// Round trips in each run; each is two switches and about one wake-up.
const OPERATIONS: &str = "200000";
const PERF: &[&str] = &["-a", "-e", "sched:sched_switch", "-e", "sched:sched_waking"];

struct Way {
    name: &'static str,
    /// The recorder's command line, before `--` and the workload.
    recorder: Vec<String>,
    trace: Option<String>,
    seconds: Vec<f64>,
    bytes: u64,
    events: u64,
    lost: u64,
}

pub fn run(bench: &Bench) -> Result<()> {
    let mut ways = ways(bench);
    for round in 0..bench.rounds {
        eprintln!("pipe: round {} of {}", round + 1, bench.rounds);
        for way in &mut ways {
            let seconds = pipe(&way.recorder)?;
            way.seconds.push(seconds);
            if let Some(trace) = &way.trace {
                let info = bench.holdup.info(Path::new(trace))?;
                way.bytes = fs::metadata(trace)?.len();
                way.events = info.scheduler_events();
                way.lost += info.lost();
            }
        }
    }
    println!("\nperf bench sched pipe, workload pinned to CPU 1, {OPERATIONS} operations, {} rounds", bench.rounds);
    let bare = least(&ways[0].seconds);
    let rows = ways.iter().map(|way| row(way, bare)).collect::<Vec<_>>();
    table::print(&["recorder", "least s", "ratio", "events", "MB", "bytes/event", "lost"], &rows);
    Ok(())
}

fn ways(bench: &Bench) -> Vec<Way> {
    let way = |name, trace: Option<String>, recorder: Vec<&str>| Way {
        name,
        recorder: recorder.into_iter().map(str::to_owned).collect(),
        trace,
        seconds: Vec::new(),
        bytes: 0,
        events: 0,
        lost: 0,
    };
    let perf_g = bench.file("pipe-g.perf.data");
    let perf = bench.file("pipe.perf.data");
    let own = bench.file("pipe.holdup");
    let with_stacks = [&["perf", "record", "-g", "-o", &perf_g], PERF].concat();
    let without = [&["perf", "record", "-o", &perf], PERF].concat();
    let holdup = vec![bench.holdup.path(), "record", "-a", "-o", &own];
    vec![
        way("bare", None, vec![]),
        way("perf record -g", Some(perf_g.clone()), with_stacks),
        way("perf record", Some(perf.clone()), without),
        way("holdup record", Some(own.clone()), holdup),
    ]
}

/// Seconds that the workload took, by its own clock.
fn pipe(recorder: &[String]) -> Result<f64> {
    let workload = ["taskset", "-c", "1", "perf", "bench", "-f", "simple", "sched", "pipe", "-l", OPERATIONS];
    let mut words: Vec<&str> = recorder.iter().map(String::as_str).collect();
    if !words.is_empty() {
        words.push("--");
    }
    words.extend(workload);
    let output = Command::new(words[0]).args(&words[1..]).output().with_context(|| words.join(" "))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{}: {}", words.join(" "), err.trim());
    let seconds = out.lines().find_map(|line| line.trim().parse().ok());
    seconds.with_context(|| format!("{} printed no seconds: {}", words.join(" "), out.trim()))
}

fn row(way: &Way, bare: f64) -> Vec<String> {
    let least = least(&way.seconds);
    let mut row = vec![way.name.to_owned(), format!("{least:.3}"), format!("{:.2}", least / bare)];
    if way.trace.is_some() {
        let each = way.bytes as f64 / way.events.max(1) as f64;
        let megabytes = way.bytes as f64 / 1e6;
        row.extend([way.events.to_string(), format!("{megabytes:.1}"), format!("{each:.1}"), way.lost.to_string()]);
    }
    row
}
