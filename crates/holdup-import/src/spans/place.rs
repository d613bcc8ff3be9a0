//! Which thread a span is of.

use holdup_trace::{Result, Table, ThreadIdx, Trace};

use super::{Told, Whom};

/// Where a span belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// To this thread.
    On(ThreadIdx),
    /// No thread ran at both ends of it.
    Nobody,
    /// Several did.
    Several,
    /// It names one that there is not.
    Unknown,
}

/// A span's begin or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    t: u64,
    is_end: bool,
    span: u32,
}

/// The threads of all spans. O(switches + spans log spans); memory for each span that has begun and not ended, and CPU.
pub(super) fn place(trace: &Trace, spans: &[Told]) -> Result<Vec<Placed>> {
    let mut placed = vec![Placed::Nobody; spans.len()];
    let mut edges = Vec::with_capacity(2 * spans.len());
    for (i, told) in spans.iter().enumerate() {
        match named(trace, &told.whom, told.start) {
            Some(found) => placed[i] = found,
            None => {
                let edge = |t, is_end| Edge { t, is_end, span: i as u32 };
                edges.extend([edge(told.start, false), edge(told.end, true)]);
            }
        }
    }
    edges.sort_unstable();
    let mut watch = Watch { trace, spans, running: Vec::new(), begun: vec![Vec::new(); spans.len()], placed };
    let mut edges = edges.into_iter().peekable();
    for chunk in trace.switches.chunks() {
        let chunk = chunk?;
        for i in 0..chunk.len() {
            let t = chunk.t[i].nanos();
            while let Some(edge) = edges.next_if(|edge| edge.t < t) {
                watch.at(edge);
            }
            watch.switch(chunk.cpu[i].0, chunk.next[i]);
        }
    }
    edges.for_each(|edge| watch.at(edge));
    Ok(watch.placed)
}

/// The thread that a span names by its number or its own name; `None` if it names none.
fn named(trace: &Trace, whom: &Whom, at: u64) -> Option<Placed> {
    if whom.tid.is_none() && whom.thread.is_none() {
        return None;
    }
    let mut found = Placed::Unknown;
    for (i, thread) in trace.threads.rows().enumerate().skip(1) {
        let is_it = whom.tid.is_none_or(|tid| thread.tid == tid)
            && whom.thread.as_ref().is_none_or(|name| trace.text(thread.name) == name)
            && is_of(trace, ThreadIdx(i as u32), whom)
            && thread.start.nanos() <= at
            && thread.end.nanos() >= at;
        if is_it {
            found = if found == Placed::Unknown { Placed::On(ThreadIdx(i as u32)) } else { Placed::Several };
        }
    }
    // Some runtimes number threads by themselves, and all of a pool may have one name: then it is seen who ran.
    match found {
        Placed::Unknown if whom.thread.is_none() && (whom.pid.is_some() || whom.process.is_some()) => None,
        Placed::Several => None,
        found => Some(found),
    }
}

/// Whether a thread is of the process that is meant.
fn is_of(trace: &Trace, thread: ThreadIdx, whom: &Whom) -> bool {
    let Some(row) = trace.thread(thread).filter(|_| thread.is_real()) else { return false };
    whom.pid.is_none_or(|pid| row.pid == pid)
        && whom.process.as_ref().is_none_or(|name| trace.text(row.process) == name)
}

/// Goes through the trace and sees who runs.
struct Watch<'a> {
    trace: &'a Trace,
    spans: &'a [Told],
    /// By CPU.
    running: Vec<ThreadIdx>,
    /// Those that ran when a span began.
    begun: Vec<Vec<ThreadIdx>>,
    placed: Vec<Placed>,
}

impl Watch<'_> {
    fn switch(&mut self, cpu: u16, next: ThreadIdx) {
        let cpu = usize::from(cpu);
        if self.running.len() <= cpu {
            self.running.resize(cpu + 1, ThreadIdx::NONE);
        }
        self.running[cpu] = next;
    }

    fn at(&mut self, edge: Edge) {
        let span = edge.span as usize;
        if !edge.is_end {
            let whom = &self.spans[span].whom;
            let fits = |thread: &&ThreadIdx| is_of(self.trace, **thread, whom) && !is_idle(self.trace, **thread);
            self.begun[span] = self.running.iter().filter(fits).copied().collect();
            return;
        }
        let mut both = std::mem::take(&mut self.begun[span]);
        both.retain(|thread| self.running.contains(thread));
        self.placed[span] = match both.as_slice() {
            [] => Placed::Nobody,
            [one] => Placed::On(*one),
            _ => Placed::Several,
        };
    }
}

fn is_idle(trace: &Trace, thread: ThreadIdx) -> bool {
    trace.thread(thread).is_none_or(|row| row.tid == 0)
}
