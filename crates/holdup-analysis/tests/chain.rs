//! Chains and hand-offs of small schedules. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::NoDisassembler;
use holdup_analysis::chain::{Chain, Options, Start, chain};
use holdup_analysis::threads::{self, Naming};
use holdup_trace::{FutexEvent, LockKey, LockKind, SwitchState, Trace, WakeContext};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;

fn ask(trace: &Trace, start: Start, follow: bool) -> Result<Chain, String> {
    let options = Options { start, focus: None, follow, top: 0 };
    chain(trace, "t", &options, &NoDisassembler).map_err(|e| e.to_string())
}

fn at(ms: f64, thread: &str) -> Start {
    Start::At { seconds: ms / 1e3, thread: (!thread.is_empty()).then(|| thread.to_owned()) }
}

fn tids(chain: &Chain) -> Vec<u32> {
    chain.hops.iter().map(|h| h.who.tid).collect()
}

fn ms_of(seconds: f64) -> f64 {
    seconds * 1e3
}

/// A sleeper is woken by its timer at 50 and wakes the waiter at 60.
fn behind_a_timer() -> Trace {
    let s = Schedule::new(2, 100.0).thread(10, "waiter").thread(11, "sleeper");
    let s = s.runs(10, 0, 0.0, 5.0, FUTEX).runs(11, 1, 0.0, 10.0, SLEEP);
    let s = s.wakes(50.0, 1, 0, 11, WakeContext::Timer, 0).switch(50.2, 1, 0, RUNS, -1, 11);
    let s = s.by(60.0, 1, 11, 10).switch(60.1, 0, 0, RUNS, -1, 10).switch(70.0, 1, 11, SLEEPS, SLEEP, 0);
    s.finish()
}

#[test]
fn a_chain_goes_back_to_the_timer() {
    let trace = behind_a_timer();
    let found = ask(&trace, at(30.0, ""), false).unwrap();
    assert_eq!((tids(&found), found.end.kind.name(), found.also_waiting), (vec![10, 11, 11], "running", 1));
    let (first, second) = (&found.hops[0], &found.hops[1]);
    let wait = first.wait.as_ref().unwrap();
    near(ms_of(wait.waited_s), 55.0);
    near(ms_of(wait.ready_s), 0.1);
    assert_eq!((wait.ended_by.as_str(), second.by.name()), ("thread", "waker"));
    near(ms_of(second.did.ran_s), 9.8);
    near(ms_of(second.did.ready_s), 0.2);
    near(ms_of(second.part_s), 10.0);
    near(ms_of(second.wait.as_ref().unwrap().waited_s), 40.0);
    // Its timer, and before that what it ran meanwhile: all of it is told.
    near(ms_of(second.alone_s), 40.0);
    near(ms_of(found.hops[2].part_s), 5.0);
    assert_eq!((found.shares[0].what.name(), found.end.main_hop), ("timer", 1), "the timer has the largest part");
    adds_up(&found);
    assert!(!second.at, "at 30 the sleeper slept");
    assert!(ask(&trace, at(55.0, "waiter"), false).unwrap().hops[1].at);
}

/// 10 holds a lock until 50, 11 until 52; 12 waits for both.
fn queue() -> Trace {
    let s = Schedule::new(3, 100.0).thread(10, "first").thread(11, "second").thread(12, "third");
    let s = s.runs(10, 0, 0.0, 100.0, -1).switch(0.0, 1, 0, RUNS, -1, 11).switch(0.0, 2, 0, RUNS, -1, 12);
    let s = s.futex(10.0, 11, 10).switch(10.0, 1, 11, SLEEPS, FUTEX, 0);
    let s = s.futex(20.0, 12, 10).switch(20.0, 2, 12, SLEEPS, FUTEX, 0);
    let s = s.by(50.0, 0, 10, 11).switch(50.1, 1, 0, RUNS, -1, 11);
    s.by(52.0, 1, 11, 12).switch(52.3, 2, 0, RUNS, -1, 12).finish()
}

#[test]
fn the_waker_leads_through_the_queue_to_the_holder() {
    let trace = queue();
    let waits = ask(&trace, at(30.0, "third"), false).unwrap().hops[0].wait.as_ref().unwrap().id.unwrap();
    let found = ask(&trace, Start::Wait(waits), false).unwrap();
    assert_eq!((tids(&found), found.end.kind.name(), found.end.main_hop), (vec![12, 11, 10], "running", 2));
    near(ms_of(found.hops[1].part_s), 2.0);
    near(ms_of(found.hops[2].part_s), 30.0);
    near(found.end.main_share, 30.0 / 32.0);
}

#[test]
fn at_an_instant_the_owner_then_answers() {
    let found = ask(&queue(), at(30.0, "third"), false).unwrap();
    // From 50 to 52 it was the second, who had it then.
    assert_eq!((tids(&found), found.hops[2].by.name(), found.hops[2].at), (vec![12, 11, 10], "waker", true));
    near(ms_of(found.hops[2].did.ran_s), 30.0);
    // The other one had let go by then.
    let later = ask(&queue(), at(51.0, "third"), false).unwrap();
    assert_eq!((tids(&later), later.hops[1].by.name(), later.hops[1].at), (vec![12, 11, 10], "waker", true));
}

/// Each instant of the first wait is in one place.
fn adds_up(chain: &Chain) {
    let wait = chain.hops[0].wait.as_ref().unwrap().waited_s;
    let hops: f64 = chain.hops.iter().map(|h| h.part_s + h.alone_s).sum();
    near(ms_of(hops + chain.end.part_s), ms_of(wait));
    near(ms_of(chain.shares.iter().map(|s| s.part_s).sum()), ms_of(wait));
    near(chain.shares.iter().map(|s| s.share).sum(), 1.0);
}

/// A server that naps for 4 after each 1 of work, and answers after 100.
#[test]
fn a_waker_that_waited_often_answers_for_all_of_it() {
    let mut s = Schedule::new(2, 120.0).thread(10, "client").thread(11, "server");
    s = s.runs(10, 0, 0.0, 2.0, READ);
    for round in 0..20 {
        let t = 5.0 * f64::from(round);
        s = s.wakes(t, 1, 0, 11, WakeContext::Timer, 0).runs(11, 1, t, t + 1.0, SLEEP);
    }
    let s = s.wakes(100.0, 1, 0, 11, WakeContext::Timer, 0).switch(100.0, 1, 0, RUNS, -1, 11).by(102.0, 1, 11, 10);
    let found = ask(&s.switch(102.0, 0, 0, RUNS, -1, 10).finish(), at(50.0, "client"), false).unwrap();
    adds_up(&found);
    let of =
        |what: &str| found.shares.iter().filter(|s| s.what.name() == what).map(|s| (ms_of(s.part_s), s.times)).next();
    let (timer, ran) = (of("timer").unwrap(), of("running").unwrap());
    near(timer.0, 79.0);
    near(ran.0, 21.0);
    assert_eq!((timer.1, ran.1), (20, 20));
    assert!(found.shares[0].who.tid == 11 && found.hops[2].by.name() == "before", "{found:#?}");
}

#[test]
fn a_waker_that_was_created_meanwhile_leads_to_its_creator() {
    let mut s = Schedule::new(3, 100.0).thread(10, "waiter").thread(11, "creator").runs(10, 0, 0.0, 5.0, FUTEX);
    s = s.runs(11, 1, 0.0, 60.0, FUTEX);
    s.builder.push(ns(40.0), holdup_trace::ForkEvent { parent_pid: 1, parent: 11, pid: 1, tid: 12 });
    let s = s.switch(41.0, 2, 0, RUNS, -1, 12).by(80.0, 2, 12, 10).switch(80.0, 0, 0, RUNS, -1, 10);
    let found = ask(&s.finish(), at(50.0, "waiter"), false).unwrap();
    adds_up(&found);
    assert_eq!(
        (tids(&found), found.hops[2].by.name(), found.end.kind.name()),
        (vec![10, 12, 11], "creator", "running")
    );
    near(ms_of(found.hops[2].part_s), 35.0);
}

#[test]
fn all_of_every_wait_is_accounted_for() {
    let traces = [behind_a_timer(), queue()];
    for trace in &traces {
        for wait in 0.. {
            match ask(trace, Start::Wait(wait), false) {
                Ok(found) => adds_up(&found),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn hand_offs_are_listed_in_time_order() {
    let found = ask(&queue(), at(30.0, "third"), true).unwrap().handoffs.unwrap();
    assert_eq!((found.total, found.in_trace, found.skipped, found.list.len()), (2, 2, 0, 2));
    near(ms_of(found.from_s), 10.0);
    near(ms_of(found.to_s), 52.0);
    let (a, b) = (&found.list[0], &found.list[1]);
    assert_eq!((a.from.as_ref().unwrap().tid, a.to.tid, a.waiting), (10, 11, 1));
    assert_eq!((b.from.as_ref().unwrap().tid, b.to.tid, b.waiting, b.held_s), (11, 12, 0, None));
    near(ms_of(a.waited_s), 40.0);
    near(ms_of(a.handoff_s), 0.1);
    near(ms_of(a.held_s.unwrap()), 1.9);
    near(ms_of(b.waited_s), 32.0);
    near(ms_of(b.handoff_s), 0.3);
}

#[test]
fn a_holder_without_a_cpu_is_named_with_who_has_it() {
    let s = Schedule::new(2, 100.0).thread(10, "hog").thread(11, "holder").thread(12, "waiter");
    let s = s.switch(0.0, 0, 0, RUNS, -1, 11).switch(10.0, 0, 11, RUNS, -1, 10);
    let s = s.runs(12, 1, 0.0, 5.0, FUTEX).switch(80.0, 0, 10, RUNS, -1, 11);
    let s = s.by(90.0, 0, 11, 12).switch(90.0, 1, 0, RUNS, -1, 12);
    let found = ask(&s.finish(), at(40.0, ""), false).unwrap();
    assert_eq!((tids(&found), found.end.kind.name()), (vec![12, 11], "runnable"));
    let did = &found.hops[1].did;
    near(ms_of(did.ran_s), 15.0);
    near(ms_of(did.ready_s), 70.0);
    assert_eq!((did.behind.len(), did.behind[0].who.tid), (1, 10));
    near(ms_of(did.behind[0].ran_s), 70.0);
    assert!(found.end.text.contains("hog"), "{}", found.end.text);
}

#[test]
fn a_deadlock_is_a_circle() {
    let mut s = Schedule::new(2, 100.0).thread(10, "left").thread(11, "right");
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 0, RUNS, -1, 11).futex(10.0, 10, 11);
    s = s.switch(10.0, 0, 10, SLEEPS, FUTEX, 0);
    let lock = s.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address: 0x2000 });
    s.builder.push(ns(20.0), FutexEvent { tid: 11, lock, owner: 10, operation: 0, timed: false });
    let trace = s.switch(20.0, 1, 11, SLEEPS, FUTEX, 0).finish();
    let found = ask(&trace, at(50.0, "left"), false).unwrap();
    assert_eq!((tids(&found), found.end.kind.name()), (vec![10, 11, 10], "circle"));
    adds_up(&found);
}

#[test]
fn what_is_not_there_is_said() {
    let trace = behind_a_timer();
    let refused = |start, follow| ask(&trace, start, follow).expect_err("nothing");
    assert!(refused(at(200.0, ""), false).contains("0.100 s long"));
    assert!(
        refused(at(80.0, "waiter"), false).contains("its last wait is 0"),
        "{}",
        refused(at(80.0, "waiter"), false)
    );
    assert!(refused(at(30.0, "nobody"), false).contains("nobody"));
    assert!(refused(Start::Wait(99), false).contains("0 to 2"));
    assert!(refused(at(30.0, "sleeper"), true).contains("no lock"));
    let none = Schedule::new(1, 10.0).thread(10, "a").finish();
    assert!(ask(&none, at(1.0, ""), false).expect_err("nothing").contains("no waits"));
    assert_eq!(ask(&trace, at(30.0, "sleep"), false).unwrap().note, "sleep is taken for `sleeper`");
    assert_eq!(tids(&ask(&trace, at(30.0, "11"), false).unwrap()), [11]);
}

#[test]
fn the_list_of_threads_adds_up() {
    let trace = behind_a_timer();
    let found = threads::list(&trace, "t", None, false).unwrap();
    let waiter = found.threads.iter().find(|t| t.tid == 10).unwrap();
    near(ms_of(waiter.ran_s), 5.0 + 39.9);
    near(ms_of(waiter.waited_s), 55.0);
    near(ms_of(waiter.ready_s), 0.1);
    assert_eq!((waiter.waits, waiter.naming), (1, Naming::Own));
    let sleeper = found.threads.iter().find(|t| t.tid == 11).unwrap();
    near(ms_of(sleeper.waited_by_kind["timer"]), 70.0);
    near(ms_of(sleeper.ran_s + sleeper.ready_s + sleeper.waited_s), 100.0);
}

#[test]
fn names_are_judged_by_process() {
    let threads = [
        (1, 1, "app", "app"),
        (1, 2, "app", "app"),
        (1, 3, "io", "app"),
        (1, 4, "io", "app"),
        (1, 5, "gc", "app"),
        (2, 6, "gc", ""),
    ];
    let found = threads::naming(&threads);
    assert_eq!(found, [Naming::Main, Naming::Process, Naming::Shared, Naming::Shared, Naming::Own, Naming::Own]);
}
