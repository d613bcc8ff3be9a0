//! How much faster a run could be: golden schedules, and what must hold on random ones. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::report::{Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Cpu, ForkEvent, NameEvent, SampleEvent, SwitchState, Trace, WakeContext};

const FSYNC: i16 = 74;
const SLEEPS: SwitchState = SwitchState::Sleeping;

/// The findings about a thread.
fn about(trace: &Trace, thread: &str) -> Vec<Finding> {
    let answer = explain(trace, "x", &Options::default(), &NoDisassembler).unwrap();
    answer.findings.into_iter().filter(|f| f.culprit.thread == thread).collect()
}

/// The bound of a thread's finding.
fn bound(trace: &Trace, thread: &str, kind: FindingKind) -> Option<f64> {
    let findings = about(trace, thread);
    let of_kind = findings.iter().find(|f| f.kind == kind);
    of_kind.unwrap_or_else(|| panic!("no {kind} of {thread}: {findings:#?}")).gain_at_most
}

fn is(found: Option<f64>, wanted: f64) {
    let found = found.expect("a bound");
    assert!((found / wanted - 1.0).abs() < 0.01, "at most {found} times, wanted {wanted}");
}

/// A program of processes of one thread each: nothing names their functions, and those of one process would be one.
fn program(cpus: u16, end: f64, threads: &[(u32, &str)]) -> Schedule {
    let mut s = Schedule::new(cpus, end);
    for &(tid, name) in threads {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid: tid, tid, name });
        s.builder.meta_mut().focus_pids.push(tid);
    }
    s
}

#[test]
fn s11_without_the_producer_the_consumer_is_the_path() {
    let mut s = program(2, 301.0, &[(10, "consumer"), (11, "producer")]).runs(11, 1, 0.0, 300.0, EXIT);
    s = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0);
    for item in 1..=100 {
        let t = f64::from(3 * item);
        s = s.by(t, 1, 11, 10).runs(10, 0, t, t + 1.0, FUTEX);
    }
    is(bound(&s.finish(), "producer", FindingKind::Serial), 3.01);
}

/// Tests of a runner that begins the next one when one ends: without the lock they would run beside each other in another order.
#[test]
fn threads_that_are_begun_while_a_lock_is_kept_leave_no_bound() {
    let with = |begun: [f64; 3]| {
        let mut s = program(4, 1000.0, &[(10, "holder"), (11, "a"), (12, "b"), (13, "c")]);
        s = s.runs(10, 0, 0.0, 1000.0, -1);
        for (w, t) in (11..14).zip(begun) {
            s.builder.push(ns(t - 1.0), ForkEvent { parent_pid: 10, parent: 10, pid: w, tid: w });
            s = s.futex(t, w, 10).runs(w, w as u16 - 10, t - 0.5, t, FUTEX);
        }
        s = (11..14).fold(s, |s, w| s.by(1000.0, 0, 10, w));
        bound(&s.finish(), "holder", FindingKind::LockHeld)
    };
    assert!(with([10.0, 12.0, 14.0]).is_some());
    assert_eq!(with([10.0, 300.0, 400.0]), None);
}

/// The holder's work has to be done in any case, by one of the CPUs.
#[test]
fn s2_a_lock_that_is_held_leaves_the_work() {
    let mut s = program(4, 1000.0, &[(10, "holder"), (11, "a"), (12, "b"), (13, "c")]);
    s = s.runs(10, 0, 0.0, 1000.0, -1);
    for w in 11..14 {
        s = s.futex(10.0, w, 10).runs(w, w as u16 - 10, 0.0, 10.0, FUTEX);
    }
    for w in 11..14 {
        s = s.by(1000.0, 0, 10, w);
    }
    // Each waits once: their caches are warm.
    is(bound(&s.finish(), "holder", FindingKind::LockHeld), 1000.0 / (1030.0 / 4.0));
}

/// Three threads that hand a lock over: with a lock for each they need a third of the time, if there are CPUs for it.
fn convoy(cpus: u16) -> Option<f64> {
    let mut s = program(cpus, 90.0, &[(10, "a"), (11, "b"), (12, "c")]);
    for w in 11..13 {
        s = s.futex(0.0, w, 10).switch(0.0, w as u16 % cpus, w, SLEEPS, FUTEX, 0);
    }
    for turn in 0..90u32 {
        let (t, now, next) = (f64::from(turn), 10 + turn % 3, 10 + (turn + 1) % 3);
        let (cpu, end) = ((turn % 3) as u16 % cpus, t + 1.0);
        s = s.switch(t, cpu, 0, SwitchState::Runnable, -1, now);
        if turn < 89 {
            s = s.by(end, cpu, now, next);
        }
        let last = turn + 3 >= 90;
        if !last {
            s = s.futex(end, now, next);
        }
        s = s.switch(end, cpu, now, if last { SwitchState::Dead } else { SLEEPS }, FUTEX, 0);
    }
    let answer = explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap();
    let lock = answer.findings.iter().find(|f| f.lock.is_some()).expect("the lock");
    lock.gain_at_most
}

#[test]
fn s3_a_convoy_is_bounded_by_the_cpus() {
    is(convoy(2), 2.0 / 0.85);
    is(convoy(3), 3.0);
    is(convoy(8), 3.0);
}

#[test]
fn two_phases_leave_the_first() {
    let mut s = program(4, 101.0, &[(10, "merger"), (11, "parser"), (12, "parser"), (13, "parser")]);
    for w in 10..14 {
        s = s.runs(w, w as u16 - 10, 0.0, if w == 10 { 100.0 } else { 50.0 }, FUTEX);
    }
    for w in 11..14 {
        s = s.by(100.0, 0, 10, w).runs(w, w as u16 - 10, 100.0, 101.0, FUTEX);
    }
    is(bound(&s.finish(), "merger", FindingKind::Serial), 101.0 / 51.0);
}

#[test]
fn a_disk_is_taken_out_where_it_is_the_finding_and_counts_where_it_is_not() {
    // The writer waits for the disk, then works; the reader works, then waits for the writer.
    let mut s = program(2, 100.0, &[(10, "reader"), (11, "writer")]);
    s = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0).switch(0.0, 1, 11, SLEEPS, FSYNC, 0);
    for round in 0..10 {
        let t = f64::from(10 * round);
        s = s.wakes(t + 6.0, 1, 0, 11, WakeContext::HardIrq, 9).runs(11, 1, t + 6.0, t + 8.0, FSYNC);
        s = s.by(t + 8.0, 1, 11, 10).runs(10, 0, t + 8.0, t + 10.0, FUTEX);
    }
    let trace = s.finish();
    // Ten rounds of 2 ms of each, which overlap but for the first.
    is(bound(&trace, "writer", FindingKind::Disk), 100.0 / 22.0);
    // The disk's stay, 6 ms and nine times 8, and the reader's last 2 ms.
    is(bound(&trace, "writer", FindingKind::Serial), 100.0 / 80.0);
}

/// To wait ten times costs no milliseconds of the kernel's time.
#[test]
fn with_waits_goes_no_more_of_the_kernels_time_than_they_can_cost() {
    const KERNEL: u64 = (1 << 63) + 1;
    let mut s = program(2, 100.0, &[(10, "reader"), (11, "writer")]);
    s.builder.meta_mut().sample_period_ns = MS;
    s = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0).switch(0.0, 1, 11, SLEEPS, FSYNC, 0);
    for round in 0..10 {
        let t = f64::from(10 * round);
        s = s.wakes(t + 6.0, 1, 0, 11, WakeContext::HardIrq, 9).runs(11, 1, t + 6.0, t + 8.0, FSYNC);
        for at in [6.5, 7.5] {
            let chain = s.builder.chain(11, &[KERNEL], &[]);
            s.builder.push(ns(t + at), SampleEvent { cpu: Cpu(1), tid: 11, ip: KERNEL, bp: 0, chain });
        }
        s = s.by(t + 8.0, 1, 11, 10).runs(10, 0, t + 8.0, t + 10.0, FUTEX);
    }
    let trace = s.finish_with(&mut Namer(&[(KERNEL, "copy_page")]));
    is(bound(&trace, "writer", FindingKind::Disk), 100.0 / 22.0);
}

/// Two backends work in turn under a lock, each with a helper that it begins for one answer: both CPUs are busy all the time.
#[test]
fn who_is_begun_for_one_answer_each_works_for_the_program() {
    let mut s = program(2, 2000.0, &[(10, "client"), (11, "client"), (20, "backend"), (21, "backend")]);
    s.builder.meta_mut().focus_pids = vec![10, 11];
    s = s.switch(0.0, 1, 10, SLEEPS, READ, 0).switch(0.0, 1, 11, SLEEPS, READ, 0);
    s = s.futex(0.0, 21, 20).switch(0.0, 1, 21, SLEEPS, FUTEX, 0);
    for turn in 0..200u32 {
        let (t, now, next) = (f64::from(10 * turn), 20 + turn % 2, 21 - turn % 2);
        let (client, helper, name) = (now - 10, 100 + turn, s.builder.string("backend"));
        s.builder.push(ns(t), NameEvent { pid: helper, tid: helper, name });
        s = s.switch(t, 0, 0, SwitchState::Runnable, -1, now).switch(t + 0.1, 1, 0, SwitchState::Runnable, -1, helper);
        s = s.switch(t + 9.5, 0, now, SLEEPS, READ, 0).by(t + 9.7, 1, helper, now);
        s = s.switch(t + 9.71, 1, helper, SwitchState::Dead, EXIT, 0);
        s = s.switch(t + 9.75, 0, 0, SwitchState::Runnable, -1, now).by(t + 9.8, 0, now, client);
        s = s.runs(client, 1, t + 9.81, t + 9.85, READ).by(t + 9.9, 0, now, next).futex(t + 9.95, now, next);
        s = s.switch(t + 9.95, 0, now, SLEEPS, FUTEX, 0);
    }
    let answer = explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap();
    let lock = answer.findings.iter().find(|f| f.lock.is_some()).expect("the lock");
    assert!(lock.gain_at_most.is_some_and(|gain| gain < 1.4), "{} {:?}", lock.title, lock.gain_at_most);
}

/// A dispatcher that looks every 20 ms: without the sleep the worker's own 5 ms are the path.
#[test]
fn sleep_that_others_wait_for_is_taken_out() {
    let mut s = program(2, 210.0, &[(10, "worker"), (11, "dispatcher")]);
    s = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0).switch(0.0, 1, 11, SLEEPS, SLEEP, 0);
    for round in 0..10 {
        let t = f64::from(21 * round);
        s = s.wakes(t + 20.0, 1, 0, 11, WakeContext::Timer, 0).runs(11, 1, t + 20.0, t + 21.0, SLEEP);
        s = s.by(t + 21.0, 1, 11, 10);
        if round < 9 {
            s = s.runs(10, 0, t + 21.0, t + 26.0, FUTEX);
        }
    }
    is(bound(&s.finish(), "dispatcher", FindingKind::SleepPolling), 210.0 / 46.0);
}

/// Who looks every 10 ms whether the worker is done looks less often if that is done sooner.
#[test]
fn who_looks_again_and_again_waits_for_the_work_of_somebody() {
    let threads = [(10, "main"), (11, "worker"), (12, "waiter"), (13, "other")];
    let mut s = program(2, 141.0, &threads).runs(11, 1, 0.0, 100.0, FUTEX);
    s = s
        .switch(0.0, 0, 12, SLEEPS, FUTEX, 0)
        .switch(0.0, 0, 13, SLEEPS, FUTEX, 0)
        .switch(0.0, 0, 10, SLEEPS, SLEEP, 0);
    for look in 1..=10 {
        let t = 10.0 * f64::from(look);
        let ran = if look < 10 { 0.1 } else { 1.0 };
        s = s.wakes(t, 0, 0, 10, WakeContext::Timer, 0).runs(10, 0, t, t + ran, if look < 10 { SLEEP } else { FUTEX });
    }
    s = s.by(100.0, 1, 11, 12).runs(12, 1, 100.0, 105.0, FUTEX).by(101.0, 0, 10, 13).runs(13, 0, 101.0, 141.0, EXIT);
    // The first sleep, nine looks and the last one, and what the other does.
    is(bound(&s.finish(), "worker", FindingKind::Serial), 141.0 / (10.0 + 0.9 + 1.0 + 40.0));
}

#[test]
fn stages_that_are_balanced_hold_each_other_up_next_to_nothing() {
    let mut s = program(2, 205.0, &[(10, "second"), (11, "first")]).runs(11, 1, 0.0, 200.0, EXIT);
    s = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0).by(5.0, 1, 11, 10).runs(10, 0, 5.0, 205.0, EXIT);
    is(bound(&s.finish(), "first", FindingKind::Serial), 205.0 / 200.0);
}

/// Two workers take turns under a lock while the main thread sleeps until time is up; a third thread has nothing to do with it.
#[test]
fn a_program_that_runs_for_a_fixed_time_is_measured_by_what_it_does() {
    let mut s = program(4, 100.0, &[(10, "main"), (11, "a"), (12, "b"), (13, "beside")]);
    s = s.switch(0.0, 0, 10, SLEEPS, SLEEP, 0).runs(13, 3, 0.0, 100.0, -1);
    s = s.futex(0.0, 12, 11).switch(0.0, 2, 12, SLEEPS, FUTEX, 0);
    for turn in 0..20u32 {
        let (t, now, next) = (f64::from(5 * turn), 11 + turn % 2, 12 - turn % 2);
        let cpu = now as u16 - 10;
        s = s.switch(t, cpu, 0, SwitchState::Runnable, -1, now).by(t + 5.0, cpu, now, next);
        s = s.futex(t + 5.0, now, next).switch(t + 5.0, cpu, now, SLEEPS, FUTEX, 0);
    }
    let trace = s.wakes(99.9, 0, 0, 10, WakeContext::Timer, 0).runs(10, 0, 99.9, 100.0, -1).finish();
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let lock = answer.findings.iter().find(|f| f.lock.is_some()).expect("the lock");
    is(lock.gain_at_most, 2.0);
}

/// Whoever keeps the lock works all the time and waits little: those that it keeps from working set no such pace.
#[test]
fn who_gains_little_beside_the_others_does_not_bound_them() {
    let mut s = program(3, 300.0, &[(10, "holder"), (11, "waiter")]).futex(0.0, 11, 10);
    s = s.switch(0.0, 1, 11, SLEEPS, FUTEX, 0);
    for round in 0..10 {
        let t = f64::from(30 * round);
        s = s.futex(t + 29.0, 10, 11).runs(10, 0, t, t + 29.0, FUTEX).by(t + 20.0, 0, 10, 11);
        s = s.runs(11, 1, t + 20.0, t + 30.0, FUTEX).by(t + 30.0, 1, 11, 10).futex(t + 30.0, 11, 10);
    }
    // All of the work is 390 ms, on three CPUs; the holder alone has 290 of them.
    is(bound(&s.finish(), "holder", FindingKind::LockHeld), 300.0 / (390.0 / 3.0));
}

/// Fewer turns save more than one side's work: what each of them costs both sides nobody knows.
#[test]
fn turns_have_no_bound() {
    let mut s = program(2, 400.0, &[(10, "client"), (11, "server")]);
    s = s.switch(0.0, 1, 11, SLEEPS, READ, 0);
    for round in 0..100 {
        let t = f64::from(4 * round);
        s = s.runs(10, 0, t, t + 1.0, READ).by(t + 1.0, 0, 10, 11).runs(11, 1, t + 1.0, t + 4.0, READ);
        s = s.by(t + 4.0, 1, 11, 10);
    }
    let trace = s.finish();
    assert_eq!(bound(&trace, "server", FindingKind::Serial), None);
}

#[test]
fn the_whole_machine_has_no_bound() {
    let s = Schedule::new(2, 100.0).thread(10, "waiter").thread(11, "owner").runs(11, 1, 0.0, 100.0, -1);
    let trace = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0).by(90.0, 1, 11, 10).runs(10, 0, 90.0, 100.0, -1).finish();
    assert_eq!(bound(&trace, "owner", FindingKind::Serial), None);
}

/// Many wait for one, which is charged with more, and then one waits for who takes longer.
#[test]
fn what_comes_first_does_so_however_many_are_asked_for() {
    let mut s = program(4, 310.0, &[(10, "early"), (11, "long"), (12, "a"), (13, "b")]).runs(10, 0, 0.0, 100.0, FUTEX);
    for (w, cpu) in [(11, 1), (12, 2), (13, 3)] {
        s = s.switch(0.0, cpu, w, SLEEPS, FUTEX, 0).by(100.0, 0, 10, w);
    }
    s = s.runs(12, 2, 100.0, 101.0, EXIT).runs(13, 3, 100.0, 101.0, EXIT).runs(11, 1, 100.0, 300.0, EXIT);
    let trace = s.by(300.0, 1, 11, 10).runs(10, 0, 300.0, 310.0, EXIT).finish();
    let first = |top| {
        let answer = explain(&trace, "x", &Options { top, ..Options::default() }, &NoDisassembler).unwrap();
        answer.findings[0].culprit.thread.clone()
    };
    assert_eq!(["long", "long"].map(String::from), [0, 1].map(first));
}
