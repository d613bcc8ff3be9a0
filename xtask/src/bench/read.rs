//! The cost of reading: `explain` on about three million events beside `perf sched timehist`.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::Bench;
use crate::holdup::perf_events;
use crate::{measure, table};

/// Two switches and about one wake-up each.
const OPERATIONS: &str = "1000000";

pub fn run(bench: &Bench) -> Result<()> {
    let own = bench.file("read.holdup");
    let foreign = bench.file("read.perf.data");
    let holdup = bench.holdup.path();
    let load = ["--", "taskset", "-c", "1", "perf", "bench", "sched", "pipe", "-l", OPERATIONS];
    eprintln!("read: recording twice");
    succeed(&[&[holdup, "record", "-a", "-o", &own], &load[..]].concat())?;
    succeed(
        &[&["perf", "record", "-a", "-g", "-o", &foreign][..], &perf_events().collect::<Vec<_>>(), &load].concat(),
    )?;

    let runs: [(&str, &str, Vec<&str>); 3] = [
        ("holdup explain, .holdup", &own, vec![holdup, "explain", &own, "--json"]),
        ("holdup explain, perf.data", &foreign, vec![holdup, "explain", &foreign, "--json"]),
        ("perf sched timehist", &foreign, vec!["perf", "sched", "timehist", "-i", &foreign]),
    ];
    let mut rates = Vec::new();
    for (name, file, command) in &runs {
        let events = bench.holdup.info(Path::new(file))?.scheduler_events();
        eprintln!("read: {name}");
        let mut best = measure::run(command, &bench.scratch)?;
        for _ in 1..bench.rounds.min(3) {
            let again = measure::run(command, &bench.scratch)?;
            best.peak_mb = best.peak_mb.max(again.peak_mb);
            best.cpu_s = best.cpu_s.min(again.cpu_s);
        }
        rates.push((name, events, best));
    }
    let rate = |events: u64, cpu_s: f64| events as f64 / cpu_s.max(1e-9);
    let peer = rates.last().map_or(1.0, |(_, events, used)| rate(*events, used.cpu_s));
    let rows = rates.iter().map(|(name, events, used)| {
        let rate = rate(*events, used.cpu_s);
        let numbers = [events.to_string(), format!("{:.2}", used.cpu_s), format!("{:.2}", rate / 1e6)];
        let last = [format!("{:.1}", rate / peer), format!("{:.0}", used.peak_mb)];
        [vec![(**name).to_owned()], numbers.to_vec(), last.to_vec()].concat()
    });
    println!("\nreading");
    table::print(&["reader", "events", "CPU s", "M events/CPU s", "times perf", "peak MB"], &rows.collect::<Vec<_>>());
    Ok(())
}

fn succeed(command: &[&str]) -> Result<()> {
    let output = Command::new(command[0]).args(&command[1..]).output()?;
    ensure!(output.status.success(), "{}: {}", command.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
