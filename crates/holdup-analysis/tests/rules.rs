//! One small schedule for each rule from events to intervals, and random ones for the sum. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::blame::{Blame, Terminal};
use holdup_analysis::intervals::{self, Intervals};
use holdup_analysis::{NoDisassembler, Options, classify::Classifier, explain, focus::Focus};
use holdup_trace::{Cpu, LockKey, LockKind, LossKind, LostEvent, Nanos, SwitchEvent, SwitchState, Trace, WakeContext};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;

fn running(trace: &Trace, blame: &Blame, of: u32) -> f64 {
    ms(blame, |k| k.terminal == Terminal::Running && tid(trace, k) == of)
}

fn intervals_of(trace: &Trace) -> Intervals {
    intervals::build(trace, &Focus::new(trace, None), &Classifier::new(trace)).unwrap()
}

/// The tid of the waker of each wait of `wanted`.
fn wakers(trace: &Trace, wanted: u32) -> Vec<Option<u32>> {
    let found = intervals_of(trace);
    let own = found.waits.iter().filter(|w| trace.threads.tid[w.thread.index()] == wanted);
    own.map(|w| w.waker.is_real().then(|| trace.threads.tid[w.waker.index()])).collect()
}

#[test]
fn a_raced_wake_keeps_its_waker() {
    let s = Schedule::new(2, 100.0).thread(10, "worker").thread(11, "waker").runs(11, 1, 0.0, 100.0, -1);
    let s = s.switch(0.0, 0, 0, RUNS, -1, 10).by(9.98, 1, 11, 10).switch(10.0, 0, 10, SLEEPS, FUTEX, 0);
    let trace = s.switch(10.1, 0, 0, RUNS, -1, 10).finish();
    assert_eq!(wakers(&trace, 10), [Some(11)]);
    let wait = intervals_of(&trace).waits[0];
    assert_eq!(wait.woken, wait.start, "no length");
}

#[test]
fn an_early_wake_does_not_end_a_wait_that_another_ends() {
    let s = Schedule::new(3, 100.0).thread(10, "worker").thread(11, "early").thread(12, "late");
    let s = s.runs(11, 1, 0.0, 100.0, -1).runs(12, 2, 0.0, 100.0, -1).switch(0.0, 0, 0, RUNS, -1, 10);
    let s = s.by(9.98, 1, 11, 10).switch(10.0, 0, 10, SLEEPS, FUTEX, 0).by(90.0, 2, 12, 10);
    let (trace, blame) = s.switch(90.0, 0, 0, RUNS, -1, 10).blame();
    near(running(&trace, &blame, 12), 80.0);
    near(running(&trace, &blame, 11), 0.0);
}

/// How many of the worker's sleeps of 5 ms on one word of its own go on in the next, if it hands something over after each.
fn joined_sleeps(hands_over: bool) -> usize {
    let mut s = Schedule::new(2, 51.0).thread(10, "worker").thread(11, "client");
    for i in 0..10 {
        let t = 5.1 * f64::from(i);
        s = s.futex(t, 10, 0).switch(t, 0, 10, SLEEPS, FUTEX, 0);
        if i == 0 {
            s = s.switch(t, 1, 11, SLEEPS, FUTEX, 0);
        }
        s = s.wakes(t + 5.0, 0, 0, 10, WakeContext::Timer, 0).switch(t + 5.0, 0, 0, RUNS, -1, 10);
        if hands_over {
            s = s.by(t + 5.02, 0, 10, 11).switch(t + 5.02, 1, 0, RUNS, -1, 11).switch(
                t + 5.06,
                1,
                11,
                SLEEPS,
                FUTEX,
                0,
            );
        }
    }
    let trace = s.finish();
    intervals_of(&trace).waits.iter().filter(|w| trace.threads.tid[w.thread.index()] == 10 && w.goes_on != 0).count()
}

#[test]
fn sleeps_between_which_a_thread_wakes_somebody_are_not_one() {
    assert_eq!(joined_sleeps(false), 9, "it looks again and again");
    assert_eq!(joined_sleeps(true), 0, "each is a task's");
}

#[test]
fn nobody_wakes_itself() {
    let s = Schedule::new(2, 100.0).thread(10, "worker").thread(11, "waker").runs(11, 1, 0.0, 100.0, -1);
    let s = s.switch(0.0, 0, 0, RUNS, -1, 10).by(9.98, 0, 10, 10).switch(10.0, 0, 10, SLEEPS, FUTEX, 0);
    let (trace, blame) = s.by(90.0, 1, 11, 10).switch(90.0, 0, 0, RUNS, -1, 10).blame();
    near(running(&trace, &blame, 11), 80.0);
}

#[test]
fn the_idle_task_is_no_waker() {
    let s = Schedule::new(2, 100.0).thread(10, "worker").switch(0.0, 0, 0, RUNS, -1, 10);
    let s = s.switch(10.0, 0, 10, SLEEPS, FUTEX, 0).by(90.0, 1, 0, 10).switch(90.0, 0, 0, RUNS, -1, 10);
    let trace = s.finish();
    assert_eq!(wakers(&trace, 10), [None]);
}

#[test]
fn an_interrupt_is_not_the_thread_that_it_met() {
    let s = Schedule::new(2, 100.0).thread(10, "worker").thread(11, "bystander").runs(11, 1, 0.0, 100.0, -1);
    let s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(10.0, 0, 10, SLEEPS, READ, 0);
    let s = s.wakes(90.0, 1, 11, 10, WakeContext::SoftIrq, NET_RX).switch(90.0, 0, 0, RUNS, -1, 10);
    assert_eq!(wakers(&s.finish(), 10), [None]);
}

#[test]
fn a_real_time_kernels_timer_thread_is_no_waker() {
    for (name, wakers_of, context) in
        [("ktimers/1", [None], WakeContext::Timer), ("timers", [Some(11)], WakeContext::Task)]
    {
        let s = Schedule::new(2, 100.0).thread(10, "worker").thread(11, name).runs(11, 1, 0.0, 100.0, -1);
        let s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(10.0, 0, 10, SLEEPS, SLEEP, 0).by(90.0, 1, 11, 10);
        let trace = s.switch(90.0, 0, 0, RUNS, -1, 10).finish();
        assert_eq!(wakers(&trace, 10), wakers_of);
        assert_eq!(intervals_of(&trace).waits[0].context, context);
    }
}

#[test]
fn the_first_wake_counts() {
    let s = Schedule::new(3, 100.0).thread(10, "worker").thread(11, "first").thread(12, "second");
    let s = s.runs(11, 1, 0.0, 100.0, -1).runs(12, 2, 0.0, 100.0, -1).switch(0.0, 0, 10, SLEEPS, FUTEX, 0);
    let s = s.by(50.0, 1, 11, 10).by(50.5, 2, 12, 10).switch(51.0, 0, 0, RUNS, -1, 10);
    let trace = s.finish();
    assert_eq!(wakers(&trace, 10), [Some(11)]);
    assert_eq!(intervals_of(&trace).waits[0].woken, ns(50.0));
}

#[test]
fn a_missing_switch_in_is_inferred_and_counted() {
    let s = Schedule::new(1, 100.0).thread(10, "a").thread(11, "b");
    let s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(10.0, 0, 10, SLEEPS, SLEEP, 0);
    let s = s.wakes(40.0, 0, 0, 10, WakeContext::Timer, 0).switch(60.0, 0, 10, SLEEPS, SLEEP, 0);
    let (trace, blame) = s.blame();
    assert_eq!(intervals_of(&trace).health.inferred, 1);
    near(blame.cpu.running / MS as f64, 30.0);
}

#[test]
fn lost_records_hold_nobody_up() {
    let mut s = Schedule::new(2, 100.0).thread(10, "holder").thread(11, "waiter");
    s = s.runs(10, 0, 0.0, 100.0, -1).runs(11, 1, 0.0, 10.0, FUTEX);
    let what = s.builder.string("records");
    for cpu in [0, 1] {
        s.builder
            .push(ns(60.0), LostEvent { kind: LossKind::Events, cpu: Cpu(cpu), span: Nanos(ns(40.0)), count: 5, what });
    }
    let (trace, blame) = s.by(80.0, 0, 10, 11).switch(80.0, 1, 0, RUNS, -1, 11).blame();
    near(blame.cpu.lost / MS as f64, 80.0);
    assert!(blame.cpu.held_up <= 0.05 * MS as f64 + 30.0 * MS as f64, "{:?}", blame.cpu);
    assert!(ms(&blame, |k| k.terminal == Terminal::Running) <= 30.05, "nothing is charged within the loss");
    assert_eq!(intervals_of(&trace).health.lost_events, 10);
}

#[test]
fn stacks_without_room_are_a_loss_of_their_own() {
    let mut s = Schedule::new(1, 100.0).thread(10, "a");
    for (kind, count) in [(LossKind::Stacks, 1470), (LossKind::LimitedStacks, 9), (LossKind::Events, 2)] {
        let what = s.builder.string("something");
        s.builder.push(ns(60.0), LostEvent { kind, cpu: Cpu::NONE, span: Nanos(0), count, what });
    }
    let (trace, _) = s.runs(10, 0, 0.0, 100.0, -1).blame();
    let health = intervals_of(&trace).health;
    assert_eq!((health.lost_stacks, health.lost_events), (1470, 2));
}

#[test]
fn lost_mappings_say_nothing_of_threads() {
    let mut s = Schedule::new(1, 100.0).thread(10, "a").runs(10, 0, 0.0, 100.0, -1);
    let what = s.builder.string("mappings of code");
    let lost = |span| LostEvent { kind: LossKind::Mappings, cpu: Cpu(0), span: Nanos(span), count: 7, what };
    s.builder.push(ns(60.0), lost(ns(20.0)));
    let (trace, blame) = s.blame();
    near(blame.cpu.running / MS as f64, 100.0);
    near(blame.cpu.lost / MS as f64, 0.0);
    let health = intervals_of(&trace).health;
    assert_eq!((health.lost_mappings, health.lost_events, health.lost_stacks), (7, 0, 0));
}

#[test]
fn a_wait_that_nobody_ends_is_idle_by_design() {
    let s = Schedule::new(2, 100.0).thread(10, "pool").thread(11, "main").runs(11, 1, 0.0, 100.0, -1);
    let (_, blame) = s.runs(10, 0, 0.0, 10.0, FUTEX).blame();
    near(ms(&blame, |k| k.terminal == Terminal::IdleByDesign), 90.0);
    near(blame.cpu.held_up / MS as f64, 0.0);
}

#[test]
fn a_new_owner_takes_over_the_blame() {
    let s = Schedule::new(4, 100.0).thread(10, "first").thread(11, "second").thread(12, "waiter").thread(13, "other");
    let s = s.runs(10, 0, 0.0, 100.0, -1).runs(11, 1, 0.0, 100.0, -1);
    let s = s.futex(10.0, 12, 10).switch(10.0, 2, 12, SLEEPS, FUTEX, 0);
    let s = s.futex(50.0, 13, 11).switch(50.0, 3, 13, SLEEPS, FUTEX, 0);
    let (trace, blame) = s.by(90.0, 1, 11, 12).switch(90.0, 2, 0, RUNS, -1, 12).blame();
    // 13 waits for the second owner until its release, and then for nobody known.
    near(running(&trace, &blame, 10), 40.0);
    near(running(&trace, &blame, 11), 80.0);
}

/// A thread waits for 10 to 80; who wakes it begins at 40.
fn waits_for_a_child(creator: impl Fn(Schedule) -> Schedule) -> (Trace, Blame) {
    let s = Schedule::new(3, 100.0).thread(10, "waiter").thread(11, "creator").runs(10, 0, 0.0, 10.0, FUTEX);
    let mut s = creator(s);
    s.builder.push(ns(40.0), holdup_trace::ForkEvent { parent_pid: 1, parent: 11, pid: 1, tid: 12 });
    s.switch(40.0, 2, 0, RUNS, -1, 12).by(80.0, 2, 12, 10).switch(80.0, 0, 0, RUNS, -1, 10).blame()
}

#[test]
fn who_waits_for_a_thread_that_is_not_there_yet_waits_for_its_creator() {
    let (trace, blame) = waits_for_a_child(|s| s.runs(11, 1, 0.0, 60.0, FUTEX));
    near(running(&trace, &blame, 12), 40.0);
    near(running(&trace, &blame, 11), 30.0);
    // The creator sleeps now and then.
    let (trace, blame) = waits_for_a_child(|s| {
        let s = s.runs(11, 1, 0.0, 20.0, SLEEP).wakes(35.0, 1, 0, 11, WakeContext::Timer, 0);
        s.runs(11, 1, 35.0, 60.0, FUTEX)
    });
    near(running(&trace, &blame, 11), 15.0);
    near(ms(&blame, |k| k.terminal == Terminal::Timer && tid(&trace, k) == 11), 15.0);
}

#[test]
fn a_join_is_not_held_up() {
    const WAIT4: i16 = 61;
    let s = Schedule::new(2, 100.0).thread(10, "parent").thread(11, "child").runs(11, 1, 0.0, 100.0, -1);
    let s = s.runs(10, 0, 0.0, 10.0, WAIT4).by(90.0, 1, 11, 10).switch(90.0, 0, 0, RUNS, -1, 10);
    let (_, blame) = s.blame();
    near(blame.cpu.held_up / MS as f64, 0.0);
}

/// Somebody waits 5 ms less than a thread sleeps.
fn sleeper(length: f64) -> Blame {
    let end = length + 20.0;
    let s = Schedule::new(2, end).thread(10, "waiter").thread(11, "sleeper");
    let s = s.switch(0.0, 0, 10, SLEEPS, FUTEX, 0).switch(0.0, 1, 11, SLEEPS, SLEEP, 0);
    let s = s.wakes(length, 1, 0, 11, WakeContext::Timer, 0).switch(length, 1, 0, RUNS, -1, 11);
    s.by(length + 1.0, 1, 11, 10).switch(length + 1.0, 0, 0, RUNS, -1, 10).blame().1
}

#[test]
fn short_sleeps_of_others_are_polling_long_ones_are_not() {
    near(ms(&sleeper(100.0), |k| k.terminal == Terminal::Timer), 100.0);
    near(ms(&sleeper(300.0), |k| k.terminal == Terminal::Timer), 0.0);
    near(ms(&sleeper(300.0), |k| k.terminal == Terminal::IdleByDesign), 600.0);
}

#[test]
fn microsecond_holds_of_four_threads_are_a_convoy() {
    let mut s = Schedule::new(4, 10.2);
    for tid in 10..14 {
        s = s.thread(tid, "worker").switch(0.0, (tid - 10) as u16, 0, RUNS, -1, tid);
    }
    for tid in 11..14 {
        s = s.futex(0.001, tid, 10).switch(0.001, (tid - 10) as u16, tid, SLEEPS, FUTEX, 0);
    }
    // Each holds the lock for 3 µs; the next needs 20 µs to come onto its CPU.
    for turn in 0..400u32 {
        let (t, now, next) = (0.01 + f64::from(turn) * 0.023, 10 + turn % 4, 10 + (turn + 1) % 4);
        if turn > 0 {
            s = s.switch(t, (now - 10) as u16, 0, RUNS, -1, now);
        }
        s = s.by(t + 0.003, (now - 10) as u16, now, next);
        s = s.futex(t + 0.004, now, next).switch(t + 0.004, (now - 10) as u16, now, SLEEPS, FUTEX, 0);
    }
    let trace = s.finish();
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let first = &answer.findings[0];
    assert_eq!(first.kind.name(), "convoy", "{first:#?}");
    assert!(first.title.contains("one is woken for it every "), "{}", first.title);
    assert_eq!(answer.findings[0].waiters.threads, 4);
}

#[test]
fn a_condition_variable_is_one_lock() {
    // Without stacks a condition is not told from a lock: only the canonical key of its two words can be checked.
    let mut s = Schedule::new(2, 100.0).thread(10, "waiter").thread(11, "signaller").runs(11, 1, 0.0, 100.0, -1);
    let words = [0x2000, 0x2004].map(|address| s.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address }));
    let condition = s.builder.chain(1, &[], &[0x1000]);
    for (turn, lock) in words.into_iter().enumerate() {
        let t = 10.0 + 40.0 * turn as f64;
        let (cpu, state, io_wait) = (Cpu(0), SLEEPS, false);
        s = s.switch(t - 1.0, 0, 0, RUNS, -1, 10);
        let event = SwitchEvent { cpu, prev: 10, next: 0, state, io_wait, syscall: FUTEX, lock, chain: condition };
        s.builder.push(ns(t), event);
        s = s.by(t + 20.0, 1, 11, 10);
    }
    let mut end = s;
    let what = end.builder.string("end");
    end.builder.push(ns(100.0), LostEvent { kind: LossKind::Events, cpu: Cpu::NONE, span: Nanos(0), count: 0, what });
    let trace = end.builder.finish(Some(&mut Condition)).unwrap();
    let waits = intervals_of(&trace).waits;
    assert_eq!(waits.len(), 2);
    assert_eq!(waits[0].lock, waits[1].lock);
}

struct Condition;

impl holdup_trace::Symbolizer for Condition {
    fn locate(&mut self, _: bool, _: &[std::sync::Arc<holdup_trace::Image>], _: u64) -> Vec<holdup_trace::Location> {
        let (function, module) = ("pthread_cond_wait".into(), "libc.so.6".into());
        vec![holdup_trace::Location { function, module, ..Default::default() }]
    }

    fn code(&mut self, _: bool, _: &[std::sync::Arc<holdup_trace::Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}
