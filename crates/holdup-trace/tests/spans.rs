//! Spans: kept in files, cut with windows, and redacted.

use holdup_trace::{
    Destination, NameEvent, Nanos, SpanEvent, SpanOutcome, StringId, ThreadIdx, Timestamp, Trace, TraceBuilder, cut,
    file, redact, tables::Span,
};

const SECOND: u64 = 1_000_000_000;

/// Requests from 1 to 3, 2 to 5 (which ends on another thread) and 4 to 8 s (which is open). The last is about what a thread is called.
fn trace() -> Trace {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("a builder");
    let [worker, name, secret] = ["worker", "request", "/account/4711"].map(|text| builder.string(text));
    for tid in [10, 11] {
        builder.push(0, NameEvent { pid: 10, tid, name: worker });
    }
    let rows = [
        (3, 2, 10, secret, SpanOutcome::Complete),
        (5, 3, 11, secret, SpanOutcome::Moved),
        (8, 4, 0, worker, SpanOutcome::Open),
    ];
    for (end, length, end_tid, argument, outcome) in rows {
        let length = Nanos(length * SECOND);
        builder.push(
            end * SECOND,
            SpanEvent { length, queued: Nanos(0), tid: 10, end_tid, name, argument, key: 7, outcome, weight: 2 },
        );
    }
    builder.finish(None).expect("a trace")
}

fn rows(trace: &Trace) -> Vec<Span> {
    trace.spans.iter().collect::<Result<_, _>>().expect("rows")
}

fn seconds(spans: &[Span]) -> Vec<(u64, u64, SpanOutcome)> {
    spans.iter().map(|s| (s.start.nanos() / SECOND, s.t.nanos() / SECOND, s.outcome)).collect()
}

#[test]
fn spans_are_kept() {
    let folder = tempfile::tempdir().expect("dir");
    let path = folder.path().join("t.holdup");
    let trace = trace();
    file::write(&trace, &path).expect("written");
    let read = rows(&file::read(&path).expect("read"));
    assert_eq!(read, rows(&trace));
    use SpanOutcome::{Complete, Moved, Open};
    assert_eq!(seconds(&read), [(1, 3, Complete), (2, 5, Moved), (4, 8, Open)]);
    assert_ne!(read[1].thread, read[1].end_thread);
    assert_eq!((read[2].end_thread, read[0].weight, read[0].key), (ThreadIdx::NONE, 2, 7));
}

#[test]
fn a_window_says_which_are_not_whole() {
    use SpanOutcome::{Begun, Complete, Moved, Open};
    let part = |from, to| {
        let at = |s: u64| Timestamp::from_nanos_since_start(s * SECOND);
        seconds(&rows(&cut::window(&trace(), at(from), at(to)).expect("a window")))
    };
    assert_eq!(part(1, 4), [(0, 2, Complete), (1, 3, Open), (3, 3, Open)]);
    assert_eq!(part(2, 6), [(0, 1, Begun), (0, 3, Moved), (2, 4, Open)]);
    assert_eq!(part(6, 7), [(0, 1, Open)]);
}

#[test]
fn what_a_span_was_about_is_redacted_and_names_stay() {
    let mut trace = trace();
    redact(&mut trace).expect("redacted");
    let spans = rows(&trace);
    let text = |id: StringId| trace.text(id);
    assert_eq!((text(spans[0].name), text(spans[0].argument)), ("request", "a1"));
    assert_eq!(spans[0].argument, spans[1].argument, "the same stays the same");
    assert_eq!(text(trace.thread(spans[2].thread).expect("a thread").name), "worker");
    assert!(trace.strings.iter().all(|text| !text.contains("4711")));
}
