//! `cargo xtask synth`: makes a trace with a planted truth.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use holdup_synth::{Shape, Spec, Truth};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

use crate::{take_number, take_option};

/// Makes the trace that `args` describe.
pub fn run(args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let output = take_option(&mut args, "-o")?.context("synth needs -o FILE")?;
    let truth_file = take_option(&mut args, "--truth")?;
    let spec = spec(&mut args)?;
    ensure!(args.is_empty(), "synth does not know {}", args.join(" "));
    let begun = Instant::now();
    let truth = holdup_synth::write(&spec, &PathBuf::from(&output))?;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds()?);
    let rate = spec.events as f64 / cpu.max(1e-9) / 1e6;
    eprintln!("{output}: {} events in {seconds:.1} s; {cpu:.1} s of CPU time, {rate:.2} M for each", spec.events);
    let text = serde_json::to_string_pretty(&in_json(&spec, &truth))? + "\n";
    match truth_file {
        Some(file) => std::fs::write(&file, text).with_context(|| file)?,
        None => print!("{text}"),
    }
    Ok(true)
}

/// The CPU time of this process so far: on a busy machine it says more than the clock.
fn cpu_seconds() -> Result<f64> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |t: TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(used.user_time()) + seconds(used.system_time()))
}

fn spec(args: &mut Vec<String>) -> Result<Spec> {
    let shape = take_option(args, "--shape")?.unwrap_or_else(|| Shape::Lock.name().to_owned());
    let events = take_option(args, "--events")?.unwrap_or_else(|| "1M".to_owned());
    Ok(Spec {
        shape: Shape::from_name(&shape).with_context(|| {
            let known: Vec<&str> = Shape::ALL.iter().map(|s| s.name()).collect();
            format!("--shape {shape}: there are {}", known.join(", "))
        })?,
        cpus: take_number(args, "--cpus", 128)?,
        threads: take_number(args, "--threads", 1000)?,
        events: count(&events).with_context(|| format!("--events {events}: a number such as 200000, 100M or 1e8"))?,
        seed: take_number(args, "--seed", 1)?,
        losses: take_number(args, "--losses", 0)?,
    })
}

/// `200000`, `100M`, `1e8`.
fn count(text: &str) -> Option<u64> {
    let unit = |c| match c {
        'k' | 'K' => Some(1e3),
        'M' => Some(1e6),
        'G' => Some(1e9),
        _ => None,
    };
    let (number, times) = match text.chars().last().and_then(unit) {
        Some(times) => (&text[..text.len() - 1], times),
        None => (text, 1.0),
    };
    let count = number.parse::<f64>().ok()? * times;
    (count.is_finite() && (0.0..=1e15).contains(&count) && count.fract() == 0.0).then_some(count as u64)
}

fn in_json(spec: &Spec, truth: &Truth) -> serde_json::Value {
    let made = json!({
        "shape": spec.shape.name(),
        "cpus": spec.cpus,
        "threads": spec.threads,
        "events": spec.events,
        "seed": spec.seed,
        "losses": spec.losses,
    });
    if truth.kind.is_none() {
        return json!({ "made": made, "culprit": null });
    }
    let culprit = json!({
        "kind": truth.kind.map(holdup_synth::Planted::name),
        "thread": truth.thread,
        "tid": truth.tid,
        "process": truth.process,
        "pid": truth.pid,
        "function": truth.function,
        "lock": truth.lock.map(|address| format!("{address:#x}")),
        "held_s": truth.held_ns as f64 / 1e9,
        "phases": truth.phases,
    });
    json!({ "made": made, "culprit": culprit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units() {
        let known = ["200000", "100M", "1e8", "100e6", "1.5M", "2k", "1G"];
        let counts = [200_000, 100_000_000, 100_000_000, 100_000_000, 1_500_000, 2000, 1_000_000_000];
        assert_eq!(known.map(count), counts.map(Some));
        assert_eq!(["", "M", "-1", "1.5", "1e99", "nan", "ten", "5é"].map(count), [None; 8]);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let run = |line: &str| run(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap_err().to_string();
        assert_eq!(run("--shape lock"), "synth needs -o FILE");
        assert_eq!(run("-o x --shape tree"), "--shape tree: there are lock, hub, chain, pool");
        assert_eq!(run("-o x --frob"), "synth does not know --frob");
        assert_eq!(run("-o x --events many"), "--events many: a number such as 200000, 100M or 1e8");
    }
}
