//! `cargo xtask thin`: do first findings stay if some of the events are removed?

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use holdup_analysis::report::Confidence;
use holdup_trace::{file, thinned};

use crate::holdup::{Finding, Holdup};
use crate::{table, take_number, take_option};

/// Explains the traces in `args`. Whether no first finding became another one that is sure of itself.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let holdup = Holdup::new(root, take_option(&mut args, "--holdup")?)?;
    let (share, times) = (take_number(&mut args, "--share", 0.01)?, take_number(&mut args, "--times", 3)?);
    ensure!(!args.is_empty(), "which traces?");
    let scratch = root.join("target/thin");
    std::fs::create_dir_all(&scratch)?;
    let thin = scratch.join("thin.holdup");

    let mut rows = Vec::new();
    let mut all_stay = true;
    for path in args.iter().map(PathBuf::from) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let whole = first(&holdup, &path)?;
        for seed in 1..=times {
            file::write(&thinned(file::read(&path)?, share, seed)?, &thin)?;
            let left = first(&holdup, &thin)?;
            let verdict = judge(whole.as_ref(), left.as_ref());
            all_stay &= verdict != "FAIL";
            let mut row = vec![name.clone(), seed.to_string(), verdict.to_owned()];
            row.extend([&whole, &left].map(|f| f.as_ref().map_or("none".to_owned(), in_words)));
            rows.push(row);
        }
    }
    table::print(&["trace", "seed", "", "whole", "thinned"], &rows);
    Ok(all_stay)
}

fn first(holdup: &Holdup, trace: &Path) -> Result<Option<Finding>> {
    Ok(holdup.explain(trace)?.findings.into_iter().next())
}

fn judge(whole: Option<&Finding>, left: Option<&Finding>) -> &'static str {
    let says = |f: &Finding| (f.kind, f.function().to_owned());
    match left {
        _ if whole.map(says) == left.map(says) => "ok",
        Some(f) if f.confidence == Confidence::Low => "low",
        _ => "FAIL",
    }
}

fn in_words(f: &Finding) -> String {
    format!("{} {} {:.2} {}", f.kind, f.function(), f.blame_cpu_s, f.confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_finding_may_stand_first_only_if_it_is_not_sure() {
        let of = |function: &str, confidence| Finding {
            culprit: Some(crate::holdup::Culprit { function: Some(function.into()), ..Default::default() }),
            confidence,
            ..Finding::default()
        };
        let whole = of("scan", Confidence::High);
        assert_eq!(judge(Some(&whole), Some(&of("scan", Confidence::Medium))), "ok");
        assert_eq!(judge(Some(&whole), Some(&of("other", Confidence::Low))), "low");
        assert_eq!(judge(Some(&whole), Some(&of("other", Confidence::Medium))), "FAIL");
        assert_eq!(judge(Some(&whole), None), "FAIL");
    }
}
