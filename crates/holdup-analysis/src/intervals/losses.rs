//! When a CPU's records are missing.

use holdup_trace::{Cpu, Result, Trace};

/// A span in which a CPU's events are lost, in nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loss {
    pub(super) cpu: Cpu,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Spans of lost events by CPU, merged where they overlap, sorted by start. What else is lost says nothing of what threads
/// did.
pub(super) fn spans(trace: &Trace) -> Result<Vec<Loss>> {
    let mut spans = Vec::new();
    for row in trace.losses.iter() {
        let row = row?;
        if row.cpu != Cpu::NONE && row.kind.is_of_events() {
            spans.push(Loss { cpu: row.cpu, from: row.from.nanos(), to: row.to.nanos() });
        }
    }
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let overlap = next.cpu == kept.cpu && next.from <= kept.to;
        if overlap {
            kept.to = kept.to.max(next.to);
        }
        overlap
    });
    spans.sort_by_key(|s| s.from);
    Ok(spans)
}

/// Which CPUs are lost just before `t`.
pub(super) fn at(losses: &[Loss], cpus: usize, t: u64) -> Vec<bool> {
    let mut lost = vec![false; cpus];
    for loss in losses.iter().filter(|l| l.from < t && t <= l.to) {
        if let Some(lost) = lost.get_mut(loss.cpu.index()) {
            *lost = true;
        }
    }
    lost
}
