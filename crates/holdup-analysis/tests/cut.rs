//! What is said of a window that was cut out is what is said of that window of the whole.

#![allow(missing_docs)]

use holdup_analysis::{Explanation, NoDisassembler, Options, explain};
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::{Destination, Timestamp, Trace, compact, cut, file};

fn of_window(trace: &Trace, window: Option<(f64, f64)>) -> Explanation {
    explain(trace, "made", &Options { window, ..Options::default() }, &NoDisassembler).expect("explanation")
}

fn made(shape: Shape, losses: u32) -> Trace {
    let spec = Spec { shape, cpus: 8, threads: 64, events: 25_000, seed: 3, losses };
    generate(&spec, &Destination::Memory).expect("a made trace").trace
}

/// The window from `from` to `to`, in shares of the trace.
fn compare(trace: &Trace, from: f64, to: f64, tolerance: f64) {
    let length = trace.meta.duration().seconds();
    let (from, to) = (from * length, to * length);
    let mut part = cut::window(trace, Timestamp::from_seconds(from), Timestamp::from_seconds(to)).expect("a cut");
    compact(&mut part, |_| true).expect("compact");
    // It is a file as any other, packed or not.
    for packed in [false, true] {
        let bytes = file::write_memory(&part, packed).expect("bytes");
        part = file::read_memory(bytes, "part".as_ref()).expect("trace");
    }
    let (whole, alone) = (of_window(trace, Some((from, to))), of_window(&part, None));
    let (a, b) = (&whole.cpu_seconds, &alone.cpu_seconds);
    let total = a.total;
    let pairs = [
        ("total", a.total, b.total),
        ("busy", a.busy, b.busy),
        ("held up", a.held_up, b.held_up),
        ("no work", a.no_work, b.no_work),
        ("runnable", a.runnable_idle, b.runnable_idle),
        ("lost", a.lost, b.lost),
    ];
    for (what, a, b) in pairs {
        assert!(
            (a - b).abs() <= tolerance * total,
            "{what}: {a} of the whole, {b} of the cut, of {total} ({from}..{to} s)"
        );
    }
    let first =
        |e: &Explanation| e.findings.first().map(|f| (f.kind, f.culprit.function.clone(), f.culprit.thread.clone()));
    assert_eq!(first(&whole), first(&alone), "{from}..{to} s");
}

#[test]
fn a_cut_says_what_the_window_says() {
    for shape in Shape::ALL {
        let trace = made(shape, 0);
        for (from, to) in [(0.0, 0.5), (0.31, 0.62), (0.5, 1.0)] {
            // Where a thread is at home is learned from the whole trace.
            compare(&trace, from, to, 0.03);
        }
    }
}

#[test]
fn losses_are_cut_too() {
    compare(&made(Shape::Lock, 3), 0.2, 0.9, 0.03);
}

#[test]
fn a_cut_of_a_cut_knows_the_whole() {
    let trace = made(Shape::Hub, 0);
    let at = Timestamp::from_nanos_since_start;
    let (whole, ns) = (trace.meta.duration_ns, trace.meta.duration_ns / 10);
    let once = cut::window(&trace, at(2 * ns), at(8 * ns)).expect("a cut");
    let twice = cut::window(&once, at(ns), at(3 * ns)).expect("a cut");
    let part = twice.meta.part.expect("it is a part");
    assert_eq!((part.from_ns, part.of_ns, twice.meta.duration_ns), (3 * ns, whole, 2 * ns));
    assert_eq!(twice.meta.start_ns, trace.meta.start_ns + 3 * ns);
    for wrong in [(5, 5), (7, 2)] {
        assert!(cut::window(&once, at(wrong.0 * ns), at(wrong.1 * ns)).is_err());
    }
    assert!(cut::window(&once, at(whole), at(whole + 1)).is_err());
}

#[test]
fn compacting_changes_no_answer() {
    let trace = made(Shape::Lock, 0);
    let mut small = trace.clone();
    compact(&mut small, |_| true).expect("compact");
    let [before, after] = [&trace, &small].map(|t| serde_json::to_value(of_window(t, None)).expect("json"));
    assert_eq!(before, after);
    assert!(small.strings.iter().count() <= trace.strings.iter().count());
}
