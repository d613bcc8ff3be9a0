//! `perf.data` of Linux perf: files and streams, plain and zstd, of kernels from 3.2 on.
//!
//! ```text
//! bytes ─ reader ─▶ records ─ session ─┬▶ samples ▶ linux::Kernel ┐
//!           ▲                          ├▶ threads, mmap, lost     ├▶ linux::sink ─▶ TraceBuilder
//!           └── compressed ◀───────────┘                          ┘
//! ```
//!
//! Tracepoints are decoded by the formats that the trace brings along: offsets and the meaning of `prev_state`
//! differ between kernels. Files of the other byte order are refused: perf writes them on s390 and old POWER only.

mod attr;
pub(crate) mod chain;
mod compressed;
mod decoder;
mod events;
mod features;
mod finish;
mod guess;
mod header;
mod kinds;
mod lost;
mod mmap;
mod plan;
mod reader;
mod recent;
mod samples;
mod sched;
mod session;
mod threads;

use std::io::{Read, SeekFrom};

use holdup_trace::{Error, Result, TraceBuilder};

use crate::bytes;
use crate::input::{Input, ReadSeek};
use header::{Header, read_section};
use reader::{Records, Stop};
use session::{Session, Then};

/// An average record, to estimate how many are missing.
const TYPICAL_RECORD: u64 = 128;
/// The number of the feature that holds the tracepoints' formats.
const TRACING_DATA: u64 = 1;

pub(crate) fn is_perf_data(head: &[u8]) -> bool {
    [header::MAGIC, header::MAGIC_SWAPPED, header::MAGIC_OLD].iter().any(|m| head.starts_with(m))
}

pub(crate) fn import(input: Input, builder: &mut TraceBuilder) -> Result<()> {
    let path = input.path().to_owned();
    let head = input.head();
    if head.starts_with(header::MAGIC_SWAPPED) {
        let what = "was recorded on a big-endian machine, which holdup does not read";
        return Err(Error::Unsupported(format!("{}: {what}", path.display())));
    }
    if !head.starts_with(header::MAGIC) {
        let what = "is a perf.data of before 2010 (version 1); record again with a newer perf";
        return Err(Error::input(&path, what));
    }
    "perf.data".clone_into(&mut builder.meta_mut().format);
    let size = bytes::u64_at(head, 8);
    let session = Session::new(builder);
    if size == Some(header::PIPE_HEADER) { import_pipe(input, session) } else { import_file(input, session) }
}

fn import_pipe(input: Input, mut session: Session) -> Result<()> {
    let path = input.path().to_owned();
    let mut records = Records::new(input.into_stream()?, 0);
    if let Err(stop) = records.skip(header::PIPE_HEADER) {
        return Err(Error::at(&path, 0, stop));
    }
    read_records(&mut records, &mut session, None)?;
    if session.events.list.is_empty() {
        let what = "the stream holds no event's description; was it cut at its beginning?";
        return Err(Error::at(&path, header::PIPE_HEADER, what));
    }
    finish::finish(session)
}

fn import_file(input: Input, mut session: Session) -> Result<()> {
    let path = input.path().to_owned();
    let damaged = |at: u64, what: String| Error::at(&path, at, format!("{what}; record again"));
    let header = Header::parse(input.head())
        .ok_or_else(|| damaged(0, format!("the header ends after {} bytes", input.head().len())))?;
    let mut file = input.into_seekable()?;
    for (attr, ids) in header.read_attrs(&mut *file).map_err(|e| damaged(16, e))? {
        session.events.add(attr, ids);
    }
    let len = file.seek(SeekFrom::End(0)).map_err(|e| Error::input(&path, e))?;
    let data = header.data;
    if data.offset > len {
        return Err(damaged(40, format!("the records should begin at byte {} of {len}", data.offset)));
    }
    let size = if data.size == 0 { len - data.offset } else { data.size };
    if data.size == 0 {
        note(&mut session, "perf record was killed before it could complete this file; read to its end".to_owned());
    } else {
        read_features(&header, &mut *file, &mut session);
    }
    file.seek(SeekFrom::Start(data.offset)).map_err(|e| Error::input(&path, e))?;
    let mut records = Records::new(file.take(size), data.offset);
    read_records(&mut records, &mut session, Some(data.offset.saturating_add(size)))?;
    finish::finish(session)
}

fn note(session: &mut Session, text: String) {
    session.decoder.kernel.sink.builder.meta_mut().notes.push(text.into());
}

fn read_features(header: &Header, file: &mut dyn ReadSeek, session: &mut Session) {
    let sections = match header.feature_sections(file) {
        Ok(sections) => sections,
        Err(e) => return note(session, format!("the file's end is missing, and with it all names: {e}")),
    };
    for (number, section) in sections {
        match read_section(file, section) {
            Ok(bytes) => session.add_feature(number, &bytes),
            Err(e) if number == TRACING_DATA => note(session, format!("formats of tracepoints are missing: {e}")),
            // The rest is about the machine, and dispensable.
            Err(_) => {}
        }
    }
}

/// Reads records until they end. Damage ends them too: with a note, and a loss of what lies behind up to `end`.
fn read_records<R: Read>(records: &mut Records<R>, session: &mut Session, end: Option<u64>) -> Result<()> {
    let why = loop {
        let at = records.offset();
        let then = match records.next() {
            Ok(Some(record)) => match session.record(record)? {
                Ok(then) => then,
                Err(why) => break Some(format!("at byte {at}: {why}")),
            },
            Ok(None) => break end.filter(|&end| at < end).map(|_| format!("at byte {at}: the file ends too early")),
            Err(stop) => break Some(format!("at byte {at}: {stop}")),
        };
        if let Err(stop) = follow(then, records, session) {
            break Some(format!("behind byte {at}: {stop}"));
        }
    };
    if let Some(why) = why {
        let left = end.map_or(0, |end| end.saturating_sub(records.offset()));
        let behind = if end.is_some() { format!("{left} bytes") } else { "what comes".to_owned() };
        note(session, format!("{why}; {behind} behind it could not be read"));
        session.lose_rest((left / TYPICAL_RECORD).max(1));
    }
    if let Err(why) = session.finish_compressed()? {
        note(session, format!("at the end: {why}"));
        session.lose_rest(1);
    }
    Ok(())
}

/// Reads what follows a record and is none.
fn follow<R: Read>(then: Then, records: &mut Records<R>, session: &mut Session) -> Result<(), Stop> {
    match then {
        Then::Record => Ok(()),
        Then::Skip(len) => records.skip(len),
        Then::Formats(len) => {
            let section = records.take(len)?;
            session.add_feature(TRACING_DATA, &section);
            Ok(())
        }
    }
}
