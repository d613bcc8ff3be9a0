//! CTF 1.8, the Common Trace Format: folders of LTTng's kernel tracer, and of `perf data convert --to-ctf`.
//!
//! ```text
//! metadata ─ lexer ─ parser ─▶ types ─ compile ─▶ schema: a plan for each event
//!                                                   │
//! stream files ─ stream (packets, a window) ────────┴─ merge (by time) ─ events ─▶ linux::Kernel
//! ```
//!
//! A trace describes all of its bytes itself, in a language of types. Types are compiled into plans once; what nobody asks for
//! is skipped in one step. Of each file one window is in memory, and a file is open only while its events are due, so memory
//! does not depend on their lengths.

mod bits;
mod compile;
mod events;
mod lexer;
mod merge;
mod metadata;
mod parser;
mod plan;
mod roles;
mod schema;
mod stream;
mod types;

use std::io::Read;
use std::path::Path;

use holdup_trace::{Error, Note, NoteKind, Result, TraceBuilder};

use crate::folder::{METADATA, Member};
use crate::linux::kernel::Kernel;
use crate::perf_data::chain::Splitter;
use events::Events;
use merge::{Merge, Outcome};
use metadata::{MAX_METADATA, Metadata};
use roles::{Dialect, Role};
use schema::Schema;

pub(crate) use metadata::is_metadata;

/// Imports the trace that consists of `members`; `path` is its folder.
pub(crate) fn import(path: &Path, mut members: Vec<Member>, builder: &mut TraceBuilder) -> Result<()> {
    let at = members.iter().position(|m| m.name == METADATA);
    let file = at.map(|at| members.remove(at)).ok_or_else(|| Error::input(path, "holds no file \"metadata\""))?;
    let (metadata, left_out) = read_metadata(&file)?;
    let bad = |fault: String| Error::input(file.path(), format!("{fault}; is it the metadata of a CTF 1.8 trace?"));
    let (schema, faults) = Schema::new(&metadata).map_err(|fault| bad(metadata.faults.1.clone().unwrap_or(fault)))?;
    describe(&metadata, builder);
    let mut events = Events {
        kernel: Kernel::new(builder),
        states: Dialect::states(&metadata),
        splitter: Splitter::default(),
        period: 0,
    };
    let mut merge = Merge::new(&schema, &members, &mut events);
    merge.run()?;
    let Merge { counts, damaged, outcomes, .. } = merge;
    if damaged > 0 {
        events.kernel.sink.lost_anywhere(damaged, "damaged events");
    }
    events.kernel.finish();
    let period = events.period;
    for (class, &count) in metadata.events.iter().zip(&counts).filter(|&(_, &count)| count > 0) {
        builder.count_native(&class.name, count);
    }
    let meta = builder.meta_mut();
    meta.sample_period_ns = period;
    meta.hooks = metadata.events.iter().zip(&counts).filter(|&(_, &n)| n > 0).map(|(e, _)| e.name.clone()).collect();
    meta.notes.extend(about_metadata(&metadata, left_out, &faults));
    meta.notes.extend(outcomes.iter().map(about_stream));
    if damaged > 0 {
        meta.notes.push(format!("{damaged} events have times or CPUs that cannot be, and were left out").into());
    }
    let seen: Vec<Role> =
        schema.roles().filter(|&(kind, _)| counts.get(kind).is_some_and(|&n| n > 0)).map(|(_, r)| r).collect();
    meta.notes.extend(missing(&seen, &metadata));
    Ok(())
}

fn read_metadata(file: &Member) -> Result<(Metadata, usize)> {
    let failed = |e: std::io::Error| Error::input(file.path(), format!("cannot be read: {e}"));
    if file.size > MAX_METADATA {
        let what = format!("is {} bytes of metadata; no tracer writes more than {MAX_METADATA}", file.size);
        return Err(Error::input(file.path(), what));
    }
    let mut bytes = Vec::new();
    file.open()?.take(MAX_METADATA).read_to_end(&mut bytes).map_err(failed)?;
    let (text, left_out) = metadata::text(&bytes).map_err(|what| Error::input(file.path(), what))?;
    Ok((Metadata::parse(&text), left_out))
}

/// What the tracer says of the machine.
fn describe(m: &Metadata, builder: &mut TraceBuilder) {
    let meta = builder.meta_mut();
    "ctf".clone_into(&mut meta.format);
    let of = |names: [&str; 2]| names.iter().find_map(|name| m.env(name)).unwrap_or("").to_owned();
    meta.host.name = of(["hostname", "host"]);
    meta.host.os = of(["kernel_release", "release"]);
    meta.host.arch = of(["machine", "architecture"]);
}

fn about_metadata(m: &Metadata, left_out: usize, faults: &[String]) -> Vec<Note> {
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("the last {left_out} bytes of the metadata are no packets, and were left out").into());
    }
    if let (count @ 1.., Some(first)) = &m.faults {
        notes.push(format!("{count} declarations of the metadata cannot be read; the first: {first}").into());
    }
    if let Some(first) = faults.first() {
        notes.push(format!("{} kinds of events cannot be read; the first: {first}", faults.len()).into());
    }
    notes
}

fn about_stream(outcome: &Outcome) -> Note {
    let Outcome { name, damage, left_out } = outcome;
    let what = damage.as_deref().unwrap_or("it is damaged");
    format!("{name}: {what}; {left_out} bytes were left out").into()
}

/// What the trace would need to answer more.
fn missing(seen: &[Role], m: &Metadata) -> Vec<Note> {
    const LTTNG: &str =
        "lttng enable-event -k sched_switch,sched_waking,sched_process_fork,sched_process_exec,sched_process_exit";
    let mut notes = Vec::new();
    let note = |what: String| Note::new(NoteKind::MissingEvents, what);
    if m.env("domain") != Some("kernel") {
        notes.push(note(format!("this is no trace of a kernel, so all events were only counted; record with {LTTNG}")));
    } else if !seen.contains(&Role::Switch) {
        notes.push(note(format!("no sched_switch in this trace, so waits are unknown; record with {LTTNG}")));
    } else if !seen.iter().any(|role| matches!(role, Role::Wake(_))) {
        notes.push(note(format!("no sched_waking in this trace, so wakers are unknown; record with {LTTNG}")));
    }
    if m.env("tracer_name") == Some("perf") && seen.contains(&Role::Switch) {
        let what = "perf leaves out of CTF which code was mapped where, so functions have no names; read its perf.data instead";
        notes.push(what.into());
    }
    notes
}
