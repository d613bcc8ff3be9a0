//! Spans of small schedules. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::report::Confidence;
use holdup_analysis::spans::{Done, Options, SpanReport, explain};
use holdup_trace::{Nanos, SpanEvent, SpanOutcome, SwitchState, Trace, WakeContext};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;

/// A sleeper is woken by its timer at 50 and wakes the waiter at 60, whose requests are: each of the first four milliseconds, and all the time.
fn requests() -> Trace {
    let s = Schedule::new(2, 100.0).thread(10, "waiter").thread(11, "sleeper");
    let s = s.runs(10, 0, 0.0, 5.0, FUTEX).runs(11, 1, 0.0, 10.0, SLEEP);
    let s = s.wakes(50.0, 1, 0, 11, WakeContext::Timer, 0).switch(50.2, 1, 0, RUNS, -1, 11);
    let s = s.by(60.0, 1, 11, 10).switch(60.1, 0, 0, RUNS, -1, 10).switch(70.0, 1, 11, SLEEPS, SLEEP, 0);
    let s = (1..=4).fold(s, |s, end| span(s, "request", (f64::from(end) - 1.0, f64::from(end)), SpanOutcome::Complete));
    let s = span(s, "request", (0.0, 70.0), SpanOutcome::Complete);
    span(s, "request", (80.0, 100.0), SpanOutcome::Open).finish()
}

fn span(s: Schedule, name: &str, time: (f64, f64), outcome: SpanOutcome) -> Schedule {
    sampled(s, name, time, outcome, 1)
}

/// A span that stands for `weight` of them.
fn sampled(mut s: Schedule, name: &str, (from, to): (f64, f64), outcome: SpanOutcome, weight: u32) -> Schedule {
    let (name, argument) = (s.builder.string(name), s.builder.string("/page"));
    let length = Nanos(ns(to) - ns(from));
    s.builder.push(
        ns(to),
        SpanEvent { tid: 10, end_tid: 10, length, queued: Nanos(0), name, argument, key: 0, outcome, weight },
    );
    s
}

fn ask(trace: &Trace, name: &str, slow: f64) -> Result<SpanReport, String> {
    explain(trace, "t", &Options { name: name.to_owned(), argument: String::new(), slow }).map_err(|e| e.to_string())
}

#[test]
fn a_slow_span_is_charged_to_whom_it_waited_for() {
    let found = ask(&requests(), "request", 0.01).unwrap();
    assert_eq!((found.slow.count, found.typical.count), (1, 4));
    near(found.slow.mean_s * 1e3, 70.0);
    near(found.typical.mean_s * 1e3, 1.0);
    let a = found.slow.account;
    near(a.ran_s * 1e3, 5.0 + 9.9);
    near(a.waited_s * 1e3, 55.0);
    near(a.ready_s * 1e3, 0.1);
    let of = |what: Done| found.causes.iter().filter(|c| c.what == what).map(|c| c.slow_s * 1e3).sum::<f64>();
    near(of(Done::Timer), 40.0);
    near(of(Done::WaitedFor), 5.0 + 9.8);
    near(of(Done::Ran), 14.9);
    near(of(Done::Behind), 0.3);
    near(found.causes.iter().map(|c| c.slow_s).sum::<f64>() * 1e3, 70.0);
    assert!(found.unaccounted < 1e-3);
    assert_eq!((found.causes[0].what, found.causes[0].thread.as_str()), (Done::Timer, "sleeper"));
    assert_eq!(found.confidence, Confidence::Medium, "one span is not many: {}", found.doubt);
}

#[test]
fn the_pieces_of_the_longest_are_in_order_and_add_up() {
    let found = ask(&requests(), "request", 0.01).unwrap();
    let worst = &found.worst[0];
    let kinds: Vec<Done> = worst.pieces.iter().map(|p| p.what).collect();
    assert_eq!(kinds, [Done::Ran, Done::WaitedFor, Done::Timer, Done::WaitedFor, Done::Ran]);
    near((worst.pieces.iter().map(|p| p.length_s).sum::<f64>() + worst.rest_s) * 1e3, 70.0);
    assert!(worst.pieces.windows(2).all(|p| p[0].from_s < p[1].from_s));
    assert_eq!((worst.argument.as_str(), worst.who.tid), ("/page", 10));
}

#[test]
fn what_is_not_whole_is_counted_and_not_followed() {
    let found = ask(&requests(), "request", 0.5).unwrap();
    assert_eq!((found.names[0].count, found.names[0].open), (6, 1));
    assert_eq!(found.slow.count + found.typical.count, 5);
}

#[test]
fn what_is_not_there_is_said() {
    assert!(ask(&requests(), "requests", 0.01).unwrap_err().contains("did you mean request?"));
    let none = Schedule::new(1, 10.0).thread(10, "a").finish();
    assert!(ask(&none, "request", 0.01).unwrap_err().contains("no spans in this trace"));
    let s = Schedule::new(1, 10.0).thread(10, "a");
    let open = span(s, "request", (2.0, 10.0), SpanOutcome::Open).finish();
    assert!(ask(&open, "request", 0.01).unwrap_err().contains("from its begin to its end"));
}

/// Two threads that wait for each other: no endless walk.
#[test]
fn a_deadlock_is_a_circle() {
    let s = Schedule::new(2, 100.0).thread(10, "left").thread(11, "right");
    let s = s.runs(10, 0, 0.0, 10.0, FUTEX).runs(11, 1, 0.0, 20.0, FUTEX);
    let s = s.by(90.0, 1, 11, 10).by(90.0, 0, 10, 11);
    let trace = span(s, "request", (5.0, 80.0), SpanOutcome::Complete).finish();
    let found = ask(&trace, "request", 0.5).unwrap();
    near(found.causes.iter().map(|c| c.slow_s).sum::<f64>() * 1e3, 75.0);
}

/// The longest fifth of 41 is 8.2: the longest, and one that stands for ten.
#[test]
fn a_share_is_one_of_the_spans_that_there_were() {
    let s = Schedule::new(1, 100.0).thread(10, "a").runs(10, 0, 0.0, 100.0, SLEEP);
    let s = (1..=4).fold(s, |s, end| sampled(s, "request", (0.0, f64::from(end)), SpanOutcome::Complete, 10));
    let trace = span(s, "request", (0.0, 70.0), SpanOutcome::Complete).finish();
    let found = ask(&trace, "request", 0.2).unwrap();
    assert_eq!((found.slow.count, found.slow.followed, found.typical.count), (11, 2, 30));
    assert!(found.doubt.contains("2 of about 11 slow ones were recorded"), "{}", found.doubt);
    assert_ne!(found.confidence, Confidence::High);
}

/// A hundred of 1 ms, told by two rows, and two of 70 ms: percentiles and means are those of the spans, not of the rows.
#[test]
fn what_stands_for_many_counts_as_many() {
    let s = Schedule::new(1, 100.0).thread(10, "a").runs(10, 0, 0.0, 100.0, SLEEP);
    let s = sampled(s, "request", (0.0, 1.0), SpanOutcome::Complete, 90);
    let s = sampled(s, "request", (2.0, 3.0), SpanOutcome::Complete, 10);
    let s = (0..2).fold(s, |s, i| span(s, "request", (f64::from(i), 70.0 + f64::from(i)), SpanOutcome::Complete));
    let found = ask(&s.finish(), "request", 0.01).unwrap();
    let name = &found.names[0];
    assert_eq!((name.count, name.p50_s, name.p99_s, name.max_s), (102, 0.001, 0.07, 0.07));
    assert_eq!((found.slow.count, found.slow.followed, found.typical.count, found.typical.followed), (2, 2, 100, 2));
    assert!((found.typical.mean_s - 0.001).abs() < 1e-9, "{}", found.typical.mean_s);
    assert!(!found.doubt.contains("budget"), "{}", found.doubt);
}

#[test]
fn spans_that_ended_elsewhere_are_not_sure() {
    let s = Schedule::new(1, 100.0).thread(10, "a").runs(10, 0, 0.0, 100.0, SLEEP);
    let s = (0..20).fold(s, |s, i| span(s, "request", (f64::from(i), f64::from(i) + 1.0), SpanOutcome::Complete));
    let trace = (0..10).fold(s, |s, i| span(s, "request", (f64::from(i), 60.0), SpanOutcome::Moved)).finish();
    let found = ask(&trace, "request", 0.33).unwrap();
    assert!(found.doubt.contains("10 of them ended on another thread"), "{}", found.doubt);
    assert_ne!(found.confidence, Confidence::High);
}

/// More pieces than are kept: what is left is not known, and nothing is missing.
/// A loop of events begins one before another has ended; who calls itself does not.
#[test]
fn spans_that_their_thread_had_beside_others_are_less_sure() {
    let asked = |times: [(f64, f64); 2]| {
        let s = Schedule::new(2, 100.0).thread(10, "loop").runs(10, 0, 0.0, 95.0, FUTEX);
        let s = (1..=200)
            .fold(s, |s, i| span(s, "call", (0.1 * f64::from(i) - 0.1, 0.1 * f64::from(i)), SpanOutcome::Complete));
        let s = times.into_iter().fold(s, |s, time| span(s, "call", time, SpanOutcome::Complete));
        ask(&s.finish(), "call", 0.01).unwrap()
    };
    let beside = "others under way";
    assert!(asked([(30.0, 60.0), (40.0, 70.0)]).doubt.contains(beside));
    assert!(!asked([(40.0, 60.0), (30.0, 70.0)]).doubt.contains(beside));
    assert!(!asked([(30.0, 60.0), (60.0, 90.0)]).doubt.contains(beside));
}

#[test]
fn a_span_of_very_many_pieces_adds_up() {
    let s = Schedule::new(1, 100.0).thread(10, "a");
    let s = (0..45_000).fold(s, |s, i| {
        let t = f64::from(i) * 0.002;
        s.wakes(t, 0, 0, 10, WakeContext::Timer, 0).runs(10, 0, t + 0.0005, t + 0.001, SLEEP)
    });
    let found = ask(&span(s, "request", (0.0, 95.0), SpanOutcome::Complete).finish(), "request", 0.5).unwrap();
    assert!(found.unaccounted < 1e-3, "{}", found.unaccounted);
    let account = found.slow.account;
    near((account.ran_s + account.ready_s + account.waited_s + account.unknown_s) * 1e3, 95.0);
    near(found.causes.iter().map(|c| c.slow_s).sum::<f64>() * 1e3, 95.0);
    let unknown = |c: &&holdup_analysis::spans::Cause| c.what == Done::Unknown;
    assert!(found.causes.iter().find(unknown).is_some_and(|c| c.slow_s * 1e3 > 5.0), "the limit was reached");
}
