//! Tracks of our own: where the CPUs' time went, and what was found.

use holdup_analysis::blame::{Asked, Course, REST, Study, over_time};
use holdup_analysis::report::{Explanation, Finding};
use holdup_trace::Timestamp;
use rustc_hash::FxHashMap;

use super::message::Message;
use super::packet::{Writer, timed, untimed};
use crate::Result;

/// Values of each counter.
const STEPS: u64 = 2000;
/// Shortest step, in nanoseconds.
const SHORTEST: u64 = 100_000;
/// Numbers of tracks: the root, the counters', and then one for each finding.
pub(super) const ROOT: u64 = 0x686f_6c64_7570_0000;
const COUNTERS: u64 = ROOT + 1;
const FINDINGS: u64 = ROOT + 100;

/// Types of events of tracks.
pub(super) const BEGIN: u64 = 1;
pub(super) const END: u64 = 2;
const COUNTER: u64 = 4;

/// Writes counters and findings; `base` is the time at which the trace begins.
pub fn write(study: &Study, found: &Explanation, base: u64, out: &mut Message) -> Result<()> {
    descriptor(ROOT, None, "holdup", out, |_| {});
    counters(study, base, out)?;
    for (rank, finding) in found.findings.iter().enumerate() {
        slices(FINDINGS + rank as u64, rank + 1, finding, base, out);
    }
    Ok(())
}

pub(super) fn descriptor(
    uuid: u64,
    parent: Option<u64>,
    name: &str,
    out: &mut Message,
    more: impl FnOnce(&mut Message),
) {
    untimed(out, Writer::Tracks, |packet| {
        packet.message(60, |track| {
            track.number(1, uuid);
            if let Some(parent) = parent {
                track.number(5, parent);
            }
            track.text(2, name);
            more(track);
        });
    });
}

fn counters(study: &Study, base: u64, out: &mut Message) -> Result<()> {
    let duration = study.trace.meta.duration_ns;
    let steps = (duration / SHORTEST).clamp(1, STEPS) as usize;
    let width = duration as f64 / steps as f64;
    let series = FxHashMap::default();
    let course = over_time(study, &Asked { from: 0, width, steps, series: &series, count: REST + 1 }, || false)?;
    for (at, (name, values)) in named(&course).into_iter().enumerate() {
        let uuid = COUNTERS + at as u64;
        descriptor(uuid, Some(ROOT), name, out, |track| track.message(8, |counter| counter.text(6, "CPUs")));
        let mut last = None;
        for (step, value) in values.iter().enumerate() {
            let cpus = (f64::from(*value) / width.max(1.0) * 1000.0).round() / 1000.0;
            if last.replace(cpus) == Some(cpus) {
                continue;
            }
            let time = base + (step as f64 * width) as u64;
            timed(out, Writer::Tracks, time, |packet| {
                packet.message(11, |event| {
                    event.number(9, COUNTER);
                    event.number(11, uuid);
                    event.double(44, cpus);
                });
            });
        }
    }
    Ok(())
}

/// What the CPUs did, each as a counter of CPUs. Together they are all CPUs.
fn named(course: &Course) -> Vec<(&'static str, Vec<f32>)> {
    let less = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).max(0.0)).collect();
    vec![
        ("busy", less(&course.running, &course.spin)),
        ("spinning", course.spin.clone()),
        ("other programs", course.other.clone()),
        ("held up: idle because threads waited for others", course.charged.get(REST).cloned().unwrap_or_default()),
        ("idle although threads could run", course.runnable_idle.clone()),
        ("idle for want of work", course.no_work.clone()),
        ("not known", course.lost.clone()),
    ]
}

fn slices(uuid: u64, rank: usize, finding: &Finding, base: u64, out: &mut Message) {
    descriptor(uuid, Some(ROOT), &format!("{rank}. {}", finding.title), out, |_| {});
    let time = |seconds: f64| base.saturating_add(Timestamp::from_seconds(seconds).nanos());
    for [from, to] in finding.windows.iter().filter(|[from, to]| from < to) {
        timed(out, Writer::Tracks, time(*from), |packet| {
            packet.message(11, |event| {
                event.number(9, BEGIN);
                event.number(11, uuid);
                event.text(22, "holdup");
                event.text(23, finding.title.as_str());
                annotations(finding, event);
            });
        });
        timed(out, Writer::Tracks, time(*to), |packet| {
            packet.message(11, |event| {
                event.number(9, END);
                event.number(11, uuid);
            });
        });
    }
}

fn annotations(finding: &Finding, event: &mut Message) {
    let culprit = &finding.culprit;
    let texts = [
        ("kind", finding.kind.name()),
        ("process", &culprit.process),
        ("thread", &culprit.thread),
        ("function", &culprit.function),
        ("source", &culprit.source),
        ("advice", &finding.advice),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        event.message(4, |annotation| {
            annotation.text(10, name);
            annotation.text(6, text);
        });
    }
    for (name, value) in [("CPU seconds", finding.blame_cpu_s), ("threads held up", finding.waiters.threads as f64)] {
        event.message(4, |annotation| {
            annotation.text(10, name);
            annotation.double(5, value);
        });
    }
}
