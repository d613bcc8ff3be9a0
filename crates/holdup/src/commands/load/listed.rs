//! `holdup load list`: what a workload has, or the reports in a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use holdup_load::harness;
use holdup_load::report::Report;
use holdup_load::script::Source;

use super::{read_report, target};
use crate::cli::LoadList;
use crate::documents::workload::Workload;
use crate::text;

/// Folders within folders that are looked into.
const DEEPEST: usize = 32;

pub(super) fn list(args: &LoadList) -> anyhow::Result<ExitCode> {
    let path = &args.path;
    if path.is_dir() {
        let mut reports = reports_in(path, if args.recursive { DEEPEST } else { 0 })?;
        reports.retain(|(_, report)| is_wanted(args, report));
        if args.json {
            text::print_json(&text::load::listing(&reports))
        } else {
            text::load::print_reports(path, &reports)
        }?;
    } else {
        let limits = target::limits(&args.limits);
        let (functions, params) = harness::describe(&Source { limits, ..Source::new(target::found(path)) })?;
        let workload = Workload { functions, params };
        if args.json { text::print_json(&workload) } else { text::load::print_workload(&workload) }?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether it is of the workload and the function and has all of the tags that are asked for.
fn is_wanted(args: &LoadList, report: &Report) -> bool {
    let workload = |name: &String| {
        let path = Path::new(&report.workload);
        [path.file_name(), path.file_stem()].into_iter().flatten().any(|own| own == name.as_str())
            || report.workload == *name
    };
    // A mix is written `read:3, write:1`.
    let function = |name: &String| {
        report.function.split(',').any(|part| part.trim().split(':').next().is_some_and(|own| own.trim() == name))
    };
    args.workload.as_ref().is_none_or(workload)
        && args.function.as_ref().is_none_or(function)
        && args.tags.iter().all(|tag| report.tags.contains(tag))
}

/// The reports of a folder, by name; files that are none are left out, and links to folders are not followed.
fn reports_in(folder: &Path, deeper: usize) -> anyhow::Result<Vec<(String, Report)>> {
    let mut paths = Vec::new();
    files_in(folder, deeper, &mut paths)?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| Some((path.display().to_string(), read_report(path).ok()?))).collect())
}

fn files_in(folder: &Path, deeper: usize, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        if deeper > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // One that this user may not read is none of theirs.
            let _ = files_in(&path, deeper - 1, paths);
        } else if path.extension().is_some_and(|ending| ending == "json") && path.is_file() {
            // No pipes: opening one waits.
            paths.push(path);
        }
    }
    Ok(())
}
