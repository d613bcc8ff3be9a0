//! What holds a thread up besides locks and other threads' work: signals that stop it, disks at its end, answers of other machines.

#![allow(missing_docs)]

mod common;

use std::sync::Arc;

use common::{FUTEX, MS, NET_RX, POLL, READ, SLEEP, Schedule, near, ns};
use holdup_analysis::blame::{Blame, Terminal};
use holdup_analysis::report::{Confidence, Explanation, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    ChainId, Cpu, ExitEvent, ForkEvent, Image, ListenerEvent, Location, LockId, LockKey, LockKind, NameEvent,
    SampleEvent, StandingEvent, SwitchEvent, SwitchState, Symbolizer, Timestamp, Trace, WakeContext, WakeEvent,
};

const STOPPED: u64 = 1;
const ASKS: u64 = 2;
const PARKED: u64 = 3;
const HANDLES_DEADLOCKS: u64 = 4;
const LOCKS_ROWS: u64 = 5;
const WRITES: u64 = 6;
const ENDS_ALL: u64 = 7;
const CONNECTS: u64 = 18;
const WAKES_BY_TIMER: u64 = 19;

struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let (function, module) = match address {
            STOPPED => ("do_signal_stop", "[kernel]"),
            WRITES => ("__pthread_rwlock_wrlock_full64", "/lib/libc.so.6"),
            ENDS_ALL => ("zap_other_threads", "[kernel]"),
            CONNECTS => ("__inet_stream_connect", "[kernel]"),
            WAKES_BY_TIMER => ("hrtimer_wakeup", "[kernel]"),
            ASKS => ("__res_context_send", "/lib/libc.so.6"),
            PARKED => ("runtime.findRunnable", "/bin/app"),
            HANDLES_DEADLOCKS => ("slave_deadlock_handler", "/bin/app"),
            LOCKS_ROWS => ("lock_wait", "/bin/app"),
            _ => ("main", "/bin/app"),
        };
        vec![Location { function: function.into(), module: module.into(), ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

fn explained(trace: &Trace) -> Explanation {
    explain(trace, "t", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn whoever_is_stopped_with_a_lock_is_blamed_and_not_who_lets_it_go_on() {
    let mut s = Schedule::new(2, 100.0).in_focus();
    for (tid, name) in [(10, "owner"), (20, "waiter"), (30, "shell")] {
        s = s.thread(tid, name);
    }
    s = s.runs(20, 1, 0.0, 5.0, -1).futex(5.0, 20, 10).switch(5.0, 1, 20, SwitchState::Sleeping, FUTEX, 0);
    s = s.switch(0.0, 0, 0, SwitchState::Runnable, -1, 10);
    let chain = s.builder.chain(1, &[STOPPED], &[9]);
    let (state, lock) = (SwitchState::Stopped, LockId::NONE);
    let stop = SwitchEvent { cpu: Cpu(0), prev: 10, next: 0, state, io_wait: false, syscall: -1, lock, chain };
    s.builder.push(ns(10.0), stop);
    // The shell works beside them, and sends the signal to go on.
    s = s.runs(30, 0, 20.0, 70.0, READ).by(69.0, 0, 30, 10);
    s = s.runs(10, 0, 70.0, 75.0, READ).by(75.0, 0, 10, 20).runs(20, 1, 75.0, 90.0, READ);
    let trace = s.finish_with(&mut Names);
    let answer = explained(&trace);
    let first = answer.findings.first().expect("a finding");
    assert_eq!((first.kind, first.culprit.thread.as_str()), (FindingKind::OwnerNotRunning, "owner"), "{first:?}");
    assert!(first.title.contains("was stopped, or frozen, for "), "{}", first.title);
    let (_, blame) = common::blame_of(trace);
    near(common::ms(&blame, |key| key.terminal == Terminal::Stopped), 2.0 * 59.0);
}

#[test]
fn a_disk_that_a_process_waits_for_before_it_ends_holds_it_up() {
    let mut s = Schedule::new(1, 50.0).in_focus().thread(10, "reader").runs(10, 0, 0.0, 10.0, -1);
    let (state, lock, chain) = (SwitchState::Uninterruptible, LockId::NONE, ChainId::NONE);
    let leaves = SwitchEvent { cpu: Cpu(0), prev: 10, next: 0, state, io_wait: true, syscall: READ, lock, chain };
    s.builder.push(ns(10.0), leaves);
    s = s.wakes(40.0, 0, 0, 10, WakeContext::HardIrq, 7).switch(40.0, 0, 0, SwitchState::Runnable, -1, 10);
    s = s.exits(40.1, 10).switch(40.1, 0, 10, SwitchState::Dead, 60, 0);
    let (_, blame) = s.blame();
    near(blame.cpu.held_up / MS as f64, 30.0);
}

/// A process polls, and after `length` ms something comes from the network.
fn client(length: f64, listens: Option<bool>) -> Explanation {
    let mut s = Schedule::new(1, 10.0 * length).in_focus().thread(1, "client");
    if let Some(listens) = listens {
        s.builder.push(0, ListenerEvent { pid: 1, parent: 0, listens });
    }
    for round in 0..9 {
        let t = length * f64::from(round);
        s = s.waits_at(1, 0, [t, t + 1.0], POLL, &[9]).wakes(t + length - 0.1, 0, 0, 1, WakeContext::SoftIrq, NET_RX);
    }
    explained(&s.finish_with(&mut Names))
}

#[test]
fn a_client_waits_for_the_answers_of_another_machine() {
    let answer = client(20.0, Some(false));
    let first = answer.findings.first().expect("a finding");
    assert_eq!((first.kind, first.confidence), (FindingKind::Network, Confidence::Low), "{first:?}");
    // A server has nothing to do meanwhile, and who hears something every few seconds has hardly asked for it.
    for (length, listens) in [(20.0, Some(true)), (20.0, None), (3000.0, Some(false))] {
        let answer = client(length, listens);
        let first = answer.findings.first().expect("a finding");
        assert_eq!(first.kind, FindingKind::IdleByDesign, "{length} {listens:?}: {first:?}");
    }
}

#[test]
fn a_name_server_that_does_not_answer_holds_up() {
    let mut s = Schedule::new(1, 5000.0).in_focus().thread(1, "client");
    for round in 0..5 {
        let t = 1000.0 * f64::from(round);
        s = s.waits_at(1, 0, [t, t + 1.0], POLL, &[ASKS, 9]);
        s = s.wakes(t + 999.0, 0, 0, 1, WakeContext::Timer, 0);
    }
    let answer = explained(&s.finish_with(&mut Names));
    let first = answer.findings.first().expect("a finding");
    assert!(first.title.contains("an address for a name (DNS)"), "{}", first.title);
}

/// Where the other end's queue is full, it is a timer's interrupt that asks again and gets the connection.
#[test]
fn who_asks_for_a_connection_is_held_up_until_it_has_one() {
    const CONNECT: i16 = 42;
    let mut s = Schedule::new(1, 5000.0).in_focus().thread(1, "client");
    for t in (0..5).map(|round| 1000.0 * f64::from(round)) {
        s = s.switch(t, 0, 0, SwitchState::Runnable, -1, 1);
        let chain = s.builder.chain(1, &[CONNECTS], &[9]);
        let (state, lock) = (SwitchState::Sleeping, LockId::NONE);
        let out = SwitchEvent { cpu: Cpu(0), prev: 1, next: 0, state, io_wait: false, syscall: CONNECT, lock, chain };
        s.builder.push(ns(t + 1.0), out);
        s = s.wakes(t + 999.0, 0, 0, 1, WakeContext::SoftIrq, 1);
    }
    let answer = explained(&s.finish_with(&mut Names));
    let first = answer.findings.first().expect("a finding");
    assert_eq!(first.kind, FindingKind::Network, "{first:?}");
    assert!(first.title.starts_with("client waited for a connection for 4."), "{}", first.title);
    assert!(first.advice.contains("listen's backlog"), "{}", first.advice);
}

#[test]
fn reading_files_by_aio_is_for_the_disk() {
    const IO_GETEVENTS: i16 = 208;
    let mut s = Schedule::new(1, 100.0).in_focus().thread(1, "reader");
    for round in 0..10 {
        let t = 10.0 * f64::from(round);
        s = s.waits_at(1, 0, [t, t + 1.0], IO_GETEVENTS, &[9]).wakes(t + 9.0, 0, 0, 1, WakeContext::HardIrq, 7);
    }
    s.builder.push(ns(100.0), ExitEvent { tid: 1 });
    let answer = explained(&s.finish_with(&mut Names));
    assert_eq!(answer.findings.first().map(|f| f.kind), Some(FindingKind::Disk), "{:?}", answer.findings);
}

#[test]
fn what_goroutines_wait_for_is_said_not_to_be_seen() {
    let caveat = |place: u64, worked: f64| {
        let mut s = Schedule::new(1, 1000.0).in_focus().thread(1, "app");
        for round in 0..10 {
            let t = 100.0 * f64::from(round);
            s = s.waits_at(1, 0, [t, t + worked], POLL, &[place, 9]).wakes(t + 99.0, 0, 0, 1, WakeContext::Timer, 0);
        }
        let answer = explained(&s.finish_with(&mut Names));
        answer.caveats.into_iter().map(|c| c.what).collect::<Vec<_>>()
    };
    let is_told = |caveats: &[String]| caveats.iter().any(|what| what.contains("goroutines that wait for each other"));
    assert!(is_told(&caveat(PARKED, 5.0)));
    assert_eq!(caveat(9, 5.0), Vec::<String>::new());
    // Where they worked next to nothing, too.
    let [quiet, other] = [PARKED, 9].map(|place| caveat(place, 0.1));
    assert!(is_told(&quiet) && quiet[0].starts_with("Next to nothing happened"), "{quiet:?}");
    assert!(!is_told(&other) && other[0].ends_with("."), "{other:?}");
}

/// A client that hardly works while its server's processes have all CPUs has waited for them; one that asks nobody has slept.
#[test]
fn who_waits_for_those_that_have_all_cpus_is_held_up() {
    let told = |asks: bool| {
        let mut s = Schedule::new(1, 1000.0);
        for (pid, name) in [(10, "client"), (20, "server")] {
            let name = s.builder.string(name);
            s.builder.push(0, NameEvent { pid, tid: pid, name });
        }
        s.builder.meta_mut().focus_pids = vec![10];
        s = s.switch(0.0, 0, 10, SwitchState::Sleeping, READ, 20);
        for round in 1..10 {
            let t = 100.0 * f64::from(round);
            s = if asks { s.by(t, 0, 20, 10) } else { s.wakes(t, 0, 0, 10, WakeContext::Timer, 0) };
            s = s.switch(t + 0.01, 0, 20, SwitchState::Runnable, -1, 10);
            s = s.switch(t + 0.3, 0, 10, SwitchState::Sleeping, if asks { READ } else { SLEEP }, 20);
        }
        let answer = explained(&s.finish());
        assert!(answer.caveats.is_empty(), "{:?}", answer.caveats);
        answer.findings[0].title.to_string()
    };
    assert!(told(true).starts_with("server worked alone for 897.6 ms; 1 thread stood still 9 times"), "{}", told(true));
    assert!(told(false).starts_with("1 thread of client slept by its own timer for "), "{}", told(false));
}

#[test]
fn who_is_seen_to_begin_late_was_not_ready_before() {
    let mut s = Schedule::new(2, 100.0).in_focus().thread(1, "shell").thread(3, "other").runs(1, 0, 0.0, 100.0, -1);
    s = s.runs(3, 1, 0.0, 10.0, READ);
    s.builder.meta_mut().sample_period_ns = MS;
    s.builder.push(ns(50.0), ForkEvent { parent_pid: 1, parent: 1, pid: 1, tid: 2 });
    let chain = s.builder.chain(1, &[], &[9]);
    // Its switch-in is missing: a sample tells that it runs, and has for up to a period.
    s.builder.push(ns(50.1), SampleEvent { cpu: Cpu(1), tid: 2, ip: 9, bp: 0, chain });
    let (_, blame) = s.blame();
    near(blame.cpu.runnable_idle / MS as f64, 0.0);
}

/// Two threads stand from before the trace until its end for what the other has; `runs` is how long a third one of theirs runs.
fn hung(runs: f64) -> Trace {
    let mut s = Schedule::new(2, 100.0).thread(10, "left").thread(11, "right").thread(12, "ticker").in_focus();
    for (tid, owner, address) in [(10, 11, 0x10), (11, 10, 0x20)] {
        let lock = s.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address });
        let chain = ChainId::NONE;
        s.builder.push(ns(100.0), StandingEvent { tid, syscall: 202, lock, owner, chain });
    }
    s.runs(12, 0, 1.0, 1.0 + runs, SLEEP).finish()
}

#[test]
fn who_waits_for_each_other_is_a_deadlock() {
    let (trace, blame) = common::blame_of(hung(0.1));
    near(common::ms(&blame, |key| key.terminal == Terminal::Stuck), 200.0);
    let found = explained(&trace);
    let title = &found.findings[0].title;
    assert!(title.starts_with("left and right waited for each other for 100.0 ms"), "{title}");
    assert!(found.findings[0].advice.contains("same order"), "{}", found.findings[0].advice);
    assert_eq!(found.findings[0].gain_at_most, None);
}

#[test]
fn who_stands_in_a_program_that_goes_on_explains_nothing_of_it() {
    let (_, blame) = common::blame_of(hung(60.0));
    near(common::ms(&blame, |key| key.terminal == Terminal::Stuck), 0.0);
}

#[test]
fn a_word_alone_makes_no_lock_of_a_wait_that_never_ends() {
    let held_up = |function: u64| {
        let mut s = Schedule::new(2, 100.0).thread(10, "handler").thread(12, "ticker").in_focus();
        let chain = s.builder.chain(1, &[], &[function]);
        s.builder.push(ns(100.0), StandingEvent { tid: 10, syscall: FUTEX, lock: LockId::NONE, owner: 0, chain });
        let trace = s.runs(12, 0, 1.0, 1.1, SLEEP).finish_with(&mut Names);
        let (_, blame) = common::blame_of(trace);
        common::ms(&blame, |key| key.terminal == Terminal::Stuck)
    };
    near(held_up(HANDLES_DEADLOCKS), 0.0);
    near(held_up(LOCKS_ROWS), 100.0);
}

/// Both wait for a row all the time. Of the second one's program nothing ever runs.
#[test]
fn who_stands_in_a_program_that_does_nothing_comes_last() {
    let mut s = Schedule::new(2, 100.0).thread(10, "shop").thread(12, "shop");
    let (shop, cron) = (s.builder.string("shop"), s.builder.string("cron"));
    s.builder.push(0, NameEvent { pid: 1, tid: 1, name: shop });
    s.builder.push(0, NameEvent { pid: 20, tid: 20, name: cron });
    let chain = s.builder.chain(1, &[], &[LOCKS_ROWS]);
    for tid in [10, 20] {
        s.builder.push(ns(100.0), StandingEvent { tid, syscall: FUTEX, lock: LockId::NONE, owner: 0, chain });
    }
    let s = s.runs(12, 0, 0.0, 45.0, SLEEP).wakes(50.0, 0, 0, 12, WakeContext::Timer, 0).runs(12, 0, 50.0, 95.0, SLEEP);
    let found = explained(&s.finish_with(&mut Names));
    let of: Vec<&str> = found.stalls.iter().map(|stall| stall.culprit.process.as_str()).collect();
    assert_eq!(of, ["shop", "cron"], "{:#?}", found.stalls);
}

/// `late` waits since before the trace for `worker`, who wakes it after 60 of 100 ms; told only if it was `seen` to wait.
fn from_before(seen: bool) -> (Trace, Blame) {
    let mut s = Schedule::new(2, 100.0).thread(10, "late").thread(11, "worker").in_focus();
    if seen {
        let chain = s.builder.chain(1, &[], &[LOCKS_ROWS]);
        s.builder.push(0, StandingEvent { tid: 10, syscall: FUTEX, lock: LockId::NONE, owner: 0, chain });
    }
    let s = s.runs(11, 0, 0.0, 60.0, SLEEP).by(59.9, 0, 11, 10).runs(10, 1, 60.0, 100.0, SLEEP);
    common::blame_of(s.finish_with(&mut Names))
}

#[test]
fn a_wait_from_before_the_trace_is_charged_until_it_ends() {
    let held_up = |seen| common::ms(&from_before(seen).1, |key| key.terminal == Terminal::Running);
    near(held_up(true), 59.9);
    near(held_up(false), 0.0);
}

#[test]
fn a_window_keeps_the_waits_from_before_it() {
    let at = |from: f64| {
        let (trace, _) = from_before(true);
        let t = |ms: f64| Timestamp::from_nanos_since_start(ns(ms));
        let part = holdup_trace::cut::window(&trace, t(from), t(100.0)).unwrap();
        (part.standing_waits.rows(), common::ms(&common::blame_of(part).1, |key| key.terminal == Terminal::Running))
    };
    assert_eq!(at(20.0).0, 1);
    near(at(20.0).1, 39.9);
    assert_eq!(at(70.0).0, 0, "it was over before");
}

#[test]
fn who_comes_back_at_once_after_a_lost_wake_up_still_waits() {
    // A thread that waits on one futex until `worker` gives it something; the wake-up by its second time-out is not in the trace.
    let blamed = |pause: f64| {
        let mut s =
            Schedule::new(2, 100.0).thread(10, "waiter").thread(11, "worker").in_focus().runs(11, 1, 0.0, 90.0, SLEEP);
        let lock = s.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address: 0x10 });
        for (from, woken) in [(0.0, true), (30.0, false), (60.0, true)] {
            let from: f64 = if from > 0.0 { from + pause } else { from };
            s = s.switch(from, 0, 0, SwitchState::Runnable, -1, 10);
            let chain = s.builder.chain(1, &[], &[9]);
            let (cpu, state) = (Cpu(0), SwitchState::Sleeping);
            let out = SwitchEvent { cpu, prev: 10, next: 0, state, io_wait: false, syscall: FUTEX, lock, chain };
            s.builder.push(ns(from + 0.1 + pause), out);
            if from >= 60.0 {
                s = s.by(89.0, 1, 11, 10);
            } else if woken {
                s = s.wakes(from + 29.9, 0, 0, 10, WakeContext::Timer, 0);
            }
        }
        let (_, blame) = common::blame_of(s.finish_with(&mut Names));
        common::ms(&blame, |key| key.terminal == Terminal::Running)
    };
    assert!(blamed(0.0) > 88.0, "{}", blamed(0.0));
    assert!(blamed(2.0) < 60.0, "it worked meanwhile: {}", blamed(2.0));
}

#[test]
fn who_ends_the_program_has_let_no_lock_go() {
    let found = |waker_at: u64| {
        let mut s = Schedule::new(2, 100.0).thread(10, "writer").thread(11, "main").thread(12, "reader").in_focus();
        let lock = s.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address: 0x10 });
        let (state, cpu) = (SwitchState::Sleeping, Cpu(0));
        let at = s.builder.chain(1, &[], &[WRITES, LOCKS_ROWS, 9]);
        let out = SwitchEvent { cpu, prev: 10, next: 0, state, io_wait: false, syscall: FUTEX, lock, chain: at };
        s = s.switch(0.0, 0, 0, SwitchState::Runnable, -1, 10);
        s.builder.push(ns(1.0), out);
        let chain = s.builder.chain(1, &[waker_at], &[9]);
        s = s.runs(12, 1, 1.0, 90.0, SLEEP).runs(11, 1, 95.0, 96.0, SLEEP);
        let (context, target) = (WakeContext::Task, Cpu::NONE);
        let wake =
            WakeEvent { cpu: Cpu(1), waker: 11, wakee: 10, context, source: 0, target, lock: LockId::NONE, chain };
        s.builder.push(ns(95.5), wake);
        let trace = s.runs(10, 0, 95.6, 95.7, SLEEP).exits(95.7, 10).exits(95.9, 11).finish_with(&mut Names);
        explained(&trace).findings.into_iter().next().expect("a finding")
    };
    let ended = found(ENDS_ALL);
    assert!(ended.title.starts_with("writer waited for") && ended.title.ends_with("did not get it"), "{}", ended.title);
    assert!(ended.advice.contains("PREFER_WRITER"), "{}", ended.advice);
    assert_ne!(ended.confidence, Confidence::High);
    assert!(!found(9).title.contains("did not get it"));
}

/// A worker waits at a futex until a time is over, again and again, and its process' first thread for it. The timer is told by the wake-up, or by
/// its stack.
fn sleeps(context: WakeContext, kernel: &[u64]) -> String {
    let mut s = Schedule::new(2, 1000.0).in_focus().thread(10, "main").thread(11, "worker");
    for round in 0..9 {
        let t = 100.0 * f64::from(round);
        s = s.runs(10, 0, t, t + 2.0, FUTEX).by(t + 1.0, 0, 10, 11).waits_at(11, 1, [t + 1.0, t + 3.0], FUTEX, &[9]);
        let (lock, chain, target) = (LockId::NONE, s.builder.chain(1, kernel, &[]), Cpu::NONE);
        let wake = WakeEvent { cpu: Cpu(1), waker: 0, wakee: 11, context, source: 0, target, lock, chain };
        s.builder.push(ns(t + 90.0), wake);
        s = s.waits_at(11, 1, [t + 90.1, t + 95.0], READ, &[8]).by(t + 94.0, 1, 11, 10);
    }
    explained(&s.finish_with(&mut Names)).findings.first().expect("a finding").title.to_string()
}

#[test]
fn a_timer_is_told_by_the_functions_that_wake() {
    let told = sleeps(WakeContext::Timer, &[]);
    assert!(told.contains("slept"), "{told}");
    assert_eq!(sleeps(WakeContext::HardIrq, &[WAKES_BY_TIMER]), told);
    assert_ne!(sleeps(WakeContext::HardIrq, &[STOPPED]), told);
}
