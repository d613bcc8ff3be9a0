//! Foreign traces into the tables of holdup.
//!
//! [`open`] a path, ask what it is, and [`Input::import`] it into a [`TraceBuilder`]:
//!
//! ```no_run
//! use holdup_trace::{Destination, TraceBuilder};
//! # fn main() -> holdup_trace::Result<()> {
//! let mut builder = TraceBuilder::new(&Destination::Memory)?;
//! let input = holdup_import::open("perf.data".as_ref())?;
//! input.import(&mut builder)?;
//! let trace = builder.finish(None)?;
//! # Ok(()) }
//! ```
//!
//! The kind is told from the content, never from the name, and gzip of any kind is unpacked on the way.
//! An importer that meets damage behind a good beginning keeps what it has read, writes a sentence to
//! [`Meta::notes`](holdup_trace::Meta::notes) and pushes a loss; an error is for input of which nothing can be used.
//!
//! What this crate is *not* for: deciding what the events mean (holdup-analysis) or naming addresses
//! (holdup-symbols). Holes that no loss record tells of are not filled here either.
//!
//! # Why not `linux-perf-data`
//! That crate sorts records itself, record by record, and returns owned attributes for each; holdup sorts in
//! [`TraceBuilder`], where live recordings need it too, and has to pass 3–4 million samples a second with their
//! call chains. So the reader here is its own: one reused buffer, slices of it, and a decoding plan made once for
//! each event. It needs no `unsafe`.
//!
//! # Why `zstd` and not `ruzstd`
//! perf compresses its records as one long stream that is flushed, not ended, at each record. The C library's
//! streaming call takes exactly that, has been fuzzed for years, and unpacks about three times as fast as the pure
//! Rust decoder, which would otherwise take more time than all the rest of an import. Where there is no C, in a page of a
//! browser, `ruzstd` does it (feature `pure`, without `zstd`): it gives out late what its window holds.
//!
//! # How to add an importer
//! 1. A variant of [`Format`] with its name, and its magic in [`detect`].
//! 2. A module of its own (`src/etl.rs` and `src/etl/…`), with `pub(crate) fn import(Input, &mut TraceBuilder)`:
//!    push [`Event`](holdup_trace::Event)s with the source's clock in nanoseconds in whatever order they come, call
//!    [`TraceBuilder::finish_round`] where the source allows, count the source's own records with
//!    [`TraceBuilder::count_native`] (once at the end, not for each record), and fill
//!    [`TraceBuilder::meta_mut`].
//! 3. Its arm in [`Input::import`], fixtures with a README, and the mutation test over them (`tests/mutations.rs`).

#![forbid(unsafe_code)]

mod bytes;
mod ctf;
mod etl;
mod folder;
mod input;
mod linux;
mod perf_data;
mod perf_script;
mod perfetto;
pub mod spans;
mod trace_dat;
mod unpack;

use std::path::Path;

use holdup_trace::{Error, Result, TraceBuilder};

pub use input::{HEAD_BYTES, Input, from_file, from_reader, is_gzip, open, unpack};

/// A kind of trace that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `perf.data` of Linux perf, as a file or as the stream of `perf record -o -`.
    PerfData,
    /// A folder of CTF 1.8: LTTng's kernel tracer, or `perf data convert --to-ctf`.
    Ctf,
    /// The text that `perf script` prints.
    PerfScript,
    /// `trace.dat` of trace-cmd.
    TraceDat,
    /// `.etl` of Event Tracing for Windows.
    Etl,
    /// A trace of Perfetto, as its service, Android and other recorders write them.
    Perfetto,
}

impl Format {
    /// The name in `info --json`.
    pub const fn name(self) -> &'static str {
        match self {
            Format::PerfData => "perf.data",
            Format::Ctf => "ctf",
            Format::PerfScript => "perf-script",
            Format::TraceDat => "trace.dat",
            Format::Etl => "etl",
            Format::Perfetto => "perfetto",
        }
    }
}

/// Tells the kind of a trace from its first bytes ([`HEAD_BYTES`] are enough), gzip or not.
pub fn detect(head: &[u8]) -> Option<Format> {
    match input::peek(head) {
        Some(unpacked) => detect_plain(&unpacked),
        None => detect_plain(head),
    }
}

fn detect_plain(head: &[u8]) -> Option<Format> {
    let known = [
        (Format::PerfData, perf_data::is_perf_data as fn(&[u8]) -> bool),
        (Format::Etl, etl::is_etl),
        (Format::TraceDat, trace_dat::is_trace_dat),
        (Format::PerfScript, perf_script::is_perf_script),
        // It has no magic: last.
        (Format::Perfetto, perfetto::is_perfetto),
    ];
    known.into_iter().find(|(_, is)| is(head)).map(|(format, _)| format)
}

/// Imports the trace at `path` (`-` is standard input), which must be of kind `format`.
pub fn import(path: &Path, format: Format, builder: &mut TraceBuilder) -> Result<()> {
    let input = open(path)?;
    match input.format() {
        Some(found) if found == format => input.import(builder),
        _ => Err(Error::input(path, format!("this is no {} any more; was it replaced meanwhile?", format.name()))),
    }
}

impl Input {
    /// The kind of this trace; `None` if no importer knows it.
    pub fn format(&self) -> Option<Format> {
        if self.is_folder() { Some(Format::Ctf) } else { detect_plain(self.head()) }
    }

    /// Imports this trace.
    ///
    /// Fails if nothing of it can be used; damage behind a good beginning becomes a note and a loss.
    pub fn import(self, builder: &mut TraceBuilder) -> Result<()> {
        match self.format() {
            Some(Format::PerfData) => perf_data::import(self, builder),
            Some(Format::TraceDat) => trace_dat::import(self, builder),
            Some(Format::Etl) => etl::import(self, builder),
            Some(Format::Perfetto) => perfetto::import(self, builder),
            Some(Format::PerfScript) => perf_script::import(self, builder),
            Some(Format::Ctf) => {
                let (path, members) = self.into_members();
                ctf::import(&path, members, builder)
            }
            None if ctf::is_metadata(self.head()) => {
                Err(Error::input(self.path(), "is the metadata of a CTF trace; name the folder that it is in"))
            }
            None => Err(Error::input(
                self.path(),
                "is no trace that holdup knows (.holdup, perf.data, text of perf script, ETW, Perfetto, trace.dat, a CTF folder; also in gzip)",
            )),
        }
    }
}
