//! What programs write to a `trace_marker`, against the times that they measure themselves.

mod outside;
mod recording;

use std::path::Path;
use std::process::Command;

use holdup_testing::{Need, skip};
use holdup_trace::tables::Span;
use holdup_trace::{SpanOutcome, Table, Trace};
use outside::{code, err, json, run};
use recording::can_record;

const PROGRAM: &str = include_str!("markers.c");

fn is_unmarked() -> bool {
    let there = Path::new("/sys/kernel/tracing/trace_marker").exists();
    for need in [Need::Program("cc"), Need::Other { name: "a trace_marker", is_here: there }] {
        if !need.is_here() {
            skip(need, "nothing is marked");
            return true;
        }
    }
    false
}

fn called<'a>(trace: &Trace, all: &'a [Span], name: &str) -> Vec<&'a Span> {
    all.iter().filter(|span| trace.text(span.name) == name).collect()
}

#[test]
fn what_is_marked_takes_as_long_as_the_program_says() {
    let Some(_one) = can_record() else { return };
    if is_unmarked() {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (source, program, out) = (file("markers.c"), file("marking"), file("t.holdup"));
    std::fs::write(&source, PROGRAM).expect("source");
    let built = Command::new("cc").args(["-O2", "-pthread", "-o", &program, &source]).status();
    assert!(built.expect("cc").success());
    let o = run(&["record", "-o", &out, "--budget", "100%", "--span", "marker", "--", &program]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let mut own: Vec<u64> = String::from_utf8_lossy(&o.stdout).lines().map(|line| line.parse().expect("ns")).collect();

    let trace = holdup_trace::file::read(out.as_ref()).expect("trace");
    let all: Vec<Span> = trace.spans.load().expect("spans").rows().collect();
    let requests = called(&trace, &all, "request");
    let mut lengths: Vec<u64> = requests.iter().map(|span| span.t.nanos() - span.start.nanos()).collect();
    own.sort_unstable();
    lengths.sort_unstable();
    assert_eq!((own.len(), lengths.len()), (120, 120));
    // Ours begins after the program's clock was read, and ends before: what lies between is the cost of it all.
    let beside = own.iter().zip(&lengths).filter(|(own, ours)| ours <= own && **own - **ours < 2_000_000).count();
    assert!(beside > 110, "{beside} of 120: {own:?} {lengths:?}");

    let (parses, jobs) = (called(&trace, &all, "parse | split"), called(&trace, &all, "job"));
    assert_eq!((parses.len(), jobs.len()), (120, 10), "a name may have bars");
    assert!(jobs.iter().all(|span| span.outcome == SpanOutcome::Moved && span.thread != span.end_thread));
    assert_eq!(jobs.iter().map(|span| span.key).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!((called(&trace, &all, "deep").len(), called(&trace, &all, "in parts").len()), (16, 1));
    let open = called(&trace, &all, "left open");
    assert_eq!(open.iter().map(|span| span.outcome).collect::<Vec<_>>(), [SpanOutcome::Open]);
    assert_eq!(all.len(), 120 * 2 + 10 + 16 + 1 + 1, "nothing else was marked: other files, other texts");
    let lost = |what: &str| -> u64 {
        let all = trace.losses.iter().map(|loss| loss.expect("a loss"));
        all.filter(|loss| trace.text(loss.what).contains(what)).map(|loss| loss.count).sum()
    };
    assert_eq!((lost("markers whose end was not seen"), lost("markers whose begin was not seen")), (4, 1));

    let o = run(&["explain", &out, "--spans", "request", "--slow", "10%", "--json"]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let cause = &json(&o)["causes"][0];
    assert_eq!((&cause["what"], &cause["in_slow"]), (&"timer".into(), &12.into()), "{cause}");
}
