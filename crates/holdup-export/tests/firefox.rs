//! Profiles for the Firefox Profiler: against the rules of their format, and against the trace.
//!
//! The rules are those of `src/types/profile.ts` of the profiler at version 58: <https://github.com/firefox-devtools/profiler>.

#![allow(missing_docs)]

use std::collections::BTreeMap;

use holdup_analysis::{NoDisassembler, Options};
use holdup_export::{Source, firefox};
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::{Destination, Table, Trace};
use serde_json::Value;

fn made(shape: Shape, events: u64) -> Trace {
    let spec = Spec { shape, cpus: 4, threads: 24, events, seed: 7, losses: 0 };
    generate(&spec, &Destination::Memory).unwrap().trace
}

fn profile(trace: &Trace) -> (Value, firefox::LeftOut) {
    let options = Options::default();
    let source = Source { trace, name: "made", options: &options, disassembler: &NoDisassembler };
    let mut out = Vec::new();
    let left_out = firefox::write(&source, &mut out).unwrap();
    (serde_json::from_slice(&out).unwrap(), left_out)
}

fn length(table: &Value) -> usize {
    table["length"].as_u64().unwrap() as usize
}

/// A column: as long as its table, of numbers below `limit`, or of nothing where that may be.
fn refers(table: &Value, column: &str, limit: usize, may_be_null: bool) {
    let values = table[column].as_array().unwrap_or_else(|| panic!("{column} is missing"));
    assert_eq!(values.len(), length(table), "{column}");
    for value in values {
        let known = value.as_u64().is_some_and(|v| (v as usize) < limit);
        assert!(known || may_be_null && value.is_null(), "{column}: {value} of {limit}");
    }
}

fn is_column(table: &Value, column: &str, is: impl Fn(&Value) -> bool) {
    let values = table[column].as_array().unwrap_or_else(|| panic!("{column} is missing"));
    assert_eq!(values.len(), length(table), "{column}");
    assert!(values.iter().all(is), "{column}");
}

fn rising(values: &Value) -> bool {
    values.as_array().unwrap().iter().map(|t| t.as_f64().unwrap()).is_sorted()
}

fn check_meta(profile: &Value) {
    let meta = &profile["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], 58);
    for number in ["version", "interval", "startTime", "processType", "stackwalk", "profilingEndTime"] {
        assert!(meta[number].is_number(), "{number}");
    }
    assert!(meta["product"].is_string() && meta["sampleUnits"]["threadCPUDelta"] == "ns");
    let colors = [
        "transparent",
        "purple",
        "green",
        "orange",
        "yellow",
        "lightblue",
        "blue",
        "brown",
        "magenta",
        "red",
        "lightred",
        "darkgrey",
        "grey",
    ];
    let categories = meta["categories"].as_array().unwrap();
    assert!(categories.iter().any(|c| c["color"] == "grey"));
    for category in categories {
        assert!(category["name"].is_string() && colors.contains(&category["color"].as_str().unwrap()), "{category}");
        assert_eq!(category["subcategories"][0], "Other");
    }
    let threads = profile["threads"].as_array().unwrap().len() as u64;
    for shown in ["initialVisibleThreads", "initialSelectedThreads"] {
        assert!(meta[shown].as_array().unwrap().iter().all(|t| t.as_u64().unwrap() < threads), "{shown}");
    }
    let places = ["marker-chart", "marker-table", "timeline-overview", "stack-chart"];
    for schema in meta["markerSchema"].as_array().unwrap() {
        assert!(schema["name"].is_string());
        assert!(schema["display"].as_array().unwrap().iter().all(|d| places.contains(&d.as_str().unwrap())));
        let formats = ["unique-string", "duration", "integer"];
        let fields = schema["fields"].as_array().unwrap();
        assert!(fields.iter().all(|f| f["key"].is_string() && formats.contains(&f["format"].as_str().unwrap())));
    }
}

fn check_thread(profile: &Value, thread: &Value) {
    let strings = profile["shared"]["stringArray"].as_array().unwrap().len();
    let sources = length(&profile["shared"]["sources"]);
    let categories = profile["meta"]["categories"].as_array().unwrap().len();
    let [stacks, frames, funcs, resources] =
        ["stackTable", "frameTable", "funcTable", "resourceTable"].map(|table| &thread[table]);
    refers(stacks, "frame", length(frames), false);
    refers(stacks, "prefix", length(stacks), true);
    for (i, prefix) in stacks["prefix"].as_array().unwrap().iter().enumerate() {
        assert!(prefix.as_u64().is_none_or(|p| (p as usize) < i), "callers come first");
    }
    refers(frames, "func", length(funcs), false);
    refers(frames, "category", categories, true);
    for column in ["subcategory", "nativeSymbol", "innerWindowID", "line", "column"] {
        is_column(frames, column, |v| v.is_null() || v.is_u64());
    }
    is_column(frames, "address", |v| *v == -1);
    is_column(frames, "inlineDepth", Value::is_u64);
    refers(funcs, "name", strings, false);
    refers(funcs, "source", sources, true);
    is_column(funcs, "resource", |v| *v == -1 || v.as_u64().is_some_and(|r| (r as usize) < length(resources)));
    is_column(funcs, "isJS", |v| *v == false);
    is_column(funcs, "relevantForJS", |v| *v == false);
    refers(resources, "name", strings, false);
    assert_eq!(length(&thread["nativeSymbols"]), 0);

    let samples = &thread["samples"];
    refers(samples, "stack", length(stacks), true);
    is_column(samples, "weight", Value::is_number);
    is_column(samples, "threadCPUDelta", Value::is_u64);
    is_column(samples, "time", Value::is_number);
    assert!(rising(&samples["time"]) && ["samples", "tracing-ms"].contains(&samples["weightType"].as_str().unwrap()));

    let markers = &thread["markers"];
    refers(markers, "name", strings, false);
    refers(markers, "category", categories, false);
    is_column(markers, "phase", |v| *v == 1);
    is_column(markers, "startTime", Value::is_number);
    is_column(markers, "endTime", Value::is_number);
    let schemas = profile["meta"]["markerSchema"].as_array().unwrap();
    for data in markers["data"].as_array().unwrap() {
        let schema = schemas.iter().find(|s| s["name"] == data["type"]).expect("a schema");
        for field in schema["fields"].as_array().unwrap().iter().filter(|f| f["format"] == "unique-string") {
            let value = &data[field["key"].as_str().unwrap()];
            assert!(value.is_null() || value.as_u64().is_some_and(|v| (v as usize) < strings), "{data}");
        }
        let stack = &data["cause"]["stack"];
        assert!(stack.is_null() || (stack.as_u64().unwrap() as usize) < length(stacks));
    }
    assert!(thread["pid"].is_string() && thread["tid"].is_number() && thread["isMainThread"].is_boolean());
}

fn check(profile: &Value) {
    check_meta(profile);
    assert_eq!(profile["libs"].as_array().map(Vec::len), Some(0));
    let threads = profile["threads"].as_array().unwrap();
    threads.iter().for_each(|thread| check_thread(profile, thread));
}

fn sum(values: &Value) -> f64 {
    values.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).sum()
}

#[test]
fn it_follows_the_rules_and_adds_up() {
    let trace = made(Shape::Lock, 100_000);
    let (profile, left_out) = profile(&trace);
    check(&profile);
    let threads = &profile["threads"].as_array().unwrap()[1..];

    let weights: f64 = threads.iter().map(|t| sum(&t["samples"]["weight"])).sum();
    let meant = trace.samples.rows() as f64 * trace.meta.sample_period_ns as f64 / 1e6;
    assert!((weights - meant).abs() < 1e-6 * meant, "{weights} {meant}");

    // Waits: as many as the table has, and as long; each thread has its own.
    let markers: usize = threads.iter().map(|t| length(&t["markers"])).sum();
    let explorer = holdup_analysis::explore::Explorer::new(&trace);
    let query = holdup_analysis::explore::Query {
        columns: vec!["tid".into(), "time-since-last".into()],
        ..holdup_analysis::explore::Query::new(holdup_analysis::explore::TableKind::Waits)
    };
    let answer = explorer.run(&query, &Default::default()).unwrap();
    assert_eq!(markers as u64 + left_out.waits, answer.len() as u64);
    let mut by_tid: BTreeMap<u64, f64> = BTreeMap::new();
    let column = |i: usize| match &answer.columns[i].data {
        holdup_analysis::explore::relation::Data::Numbers(n) => n,
        _ => panic!("numbers"),
    };
    for (tid, ns) in column(0).iter().zip(column(1)) {
        *by_tid.entry(*tid).or_default() += *ns as f64 / 1e6;
    }
    assert_eq!(left_out.waits, 0);
    for thread in threads {
        let markers = &thread["markers"];
        let found = sum(&markers["endTime"]) - sum(&markers["startTime"]);
        let meant = by_tid.get(&thread["tid"].as_u64().unwrap()).copied().unwrap_or(0.0);
        assert!((found - meant).abs() < 1e-3 + 1e-6 * meant, "{} {found} {meant}", thread["tid"]);
    }
}

/// CPU time by the differences between samples is no more than what each thread had, and nearly all of it.
#[test]
fn cpu_use_is_that_of_the_threads() {
    let trace = made(Shape::Hub, 50_000);
    let (profile, _) = profile(&trace);
    check(&profile);
    let period = trace.meta.sample_period_ns as f64 / 1e9;
    let list = holdup_analysis::threads::list(&trace, "made", None, true).unwrap();
    for thread in &profile["threads"].as_array().unwrap()[1..] {
        let meant = list.threads.iter().find(|t| t.tid == thread["tid"]).unwrap();
        let found = sum(&thread["samples"]["threadCPUDelta"]) / 1e9;
        assert!(
            found <= meant.ran_s + 1e-6 && found > 0.8 * meant.ran_s - 10.0 * period,
            "{} {found} {}",
            meant.name,
            meant.ran_s
        );
    }
}

#[test]
fn findings_are_markers_in_front() {
    let trace = made(Shape::Lock, 100_000);
    let (profile, _) = profile(&trace);
    let explained = holdup_analysis::explain(&trace, "made", &Options::default(), &NoDisassembler).unwrap();
    let front = &profile["threads"][0];
    let strings = profile["shared"]["stringArray"].as_array().unwrap();
    let windows: usize = explained.findings.iter().map(|f| f.windows.len()).sum();
    let stalls: usize = explained.stalls.iter().map(|s| s.windows.len()).sum();
    assert_eq!(length(&front["markers"]), windows + stalls);
    let first = &front["markers"]["data"][0];
    assert_eq!(strings[first["title"].as_u64().unwrap() as usize], explained.findings[0].title.as_str());
    // The culprit's thread is the first that is open.
    let open = profile["meta"]["initialVisibleThreads"][1].as_u64().unwrap() as usize;
    assert_eq!(profile["threads"][open]["tid"], explained.findings[0].culprit.tid);
}

#[test]
fn a_trace_without_events_is_a_profile_too() {
    let (profile, _) = profile(&Trace::default());
    check(&profile);
    assert_eq!(Trace::default().threads.len(), 0);
}

#[test]
fn spans_are_markers_on_a_track_of_their_name() {
    let mut trace = made(Shape::Lock, 2_000);
    let [name, argument] = ["GET", "/item"].map(|text| trace.strings.intern(text));
    let at = holdup_trace::Timestamp::from_nanos_since_start;
    let span = |i: u64| holdup_trace::tables::Span {
        t: at(1_000 + 100 * i),
        thread: holdup_trace::ThreadIdx(1),
        start: at(500 + 10 * i),
        end_thread: holdup_trace::ThreadIdx(1),
        name,
        argument,
        key: 0,
        outcome: holdup_trace::SpanOutcome::Complete,
        weight: 2,
        queued: holdup_trace::Nanos(20),
    };
    trace.add_spans((0..100).map(span)).unwrap();
    let (profile, left_out) = profile(&trace);
    assert_eq!(left_out.spans, 0);
    let track = profile["threads"].as_array().unwrap().iter().find(|t| t["name"] == "spans: GET").expect("a track");
    let markers = &track["markers"];
    assert_eq!(length(markers), 100);
    assert!(rising(&markers["startTime"]));
    let texts = profile["shared"]["stringArray"].as_array().unwrap();
    let first = &markers["data"][0];
    assert_eq!(texts[first["argument"].as_u64().unwrap() as usize], "/item");
    assert_eq!((first["weight"].as_u64(), first["queued"].as_f64()), (Some(2), Some(0.00002)));
}
