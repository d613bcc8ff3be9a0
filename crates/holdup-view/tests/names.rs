//! Names that are markup, script or terminal escapes arrive as text that acts nowhere.

#![allow(missing_docs)]

use holdup_analysis::NoDisassembler;
use holdup_trace::tables::Span;
use holdup_trace::{
    ChainId, Cpu, Destination, LockId, NameEvent, Nanos, SpanOutcome, StringId, SwitchEvent, SwitchState, ThreadIdx,
    Timestamp, TraceBuilder,
};
use holdup_view::{Cancel, Model};
use serde_json::json;

const NAMES: [&str; 4] =
    ["<script>alert(1)</script>", "\u{1b}]0;owned\u{7}", "\"'><img src=x onerror=alert(1)>", "a\u{202e}gpj.exe\r\n"];

fn span(i: u64, name: StringId, argument: StringId) -> Span {
    let at = |t: u64| Timestamp::from_nanos_since_start(t * 1_000_000);
    let thread = ThreadIdx(1 + i as u32 % 2);
    let (start, t, outcome) = (at(3 * i + 1), at(3 * i + 5), SpanOutcome::Complete);
    Span { t, thread, start, end_thread: thread, name, argument, key: 0, outcome, weight: 1, queued: Nanos(0) }
}

fn hostile() -> Model {
    let mut builder = TraceBuilder::new(&Destination::Memory).unwrap();
    builder.meta_mut().cpus = 1;
    for (i, name) in NAMES.iter().enumerate() {
        let (tid, name) = (100 + i as u32, builder.string(name));
        builder.push(0, NameEvent { pid: tid, tid, name });
    }
    for i in 0..40 {
        let (prev, next) = (100 + i % 4, 100 + (i + 1) % 4);
        let state = SwitchState::Sleeping;
        let (lock, chain) = (LockId::NONE, ChainId::NONE);
        let event = SwitchEvent { cpu: Cpu(0), prev, next, state, io_wait: false, syscall: 202, lock, chain };
        builder.push(u64::from(i + 1) * 1_000_000, event);
    }
    let mut trace = builder.finish(None).unwrap();
    let (name, argument) = (trace.strings.intern(NAMES[0]), trace.strings.intern(NAMES[3]));
    trace.add_spans((0..9).map(|i| span(i, name, argument))).unwrap();
    Model::open(trace, "hostile \u{1b}[31m", Box::new(NoDisassembler)).unwrap()
}

#[test]
fn names_are_only_text() {
    let model = hostile();
    let questions = [
        json!({"ask": "summary"}),
        json!({"ask": "explain"}),
        json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 100}),
        json!({"ask": "lanes", "window": [0, 4e7], "px": 10, "ids": ["c0"]}),
        json!({"ask": "processes", "window": [0, 4e7], "px": 10, "limit": 100}),
        json!({"ask": "at", "row": "c0", "time": 5.5e6}),
        json!({"ask": "table", "table": "waits", "by": ["process", "thread"]}),
        json!({"ask": "table", "table": "switches", "csv": true}),
        json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 100, "spans": true}),
        json!({"ask": "spans", "window": [0, 4e7], "px": 1000, "ids": ["s0.t1"]}),
        json!({"ask": "spans", "window": [0, 4e7], "px": 10, "ids": ["s0.\u{1b}[31m<b>"]}),
        json!({"ask": "span", "row": "s0.t1", "time": 5.5e6}),
        json!({"ask": "span", "id": 3}),
        json!({"ask": "slowest", "top": 10}),
        json!({"ask": "slow", "name": NAMES[0]}),
        json!({"ask": "slow", "name": "\u{1b}[31m"}),
        json!({"ask": "flame", "of": "blame"}),
        json!({"ask": "flame", "of": "wakers"}),
        json!({"ask": "search", "text": "script"}),
        json!({"ask": "code", "function": "\u{1b}[31m"}),
        json!({"ask": "lanes", "window": [0, 4e7], "px": 10, "ids": ["\u{1b}[31m<b>"]}),
    ];
    let mut seen = String::new();
    for question in questions {
        let bytes = model.ask_json(question.to_string().as_bytes(), &Cancel::default());
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let value: serde_json::Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        every_text(&value, &mut |text| {
            assert!(!text.contains(|c: char| holdup_base::text::is_unsafe(c) && c != '\n'), "{question}: {text:?}");
            seen.push_str(text);
        });
    }
    // They are there, to be read.
    for shown in ["<script>alert(1)</script>", "\\x1b]0;owned\\x07", "onerror=alert(1)", "\\u{202e}gpj.exe\\r"] {
        assert!(seen.contains(shown), "{shown}");
    }
}

fn every_text(value: &serde_json::Value, see: &mut dyn FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => see(text),
        serde_json::Value::Array(all) => all.iter().for_each(|v| every_text(v, see)),
        serde_json::Value::Object(all) => all.iter().for_each(|(k, v)| {
            see(k);
            every_text(v, see);
        }),
        _ => {}
    }
}
