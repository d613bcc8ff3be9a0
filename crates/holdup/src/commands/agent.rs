//! `holdup agent`: what holds this machine up, for dashboards and alerts.
//!
//! One short recording after the other, each explained as any is, with pauses between: what it costs is known, and the sums say of
//! how much time they speak.

mod apart;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use holdup_analysis::{Explanation, Options};
use holdup_export::metrics::Metrics;
use holdup_trace::Error;

use apart::Apart;
pub use apart::answer;

use super::record::{self, Then};
use super::{Usage, explain};
use crate::cli::{Agent, Source};
use crate::text::screen::say;

/// The longest secret in bytes.
const LONGEST_SECRET: u64 = 4096;

/// Runs the command, until Ctrl-C or for `--rounds`.
pub fn run(args: &Agent) -> anyhow::Result<ExitCode> {
    if args.over > args.every {
        return Err(
            Usage("--every counts from beginning to beginning: it must not be shorter than --over".into()).into()
        );
    }
    let secret = args.secret_file.as_deref().map(secret).transpose()?;
    if secret.is_none() && !args.listen.ip().is_loopback() {
        let why = "names of programs and functions are not for everybody: beyond this machine --secret-file is needed";
        return Err(Usage(why.into()).into());
    }
    let mut apart = Apart::start(args.listen, secret.as_deref())?;
    let mut metrics = Metrics::default();
    apart.tell(&metrics.text(cpu_seconds()))?;
    say!(
        "holdup: metrics are at http://{}/metrics; {} of every {} are recorded",
        apart.address(),
        time(args.over),
        time(args.every)
    );
    let mut next = Instant::now();
    for round in 0..args.rounds.unwrap_or(u64::MAX) {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        next = Instant::now() + args.every;
        match look(args) {
            Ok(None) => break,
            Ok(Some(told)) => metrics.add(&told),
            // What never worked needs its reason; what worked before may work again.
            Err(why) if round == 0 => return Err(why),
            Err(why) => {
                say!("holdup: note: a recording failed: {why:#}");
                metrics.fail();
            }
        }
        apart.tell(&metrics.text(cpu_seconds()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `None` if it was told to end meanwhile: naming what ran on a whole machine can take longer than who told it will wait.
fn look(args: &Agent) -> anyhow::Result<Option<Explanation>> {
    let source = Source::stretch(&args.pid, args.over);
    let caught = record::catch_until_signal(&source)?;
    if caught.outcome.interrupted {
        return Ok(None);
    }
    let (_, trace) = caught.read(&source, Then::Again)?;
    explain::explain(&trace, "now", &Options { top: usize::MAX, ..Options::default() }).map(Some)
}

/// The first line of the file.
fn secret(path: &Path) -> anyhow::Result<String> {
    let unusable = |why: &str| Error::Input(format!("{}: {why}", path.display()));
    let is_file = std::fs::metadata(path).map_err(|e| unusable(&e.to_string()))?;
    if !is_file.is_file() || is_file.len() > LONGEST_SECRET {
        return Err(unusable("a secret is a line in a plain file").into());
    }
    let text = std::fs::read_to_string(path).map_err(|e| unusable(&e.to_string()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    let is_word = !line.is_empty() && line.bytes().all(|b| b.is_ascii_graphic());
    if is_word {
        Ok(line.to_owned())
    } else {
        Err(unusable("its first line has to be the secret: letters, digits and signs").into())
    }
}

/// What this process has used.
fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32).as_secs_f64()
}

fn time(length: Duration) -> String {
    holdup_base::numbers::duration(length.as_secs_f64())
}
