//! `holdup load run --trace`: what the server did with its slowest requests.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use holdup_analysis::spans;
use holdup_load::report::Report;
use holdup_record::Sockets;
use holdup_trace::Trace;

use super::super::record::{self, Then};
use super::{plan, read_report};
use crate::cli::{LoadRun, Source};
use crate::text::screen::say;
use crate::{open, text};

/// What the load's calls are called: `call:FUNCTION`.
const CALLS: &str = "call:";
/// The share of requests that is called slow.
const SLOW: f64 = 0.001;

/// Records this machine into `file` while this program, called again, is the load; then says what the server's threads did meanwhile.
///
/// The recorder looks away from itself, so that the load has to be another process.
pub fn run(args: &LoadRun, file: &Path) -> anyhow::Result<ExitCode> {
    let plan = plan(&args.target, &args.width)?;
    let scratch = tempfile::tempdir()?;
    let own = scratch.path().join("report.json");
    // Only who may write there can mark its calls; the server's requests are seen without.
    let markers = holdup_base::output::trace_marker().is_ok();
    let source = Source::command(command(args, &own, markers)?);
    let sockets = Some(Sockets { with_text: true });
    let options = holdup_record::Options { sockets, markers, ..record::options(&source)? };
    let outcome = record::record_with(&options, &source, file, Then::Done)?;
    let report = args.output.as_deref().filter(|path| path.is_file()).unwrap_or(&own);
    let report = report.is_file().then(|| read_report(report)).transpose()?;
    let ports =
        plan.connect.iter().flat_map(|options| &options.address.hosts).map(|(_, port)| *port).collect::<Vec<_>>();
    tell(&open::open(file)?, file, &ports, report.as_ref())?;
    Ok(record::exit_code(&outcome))
}

/// What is recorded: this program with the same arguments, but for `--trace`.
fn command(args: &LoadRun, report: &Path, marks: bool) -> anyhow::Result<Vec<String>> {
    let this = std::env::current_exe().context("where this program is")?;
    let is_trace = |arg: &OsStr| arg == "--trace" || arg.to_string_lossy().starts_with("--trace=");
    let mut command = vec![this.display().to_string()];
    for arg in std::env::args_os().skip(1).filter(|arg| !is_trace(arg)) {
        command.push(arg.into_string().map_err(|arg| anyhow::anyhow!("{} is not text", arg.display()))?);
    }
    if marks && !args.mark {
        command.push("--mark".to_owned());
    }
    if args.output.is_none() {
        command.extend(["-o".to_owned(), report.display().to_string()]);
    }
    Ok(command)
}

/// What the server's threads did with the slowest requests, and what the load's calls waited for.
fn tell(trace: &Trace, file: &Path, ports: &[u16], report: Option<&Report>) -> anyhow::Result<()> {
    let path = file.display().to_string();
    let known = spans::names(trace)?;
    let is_known = |name: &String| known.iter().any(|k| k.name == *name);
    let explain = |name| {
        let options = spans::Options { name, argument: String::new(), slow: SLOW };
        spans::explain(trace, &path, &options)
    };
    let served = ports.iter().map(|port| format!("tcp:{port}")).find(is_known).map(explain).transpose()?;
    match &served {
        Some(answer) => {
            say!("");
            text::spans::print(answer)?;
        }
        None => say!(
            "holdup: no requests to the server were seen on this machine: where it runs elsewhere, `holdup record -a --span net` there tells what \
             it did"
        ),
    }
    // The function that was called most.
    let calls = known.iter().filter(|k| k.name.starts_with(CALLS)).max_by_key(|k| k.count);
    if let Some(calls) = calls {
        say!("\nThe load's own calls:");
        text::spans::print(&explain(calls.name.clone())?)?;
    }
    if let (Some(ms), Some(answer)) = (report.map(|report| report.service_ms.p999), served) {
        let theirs = answer.slow.min_s * 1e3;
        say!(
            "One call in a thousand took {ms:.3} ms or more as the load saw it, one request in a thousand {theirs:.3} ms or more on the server."
        );
    }
    Ok(())
}
