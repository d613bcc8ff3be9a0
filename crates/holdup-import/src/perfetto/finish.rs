//! The end of an import: counts, what was lost, what the user should know.

use holdup_trace::{LossKind, LostEvent, Nanos, Note, NoteKind, Result};

use super::ftrace::number;
use super::names;
use super::session::Session;
use crate::linux::Instant;
use crate::linux::cpus::cpu;

/// How to record a trace that can tell more.
const RECORD: &str = "record with the data source linux.ftrace and its events sched/sched_switch, sched/sched_waking, task/task_newtask, task/task_rename, sched/sched_process_exit";

/// Completes `session`.
pub fn finish(mut session: Session) -> Result<()> {
    session.settle(true);
    session.kernel.finish();
    losses(&mut session);
    let notes = notes(&session);
    let Session { kernel, counts, ftrace, .. } = session;
    let builder = kernel.sink.builder;
    for (number, count) in counts.all() {
        let name = names::packet(number).map_or_else(|| format!("packet {number}"), str::to_owned);
        builder.count_native(&name, count);
    }
    for (number, count) in ftrace.counts.all().filter(|&(n, _)| n != number::GENERIC as usize) {
        builder.count_native(&names::event(number), count);
    }
    for (name, count) in &ftrace.generic {
        builder.count_native(name, *count);
    }
    let meta = builder.meta_mut();
    meta.hooks = ftrace.counts.all().map(|(number, _)| names::event(number)).collect();
    meta.notes.extend(notes);
    Ok(())
}

fn losses(session: &mut Session) {
    let Session { kernel, ftrace, system, lost, join, stacks, .. } = session;
    let latest = kernel.sink.latest();
    let span = latest.saturating_sub(kernel.sink.start().unwrap_or(latest));
    // Where ftrace marked the places, they are counted there.
    for (cpu, count) in system.overwritten().filter(|_| ftrace.marks == 0) {
        kernel.lost(Instant { time: latest, cpu }, span, count, "events that ftrace overwrote");
    }
    for (count, what) in [
        (ftrace.damaged, "damaged events"),
        (lost.damaged, "damaged packets"),
        (lost.nested, "compressed packets inside compressed ones, or of no possible size"),
        (system.packets_lost, "packets for which their writers had no room"),
    ] {
        if count > 0 {
            kernel.sink.lost_anywhere(count, what);
        }
    }
    for (count, what) in [
        (lost.skipped, "stacks that the profiler left out"),
        (lost.stateless, "samples whose stacks refer to lost packets"),
        (join.unmatched, "stacks of switches that ftrace did not see"),
        (stacks.undefined, "stacks that no packet defines"),
    ] {
        if count > 0 {
            let what = kernel.sink.builder.string(what);
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let (kind, cpu, span) = (LossKind::LimitedStacks, cpu(u32::MAX), Nanos(span));
            kernel.sink.maybe_timed(latest, LostEvent { kind, cpu, span, count, what });
        }
    }
}

fn notes(session: &Session) -> Vec<Note> {
    let Session { ftrace, system, lost, join, .. } = session;
    let mut notes: Vec<Note> = Vec::new();
    let count = |n| ftrace.counts.of(n);
    if count(number::SWITCH) == 0 {
        let what = format!("no sched_switch in this trace, so waits are unknown; {RECORD}");
        notes.push(Note::new(NoteKind::MissingEvents, what));
    } else if count(number::WAKING) + count(number::WAKEUP) == 0 {
        let what = format!("no sched_waking in this trace, so wakers are unknown; {RECORD}");
        notes.push(Note::new(NoteKind::MissingEvents, what));
    } else if count(number::WAKING) == 0 {
        let what = "no sched_waking in this trace: wake-ups are told by sched_wakeup, on the CPU of who was woken, so some wakers are wrong";
        notes.push(format!("{what}; add sched/sched_waking to ftrace_events").into());
    }
    if join.distance.unsigned_abs() > 50_000 {
        let us = join.distance / 1000;
        notes.push(format!("the clocks of the profiler and of ftrace are {us} µs apart by the trace's own snapshots; stacks were put where their switches are").into());
    }
    if ftrace.marks > 0 {
        let overwritten: u64 = system.overwritten().map(|(_, n)| n).sum();
        notes.push(format!("ftrace overwrote events at {} places ({overwritten} in all, by its own count); record with a larger buffer_size_kb in ftrace_config", ftrace.marks).into());
    }
    if system.wrapped {
        notes.push("the trace's buffer was full and its oldest content was overwritten; record with a larger buffer, or with write_into_file".into());
    }
    if system.full {
        notes.push("the trace's buffer was full and later content was left out; record with a larger buffer, or with write_into_file".into());
    }
    if lost.foreign > 0 {
        notes.push(format!("{} packets are of other machines and were left out", lost.foreign).into());
    }
    if !system.missing.is_empty() {
        let missing: Vec<&str> = system.missing.iter().take(10).map(String::as_str).collect();
        notes.push(format!("ftrace did not have these events on that kernel: {}", missing.join(", ")).into());
    }
    notes
}
