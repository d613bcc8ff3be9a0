//! The end of an import: counts, what was lost, what the user should know.

use holdup_base::PERF;
use holdup_trace::{Note, NoteKind, Result};

use super::events::{Events, Role};
use super::kinds;
use super::session::Session;

/// Completes `session`.
pub fn finish(mut session: Session) -> Result<()> {
    session.prepare();
    let decoder = &mut session.decoder;
    decoder.losses.finish(&mut decoder.kernel.sink);
    if session.damaged > 0 {
        decoder.kernel.sink.lost_anywhere(session.damaged, "damaged records");
    }
    let Session { events, decoder, counts, damaged, timeless, guessed, recorder, .. } = session;
    let mut sink = decoder.kernel.sink;
    sink.release();
    for (name, count) in counts.named() {
        sink.builder.count_native(&name, count);
    }
    for source in events.list.iter().filter(|s| s.count > 0) {
        sink.builder.count_native(&source.name, source.count);
    }
    let meta = sink.builder.meta_mut();
    let cpu_time = events.list.iter().find(|s| matches!(s.role, Role::CpuTime));
    meta.sample_period_ns = cpu_time.map_or(0, |s| s.attr.period_ns());
    meta.recorder_pid = recorder.unwrap_or(0);
    meta.hooks = events.list.iter().map(|s| s.name.clone()).collect();
    if damaged > 0 {
        meta.notes.push(
            format!("{damaged} records are damaged and were left out; the file may be cut or overwritten").into(),
        );
    }
    if timeless > 0 {
        meta.notes.push(
            format!("{timeless} samples have no time and were left out; record with perf record --timestamp").into(),
        );
    }
    if decoder.other_namespace {
        let what = "perf was recorded inside a PID namespace: its thread numbers are not the scheduler's";
        meta.notes
            .push(format!("{what}, so names and mappings may be missing; record outside of the container").into());
    }
    if guessed {
        meta.notes
            .push("the formats of tracepoints are missing; scheduler events were recognised by their shape".into());
    }
    meta.notes.extend(missing(&events, counts.of(kinds::SWITCH_CPU_WIDE) > 0));
    Ok(())
}

/// What the trace would need to answer more.
fn missing(events: &Events, switch_records: bool) -> Vec<Note> {
    let used = |role: fn(&Role) -> bool| events.any(role);
    let mut notes = Vec::new();
    if switch_records && !used(Role::is_switch) {
        notes.push("switches come from perf's own records, without call chains and wakers".into());
    } else if !used(Role::is_switch) {
        let what = "no sched_switch in this trace, so waits are unknown";
        notes.push(Note::new(NoteKind::MissingEvents, format!("{what}; record with {PERF}")));
    } else if !used(Role::is_wake) {
        let what = "no sched_waking in this trace, so wakers are unknown; record with -e sched:sched_waking too";
        notes.push(Note::new(NoteKind::MissingEvents, what));
    }
    let switches = || events.list.iter().filter(|s| s.role.is_switch());
    if switches().any(|s| !s.plan.has_cpu()) {
        notes.push("switches without CPU numbers; record with perf record -a or --sample-cpu".into());
    }
    if switches().any(|s| !s.plan.has_chain()) {
        notes.push(
            "switches without call chains, so it is unknown where threads wait; record with perf record -g".into(),
        );
    }
    let mut scheduler = events.list.iter().filter(|s| s.role.is_switch() || s.role.is_wake());
    if let Some(sampled) = scheduler.find(|s| s.attr.freq || s.attr.period > 1) {
        let name = &sampled.name;
        notes.push(
            format!("only some of {name} were recorded, so times are wrong; record with -c 1 instead of -F or -c N")
                .into(),
        );
    }
    notes
}
