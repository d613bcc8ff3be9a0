//! Markers: waits on their threads, findings and stalls on a track of their own.

use holdup_analysis::Explanation;
use holdup_analysis::intervals::Wait;
use holdup_analysis::label;
use holdup_analysis::lanes::Doing;
use holdup_trace::tables::Span;
use holdup_trace::{Timestamp, Trace};
use serde::Serialize;
use serde_json::{Value, json};

use super::frames::Tables;
use super::shared::{Strings, category, ms};

/// A marker with a beginning and an end, as the format numbers it.
const INTERVAL: u8 = 1;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Markers {
    data: Vec<Value>,
    name: Vec<u32>,
    start_time: Vec<f64>,
    end_time: Vec<f64>,
    phase: Vec<u8>,
    category: Vec<u32>,
    length: usize,
}

impl Markers {
    fn push(&mut self, name: u32, span: (u64, u64), category: u32, data: Value) {
        self.data.push(data);
        self.name.push(name);
        self.start_time.push(ms(span.0));
        self.end_time.push(ms(span.1));
        self.phase.push(INTERVAL);
        self.category.push(category);
        self.length += 1;
    }
}

/// What markers say, and how they are shown.
pub(super) fn schema() -> Value {
    let field = |key: &str, label: &str, format: &str| json!({"key": key, "label": label, "format": format});
    let text = |key: &str, label: &str| field(key, label, "unique-string");
    json!([
        {
            "name": "Wait",
            "display": ["marker-chart", "marker-table"],
            "tooltipLabel": "{marker.name}",
            "chartLabel": "{marker.name}",
            "tableLabel": "{marker.data.lock} {marker.data.wakerThread}",
            "description": "From leaving a CPU to running again.",
            "fields": [
                text("lock", "Lock"),
                text("waitsFor", "Waits for"),
                text("wakerThread", "Ended by"),
                text("wakerFunction", "… in"),
                field("ready", "Ready before it ran again", "duration"),
            ],
        },
        {
            "name": "Finding",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "tooltipLabel": "{marker.name}",
            "chartLabel": "{marker.name}: {marker.data.title}",
            "tableLabel": "{marker.data.title}",
            "description": "When somebody waited for it.",
            "fields": [
                text("title", "What"),
                text("culprit", "Who"),
                field("blame", "CPU time charged to it", "duration"),
                text("confidence", "Confidence"),
                text("advice", "What to do"),
            ],
        },
        {
            "name": "Stall",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "tooltipLabel": "{marker.name}",
            "chartLabel": "{marker.data.title}",
            "tableLabel": "{marker.data.title}",
            "description": "Threads stood still unusually long.",
            "fields": [text("title", "What"), field("waiters", "Threads that waited", "integer")],
        },
        {
            "name": "Span",
            "display": ["marker-chart", "marker-table"],
            "tooltipLabel": "{marker.name}",
            "chartLabel": "{marker.data.argument}",
            "tableLabel": "{marker.data.argument}",
            "description": "A unit of work, from its begin to its end.",
            "fields": [
                text("argument", "About"),
                text("thread", "Thread"),
                text("outcome", "Outcome"),
                field("queued", "Waited before it was begun with", "duration"),
                field("weight", "Stands for", "integer"),
            ],
        },
    ])
}

/// Adds a thread's waits.
pub(super) fn waits(trace: &Trace, strings: &mut Strings, tables: &mut Tables, waits: &[(Wait, Doing)]) -> Markers {
    let mut markers = Markers::default();
    for (wait, doing) in waits {
        let mut data = json!({"type": "Wait", "ready": ms(wait.resumed.saturating_sub(wait.woken))});
        if let Some(stack) = tables.stack(trace, strings, wait.stack, None) {
            data["cause"] = json!({"time": ms(wait.start), "stack": stack});
        }
        let mut tell = |key: &str, what: &str| {
            if !what.is_empty() {
                data[key] = json!(strings.of(what));
            }
        };
        if let Some(lock) = label::lock(trace, wait.lock) {
            tell(
                "lock",
                &format!("{} {}", if lock.name.is_empty() { lock.kind.name() } else { &lock.name }, lock.address),
            );
        }
        tell("waitsFor", wait.kind.name());
        match trace.thread(wait.waker).filter(|_| wait.waker.is_real()) {
            Some(waker) => tell("wakerThread", &format!("{} ({})", trace.text(waker.name), waker.tid)),
            None => tell("wakerThread", wait.context.name()),
        }
        tell("wakerFunction", label::stack_lines(trace, wait.waker_stack).first().map_or("", String::as_str));
        let name = strings.of(doing.name());
        markers.push(name, (wait.start, wait.resumed), category(*doing), data);
    }
    markers
}

/// Spans of one name, in the order of their begins.
pub(super) fn spans(trace: &Trace, strings: &mut Strings, spans: &[Span]) -> Markers {
    let mut markers = Markers::default();
    for span in spans {
        let thread = trace.thread(span.thread).filter(|_| span.thread.is_real());
        let thread = thread.map_or(String::new(), |t| format!("{} ({})", trace.text(t.name), t.tid));
        let data = json!({
            "type": "Span",
            "argument": strings.of(trace.text(span.argument)),
            "thread": strings.of(&thread),
            "outcome": strings.of(span.outcome.name()),
            "queued": ms(span.queued.0),
            "weight": span.weight.max(1),
        });
        let name = strings.of(trace.text(span.name));
        markers.push(name, (span.start.nanos(), span.t.nanos()), 0, data);
    }
    markers
}

/// The findings and stalls.
pub(super) fn found(explanation: &Explanation, strings: &mut Strings) -> Markers {
    let mut markers = Markers::default();
    let at = |window: &[f64; 2]| {
        let [from, to] = window.map(|s| Timestamp::from_seconds(s).nanos());
        (from, to)
    };
    for finding in &explanation.findings {
        let who = &finding.culprit;
        let culprit = format!("{}/{} ({}) {} {}", who.process, who.thread, who.tid, who.function, who.source);
        let data = json!({
            "type": "Finding",
            "title": strings.of(&finding.title),
            "culprit": strings.of(culprit.trim_end()),
            "blame": ms(Timestamp::from_seconds(finding.blame_cpu_s).since(Timestamp::ZERO).0),
            "confidence": strings.of(finding.confidence.name()),
            "advice": strings.of(&finding.advice),
        });
        let name = strings.of(&format!("{} {}", finding.id, finding.kind));
        finding.windows.iter().for_each(|window| markers.push(name, at(window), 0, data.clone()));
    }
    for stall in &explanation.stalls {
        let data = json!({"type": "Stall", "title": strings.of(&stall.title), "waiters": stall.waiters});
        let name = strings.of("stall");
        stall.windows.iter().for_each(|window| markers.push(name, at(window), 0, data.clone()));
    }
    markers
}
