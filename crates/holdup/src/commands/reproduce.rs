//! `holdup lab reproduce`: a lock as a recording used it, used here.

use std::process::ExitCode;

use holdup_analysis::Options;
use holdup_analysis::contention::{self, LockUse};
use holdup_base::output::{Output, Readers};
use holdup_lab::machine;
use holdup_lab::reproduce::{Effort, Recorded, Role, reproduce};
use holdup_view::Machine;

use crate::cli::Reproduce;
use crate::text::lab::ProgressLine;
use crate::{open, text};

/// Runs the command.
pub fn run(args: &Reproduce) -> anyhow::Result<ExitCode> {
    let file = args.output.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    let trace = open::open(&args.trace)?;
    let options = Options { focus: args.focus.clone(), ..Options::default() };
    let path = args.trace.display().to_string();
    let used = contention::of_finding(&trace, &path, &options, &args.lock, &Machine)?;
    drop(trace);
    if !args.json {
        text::reproduce::print_recorded(&used)?;
    }
    let effort =
        Effort { rounds: args.rounds as usize, seconds: args.length.as_secs_f64(), changes: args.changes.clone() };
    let mut line = ProgressLine::new("reproduce", 0, 1);
    let report = reproduce(recorded(&used), &machine::Machine::this(), &effort, &mut |done| line.update(done));
    line.finish();
    let report = report?;
    if let Some(file) = file {
        text::write_json(file, &report)?;
    }
    if args.json {
        text::print_json(&report)?;
    } else {
        text::reproduce::print(&report)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the lab needs to know of it.
fn recorded(used: &LockUse) -> Recorded {
    let role = |role: &contention::Role| Role {
        name: role.names.join(", "),
        threads: role.threads,
        takings: role.takings,
        ran_s: role.ran.seconds(),
        waited_s: role.waited.seconds(),
        blocked_s: role.blocked.seconds(),
        holds: role.holds.iter().map(|hold| [hold.ran.0, hold.blocked.0]).collect(),
    };
    Recorded {
        lock: text::reproduce::lock_words(used),
        cpus: used.cpus,
        length_s: used.length.seconds(),
        roles: used.roles.iter().map(role).collect(),
    }
}
