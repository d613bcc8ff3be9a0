//! Event Tracing for Windows: `.etl` logs of Windows 7 to 11, also packed and merged, on any operating system.
//!
//! ```text
//! file ─ buffer ─┬▶ scan: index, who was there, PDBs, stack keys ─┐
//!        ▲       └▶ merge: all CPUs in order ▶ events ─ held ─────┴▶ TraceBuilder
//!        └─ xpress, huffman
//! ```
//!
//! The file is read twice: what keys of stacks mean, and who ran when a ring was saved, is told at its end. Neither pass keeps more than
//! a buffer of each CPU; events wait for their stacks for a round or two (`held`).
//!
//! Stacks at switches are those of the thread that is switched in, as Windows records them: where it had blocked.

mod buffer;
mod clock;
mod counts;
mod drivers;
mod events;
mod existing;
mod fields;
mod held;
mod huffman;
mod image;
mod keys;
mod log_header;
mod merge;
mod names;
mod people;
mod process;
mod record;
mod scan;
mod waits;
mod xpress;

use holdup_trace::{Error, LossKind, Note, NoteKind, Result, TraceBuilder};

use crate::input::Input;
use buffer::Loader;
use events::{Events, hook};
use log_header::LogHeader;
use scan::Scan;

pub(crate) use buffer::is_etl;

pub(crate) fn import(input: Input, builder: &mut TraceBuilder) -> Result<()> {
    let path = input.path().to_owned();
    let mut loader = Loader::new(&path, input.into_seekable()?)?;
    let scan = Scan::new(&mut loader);
    let (Some(log), Some((start, end))) = (scan.log, scan.span) else {
        let what = "the log's first record is damaged, without which no time is known; record again";
        return Err(Error::at(&path, buffer::HEADER as u64, what));
    };
    describe(&scan, &log, (start, end), builder);
    let mut crowded = counts::Skipped::default();
    let mut events = Events::new(&scan, log.clock, builder);
    merge::merge(&mut loader, &scan.buffers, &mut crowded, &mut events)?;
    events.finish(end);
    let told = u64::from(log.lost_events) + u64::from(log.lost_buffers);
    events.lost(
        end,
        LossKind::Events,
        told.saturating_sub(events.missing),
        "events that Windows lost, nobody knows where",
    );
    let homeless = events.homeless;
    events.lost(end, LossKind::LimitedStacks, homeless, "stacks of events that are not kept, or that came too late");
    let damaged = events.damaged.max(scan.damaged);
    scan.counts.push(builder);
    for sentence in scan.skipped.sentences().chain(crowded.sentences()) {
        note(builder, NoteKind::Plain, sentence);
    }
    if damaged > 0 {
        note(
            builder,
            NoteKind::Plain,
            format!("{damaged} records are shorter than what they are, or of another time, and were left out"),
        );
    }
    tell_what_is_missing(&scan, &log, builder);
    Ok(())
}

fn note(builder: &mut TraceBuilder, kind: NoteKind, text: String) {
    builder.meta_mut().notes.push(Note::new(kind, text));
}

/// The machine, and the trace as a whole.
fn describe(scan: &Scan, log: &LogHeader, (start, end): (u64, u64), builder: &mut TraceBuilder) {
    let meta = builder.meta_mut();
    let (major, minor, build) = log.windows;
    "etl".clone_into(&mut meta.format);
    meta.cpus = log.cpus();
    meta.duration_ns = end - start;
    meta.sample_period_ns = if scan.counts.of(hook::SAMPLE) > 0 { u64::from(scan.interval.max(1)) * 100 } else { 0 };
    meta.host.os = format!("Windows {major}.{minor}.{build}");
    scan.computer.clone_into(&mut meta.host.name);
    scan.arch.name().clone_into(&mut meta.host.arch);
    if log.mhz > 0 {
        meta.host.cpu = format!("{} MHz", log.mhz);
    }
}

fn tell_what_is_missing(scan: &Scan, log: &LogHeader, builder: &mut TraceBuilder) {
    let [newer, older] = holdup_base::ETW;
    let record = format!("record with `{newer}`, or with `{older}`");
    let [switches, readies] = [hook::SWITCH, hook::READY].map(|hook| scan.counts.of(hook));
    if switches == 0 {
        let text = format!("there are no context switches: who waited is not known; {record}");
        note(builder, NoteKind::MissingEvents, text);
    } else if readies == 0 {
        let text = format!("there are no ReadyThread events: who ended a wait is not known; {record}");
        note(builder, NoteKind::MissingEvents, text);
    }
    let lost = u64::from(log.lost_events) + u64::from(log.lost_buffers);
    if lost > 0 {
        let (events, buffers) = (log.lost_events, log.lost_buffers);
        let text = format!(
            "Windows lost {events} events and {buffers} buffers: record with more and larger buffers (-buffersize 1024 -minbuffers 300)"
        );
        note(builder, NoteKind::Plain, text);
    }
}
