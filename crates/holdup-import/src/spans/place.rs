//! Which thread a span is of.

use holdup_trace::{Result, Table, ThreadIdx, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

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
    let known = Known::new(trace);
    for (i, told) in spans.iter().enumerate() {
        match known.place(told) {
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

/// Threads and processes of the trace by what tells of them.
struct Known<'a> {
    trace: &'a Trace,
    by_tid: FxHashMap<u32, Vec<ThreadIdx>>,
    by_name: FxHashMap<&'a str, Vec<ThreadIdx>>,
    pids: FxHashSet<u32>,
    processes: FxHashSet<&'a str>,
}

impl<'a> Known<'a> {
    fn new(trace: &'a Trace) -> Self {
        let (by_tid, by_name) = (FxHashMap::default(), FxHashMap::default());
        let mut known = Known { trace, by_tid, by_name, pids: FxHashSet::default(), processes: FxHashSet::default() };
        for (i, thread) in trace.threads.rows().enumerate().skip(1) {
            let index = ThreadIdx(i as u32);
            known.by_tid.entry(thread.tid).or_default().push(index);
            known.by_name.entry(trace.text(thread.name)).or_default().push(index);
            known.pids.insert(thread.pid);
            known.processes.insert(trace.text(thread.process));
        }
        known
    }

    /// Where a span belongs, if that is seen without looking at who ran: whoever wrote a table knew the thread, or there is no such process.
    fn place(&self, told: &Told) -> Option<Placed> {
        let whom = &told.whom;
        let is_there = whom.pid.is_none_or(|pid| self.pids.contains(&pid))
            && whom.process.as_ref().is_none_or(|name| self.processes.contains(name.as_str()));
        if !is_there {
            return Some(Placed::Unknown);
        }
        if !whom.is_sure {
            return None;
        }
        let (by_tid, by_name) =
            (whom.tid.map(|tid| self.by_tid.get(&tid)), whom.thread.as_deref().map(|name| self.by_name.get(name)));
        let named = by_tid.or(by_name)?.map_or(&[][..], Vec::as_slice);
        let lived = |&&thread: &&ThreadIdx| {
            let lived =
                |row: holdup_trace::tables::Thread| row.start.nanos() <= told.start && row.end.nanos() >= told.end;
            is_of(self.trace, thread, whom) && self.trace.thread(thread).is_some_and(lived)
        };
        let mut found = named.iter().filter(lived);
        match (found.next(), found.next()) {
            (None, _) => Some(Placed::Unknown),
            (Some(one), None) => Some(Placed::On(*one)),
            // All of a pool may have one name: then it is seen who ran.
            (Some(_), Some(_)) => None,
        }
    }
}

/// Whether a thread is of the process that is meant.
fn is_of(trace: &Trace, thread: ThreadIdx, whom: &Whom) -> bool {
    let Some(row) = trace.thread(thread).filter(|_| thread.is_real()) else { return false };
    whom.pid.is_none_or(|pid| row.pid == pid)
        && whom.process.as_ref().is_none_or(|name| trace.text(row.process) == name)
}

/// Whether it is the thread that is named, if one is.
fn is_named(trace: &Trace, thread: ThreadIdx, whom: &Whom) -> bool {
    let Some(row) = trace.thread(thread) else { return false };
    whom.tid.is_none_or(|tid| row.tid == tid) && whom.thread.as_ref().is_none_or(|name| trace.text(row.name) == name)
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
        let whom = &self.spans[span].whom;
        let mut own = both.clone();
        own.retain(|thread| is_named(self.trace, *thread, whom));
        // Some runtimes number their threads by themselves: within its process, such a number says nothing.
        let is_own_number = own.is_empty() && (whom.pid.is_some() || whom.process.is_some()) && whom.thread.is_none();
        let both = if is_own_number { both } else { own };
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
