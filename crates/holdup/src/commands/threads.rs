//! `holdup threads`: who is there, in a trace or in a running process.

use std::cmp::Reverse;
use std::path::Path;
use std::process::ExitCode;

use holdup_analysis::threads::{self, HOW_TO_NAME, Naming};
use holdup_trace::Timestamp;

use crate::cli::{ThreadOrder, Threads};
use crate::documents::live::{Live, LiveRow};
use crate::{open, text};

/// Runs the command.
pub fn run(args: &Threads) -> anyhow::Result<ExitCode> {
    match pid(&args.subject) {
        Some(pid) => of_process(args, pid),
        None => of_trace(args),
    }
}

/// A number of which there is no file.
fn pid(subject: &Path) -> Option<u32> {
    let text = subject.to_str().filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
    text.parse().ok().filter(|_| !subject.exists())
}

fn of_trace(args: &Threads) -> anyhow::Result<ExitCode> {
    let trace = open::open(&args.subject)?;
    let path = args.subject.display().to_string();
    let mut found = threads::list(&trace, &path, args.focus.as_deref(), args.all)?;
    text::threads::sort(&mut found.threads, args.sort);
    let all = found.threads.len();
    found.threads.truncate(args.top);
    if args.json {
        text::print_json(&found)?;
    } else {
        text::threads::print(&found, all)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_process(args: &Threads, pid: u32) -> anyhow::Result<ExitCode> {
    let process = holdup_record::live_threads(pid)?;
    let names: Vec<_> =
        process.threads.iter().map(|t| (process.pid, t.tid, t.name.as_str(), process.name.as_str())).collect();
    let naming = threads::naming(&names);
    let unnamed = naming.iter().filter(|n| n.is_unnamed()).count();
    let row = |(t, naming): (&holdup_record::LiveThread, Naming)| LiveRow {
        tid: t.tid,
        name: t.name.clone(),
        naming,
        state: t.state,
        ran_s: t.ran.map(|n| n.seconds()),
        ready_s: t.ready.map(|n| n.seconds()),
        runs: t.runs,
        voluntary: t.voluntary,
        involuntary: t.involuntary,
    };
    let mut threads: Vec<LiveRow> = process.threads.iter().zip(naming).map(row).collect();
    sort_live(&mut threads, args.sort);
    let all = threads.len();
    threads.truncate(args.top);
    let advice = if unnamed > 0 { HOW_TO_NAME.to_owned() } else { String::new() };
    let live = Live { schema: "holdup.threads/1", pid: process.pid, process: process.name, unnamed, threads, advice };
    if args.json {
        text::print_json(&live)?;
    } else {
        text::threads::print_live(&live, all)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sort_live(threads: &mut [LiveRow], by: ThreadOrder) {
    let ns = |s: Option<f64>| Reverse(Timestamp::from_seconds(s.unwrap_or(0.0)));
    threads.sort_by_key(|t| t.tid);
    match by {
        ThreadOrder::Ran => threads.sort_by_key(|t| ns(t.ran_s)),
        ThreadOrder::Ready => threads.sort_by_key(|t| ns(t.ready_s)),
        ThreadOrder::Waited | ThreadOrder::Waits => threads.sort_by_key(|t| Reverse(t.voluntary)),
        ThreadOrder::Name => threads.sort_by(|a, b| a.name.cmp(&b.name)),
        ThreadOrder::Tid => {}
    }
}
