//! Developer commands: `cargo xtask tidy | scenarios | real | requests | kernels | bench | synth | ui | wasm`.

#![forbid(unsafe_code)]

mod bench;
mod bounds;
mod faults;
mod fleet;
mod holdup;
mod kernels;
mod load;
mod measure;
mod pairs;
mod real;
mod requests;
mod scenarios;
mod soak;
mod sweeps;
mod synth;
mod table;
mod thin;
mod tidy;
mod truth;
mod ui;
#[cfg(feature = "wasm")]
mod wasm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

const USAGE: &str = "\
cargo xtask tidy                        rules that no compiler checks: crate arrows, file budgets, links
cargo xtask scenarios [NAME...]         record and explain programs with a planted culprit; exit 1 if one is missed
    --hog            with an unrelated CPU hog beside each
    --perf           also through `perf record` and perf.data
    --seconds N      how long each runs (default 4)
cargo xtask scenarios --diff [NAME...]  record two builds each and compare them; exit 1 if a planted difference is missed
    --runs N         how often each is recorded (default 1)
    --bounds         measure what each fix gains instead, and compare it with the bound that is printed (default 3 runs)
cargo xtask scenarios --scale [NAME...] run `scale --trace` with one and two threads; exit 1 if a planted loss is missed
cargo xtask thin TRACE...               explain traces as they are and with 1 % of their events removed at random; exit 1 if a first
                                        finding becomes another one, and is not of low confidence
    --share S        how much to remove (default 0.01)
    --times N        how often, each time others (default 3)
cargo xtask bench [pipe|job|read|groups|load]...  what recording, reading, grouping and generating load cost, beside perf,
                                        DuckDB, sysbench and Latte (default: all)
    --rounds N       interleaved rounds (default 7)
    --load TEXT            of `servers` only those whose name has this
    --cassandra HOST:PORT  an idle Cassandra for Latte to connect to: `load` leaves it out without one
cargo xtask synth -o FILE               make a trace of any size with a planted culprit; says what is planted, as JSON
    --shape SHAPE    lock, hub, chain or pool (default lock)
    --cpus N         1 to 512 (default 128)
    --threads N      8 to 100000 (default 1000)
    --events N       switches and wake-ups, such as 200000, 100M or 1e8 (default 1M)
    --seed N         another seed, another trace (default 1)
    --losses N       how often a CPU's records are lost for a while (default 0)
    --truth FILE     where to say what is planted (default: standard output)
cargo xtask real [NAME...]              record and explain programs of others, and compare with what another instrument
                                        says of them; exit 1 if one is answered wrongly
    --seconds S      how long each is recorded (default 5)
    --bounds         measure the fixes too, and compare with the printed bounds
    --busy           the machine has other work to do: leave out that it had the CPUs
    --machine        also with the whole machine in focus
    --perf           also through `perf record` and perf.data
    --results DIR    where the answers are kept (default target/real/results)
    --table FILE     write the table of all that are kept, such as docs/real-programs.md
    --print          run nothing: only the table
cargo xtask requests [NAME...]          record servers some of whose requests are slow, and compare what explain --spans says
                                        with what they measure themselves; exit 1 if one differs
    --seconds S      how long each is recorded (default 5)
    --table FILE     write the table, such as docs/slow-requests.md
cargo xtask kernels [PACKAGE...]        boot the kernels that apt offers, emulated, record in them, and compare the findings with
                                        what is planted; exit 1 if one differs
    --only JOB,...   only some of the recordings
    --cpus N         how many CPUs a guest has (default 8), and
    --many N         how many for those that are about many (default 16; 0: none of these)
    --seconds N      how long each program runs (default 4)
    --patience MIN   when a guest is given up (default 20)
    --table FILE     write the table of all results that are kept in target/kernels, such as into docs/kernels.md
    --print          boot nothing: only the table
cargo xtask soak                        a flight recorder under load with three planted stalls; exit 1 if it grows or misses one
    --minutes N      how long (default 60)
    --every SECONDS  between samples of memory, files and CPU time (default 10)
    --ring-size SIZE its bound (default 64MB)
cargo xtask faults [NAME...]            what is left of a recording when something goes wrong; exit 1 if more than it should
    --times N        how often each is injected (default: one to twelve times)
    --table FILE     write the table, such as docs/faults.md
cargo xtask ui                          build the page of the view from ui/ (needs node)
    --check          build it elsewhere, compare with what is committed, and test it; exit 1 if they differ
cargo run -p xtask --features wasm -- wasm   the browser's side of holdup, for reports: into crates/holdup-report/dist
    --check          compare with what is there instead; exit 1 if it differs
bench, scenarios, thin, real, requests, kernels, soak and faults take --holdup PATH (default target/release/holdup)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let done = match args.first().map(String::as_str) {
        Some("tidy") => tidy::run(&root()),
        Some("scenarios") => scenarios::run(&root(), rest),
        Some("real") => real::run(&root(), rest),
        Some("requests") => requests::run(&root(), rest),
        Some("kernels") => kernels::run(&root(), rest),
        Some("thin") => thin::run(&root(), rest),
        Some("synth") => synth::run(rest),
        Some("fleet") => fleet::run(rest),
        #[cfg(feature = "wasm")]
        Some("wasm") => wasm::run(&root(), rest),
        #[cfg(not(feature = "wasm"))]
        Some("wasm") => Err(anyhow::anyhow!("built without it: cargo run -p xtask --features wasm -- wasm")),
        Some("bench") => bench::run(&root(), rest),
        Some("faults") => faults::run(&root(), rest),
        Some("soak") => soak::run(&root(), rest),
        Some(load::COMMAND) => return load::run(rest),
        Some("ui") => ui::run(&root(), rest),
        Some(measure::COMMAND) => return measure::child(rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::from(2)
        }
    }
}

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_owned()
}

/// Takes `--name VALUE` out of `args`.
fn take_option(args: &mut Vec<String>, name: &str) -> Result<Option<String>> {
    let Some(at) = args.iter().position(|a| a == name) else { return Ok(None) };
    args.remove(at);
    anyhow::ensure!(at < args.len(), "{name} needs a value");
    Ok(Some(args.remove(at)))
}

/// Takes `--name N` out of `args`.
fn take_number<N: std::str::FromStr>(args: &mut Vec<String>, name: &str, default: N) -> Result<N>
where
    N::Err: std::error::Error + Send + Sync + 'static,
{
    match take_option(args, name)? {
        Some(text) => text.parse().with_context(|| format!("{name} {text}")),
        None => Ok(default),
    }
}

/// Takes `--name` out of `args`.
fn take_flag(args: &mut Vec<String>, name: &str) -> bool {
    let at = args.iter().position(|a| a == name);
    at.map(|at| args.remove(at)).is_some()
}
