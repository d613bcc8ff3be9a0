//! `processes`: from when to when each process was there, with what its threads took.

use holdup_trace::tables::Thread;
use holdup_trace::{Table as _, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::switches::times_on_cpu;
use super::{Def, Get, Provider, def};
use crate::explore::relation::Unit::{Count, Id, Instant, Nanos, Text};
use crate::explore::{Explorer, MISSING, Result};

pub(super) struct Processes;

/// A process; a number that was used again is another one.
pub(super) struct Lifetime {
    main: ThreadIdx,
    parent: ThreadIdx,
    start: u64,
    /// The greatest value if it did not end.
    end: u64,
    to: u64,
    threads: u64,
    on_cpu: u64,
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

impl Provider for Processes {
    type Row = Lifetime;

    const COLUMNS: &'static [Def<Lifetime>] = &[
        def("process", Text, &["Process", "Process Name"], "Its name.", Get::Process(|r| r.main.into())),
        def("pid", Id, &["Process Id"], "Its number.", Get::ThreadNumber(|r| r.main, |t| t.pid)),
        def("parent", Text, &[], "The process that created it.", Get::Process(|r| r.parent.into())),
        def("parent-pid", Id, &["Parent Process Id"], "Its number.", Get::ThreadNumber(|r| r.parent, |t| t.pid)),
        def("start", Instant, &["Start Time"], "When it began; 0 if before the trace.", Get::Number(|r| r.start)),
        def(
            "end",
            Instant,
            &["End Time"],
            "When its last thread ended; the trace's end if after it.",
            Get::Number(|r| r.to),
        ),
        def("began", Text, &[], "`yes` if it began within the trace.", Get::Word(|r| yes(r.start > 0))),
        def("ended", Text, &[], "`yes` if it ended within the trace.", Get::Word(|r| yes(r.end != MISSING))),
        def("lifetime", Nanos, &["Lifetime"], "From `start` to `end`.", Get::Number(|r| r.to.saturating_sub(r.start))),
        def("threads", Count, &[], "How many threads it had in all that time.", Get::Number(|r| r.threads)),
        def(
            "on-cpu",
            Nanos,
            &["CPU Usage"],
            "CPU time of its threads; unknown without switches.",
            Get::Number(|r| r.on_cpu),
        ),
    ];

    fn thread(row: &Lifetime) -> ThreadIdx {
        row.main
    }

    fn span(row: &Lifetime) -> (u64, u64) {
        (row.start, row.to)
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&Lifetime) -> Result<()>) -> Result<()> {
        lifetimes(explorer.trace)?.iter().try_for_each(each)
    }
}

/// All processes by their beginning. O(threads log threads + switches).
fn lifetimes(trace: &Trace) -> Result<Vec<Lifetime>> {
    let on_cpu = on_cpu(trace)?;
    let mut order: Vec<(ThreadIdx, Thread)> = (1..trace.threads.len())
        .map(|i| (ThreadIdx(i as u32), trace.threads.row(i)))
        .filter(|(_, t)| t.pid > 0)
        .collect();
    // Of threads that began at one instant, the main one made the others.
    order.sort_by_key(|(i, t)| (t.start, t.tid != t.pid, *i));
    let mut found: Vec<Lifetime> = Vec::new();
    let mut latest: FxHashMap<u32, usize> = FxHashMap::default();
    for (thread, row) in order {
        // A main thread that begins later than another of its number is another process's.
        let known = latest.get(&row.pid).copied();
        let at = match known.filter(|&at| row.tid != row.pid || !is_main(trace, found[at].main)) {
            Some(at) => at,
            None => {
                latest.insert(row.pid, found.len());
                found.push(Lifetime {
                    main: thread,
                    parent: row.parent,
                    start: row.start.nanos(),
                    end: 0,
                    to: 0,
                    threads: 0,
                    on_cpu: if trace.switches.rows() == 0 { MISSING } else { 0 },
                });
                found.len() - 1
            }
        };
        let process = &mut found[at];
        if row.tid == row.pid {
            (process.main, process.parent) = (thread, row.parent);
        }
        process.end = process.end.max(row.end.nanos());
        process.to = process.end.min(trace.meta.duration_ns);
        process.threads += 1;
        if process.on_cpu != MISSING {
            process.on_cpu += on_cpu[thread.index()];
        }
    }
    Ok(found)
}

fn is_main(trace: &Trace, thread: ThreadIdx) -> bool {
    trace.thread(thread).is_some_and(|t| t.tid == t.pid)
}

/// Each thread's CPU time, from the switch that brings it to the next one there.
fn on_cpu(trace: &Trace) -> Result<Vec<u64>> {
    let times = times_on_cpu(trace)?;
    let mut sums = vec![0_u64; trace.threads.len()];
    for (index, switch) in trace.switches.iter().enumerate() {
        if let Some(sum) = sums.get_mut(switch?.next.index()) {
            *sum = sum.saturating_add(times[index]);
        }
    }
    Ok(sums)
}
