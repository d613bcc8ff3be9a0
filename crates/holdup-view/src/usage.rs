//! What the CPUs did over time, one value for each pixel.

use holdup_analysis::lanes::Doing;
use holdup_trace::ThreadIdx;
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::base::Base;
use crate::framing::Numbers;
use crate::parts::Parts;
use crate::study::Study;
use crate::window::Grid;
use crate::{Answer, Cancel, Result};

/// Values by pixel, in CPUs.
pub(crate) type Series = Vec<f32>;

#[derive(Serialize)]
struct Used {
    window: [u64; 2],
    px: usize,
    cpus: usize,
    /// Whether what held the CPUs up is told apart.
    split: bool,
    series: Vec<String>,
    overlay: Option<Overlay>,
}

#[derive(Serialize)]
struct Overlay {
    label: String,
}

/// Whose CPU use is laid over the rest.
pub(crate) struct Over {
    pub(crate) label: String,
    pub(crate) threads: FxHashSet<ThreadIdx>,
}

/// Puts an answer together.
pub(crate) fn answer(
    study: &Study,
    grid: Grid,
    split: bool,
    series: Vec<(String, Series)>,
    over: Option<(String, Series)>,
) -> Answer {
    let document = Used {
        window: [grid.from, grid.to],
        px: grid.px,
        cpus: study.timeline.cpus,
        split,
        series: series.iter().map(|(name, _)| name.clone()).collect(),
        overlay: over.as_ref().map(|(label, _)| Overlay { label: label.clone() }),
    };
    let overlay = over.map(|(_, values)| ("overlay".to_owned(), values));
    let sections = series.into_iter().chain(overlay).map(|(name, values)| (name, Numbers::F32(values)));
    Answer::with(&document, sections.collect())
}

/// What the CPUs did, as far as it is known without the explanation: busy, spin, other, idle, lost.
///
/// # Errors
/// If a table is damaged, or if nobody wants to know any more.
pub(crate) fn plain(
    study: &Study,
    base: &Base,
    parts: &Parts,
    grid: Grid,
    cancel: &Cancel,
) -> Result<Vec<(String, Series)>> {
    let mut sums = vec![vec![0.0; grid.px]; 4];
    if grid.width() < base.width as f64 {
        let look = study.look();
        parts.each(&study.timeline, (grid.from, grid.to), cancel, |chunk| {
            look.follow(chunk, |d| {
                if d.doing.has_cpu() {
                    let of = match d.doing {
                        _ if !study.focus.contains(d.thread) => 2,
                        Doing::Spins => 1,
                        _ => 0,
                    };
                    grid.each(d.from, d.to, |px, ns| sums[of][px] += ns);
                }
            });
            for (_, from, to) in chunk.lost() {
                grid.each(from, to, |px, ns| sums[3][px] += ns);
            }
        })?;
    } else {
        let used = &base.usage;
        for (sum, buckets) in sums.iter_mut().zip([&used.busy, &used.spin, &used.other, &used.lost]) {
            resample(buckets, base.width, grid, sum);
        }
    }
    let width = grid.width() as f32;
    sums.iter_mut().flatten().for_each(|v| *v /= width);
    let cpus = study.timeline.cpus as f32;
    let idle = (0..grid.px).map(|px| (cpus - sums.iter().map(|s| s[px]).sum::<f32>()).max(0.0)).collect();
    let mut sums = sums.into_iter();
    let mut next = || sums.next().unwrap_or_default();
    let series = [("busy", next()), ("spin", next()), ("other", next()), ("idle", idle), ("lost", next())];
    Ok(series.into_iter().map(|(name, values)| (name.to_owned(), values)).collect())
}

/// Adds nanoseconds by bucket up to nanoseconds by pixel.
pub(crate) fn resample(buckets: &[f32], width: u64, grid: Grid, sum: &mut [f32]) {
    let first = (grid.from / width) as usize;
    for (i, value) in buckets.iter().enumerate().skip(first) {
        let from = i as u64 * width;
        if from >= grid.to {
            return;
        }
        if *value > 0.0 {
            grid.each(from, from + width, |px, ns| sum[px] += value * ns / width as f32);
        }
    }
}

/// The CPU use of some threads, in CPUs.
///
/// # Errors
/// If a table is damaged, or if nobody wants to know any more.
pub(crate) fn overlay(
    study: &Study,
    base: &Base,
    parts: &Parts,
    grid: Grid,
    over: Over,
    cancel: &Cancel,
) -> Result<(String, Series)> {
    let mut sum = vec![0.0; grid.px];
    if grid.width() < base.width as f64 {
        let look = study.look();
        parts.each(&study.timeline, (grid.from, grid.to), cancel, |chunk| {
            look.follow(chunk, |d| {
                if d.doing.has_cpu() && over.threads.contains(&d.thread) {
                    grid.each(d.from, d.to, |px, ns| sum[px] += ns);
                }
            });
        })?;
    } else {
        let (first, behind) = ((grid.from / base.width) as usize, grid.to.div_ceil(base.width) as usize);
        for lane in over.threads.iter().filter_map(|t| base.lanes.get(t.index())) {
            for (run, from, to) in lane.within(first, behind).filter(|(run, ..)| run.run() > 0.0) {
                let share = run.run();
                grid.each(from as u64 * base.width, to as u64 * base.width, |px, ns| sum[px] += ns * share);
            }
        }
    }
    let width = grid.width() as f32;
    sum.iter_mut().for_each(|v| *v /= width);
    Ok((over.label, sum))
}
