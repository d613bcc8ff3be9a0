//! The lanes of spans, single spans and the slowest of each name, of a made trace whose spans are known.

#![allow(missing_docs)]

use holdup_analysis::NoDisassembler;
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::tables::Span;
use holdup_trace::{Destination, Nanos, SpanOutcome, StringId, Table, ThreadIdx, Timestamp, Trace};
use holdup_view::{Cancel, Model};
use serde_json::{Value, json};

const MILLI: u64 = 1_000_000;

fn told(bytes: &[u8]) -> (Value, usize) {
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[4..4 + length]).unwrap(), (4 + length).next_multiple_of(8))
}

fn ask(model: &Model, question: &Value) -> Value {
    let (json, _) = told(&model.ask_json(question.to_string().as_bytes(), &Cancel::default()));
    assert!(json.get("error").is_none(), "{question}: {json}");
    json
}

fn refused(model: &Model, question: &Value) -> String {
    let (json, _) = told(&model.ask_json(question.to_string().as_bytes(), &Cancel::default()));
    json["error"].as_str().unwrap_or_else(|| panic!("{question} was answered: {json}")).to_owned()
}

/// `share`, `standing` and `span` of one row.
fn painted(model: &Model, id: &str, window: [u64; 2], px: usize) -> (Value, Vec<u8>, Vec<u8>, Vec<u32>) {
    let question = json!({"ask": "spans", "window": window, "px": px, "ids": [id]});
    let bytes = model.ask_json(question.to_string().as_bytes(), &Cancel::default());
    let (json, mut at) = told(&bytes);
    assert!(json.get("error").is_none(), "{question}: {json}");
    let mut next = |wide: usize| {
        let found = bytes[at..at + px * wide].to_vec();
        at = (at + px * wide).next_multiple_of(8);
        found
    };
    let (share, standing, span) = (next(1), next(1), next(4));
    (json, share, standing, span.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect())
}

fn made() -> Trace {
    let spec = Spec { shape: Shape::Lock, cpus: 8, threads: 60, events: 100_000, seed: 3, losses: 0 };
    generate(&spec, &Destination::Memory).unwrap().trace
}

/// The two threads that come to a CPU most often.
fn busiest(trace: &Trace) -> (ThreadIdx, ThreadIdx) {
    let mut counts = vec![0; trace.threads.len()];
    trace.switches.iter().for_each(|s| counts[s.unwrap().next.index()] += 1);
    let mut order: Vec<usize> = (1..counts.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(counts[i]));
    (ThreadIdx(order[0] as u32), ThreadIdx(order[1] as u32))
}

fn span(thread: ThreadIdx, name: StringId, from: u64, to: u64) -> Span {
    let (start, t) = (Timestamp::from_nanos_since_start(from), Timestamp::from_nanos_since_start(to));
    let (argument, outcome) = (StringId(0), SpanOutcome::Complete);
    Span { t, thread, start, end_thread: thread, name, argument, key: 0, outcome, weight: 1, queued: Nanos(0) }
}

/// 200 requests of 0.1 ms each millisecond on one thread, the hundredth of which takes 0.9 ms and has a query within; and one on another thread.
fn model() -> (Model, ThreadIdx, ThreadIdx) {
    let mut trace = made();
    let (one, other) = busiest(&trace);
    let (request, query) = (trace.strings.intern("request"), trace.strings.intern("query"));
    let length = |i: u64| if i == 99 { 900_000 } else { 100_000 };
    trace.add_spans((0..200).map(|i| span(one, request, i * MILLI, i * MILLI + length(i)))).unwrap();
    let inner =
        Span { argument: trace.strings.intern("select"), ..span(one, query, 99 * MILLI + 5000, 99 * MILLI + 700_000) };
    trace.add_spans([inner]).unwrap();
    let moved = Span { outcome: SpanOutcome::Moved, end_thread: one, ..span(other, query, 10 * MILLI, 12 * MILLI) };
    trace.add_spans([moved]).unwrap();
    (Model::open(trace, "made", Box::new(NoDisassembler)).unwrap(), one, other)
}

#[test]
fn spans_have_rows_below_their_threads() {
    let (model, one, other) = model();
    let question = |spans: bool| json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 500, "spans": spans, "reveal": format!("t{}", one.0)});
    let ids = |told: &Value| {
        let rows = told["rows"].as_array().unwrap().iter();
        rows.map(|r| r["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plain = ids(&ask(&model, &question(false)));
    assert!(plain.iter().all(|id| !id.starts_with('s')));
    let told = ask(&model, &question(true));
    let found = ids(&told);
    let at = told["at"].as_u64().unwrap() as usize;
    assert_eq!(found[at..at + 3], [format!("t{}", one.0), format!("s0.t{}", one.0), format!("s1.t{}", one.0)]);
    assert_eq!(told["rows"][at + 1]["detail"], "200");
    assert_eq!(told["total"].as_u64().unwrap() as usize, found.len());
    // It lies where it began, and nowhere else.
    let began = found.iter().position(|id| *id == format!("t{}", other.0)).unwrap();
    assert_eq!(found[began + 1], format!("s0.t{}", other.0));
    // A closed group has one row for all of its threads.
    let closed =
        ask(&model, &json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 500, "spans": true}));
    let groups: Vec<String> = ids(&closed).into_iter().filter(|id| id.starts_with("s0.p")).collect();
    assert_eq!(groups.len(), 1, "{closed}");
    let at = ask(&model, &json!({"ask": "span", "row": groups[0], "time": 11 * MILLI}));
    assert_eq!(
        (at["span"]["name"].as_str(), at["span"]["thread_row"].as_str()),
        (Some("query"), Some(&*format!("t{}", other.0)))
    );
}

#[test]
fn one_is_a_box_and_many_are_a_density() {
    let (model, one, _) = model();
    let row = format!("s0.t{}", one.0);
    // One pixel is 10 µs: the first request fills ten, then there are none for 90.
    let (told, share, standing, span) = painted(&model, &row, [0, MILLI], 100);
    assert_eq!((&share[..10], &share[10..20]), (&[255; 10][..], &[0; 10][..]));
    assert!(span[..10].iter().all(|s| *s == span[0]) && span[10] == u32::MAX && standing[..10] == [1; 10]);
    assert_eq!(told["labels"], json!([]), "ten pixels have no room for a name");
    let (told, ..) = painted(&model, &row, [0, 120_000], 100);
    assert_eq!(told["labels"][0]["text"], "request");
    // One pixel is 10 ms: of ten requests in each a tenth of it is within spans, and the slowest is seen.
    let (_, share, standing, span) = painted(&model, &row, [0, 200 * MILLI], 20);
    assert!(share.iter().enumerate().all(|(i, s)| s.abs_diff(if i == 9 { 46 } else { 26 }) <= 1), "{share:?}");
    assert_eq!((standing[8], standing[9]), (1, 4), "{standing:?}");
    assert!(span.iter().all(|s| *s == u32::MAX));
}

#[test]
fn a_span_is_found_by_place_and_by_step_and_its_pieces_add_up() {
    let (model, one, other) = model();
    let row = format!("s0.t{}", one.0);
    let by = |time: u64, more: Value| {
        let mut question = json!({"ask": "span", "row": row, "time": time});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(&model, &question)["span"].clone()
    };
    let slow = by(99 * MILLI + 300_000, json!({}));
    assert_eq!((slow["start"].as_u64(), slow["end"].as_u64()), (Some(99 * MILLI), Some(99 * MILLI + 900_000)));
    assert_eq!(
        (slow["standing"].as_str(), slow["rank"].as_u64(), slow["count"].as_u64()),
        (Some("slowest"), Some(1), Some(200))
    );
    assert_eq!(by(500_000, json!({})), Value::Null);
    assert_eq!(by(500_000, json!({"slack": 400_001}))["start"], 0);
    assert_eq!(by(99 * MILLI, json!({"step": 1}))["start"], 100 * MILLI);
    assert_eq!(by(99 * MILLI, json!({"step": -1}))["start"], 98 * MILLI);
    assert_eq!((by(0, json!({"step": -1})), by(199 * MILLI, json!({"step": 1}))), (Value::Null, Value::Null));

    let found = ask(&model, &json!({"ask": "span", "id": slow["id"]}));
    assert_eq!(found["row"], json!(row));
    let seconds = |v: &Value| v.as_f64().unwrap();
    let pieces: f64 = found["pieces"].as_array().unwrap().iter().map(|p| seconds(&p["length_s"])).sum();
    assert!((pieces + seconds(&found["rest_s"]) - 900e-6).abs() < 1e-9, "{found}");
    let inner = ask(&model, &json!({"ask": "span", "row": format!("s1.t{}", one.0), "time": 99 * MILLI + 300_000}));
    assert_eq!((inner["span"]["name"].as_str(), inner["span"]["argument"].as_str()), (Some("query"), Some("select")));
    let moved =
        ask(&model, &json!({"ask": "span", "row": format!("s0.t{}", other.0), "time": 11 * MILLI}))["span"]["id"]
            .clone();
    assert!(ask(&model, &json!({"ask": "span", "id": moved}))["ended_on"].is_string());
}

/// A span means the same in a part of a long trace as in all of it.
#[test]
fn pieces_are_those_that_the_whole_trace_tells() {
    let (model, ..) = model();
    let mut trace = made();
    let (one, _) = busiest(&trace);
    let name = trace.strings.intern("request");
    trace.add_spans([span(one, name, 99 * MILLI, 99 * MILLI + 900_000)]).unwrap();
    let whole = holdup_analysis::spans::one(&trace, "made", 0).unwrap();
    let row = format!("s0.t{}", one.0);
    let id = ask(&model, &json!({"ask": "span", "row": row, "time": 99 * MILLI}))["span"]["id"].clone();
    let found = ask(&model, &json!({"ask": "span", "id": id}));
    let told = |what: &str, from: f64, length: f64| format!("{what} {from:.9} {length:.9}");
    let here: Vec<String> = found["pieces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| told(p["what"].as_str().unwrap(), p["from_s"].as_f64().unwrap(), p["length_s"].as_f64().unwrap()))
        .collect();
    let there: Vec<String> = whole.span.pieces.iter().map(|p| told(p.what.name(), p.from_s, p.length_s)).collect();
    assert_eq!(here, there);
    assert!(here.len() > 1, "{here:?}");
}

#[test]
fn the_slowest_of_each_name_come_first_and_are_explained() {
    let (model, ..) = model();
    let told = ask(&model, &json!({"ask": "slowest", "top": 3}));
    let names: Vec<&str> = told["names"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2);
    let request = &told["names"][names.iter().position(|n| *n == "request").unwrap()];
    assert_eq!(
        (request["count"].as_u64(), request["p50"].as_u64(), request["max"].as_u64()),
        (Some(200), Some(100_000), Some(900_000))
    );
    let slowest = request["slowest"].as_array().unwrap();
    assert_eq!((slowest.len(), slowest[0]["start"].as_u64()), (3, Some(99 * MILLI)));
    let why = ask(&model, &json!({"ask": "slow", "name": "request"}));
    assert!(why["headline"].as_str().unwrap().starts_with("the slowest 1 % (2 of 200, 100.0 µs to 900.0 µs)"), "{why}");
    assert!(refused(&model, &json!({"ask": "slow", "name": "requst"})).contains("request"));
}

#[test]
fn rows_and_spans_that_are_not_there_are_refused() {
    let (model, one, _) = model();
    for id in ["s9.t1", "s0.c0", "s", "s.", "s0.", "sx.t1", "t1", "s0.t999999999", "s99999999999999999999.t1"] {
        refused(&model, &json!({"ask": "spans", "window": [0, 1e6], "px": 10, "ids": [id]}));
        refused(&model, &json!({"ask": "span", "row": id, "time": 0}));
    }
    let row = format!("s0.t{}", one.0);
    refused(&model, &json!({"ask": "spans", "window": [5, 1], "px": 10, "ids": [row]}));
    refused(&model, &json!({"ask": "spans", "window": [0, 1e6], "px": 10, "ids": vec![row; 201]}));
    refused(&model, &json!({"ask": "span", "id": 4_000_000_000u32}));
    refused(&model, &json!({"ask": "span"}));
    let empty = Model::open(made(), "made", Box::new(NoDisassembler)).unwrap();
    assert_eq!(ask(&empty, &json!({"ask": "slowest", "top": 3}))["names"], json!([]));
    assert!(refused(&empty, &json!({"ask": "slow", "name": "x"})).contains("--span"));
}

/// Nothing of a million spans is kept twice, and a picture of all of them is one value for each pixel.
#[test]
fn a_hundred_thousand_spans_are_a_picture_of_a_thousand_pixels() {
    let mut trace = made();
    let (one, name) = (busiest(&trace).0, trace.strings.intern("request"));
    let end = trace.meta.duration_ns;
    let step = end / 100_000;
    trace.add_spans((0..100_000).map(|i| span(one, name, i * step, i * step + step / 2))).unwrap();
    let model = Model::open(trace, "made", Box::new(NoDisassembler)).unwrap();
    let (told, share, _, span) = painted(&model, &format!("s0.t{}", one.0), [0, end], 1000);
    assert!(share[..999].iter().all(|s| s.abs_diff(128) <= 2) && span.iter().all(|s| *s == u32::MAX));
    assert_eq!(told["labels"], json!([]));
}

/// A damaged table of spans is answered or refused, and nothing else.
#[test]
fn spans_that_make_no_sense_do_no_harm() {
    let mut trace = made();
    let (one, name) = (busiest(&trace).0, trace.strings.intern("request"));
    let far = u64::MAX;
    let base = span(one, name, 0, MILLI);
    let none = Span { thread: ThreadIdx::NONE, end_thread: ThreadIdx::NONE, ..base };
    let beyond = Span { thread: ThreadIdx(u32::MAX - 1), end_thread: ThreadIdx(4_000_000), ..base };
    let nameless = Span { name: StringId(u32::MAX), argument: StringId(u32::MAX - 1), weight: u32::MAX, ..base };
    let queued = Span { queued: Nanos(far), weight: 0, outcome: SpanOutcome::Open, ..base };
    let times = [(far, far), (0, far), (far, 0), (5, 5)].map(|(from, to)| span(one, name, from, to));
    trace.add_spans([none, beyond, nameless, queued].into_iter().chain(times)).unwrap();
    let model = Model::open(trace, "made", Box::new(NoDisassembler)).unwrap();
    let any = |question: Value| {
        let bytes = model.ask_json(question.to_string().as_bytes(), &Cancel::default());
        told(&bytes).0
    };
    for id in 0..9 {
        any(json!({"ask": "span", "id": id}));
    }
    let rows = json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 500, "spans": true, "reveal": format!("t{}", one.0)});
    for row in
        any(rows)["rows"].as_array().unwrap().iter().filter_map(|r| r["id"].as_str()).filter(|id| id.starts_with('s'))
    {
        for window in [[0.0, 1e300], [0.0, 10.0], [1e6, 2e6]] {
            any(json!({"ask": "spans", "window": window, "px": 8192, "ids": [row]}));
        }
        for time in [0.0, 5.0, 1e300, -1.0] {
            for step in [-1, 0, 1] {
                any(json!({"ask": "span", "row": row, "time": time, "slack": 1e300, "step": step}));
            }
        }
    }
    assert!(any(json!({"ask": "slowest", "top": 50}))["names"].as_array().is_some_and(|names| names.len() == 2));
    any(json!({"ask": "slow", "name": "request"}));
    any(json!({"ask": "slow", "name": ""}));
}
