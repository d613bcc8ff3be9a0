//! How long the page's questions take on a trace: `cargo run --release -p holdup-view --example latency TRACE.holdup [SECONDS]`.
//!
//! Gestures of a person are replayed: windows of all widths, from the whole trace down to microseconds, panned about; groups
//! opened; tables filtered. Printed for each question: median, 95th percentile and longest time in milliseconds.

use std::path::Path;
use std::time::Instant;

use holdup_analysis::NoDisassembler;
use holdup_view::{Cancel, Model};
use serde_json::{Value, json};

const PX: usize = 1600;

fn main() {
    let path = std::env::args().nth(1).expect("name a .holdup file");
    let mut begun = Instant::now();
    let mut lap = |what: &str| {
        println!("{what:<28} {:8.1} ms, resident {} MB", begun.elapsed().as_secs_f64() * 1e3, resident_mb());
        begun = Instant::now();
    };
    let trace = holdup_trace::file::read(Path::new(&path)).expect("a readable trace");
    lap("read");
    let model = Model::open(trace, &path, Box::new(NoDisassembler)).expect("a sound trace");
    lap("opened");
    println!("base {:.1} MB", model.base_bytes() as f64 / 1e6);
    let end = ask(&model, &json!({"ask": "summary"})).0["duration_ns"].as_f64().expect("a length");
    lap("summary");
    ask(&model, &json!({"ask": "use", "window": [0, end], "px": PX}));
    lap("first use");
    questions(&model, end);
    lap("(questions before explain)");
    ask(&model, &json!({"ask": "explain"}));
    lap("explain");
    ask(&model, &json!({"ask": "use", "window": [0, end], "px": PX}));
    lap("first use by finding");
    questions(&model, end);
    lap("(questions after explain)");
}

/// A generator of numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn questions(model: &Model, end: f64) {
    let programs = ids(model, &json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 50}));
    let threads = ids(model, &json!({"ask": "rows", "lanes": "thread", "open": programs, "offset": 0, "limit": 100}));
    let cpus = ids(model, &json!({"ask": "rows", "lanes": "cpu", "open": [], "offset": 0, "limit": 128}));
    let mut dice = Dice(7);
    let windows: Vec<[f64; 2]> = (0..60)
        .map(|i| {
            let width = (end / 1.45f64.powi(i % 40)).max(1000.0);
            let from = dice.next() * (end - width);
            [from, from + width]
        })
        .collect();
    let over = |make: &dyn Fn(&[f64; 2]) -> Value| windows.iter().map(make).collect::<Vec<_>>();
    measure(model, "use", &over(&|w| json!({"ask": "use", "window": w, "px": PX})));
    measure(model, "lanes of 50 programs", &over(&|w| json!({"ask": "lanes", "window": w, "px": PX, "ids": programs})));
    measure(model, "lanes of 100 rows", &over(&|w| json!({"ask": "lanes", "window": w, "px": PX, "ids": threads})));
    let below = json!({"ask": "rows", "lanes": "thread", "open": programs, "offset": 0, "limit": 400, "spans": true});
    let spans: Vec<String> = ids(model, &below).into_iter().filter(|id| id.starts_with('s')).take(60).collect();
    if !spans.is_empty() {
        let painted = |w: &[f64; 2]| json!({"ask": "spans", "window": w, "px": PX, "ids": spans});
        measure(model, &format!("spans of {} rows", spans.len()), &over(&painted));
        let pointed = |w: &[f64; 2]| json!({"ask": "span", "row": spans[0], "time": w[0], "slack": 1e5});
        measure(model, "span at a place", &over(&pointed));
        measure(model, "slowest spans", &[json!({"ask": "slowest", "top": 8})]);
    }
    measure(model, "lanes of CPUs", &over(&|w| json!({"ask": "lanes", "window": w, "px": PX, "ids": cpus})));
    let opened = json!({"ask": "rows", "lanes": "thread", "open": programs, "offset": 300, "limit": 100});
    let searched = json!({"ask": "rows", "lanes": "thread", "open": [], "search": "1", "offset": 0, "limit": 100});
    measure(model, "rows", &std::iter::repeat_n([opened, searched], 20).flatten().collect::<Vec<_>>());
}

fn ids(model: &Model, question: &Value) -> Vec<String> {
    let (answer, _) = ask(model, question);
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter().map(|r| r["id"].as_str().unwrap_or_default().to_owned()).collect()
}

fn measure(model: &Model, what: &str, questions: &[Value]) {
    let mut times: Vec<(f64, usize)> = Vec::new();
    let mut bytes = 0;
    for (i, question) in questions.iter().enumerate() {
        let begun = Instant::now();
        bytes = bytes.max(ask(model, question).1);
        times.push((begun.elapsed().as_secs_f64() * 1e3, i));
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].0;
    let (median, high, longest) = (at(0.5), at(0.95), times[times.len() - 1]);
    println!("{what:<28} {median:8.1} {high:8.1} {:8.1} ms; at most {} kB", longest.0, bytes / 1000);
}

/// The JSON of the answer, and how many bytes there were.
fn ask(model: &Model, question: &Value) -> (Value, usize) {
    let bytes = model.ask_json(question.to_string().as_bytes(), &Cancel::default());
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let answer: Value = serde_json::from_slice(&bytes[4..4 + length]).expect("JSON");
    assert!(answer.get("error").is_none(), "{question}: {answer}");
    (answer, bytes.len())
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
