//! The end of an import: counts, what was lost, what the user should know.

use holdup_trace::{Meta, Note, NoteKind, Result};

use super::description::Description;
use super::merge::Merge;
use super::points::{Kinds, Use};
use crate::linux::cpus::MAX_CPUS;
use crate::linux::tracepoint::Tracepoint;

/// Bytes that an event takes, to estimate how many are missing.
const TYPICAL_EVENT: u64 = 48;
/// Clocks of the kernel's tracer that count nanoseconds.
const CLOCKS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

/// Completes the trace.
pub fn finish(merge: Merge) -> Result<()> {
    let Merge { description, streams, mut kernel, kinds, damaged, missed, .. } = merge;
    let mut notes = Vec::new();
    // What could not be kept is told page by page by newer kernels, and by all as a sum.
    let untold = description.overrun.saturating_sub(missed);
    if untold > 0 {
        kernel.sink.lost_anywhere(untold, "events that found the kernel's buffer full");
    }
    for stream in &streams {
        if let Some(damage) = &stream.broken {
            let left = stream.left().div_ceil(TYPICAL_EVENT).max(1);
            kernel.sink.lost_behind(left, "events behind damage (estimated)");
            notes
                .push(Note::from(format!("CPU {} ends too early, at byte {}: {}", stream.cpu, damage.at, damage.what)));
        }
    }
    let pages: u64 = streams.iter().map(|s| s.damaged).sum();
    if pages > 0 {
        notes.push(format!("{pages} pages are damaged, and what follows the damage in them was left out").into());
    }
    if damaged > 0 {
        kernel.sink.lost_anywhere(damaged, "damaged events");
        notes
            .push(format!("{damaged} events are damaged and were left out; the file may be cut or overwritten").into());
    }
    // As they were called when the recording ended.
    let end = kernel.sink.latest();
    for (tid, name) in description.names.iter().filter(|_| end > 0) {
        kernel.seen(end, *tid, name.as_bytes());
    }
    kernel.finish();
    let builder = kernel.sink.builder;
    for kind in kinds.occurred() {
        builder.count_native(&kind.name, kind.count);
    }
    if kinds.unknown > 0 {
        builder.count_native("unknown", kinds.unknown);
    }
    notes.extend(missing(&kinds));
    notes.extend(clocks(&description));
    describe(builder.meta_mut(), &description, &kinds);
    builder.meta_mut().notes.extend(notes);
    Ok(())
}

fn describe(meta: &mut Meta, d: &Description, kinds: &Kinds) {
    meta.cpus = u16::try_from(d.cpus).unwrap_or(0).min(MAX_CPUS);
    // System, host, release, machine; the version may have spaces and is left out.
    let mut words = d.uname.split_whitespace();
    if let (Some(system), Some(name), Some(release)) = (words.next(), words.next(), words.next()) {
        meta.host.os = format!("{system} {release}");
        name.clone_into(&mut meta.host.name);
        words.next_back().unwrap_or_default().clone_into(&mut meta.host.arch);
    }
    meta.hooks = kinds.occurred().map(|k| k.name.clone()).collect();
    meta.hooks.sort();
}

/// What the trace would need to answer more.
fn missing(kinds: &Kinds) -> Vec<Note> {
    let note = |what: &str| Note::new(NoteKind::MissingEvents, what);
    let mut notes = Vec::new();
    if !kinds.any(Tracepoint::is_switch) {
        notes.push(note(
            "no sched_switch in this trace, so waits are unknown; record with trace-cmd record -e sched -T",
        ));
    } else if !kinds.any(Tracepoint::is_wake) {
        notes.push(note("no wake-ups in this trace, so wakers are unknown; record with -e sched_waking too"));
    }
    if kinds.any(Tracepoint::is_switch)
        && !kinds.occurred().any(|k| matches!(k.used, Use::KernelStack(_) | Use::UserStack(_)))
    {
        notes.push(
            "switches without stacks, so it is unknown where threads wait; record with trace-cmd record -T".into(),
        );
    }
    notes
}

fn clocks(d: &Description) -> Vec<Note> {
    let mut clocks: Vec<&str> = d.buffers.iter().filter(|b| !b.cpus.is_empty()).map(|b| b.clock.as_str()).collect();
    clocks.sort_unstable();
    clocks.dedup();
    let mut notes = Vec::new();
    let named: Vec<String> = d.buffers.iter().filter(|b| !b.cpus.is_empty()).map(|b| format!("`{}`", b.name)).collect();
    if named.len() > 1 {
        notes.push(format!("the events of {} buffers are put together: {}", named.len(), named.join(", ")).into());
    }
    if let [first, second, ..] = clocks[..] {
        notes.push(
            format!("buffers use different clocks ({first}, {second}), so what happened when between them is wrong")
                .into(),
        );
    }
    for clock in clocks.into_iter().filter(|c| !c.is_empty() && !CLOCKS.contains(c)) {
        // Cycles of the processor are times where the file says how long they are.
        if d.cycles.is_none() {
            notes.push(
                format!(
                    "times are those of the clock `{clock}`, not nanoseconds; record with trace-cmd record -C mono"
                )
                .into(),
            );
        }
    }
    notes
}
