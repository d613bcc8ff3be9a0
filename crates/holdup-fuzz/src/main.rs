//! `cargo run -p holdup-fuzz -- [--seconds N] [--seed N] [--first N] [--count N] [TARGET…]`: a short run of each target, or `TARGET
//! FILE…` to try files again. Exits with 1 if an input fails.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use holdup_fuzz::{Limits, TARGETS, Target, run};

const USAGE: &str = "usage: holdup-fuzz [--seconds N] [--seed N] [--first N] [--count N] [TARGET…] | TARGET FILE…";

/// Where failed inputs are kept, as `cargo fuzz` does.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/artifacts");

struct Call {
    limits: Limits,
    seed: u64,
    targets: Vec<Target>,
    files: Vec<String>,
}

fn call(mut words: impl Iterator<Item = String>) -> Option<Call> {
    let limits = Limits {
        time: Duration::from_secs(5),
        first: 0,
        count: u64::MAX,
        each: Duration::from_secs(60),
        memory: 1 << 30,
    };
    let mut call = Call { limits, seed: 1, targets: Vec::new(), files: Vec::new() };
    while let Some(word) = words.next() {
        let mut number = || words.next()?.parse::<u64>().ok();
        match word.as_str() {
            "--seconds" => call.limits.time = Duration::from_secs(number()?),
            "--seed" => call.seed = number()?,
            "--first" => call.limits.first = number()?,
            "--count" => call.limits.count = number()?,
            name => match TARGETS.iter().find(|t| t.name == name) {
                Some(target) => call.targets.push(*target),
                None if call.targets.len() == 1 && Path::new(name).is_file() => call.files.push(word),
                None => return None,
            },
        }
    }
    if call.targets.is_empty() {
        call.targets = TARGETS.to_vec();
    }
    Some(call)
}

fn main() -> ExitCode {
    let Some(call) = call(std::env::args().skip(1)) else {
        eprintln!("{USAGE}\ntargets: {}", TARGETS.map(|t| t.name).join(", "));
        return ExitCode::from(2);
    };
    if !call.files.is_empty() {
        for path in &call.files {
            match std::fs::read(path) {
                Ok(bytes) => (call.targets[0].body)(&bytes),
                Err(e) => {
                    eprintln!("{path}: {e}");
                    return ExitCode::FAILURE;
                }
            }
            println!("{path}: read");
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for target in &call.targets {
        failed |= !short_run(target, &call);
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Says what came of it; whether all was well.
fn short_run(target: &Target, call: &Call) -> bool {
    let (name, seed) = (target.name, call.seed);
    match run(target, seed, &call.limits, Path::new(KEPT)) {
        Ok(ran) => {
            let seconds = ran.elapsed.as_secs_f64();
            println!(
                "{name}: {} inputs in {seconds:.1} s, {:.0}/s, slowest {:.0} ms, peak {} MB, seed {seed}",
                ran.inputs,
                ran.inputs as f64 / seconds.max(1e-9),
                ran.slowest.as_secs_f64() * 1e3,
                ran.memory >> 20
            );
            let Some(failure) = ran.failure else { return true };
            eprintln!(
                "{name}: input {} failed: {}; it is kept as {}",
                failure.input,
                failure.what,
                failure.path.display()
            );
            eprintln!("again: cargo run -p holdup-fuzz -- --seed {seed} --first {} --count 1 {name}", failure.input);
            false
        }
        Err(e) => {
            eprintln!("{name}: {KEPT}: {e}");
            false
        }
    }
}
