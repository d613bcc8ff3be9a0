//! The profile as a whole.

use holdup_analysis::Explanation;
use holdup_analysis::lanes::Doing;
use holdup_trace::Table;
use holdup_trace::tables::Span;
use serde::Serialize;
use serde_json::{Value, json};

use super::follow::Followed;
use super::markers;
use super::shared::{CATEGORIES, Strings, color, ms};
use super::thread::{self, ThreadTrack};
use crate::Source;
use crate::stacks::period;

/// The version of the format that is written.
const VERSION: u32 = 58;
/// Threads that are open when the profile is.
const SHOWN: usize = 12;

#[derive(Serialize)]
pub(super) struct Profile {
    meta: Value,
    libs: [u8; 0],
    pages: [u8; 0],
    counters: [u8; 0],
    shared: Value,
    threads: Vec<ThreadTrack>,
}

/// Puts everything together; `blame` are CPU nanoseconds by thread that others waited for, `spans` those that are shown.
pub(super) fn build(
    source: &Source,
    followed: &Followed,
    explanation: &Explanation,
    blame: &[f64],
    spans: &[Span],
) -> Profile {
    let trace = source.trace;
    let mut strings = Strings::default();
    let mut threads =
        vec![thread::of_markers("holdup: what held the CPUs up", markers::found(explanation, &mut strings))];
    let mut rank: Vec<(usize, f64, u64)> = Vec::new();
    for (i, row) in trace.threads.rows().enumerate().skip(1) {
        let (rows, waits) = (followed.rows.get(i), followed.waits.get(i));
        let (Some(rows), Some(waits)) = (rows, waits) else { continue };
        if rows.is_empty() && waits.is_empty() {
            continue;
        }
        rank.push((threads.len(), blame.get(i).copied().unwrap_or(0.0), followed.ran.get(i).copied().unwrap_or(0)));
        threads.push(thread::of_trace(trace, &mut strings, &row, rows, |strings, tables| {
            markers::waits(trace, strings, tables, waits)
        }));
    }
    for spans in spans.chunk_by(|a, b| a.name == b.name) {
        let markers = markers::spans(trace, &mut strings, spans);
        threads.push(thread::of_markers(&format!("spans: {}", trace.text(spans[0].name)), markers));
    }
    rank.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then(a.0.cmp(&b.0)));
    let shown: Vec<usize> = std::iter::once(0).chain(rank.iter().map(|(at, _, _)| *at).take(SHOWN)).collect();
    let meta = meta(source, followed, &shown);
    let length = strings.files.len();
    let shared = json!({
        "stringArray": strings.all,
        "sources": {"length": length, "uuid": vec![Value::Null; length], "filename": strings.files},
    });
    Profile { meta, libs: [], pages: [], counters: [], shared, threads }
}

fn meta(source: &Source, followed: &Followed, shown: &[usize]) -> Value {
    let meta = &source.trace.meta;
    let (interval, _) = period(source.trace);
    let mut categories: Vec<Value> = CATEGORIES.iter().map(|(name, color)| (*name, *color)).map(named).collect();
    categories.extend(Doing::ALL.iter().map(|doing| named((doing.name(), color(*doing)))));
    let host = &meta.host;
    let left_out = match followed.left_out {
        0 => "none".to_owned(),
        n => format!("{n}, each shorter than those that are there"),
    };
    json!({
        "version": 31,
        "preprocessedProfileVersion": VERSION,
        "product": source.name,
        "importedFrom": concat!("holdup ", env!("CARGO_PKG_VERSION")),
        "interval": ms(interval),
        "startTime": 0,
        "profilingStartTime": 0,
        "profilingEndTime": ms(meta.duration_ns),
        "processType": 0,
        "stackwalk": 1,
        "symbolicated": true,
        "symbolicationNotSupported": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "categories": categories,
        "markerSchema": markers::schema(),
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "oscpu": format!("{} {}", host.os, host.arch),
        "CPUName": &host.cpu,
        "logicalCPUs": meta.cpus,
        "arguments": meta.command.join(" "),
        "initialVisibleThreads": shown,
        "initialSelectedThreads": [shown.get(1).or(shown.first())],
        "extra": [{"label": "holdup", "entries": [
            {"label": "Waits without a marker", "format": "string", "value": left_out},
        ]}],
    })
}

fn named((name, color): (&str, &str)) -> Value {
    json!({"name": name, "color": color, "subcategories": ["Other"]})
}
