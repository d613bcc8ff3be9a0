//! What the load generator can do at most: an empty script on one thread and on two, beside sysbench, and beside Latte where
//! a Cassandra is there that it can connect to.
//!
//! Two programs of one thread each, on a CPU of their own, show what two CPUs of this machine give at most.

use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Bench, median};
use crate::table;

const SECONDS: u32 = 3;

/// One run.
struct Measured {
    calls_per_s: f64,
    /// Of the whole program.
    cpu_ns_per_call: Option<f64>,
}

/// One generator, run on a number of threads.
type Run<'a> = Box<dyn Fn(usize) -> Result<Measured> + 'a>;

pub fn run(bench: &Bench) -> Result<()> {
    let script = bench.root.join("workloads/empty.rn").display().to_string();
    let event = bench.file("empty.lua");
    std::fs::write(&event, "function event() end\n")?;
    let mut generators: Vec<(&str, Run)> = vec![
        ("holdup", Box::new(|threads| holdup(bench, &script, threads))),
        ("holdup, a process for each", Box::new(|threads| processes(bench, &script, threads))),
    ];
    if is_there("sysbench") {
        generators.push(("sysbench, empty Lua", Box::new(|threads| sysbench(bench, &event, threads))));
    }
    if let Some(server) = bench.cassandra.as_deref().filter(|_| is_there("latte")) {
        generators.push(("Latte", Box::new(move |threads| latte(bench, server, threads))));
    }
    let mut measured: Vec<[Vec<Measured>; 2]> = generators.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for round in 0..bench.rounds {
        eprintln!("load: round {} of {}", round + 1, bench.rounds);
        for (generator, kept) in generators.iter().zip(&mut measured) {
            for threads in if round % 2 == 0 { [1, 2] } else { [2, 1] } {
                kept[threads - 1].push(generator.1(threads).context(generator.0)?);
            }
        }
    }
    println!("\nempty script, {} rounds of {SECONDS} s, medians and from least to greatest", bench.rounds);
    let rows: Vec<_> =
        generators.iter().zip(&measured).map(|((name, _), runs)| row(name, runs, &measured[0])).collect();
    table::print(
        &["generator", "M/s, 1 thread", "2 threads", "2 / 1", "CPU ns a call", "holdup's calls on 1 thread"],
        &rows,
    );
    Ok(())
}

fn row(name: &str, [one, two]: &[Vec<Measured>; 2], [ours, _]: &[Vec<Measured>; 2]) -> Vec<String> {
    let rates = |runs: &[Measured]| runs.iter().map(|run| run.calls_per_s).collect::<Vec<_>>();
    let ratio = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>();
    let (single, double) = (rates(one), rates(two));
    let millions = |rates: &[f64]| spread(&rates.iter().map(|rate| rate / 1e6).collect::<Vec<_>>(), 2);
    let cost: Vec<f64> = one.iter().filter_map(|run| run.cpu_ns_per_call).collect();
    vec![
        name.to_owned(),
        millions(&single),
        millions(&double),
        spread(&ratio(&double, &single), 2),
        if cost.is_empty() { "-".to_owned() } else { spread(&cost, 0) },
        format!("{} ×", spread(&ratio(&rates(ours), &single), 2)),
    ]
}

/// `1.86 (1.75–1.91)`.
fn spread(values: &[f64], digits: usize) -> String {
    let range = range(values);
    format!("{:.digits$} ({:.digits$}–{:.digits$})", median(values), range.start(), range.end())
}

fn range(values: &[f64]) -> RangeInclusive<f64> {
    values.iter().fold(f64::INFINITY..=f64::NEG_INFINITY, |range, &v| range.start().min(v)..=range.end().max(v))
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn started(bench: &Bench, script: &str, threads: usize, on: Option<usize>) -> Result<Child> {
    let mut command = match on {
        Some(cpu) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string(), bench.holdup.path()]);
            command
        }
        None => Command::new(bench.holdup.path()),
    };
    command.args(["load", "run", script, "--json", "--warmup", "1s"]);
    command.args(["--duration", &format!("{SECONDS}s"), "--threads", &threads.to_string()]);
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?)
}

fn report(child: Child) -> Result<Measured> {
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}: does the binary have the feature `script`?", output.status);
    let report: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Measured {
        calls_per_s: number(&report["throughput"]["mean"])?,
        cpu_ns_per_call: Some(number(&report["generator"]["cpu_ns_per_call"])?),
    })
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("no number: {value}"))
}

fn holdup(bench: &Bench, script: &str, threads: usize) -> Result<Measured> {
    report(started(bench, script, threads, None)?)
}

fn processes(bench: &Bench, script: &str, count: usize) -> Result<Measured> {
    let children = (0..count).map(|cpu| started(bench, script, 1, Some(cpu))).collect::<Result<Vec<_>>>()?;
    let reports = children.into_iter().map(report).collect::<Result<Vec<_>>>()?;
    Ok(Measured { calls_per_s: reports.iter().map(|one| one.calls_per_s).sum(), cpu_ns_per_call: None })
}

fn sysbench(bench: &Bench, event: &str, threads: usize) -> Result<Measured> {
    let output = Command::new("sysbench")
        .args([event, &format!("--threads={threads}"), &format!("--time={SECONDS}"), "--events=0", "run"])
        .current_dir(&bench.scratch)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let events = said.lines().find_map(|line| line.trim().strip_prefix("total number of events:"));
    let events: f64 = events.with_context(|| format!("no count of events in {said}"))?.trim().parse()?;
    Ok(Measured { calls_per_s: events / f64::from(SECONDS), cpu_ns_per_call: None })
}

fn latte(bench: &Bench, server: &str, threads: usize) -> Result<Measured> {
    let (script, output) = (bench.file("empty.rn"), bench.file("latte.json"));
    std::fs::write(&script, "pub async fn run(db, i) {}\n")?;
    let done = Command::new("latte")
        .args(["run", &script, server, "-q", "-w", "1s", "-o", &output])
        .args(["-d", &format!("{SECONDS}s"), "-t", &threads.to_string()])
        .current_dir(&bench.scratch)
        .output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr).trim());
    let result = &serde_json::from_str::<Value>(&std::fs::read_to_string(output)?)?["result"];
    let cpu_s = number(&result["cpu_time_s"])?;
    Ok(Measured {
        calls_per_s: number(&result["cycle_throughput"]["value"])?,
        cpu_ns_per_call: Some(cpu_s / number(&result["cycle_count"])? * 1e9),
    })
}
