//! `holdup load run … --vs ADDRESS`: two servers in turns, so that what changes with time meets both alike.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdup_load::harness::Plan;
use holdup_load::report::{Report, compare};

use super::checkpoints::{Checkpoints, place};
use super::perform;
use crate::cli::LoadRun;
use crate::text;
use crate::text::screen::say;

/// Runs both plans in rounds, the second first in every other round, and compares them.
pub fn run(args: &LoadRun, plans: [&Plan; 2]) -> anyhow::Result<ExitCode> {
    // Those of all rounds are tried before the first: hours may lie between it and the last.
    for (side, round) in [0, 1].into_iter().flat_map(|side| (1..=args.repeats).map(move |round| (side, round))) {
        args.output.as_ref().map(|path| place(&numbered(path, side, round))).transpose()?;
    }
    let mut reports: [Vec<Report>; 2] = [Vec::new(), Vec::new()];
    for round in 0..args.repeats {
        for side in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let path = args.output.as_ref().map(|path| numbered(path, side, round + 1));
            let file = path.as_deref().map(place).transpose()?;
            let outcome = perform(plans[side], Checkpoints::new(file.as_ref(), &args.tags))?;
            let report = Report::new(plans[side], &outcome, args.tags.clone());
            say!("{}", text::load::line(&report));
            if let Some(file) = file {
                text::write_json(file, &report)?;
            }
            if let Some(cut) = &report.cut {
                anyhow::bail!("round {} ended early: {cut}", round + 1);
            }
            reports[side].push(report);
        }
    }
    let comparison = compare(&reports[0], &reports[1]);
    if args.json { text::print_json(&comparison) } else { text::load::print_comparison(&comparison) }?;
    Ok(ExitCode::SUCCESS)
}

/// `read.json` as `read.a1.json`, `read.b1.json`, ….
fn numbered(path: &Path, side: usize, round: usize) -> PathBuf {
    let ending = path.extension().map_or("json".into(), std::ffi::OsStr::to_string_lossy);
    path.with_extension(format!("{}{round}.{ending}", ["a", "b"][side]))
}
