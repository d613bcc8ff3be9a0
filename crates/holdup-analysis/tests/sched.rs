//! Threads that are ready and do not run: why, told apart. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::report::{Confidence, Finding, FindingKind};
use holdup_analysis::{Explanation, NoDisassembler, Options, explain};
use holdup_trace::{SwitchState, Trace};

const RUNS: SwitchState = SwitchState::Runnable;
const SLEEPS: SwitchState = SwitchState::Sleeping;

fn ask(trace: &Trace, focus: Option<&str>) -> Explanation {
    let options = Options { focus: focus.map(str::to_owned), ..Options::default() };
    explain(trace, "t", &options, &NoDisassembler).unwrap()
}

fn only(answer: &Explanation, kind: FindingKind) -> &Finding {
    let found: Vec<&Finding> = answer.findings.iter().filter(|f| f.kind == kind).collect();
    assert_eq!(found.len(), 1, "{:#?}", answer.findings);
    found[0]
}

fn first(answer: &Explanation) -> &Finding {
    answer.findings.first().expect("something is found")
}

/// Two threads that take turns on CPUs of their own: each is woken for an idle CPU and needs 0.8 to get there.
fn turns() -> Trace {
    let mut s = Schedule::new(2, 100.0).thread(10, "player").thread(11, "player");
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 11, SLEEPS, READ, 0);
    for turn in 0..100u32 {
        let (t, me) = (f64::from(turn), (turn % 2) as u16);
        let (own, other) = (10 + u32::from(me), 11 - u32::from(me));
        s = s.by(t + 0.2, me, own, other).switch(t + 0.2, me, own, SLEEPS, READ, 0);
        s = s.switch(t + 1.0, 1 - me, 0, RUNS, -1, other);
    }
    s.finish()
}

#[test]
fn wake_ups_of_idle_cpus_are_counted_and_are_no_affinity() {
    let answer = ask(&turns(), None);
    let found = first(&answer);
    assert_eq!(found.kind, FindingKind::WakeLatency, "{:#?}", answer.findings);
    // Both CPUs stand idle for 0.8 of each turn, and there is one thread that waits, for the other.
    near(found.blame_cpu_s * 1e3, 80.0);
    assert_eq!((found.waiters.waits, found.waiters.threads), (100, 2));
    near(found.waiters.mean_s * 1e3, 0.8);
    assert!(found.title.contains("100 times") && found.title.contains("800"), "{}", found.title);
    assert!(found.advice.contains("batch") && found.advice.contains("C-states"), "{}", found.advice);
    assert_eq!(found.gain_at_most, None);
    assert!(answer.findings.iter().all(|f| f.kind != FindingKind::RunnableWhileIdle), "{:#?}", answer.findings);
    near(answer.cpu_seconds.sum() * 1e3, 200.0);
}

#[test]
fn a_wake_up_for_which_another_waits_is_no_work_of_that_thread() {
    // The server is held up to nothing but waking up: what its client waits for is mostly that.
    let mut s = Schedule::new(2, 100.0).thread(10, "client").thread(11, "server");
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 11, SLEEPS, READ, 0);
    for turn in 0..50u32 {
        let t = 2.0 * f64::from(turn);
        s = s.by(t + 0.5, 0, 10, 11).switch(t + 0.5, 0, 10, SLEEPS, READ, 0);
        s = s.switch(t + 1.3, 1, 0, RUNS, -1, 11).by(t + 1.5, 1, 11, 10);
        s = s.switch(t + 1.5, 1, 11, SLEEPS, READ, 0).switch(t + 2.0, 0, 0, RUNS, -1, 10);
    }
    let answer = ask(&s.finish(), None);
    assert_eq!(first(&answer).kind, FindingKind::WakeLatency);
    // 0.8 for the server, 0.5 for the client; what they work, 0.2 and 0.5, is theirs.
    let all = |kind| answer.findings.iter().filter(|f| f.kind == kind).map(|f| f.blame_cpu_s).sum::<f64>();
    near(all(FindingKind::WakeLatency) * 1e3, 65.0);
    near(all(FindingKind::Serial) * 1e3, 35.0);
}

#[test]
fn a_thread_behind_another_while_a_cpu_is_idle_is_the_schedulers() {
    let s = Schedule::new(2, 100.0).thread(10, "a").thread(11, "b");
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(80.0, 0, 10, SwitchState::Dead, -1, 11);
    let answer = ask(&s.finish(), None);
    let found = first(&answer);
    assert_eq!(found.kind, FindingKind::RunnableWhileIdle);
    near(found.blame_cpu_s * 1e3, 80.0);
    // Without masks it may be affinity just as well.
    assert_eq!(found.confidence, Confidence::Low);
    assert!(found.doubts.iter().any(|d| d.contains("affinity")), "{:?}", found.doubts);
    near(answer.cpu_seconds.runnable_idle * 1e3, 80.0);
}

#[test]
fn a_thread_taken_off_a_cpu_that_then_stands_idle_is_throttled() {
    let mut s = Schedule::new(2, 400.0).thread(10, "busy");
    for period in 0..4 {
        let t = f64::from(period) * 100.0;
        s = s.runs(10, 0, t, t + 50.0, -1);
    }
    let answer = ask(&s.finish(), None);
    let found = first(&answer);
    assert_eq!(found.kind, FindingKind::Throttled, "{:#?}", answer.findings);
    near(found.blame_cpu_s * 1e3, 200.0);
    assert!(found.advice.contains("cpu.max"), "{}", found.advice);
    assert_eq!(found.confidence, Confidence::Low, "what is inferred is no promise");
}

#[test]
fn a_thread_that_waits_for_a_cpu_of_others_is_starved_by_them() {
    // Two CPUs; the program's second thread finds them taken by the first and by a hog from elsewhere.
    let mut s = Schedule::new(2, 100.0).thread(10, "app").thread(11, "app");
    let name = s.builder.string("hog");
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    let s =
        s.runs(10, 0, 0.0, 100.0, -1).switch(0.0, 1, 11, RUNS, -1, 20).switch(70.0, 1, 20, SwitchState::Dead, -1, 11);
    let trace = s.finish();
    let answer = ask(&trace, Some("1"));
    let found = only(&answer, FindingKind::CpuStarved);
    near(found.blame_cpu_s * 1e3, 70.0);
    assert_eq!((found.culprit.process.as_str(), found.culprit.pid), ("hog", 2));
    assert!(found.title.contains("hog") && found.evidence.iter().any(|e| e.contains("100 %")), "{found:#?}");
    // From the machine's side both CPUs worked.
    assert!(ask(&trace, None).findings.iter().all(|f| f.kind != FindingKind::CpuStarved));
}

#[test]
fn threads_that_take_turns_on_cpus_of_their_own_program_are_not_starved() {
    let s = Schedule::new(1, 100.0).thread(10, "a").thread(11, "b");
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(50.0, 0, 10, RUNS, -1, 11);
    let answer = ask(&s.finish(), None);
    assert!(answer.findings.iter().all(|f| f.kind == FindingKind::CpuBound), "{:#?}", answer.findings);
}
