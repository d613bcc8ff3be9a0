//! A trace as rows of a data set: what was found in it, where its time went, and what it was recorded of, for questions over many
//! machines and days.
//!
//! ```text
//!   <table>/date=2026-11-25/host=web-17/<trace>.parquet      one file for each table and trace
//!   recording/date=2026-11-25/host=web-17/<trace>.holdup     the recording itself, if it is wanted
//! ```
//!
//! *Invariant:* the same recording makes the same objects, byte for byte, under the same keys: to add it twice changes nothing, and two that add
//! it at once do not disturb each other. What it says of the file and the label is whoever's was last.
//!
//! *Invariant:* the row in `trace` comes last. What a writer left that was killed before is in no answer.

mod rows;
pub mod schema;

use holdup_analysis::{Explanation, Options, explain_study};
use sha2::{Digest, Sha256};

use crate::study::studied;
use crate::{Result, Source};
use rows::Told;
use schema::{Rows, TRACES, Value, nanos};

/// What a data set says that it is: a file at its root, and its content. A new column is one that older files lack; `schema` rises where
/// one is taken away or means something else.
pub const ABOUT: (&str, &str) = ("holdup-dataset.json", "{\"schema\":\"holdup.dataset/1\"}\n");
/// The folder of whole recordings.
pub const RECORDINGS: &str = "recording";

const DAY_NS: i64 = 86_400_000_000_000;

/// Where a trace comes from, as far as it does not tell itself.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file.
    pub file: &'a str,
    /// When that was last changed, in nanoseconds since 1970: the trace's time if it does not tell one.
    pub changed_ns: i64,
    /// What whoever adds it says of it.
    pub label: &'a str,
    /// Whether the recording itself is added, too.
    pub with_recording: bool,
}

/// A file of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its path below the data set.
    pub key: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What a trace adds to a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The trace's id.
    pub trace: String,
    /// Where the recording belongs; empty if it is not wanted.
    pub recording: String,
    /// Files to be written in this order; the last makes the others count.
    pub objects: Vec<Object>,
}

/// Where the files of one trace lie.
struct Place {
    trace: String,
    date: String,
    host: String,
}

impl Place {
    fn key(&self, table: &str, extension: &str) -> String {
        format!("{table}/date={}/host={}/{}.{extension}", self.date, self.host, self.trace)
    }
}

/// The rows that `source` adds. O(events) for its analysis.
///
/// # Errors
/// If the trace is damaged, or if the focus names no process.
pub fn parcel(source: &Source, origin: &Origin) -> Result<Parcel> {
    let options = Options { top: usize::MAX, ..source.options.clone() };
    let place = place(source, origin);
    let recording = if origin.with_recording { place.key(RECORDINGS, "holdup") } else { String::new() };
    let (mut all, traces) = studied(source, |study| {
        let (explanation, _) = explain_study(study, source.name, &options, source.disassembler)?;
        let told = Told { trace: &place.trace, study, source, explanation: &explanation };
        Ok((told.tables()?, traces(&place, source, origin, &recording, &explanation)))
    })?;
    all.push(traces);
    let object = |rows: &Rows| Ok(Object { key: place.key(rows.name(), "parquet"), bytes: rows.to_parquet()? });
    Ok(Parcel { objects: all.iter().map(object).collect::<Result<_>>()?, trace: place.trace, recording })
}

fn traces(place: &Place, source: &Source, origin: &Origin, recording: &str, told: &Explanation) -> Rows {
    let meta = &source.trace.meta;
    let cpu = &told.cpu_seconds;
    let mut rows = Rows::new(&TRACES);
    rows.push([
        place.trace.as_str().into(),
        Value::Number(started_ns(source, origin)),
        meta.duration_ns.into(),
        u64::from(meta.cpus).into(),
        meta.format.as_str().into(),
        told.trace.focus.as_str().into(),
        origin.label.into(),
        origin.file.into(),
        recording.into(),
        meta.host.os.as_str().into(),
        meta.host.arch.as_str().into(),
        meta.host.cpu.as_str().into(),
        nanos(cpu.total),
        nanos(cpu.busy),
        nanos(cpu.spin),
        nanos(cpu.other),
        nanos(cpu.held_up),
        nanos(cpu.runnable_idle),
        nanos(cpu.no_work),
        nanos(cpu.lost),
        told.health.lost_events.into(),
    ]);
    rows
}

fn started_ns(source: &Source, origin: &Origin) -> i64 {
    let meta = &source.trace.meta;
    let told = meta.time_of_day_ns.and_then(|ahead| i64::try_from(ahead.checked_add(meta.start_ns)?).ok());
    told.unwrap_or(origin.changed_ns)
}

fn place(source: &Source, origin: &Origin) -> Place {
    let (year, month, day) = civil(started_ns(source, origin).div_euclid(DAY_NS));
    let date = format!("{year:04}-{month:02}-{day:02}");
    Place { trace: id(source), date, host: folder_name(&source.trace.meta.host.name) }
}

/// What tells recordings apart: when, of what and how they were made, and whose waits count.
fn id(source: &Source) -> String {
    let Source { trace, options, .. } = source;
    let meta = &trace.meta;
    let facts = (&meta.host, &meta.format, meta.start_ns, meta.duration_ns, meta.time_of_day_ns, &meta.command);
    let more =
        (&meta.native_events, meta.part, meta.redacted, &options.focus, &options.window.map(|w| format!("{w:?}")));
    let facts = serde_json::to_vec(&(facts, more)).unwrap_or_default();
    Sha256::digest(&facts).iter().take(16).fold(String::new(), |id, byte| format!("{id}{byte:02x}"))
}

/// A host's name as part of a path that every engine takes as it is.
fn folder_name(host: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = host.chars().take(128).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if name.trim_matches('.').is_empty() { "unknown".to_owned() } else { name }
}

/// Year, month and day of so many days since 1970, by the algorithm `civil_from_days`
/// (<https://howardhinnant.github.io/date_algorithms.html>).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_782), (2026, 11, 25));
    }

    #[test]
    fn a_host_is_no_path() {
        assert_eq!(folder_name("web-17.example"), "web-17.example");
        assert_eq!(folder_name("../../etc"), ".._.._etc");
        assert_eq!([folder_name(".."), folder_name(""), folder_name("a=b%")], ["unknown", "unknown", "a_b_"]);
    }
}
