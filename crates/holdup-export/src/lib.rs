//! Traces, and what was found in them, in the formats of other tools.
//!
//! ```text
//!   Trace ─▶ tables ─▶ Parquet, lines of JSON
//!         ├▶ explanation, accounts of threads ─▶ JSON
//!         ├▶ threads over time, findings ─▶ Firefox Profiler
//!         ├▶ events, stacks, findings ─▶ Perfetto
//!         └▶ stacks by what they took (on-CPU, off-CPU, wakers, blame) ─▶ folded, speedscope
//!   explanations, added up ─▶ metrics for Prometheus
//!   Trace and explanation ─▶ rows of a data set of many traces
//! ```
//!
//! One module for each format: a [`Source`] in, bytes out. Nothing here opens a file, reads a clock or prints.
//!
//! *Invariant:* names of a trace are data: in JSON they are strings, in lines of text what would end a line or a frame is taken out.

#![forbid(unsafe_code)]

pub mod dataset;
mod error;
pub mod firefox;
pub mod folded;
pub mod json;
pub mod metrics;
pub mod ndjson;
pub mod parquet;
pub mod perfetto;
pub mod speedscope;
pub mod stacks;
mod study;

use holdup_analysis::{Disassembler, Options};
use holdup_base::named;
use holdup_trace::Trace;

pub use error::{Error, Result};
pub use stacks::{Choice, Kind};

named! {
    /// In which format.
    pub enum Format {
        /// All tables, in a folder.
        Parquet = "parquet",
        /// A profile for profiler.firefox.com: threads over time, with waits and findings.
        Firefox = "firefox",
        /// A trace for Perfetto's page: what the threads did, and what was found.
        Perfetto = "perfetto",
        /// A file for speedscope.app: flame graphs to look at.
        Speedscope = "speedscope",
        /// What was found, and the accounts that it rests on, in one document.
        Json = "json",
        /// All tables, a line of JSON for each row.
        Ndjson = "ndjson",
        /// One line for each stack, with what it took: for flamegraph.pl, inferno, and grep.
        Folded = "folded",
    }
}

impl Format {
    /// What it is good for, in a line.
    pub const fn help(self) -> &'static str {
        match self {
            Format::Parquet => "a folder of all tables, for DuckDB, pyarrow, polars",
            Format::Firefox => "threads over time with waits and findings, for profiler.firefox.com",
            Format::Perfetto => "a trace for ui.perfetto.dev, with stacks and findings",
            Format::Speedscope => "flame graphs for speedscope.app",
            Format::Json => "what was found, all of it, with facts, losses and each thread's time",
            Format::Ndjson => "a line of JSON for each row of each table, for jq and scripts",
            Format::Folded => "a line for each stack, for flamegraph.pl and inferno",
        }
    }
}

/// What is exported.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its name, for titles.
    pub name: &'a str,
    /// Whose waits count, and which sites are idle by design.
    pub options: &'a Options,
    /// Tells loops that only wait.
    pub disassembler: &'a dyn Disassembler,
}
