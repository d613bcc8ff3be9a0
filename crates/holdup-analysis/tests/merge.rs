//! Like culprits are one finding, and what a finding says is about the instants that are charged to it.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::{Explanation, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Cpu, Image, Location, NameEvent, SampleEvent, SwitchState, Symbolizer, Trace};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;

fn explained(trace: &Trace) -> Explanation {
    explain(trace, "x", &Options::default(), &NoDisassembler).unwrap()
}

/// Functions without names.
struct Nameless;

impl Symbolizer for Nameless {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let function = format!("sort+{address:#x}");
        vec![Location { function, module: "/usr/bin/sort".into(), ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

fn process(mut s: Schedule, pid: u32, name: &str) -> Schedule {
    let name = s.builder.string(name);
    s.builder.push(0, NameEvent { pid, tid: pid, name });
    s
}

/// A client waits in turn for each of those servers, each of which works for it and sleeps on.
fn in_turn(servers: &[(u32, String, f64)]) -> Explanation {
    let end = servers.iter().map(|s| s.2).sum::<f64>() + 1.0;
    let mut s = process(Schedule::new(2, end), 5, "client");
    s = s.switch(0.0, 0, 5, SLEEPS, READ, 0);
    let mut t = 0.0;
    for (pid, name, length) in servers {
        s = process(s, *pid, name).switch(t, 1, 0, RUNS, -1, *pid);
        t += length;
        s = s.by(t - 0.02, 1, *pid, 5).switch(t - 0.01, 0, 0, RUNS, -1, 5);
        s = s.switch(t - 0.005, 0, 5, SLEEPS, READ, 0).switch(t, 1, *pid, SwitchState::Dead, 60, 0);
    }
    explained(&s.finish())
}

fn servers(n: u32, length: f64, name: impl Fn(u32) -> String) -> Vec<(u32, String, f64)> {
    (0..n).map(|i| (100 + i, name(i), length)).collect()
}

#[test]
fn like_processes_are_one_culprit() {
    let answer = in_turn(&servers(8, 10.0, |_| "backend".to_owned()));
    let first = &answer.findings[0];
    assert!(first.title.starts_with("8 backend processes worked for"), "{}", first.title);
    assert_eq!((first.culprit.processes, first.culprit.threads), (8, 8));
    assert!((first.blame_cpu_s - 0.08).abs() < 1e-3, "{}", first.blame_cpu_s);
    assert_eq!(first.waiters.waits, 8);
}

/// What each of them ran most of code that has no names tells them not apart; threads of one process it may.
#[test]
fn processes_that_run_code_without_names_are_one_culprit() {
    let of = |pid_of: fn(u32) -> u32| {
        let mut s = process(Schedule::new(2, 400.0), 5, "client").switch(0.0, 0, 5, SLEEPS, READ, 0);
        s.builder.meta_mut().sample_period_ns = MS;
        let mut t = 0.0;
        for tid in 100..104 {
            let (name, pid) = (s.builder.string("sort"), pid_of(tid));
            s.builder.push(0, NameEvent { pid, tid, name });
            s = s.switch(t, 1, 0, RUNS, -1, tid);
            let at = 0x1000 * u64::from(tid);
            for sample in 0..90 {
                let chain = s.builder.chain(pid, &[], &[at]);
                s.builder.push(ns(t + f64::from(sample)), SampleEvent { cpu: Cpu(1), tid, ip: at, bp: 0, chain });
            }
            t += 99.0;
            s = s.by(t - 0.02, 1, tid, 5).switch(t - 0.01, 0, 0, RUNS, -1, 5);
            s = s.switch(t - 0.005, 0, 5, SLEEPS, READ, 0).switch(t, 1, tid, SwitchState::Dead, 60, 0);
        }
        explained(&s.finish_with(&mut Nameless)).findings[0].culprit.threads
    };
    assert_eq!((of(|tid| tid), of(|_| 99)), (4, 1));
}

/// Two threads that do the same, each while the other waits for it to let go on.
#[test]
fn threads_that_wait_for_each_other_work_one_at_a_time() {
    let mut s = Schedule::new(2, 100.0).thread(10, "compute").thread(11, "compute").in_focus();
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 11, SLEEPS, FUTEX, 0);
    for turn in 1..10u32 {
        let (t, me) = (10.0 * f64::from(turn), (turn % 2) as u16);
        let (own, other) = (10 + u32::from(me), 11 - u32::from(me));
        s = s.by(t, 1 - me, other, own).switch(t + 0.01, 1 - me, other, SLEEPS, FUTEX, 0);
        s = s.switch(t + 0.02, me, 0, RUNS, -1, own);
    }
    let answer = explained(&s.finish());
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::Serial, "{first:#?}");
    assert!(first.title.starts_with("compute (2 threads) worked one at a time, for"), "{}", first.title);
}

/// Each of them costs a three-hundredth: below the cut by itself.
#[test]
fn a_storm_of_short_ones_is_found() {
    let answer = in_turn(&servers(300, 1.0, |_| "true".to_owned()));
    let first = &answer.findings[0];
    assert!(first.title.starts_with("300 true processes"), "{}", first.title);
    assert!((first.blame_cpu_s - 0.3).abs() < 0.02, "{}", first.blame_cpu_s);
    assert_eq!(answer.smaller.causes, 0);
}

#[test]
fn what_is_too_small_adds_up() {
    let name = |i| format!("tool-{}", char::from(b'a' + i as u8));
    let mut all = servers(20, 1.0, name);
    all.push((900, "giant".to_owned(), 400.0));
    let answer = in_turn(&all);
    assert_eq!(answer.findings[0].culprit.process, "giant");
    // And that the client was not on its CPU at once.
    assert_eq!(answer.smaller.causes, 20 + 1);
    assert!((answer.smaller.blame_cpu_s - 0.02).abs() < 2e-3, "{:?}", answer.smaller);
    let held: f64 = answer.findings.iter().map(|f| f.blame_cpu_s).sum::<f64>() + answer.smaller.blame_cpu_s;
    let sum = &answer.cpu_seconds;
    assert!((held - sum.held_up - sum.runnable_idle).abs() < 1e-3, "nothing is lost: {held} of {sum:?}");
}

/// `janitor` has the lock for a third of the time in which others wait for it, in three stretches with other holders
/// between; the waits visit it while it runs, while it is not let run, and others.
fn shared_lock() -> Explanation {
    let mut s = Schedule::new(3, 100.0).thread(10, "janitor").thread(11, "waiter").thread(12, "other");
    s = s.runs(10, 0, 0.0, 100.0, -1).runs(12, 1, 0.0, 100.0, -1);
    let mut t = 1.0;
    for _ in 0..3 {
        s = s.futex(t, 11, 10).switch(t, 2, 11, SLEEPS, FUTEX, 0);
        s = s.by(t + 10.0, 0, 10, 11).switch(t + 10.0, 2, 0, RUNS, -1, 11);
        s = s.futex(t + 10.1, 11, 12).switch(t + 10.1, 2, 11, SLEEPS, FUTEX, 0);
        s = s.by(t + 29.0, 1, 12, 11).switch(t + 29.0, 2, 0, RUNS, -1, 11);
        t += 30.0;
    }
    explained(&s.finish())
}

#[test]
fn a_lock_is_kept_as_long_as_it_was_kept() {
    let answer = shared_lock();
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::LockHeld, "{first:#?}");
    assert_eq!(first.waiters.waits, 6, "each wait is counted once");
    // Three times 10 and 18.9 ms: of the gaps between them nothing.
    assert!((first.lasted_s - 0.0867).abs() < 1e-4, "{}", first.lasted_s);
    assert!(first.waiters.max_s <= 0.019 + 1e-6, "{}", first.waiters.max_s);
}

/// A profile so flat that its widest function has less than a hundredth of the CPU time is what the time went into all the same.
#[test]
fn work_that_no_function_has_much_of_is_on_the_page() {
    use holdup_analysis::report::Finding;

    let busy = Finding { kind: FindingKind::CpuBound, blame_cpu_s: 0.05, ..Finding::default() };
    let small = Finding { kind: FindingKind::Serial, blame_cpu_s: 0.05, ..Finding::default() };
    let mut answer: Explanation = in_turn(&servers(1, 1.0, |_| "one".to_owned()));
    (answer.cpu_seconds.total, answer.findings) = (10.0, vec![busy, small]);
    let kinds: Vec<FindingKind> = answer.on_page().map(|f| f.kind).collect();
    assert_eq!(kinds, [FindingKind::CpuBound]);
}
