//! Who asked a server for what it does, and waits for it: which sleeps lie within requests. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::blame::Terminal;
use holdup_trace::{Cpu, ForkEvent, ListenerEvent, NameEvent, ParentEvent, SampleEvent, SwitchState, WakeContext};

/// Programs of one thread each, of which those listen that are servers.
fn programs(s: &mut Schedule, programs: &[(u32, &str)], serves: impl Fn(u32) -> bool) {
    for &(pid, name) in programs {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid: pid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: serves(pid) });
    }
}

/// A second thread, 21, of the program 20.
fn second_thread(s: &mut Schedule, name: &str) {
    let name = s.builder.string(name);
    s.builder.push(0, NameEvent { pid: 20, tid: 21, name });
}

/// How long a client is held up by a server's sleep of half a second before the answer, and is idle, if the server was asked for it, or
/// sleeps by itself; the client's own wait has a time-out, and is begun again, `parts` times.
fn sleeps_before_the_answer(asked: bool, parts: u32) -> (f64, f64) {
    let mut s = Schedule::new(2, 515.0);
    programs(&mut s, &[(20, "server"), (30, "client")], |pid| pid == 20);
    s.builder.meta_mut().focus_pids = vec![30];
    s = if asked { s.switch(0.0, 0, 20, SwitchState::Sleeping, POLL, 0) } else { s };
    s = s.waits_at(30, 1, [0.0, 10.0], POLL, &[0x40]);
    s = if asked { s.by(10.0, 1, 30, 20) } else { s };
    s = s.waits_at(20, 0, [10.0, 11.0], SLEEP, &[0x50]);
    for part in 1..parts {
        let t = 10.0 + 500.0 / f64::from(parts) * f64::from(part);
        s = s.wakes(t, 1, 0, 30, WakeContext::Timer, 0).waits_at(30, 1, [t, t + 0.01], POLL, &[0x40]);
    }
    let s = s.wakes(511.0, 0, 0, 20, WakeContext::Timer, 0).switch(511.0, 0, 0, SwitchState::Runnable, -1, 20);
    let s = s.by(512.0, 0, 20, 30).switch(512.0, 1, 0, SwitchState::Runnable, -1, 30);
    let (_, blame) = s.blame();
    (ms(&blame, |k| k.terminal == Terminal::Timer), ms(&blame, |k| k.terminal == Terminal::IdleByDesign))
}

#[test]
fn a_sleep_within_a_request_holds_up_however_long_it_is() {
    let (held, idle) = sleeps_before_the_answer(true, 1);
    near(held, 500.0);
    near(idle, 0.0);
    let (held, idle) = sleeps_before_the_answer(false, 1);
    near(held, 0.0);
    near(idle, 500.0);
}

/// The event loop of a server, which waits for its timers where its input arrives, sends so many pieces of its answer, and the last after a
/// timer of 300 ms.
fn sends_in_pieces(pieces: u32) -> f64 {
    let mut s = Schedule::new(2, 400.0);
    programs(&mut s, &[(20, "server"), (30, "client")], |pid| pid == 20);
    s.builder.meta_mut().focus_pids = vec![30];
    s = s.switch(0.0, 0, 20, SwitchState::Sleeping, POLL, 0);
    s = s.by(10.0, 1, 30, 20).waits_at(30, 1, [0.0, 10.1], POLL, &[0x40]);
    for piece in 1..pieces {
        let t = 10.2 + f64::from(piece);
        s = s.by(t, 0, 20, 30).waits_at(30, 1, [t + 0.01, t + 0.1], POLL, &[0x40]);
    }
    s = s.waits_at(20, 0, [10.01, 30.0], POLL, &[0x60]).wakes(330.0, 0, 0, 20, WakeContext::Timer, 0);
    s = s.switch(330.1, 0, 0, SwitchState::Runnable, -1, 20).by(330.2, 0, 20, 30);
    s = s.switch(330.3, 1, 0, SwitchState::Runnable, -1, 30);
    let (_, blame) = s.blame();
    ms(&blame, |k| k.terminal == Terminal::Timer)
}

#[test]
fn an_answer_comes_in_a_few_pieces() {
    let held = sends_in_pieces(2);
    assert!((295.0..305.0).contains(&held), "{held}");
    near(sends_in_pieces(9), 0.0);
}

/// A proxy in focus, 30, and two threads of a server, 20 and 21, that wait to be asked.
fn proxy(end: f64) -> Schedule {
    let mut s = Schedule::new(3, end);
    programs(&mut s, &[(20, "backend"), (30, "proxy")], |_| true);
    second_thread(&mut s, "backend");
    s.builder.meta_mut().focus_pids = vec![30];
    s.waits_at(20, 0, [0.0, 0.1], READ, &[0x60]).waits_at(21, 1, [0.0, 0.1], READ, &[0x60])
}

/// A proxy, itself a server at home, asks two threads of another at once; each sleeps for 30 ms before it answers.
#[test]
fn a_server_waits_for_the_sleeps_of_all_that_it_asked() {
    let mut s = proxy(130.0);
    for round in 0..3 {
        let t = |at: f64| 40.0 * f64::from(round) + at;
        s = s.by(t(1.0), 2, 30, 20).by(t(1.5), 2, 30, 21).waits_at(30, 2, [t(0.5), t(1.6)], POLL, &[0x40]);
        for (tid, cpu, asked, until) in [(20, 0, t(1.0), t(31.5)), (21, 1, t(1.5), t(32.0))] {
            s = s.waits_at(tid, cpu, [asked, asked + 0.2], SLEEP, &[0x50]);
            s = s.wakes(until - 0.3, cpu, 0, tid, WakeContext::Timer, 0).by(until - 0.1, cpu, tid, 30);
            s = s.waits_at(tid, cpu, [until - 0.3, until], READ, &[0x60]);
        }
        s = s.waits_at(30, 2, [t(31.4), t(31.45)], POLL, &[0x40]).waits_at(30, 2, [t(31.9), t(32.1)], POLL, &[0x40]);
        s = s.wakes(t(40.5), 2, 0, 30, WakeContext::SoftIrq, NET_RX);
    }
    let (_, blame) = s.blame();
    let held = ms(&blame, |k| k.terminal == Terminal::Timer);
    assert!((85.0..92.0).contains(&held), "{held}");
}

/// The same, but whoever answers second finds the proxy at work: its answer ends no wait. One of them is first in every third round alone.
#[test]
fn an_answer_that_comes_with_another_one_is_an_answer() {
    let mut s = proxy(400.0);
    for round in 0..9 {
        let t = |at: f64| 40.0 * f64::from(round) + at;
        s = s.by(t(1.0), 2, 30, 20).by(t(1.5), 2, 30, 21).waits_at(30, 2, [t(0.5), t(1.6)], POLL, &[0x40]);
        let first = if round % 3 == 2 { 21 } else { 20 };
        for (tid, cpu, asked) in [(20, 0, t(1.0)), (21, 1, t(1.5))] {
            let until = t(if tid == first { 31.5 } else { 32.0 });
            s = s.waits_at(tid, cpu, [asked, asked + 0.2], SLEEP, &[0x50]);
            s = s.wakes(until - 0.3, cpu, 0, tid, WakeContext::Timer, 0);
            s = if tid == first { s.by(until - 0.1, cpu, tid, 30) } else { s };
            s = s.waits_at(tid, cpu, [until - 0.3, until], READ, &[0x60]);
        }
        s = s.waits_at(30, 2, [t(31.4), t(32.5)], POLL, &[0x40]);
        s = s.wakes(t(40.5), 2, 0, 30, WakeContext::SoftIrq, NET_RX);
    }
    let (_, blame) = s.blame();
    let held = ms(&blame, |k| k.terminal == Terminal::Timer);
    assert!((255.0..275.0).contains(&held), "{held}");
}

/// A server's worker sleeps for 30 ms within each request, and then wakes its dispatcher, which has nothing to do, and the client.
#[test]
fn a_client_waits_for_a_sleep_after_which_the_server_has_something_to_do_again() {
    let mut s = Schedule::new(3, 125.0);
    programs(&mut s, &[(20, "server"), (30, "client")], |pid| pid == 20);
    second_thread(&mut s, "server");
    s.builder.meta_mut().focus_pids = vec![30];
    s = s.waits_at(20, 0, [0.0, 0.1], POLL, &[0x60]).waits_at(21, 1, [0.0, 0.1], READ, &[0x70]);
    for round in 0..3 {
        let t = |at: f64| 40.0 * f64::from(round) + at;
        // Who asks is not seen: the message came in a softirq.
        s = s.wakes(t(1.0), 0, 0, 20, WakeContext::SoftIrq, NET_RX).waits_at(30, 2, [t(0.5), t(1.1)], POLL, &[0x40]);
        s = s.by(t(1.2), 0, 20, 21).waits_at(20, 0, [t(1.0), t(1.3)], POLL, &[0x60]);
        s = s.waits_at(21, 1, [t(1.2), t(1.4)], SLEEP, &[0x50]).wakes(t(31.4), 1, 0, 21, WakeContext::Timer, 0);
        s = s.by(t(31.5), 1, 21, 30).by(t(31.6), 1, 21, 20).waits_at(21, 1, [t(31.4), t(31.7)], READ, &[0x70]);
        s = s.waits_at(20, 0, [t(31.6), t(31.7)], POLL, &[0x60]).waits_at(30, 2, [t(31.5), t(31.8)], POLL, &[0x40]);
        s = s.wakes(t(40.5), 2, 0, 30, WakeContext::SoftIrq, NET_RX);
    }
    let (_, blame) = s.blame();
    near(ms(&blame, |k| k.terminal == Terminal::Timer), 90.0);
}

/// Two services in one language. One sleeps for 30 ms in each request, of which there is always one more; the other asks by a new thread
/// each time, which is seen to ask only where it closes what it asked by.
#[test]
fn a_service_sleeps_while_another_one_of_the_same_name_waits() {
    let rounds = 10;
    let mut s = Schedule::new(2, 32.0 * f64::from(rounds) + 5.0);
    programs(&mut s, &[(1, "sh"), (20, "python3"), (30, "python3")], |pid| pid == 20);
    [20, 30].into_iter().for_each(|pid| s.builder.push(0, ParentEvent { pid, parent: 1 }));
    s.builder.meta_mut().focus_pids = vec![20];
    s = s.waits_at(20, 0, [0.0, 0.6], SLEEP, &[0x50]);
    for round in 0..rounds {
        let (t, asks) = (|at: f64| 32.0 * f64::from(round) + at, 31 + round);
        let name = s.builder.string("python3");
        s.builder.push(ns(t(0.0)), NameEvent { pid: 30, tid: asks, name });
        s = s.waits_at(asks, 1, [t(0.1), t(0.5)], READ, &[0x40]).wakes(t(30.6), 0, 0, 20, WakeContext::Timer, 0);
        s = s.by(t(31.0), 0, 20, asks).waits_at(20, 0, [t(30.6), t(31.1)], POLL, &[0x50, 0x60]);
        s = s.by(t(31.2), 1, asks, 20).waits_at(asks, 1, [t(31.0), t(31.3)], EXIT, &[0x40]).exits(t(31.3), asks);
        s = s.waits_at(20, 0, [t(31.2), t(32.6)], SLEEP, &[0x50]);
    }
    let (_, blame) = s.blame();
    let held = ms(&blame, |k| k.terminal == Terminal::Timer);
    assert!(held > 30.0 * f64::from(rounds - 2), "{held}");
}

/// A pool's thread sleeps for 10 ms in the middle of its work, and leaves the answer to the thread that took the request. Several
/// requests are under way, so that none tells which sleep was for it.
#[test]
fn a_client_waits_for_a_sleep_of_whoever_works_for_the_thread_that_answers() {
    let held = |answers: bool| {
        let mut s = Schedule::new(3, 410.0);
        programs(&mut s, &[(20, "server"), (30, "client")], |pid| pid == 20);
        second_thread(&mut s, "server");
        s.builder.meta_mut().focus_pids = vec![30];
        s.builder.meta_mut().sample_period_ns = MS;
        s = s.waits_at(30, 2, [0.0, 0.1], POLL, &[0x40]).waits_at(20, 0, [0.0, 0.1], POLL, &[0x60]);
        s = s.waits_at(21, 1, [0.0, 0.1], SLEEP, &[0x50, 0x70]);
        for round in 0..20 {
            let t = |at: f64| 20.0 * f64::from(round) + at;
            s = s.wakes(t(10.0), 1, 0, 21, WakeContext::Timer, 0);
            let chain = s.builder.chain(1, &[], &[0x52, 0x70]);
            s.builder.push(ns(t(11.0)), SampleEvent { cpu: Cpu(1), tid: 21, ip: 0x52, bp: 0, chain });
            s = s.by(t(12.0), 1, 21, 20).waits_at(21, 1, [t(10.0), t(12.1)], SLEEP, &[0x50, 0x70]);
            s = if answers { s.by(t(12.2), 0, 20, 30) } else { s };
            s = s.waits_at(20, 0, [t(12.0), t(12.3)], POLL, &[0x60]);
            s = if answers { s.waits_at(30, 2, [t(12.2), t(12.4)], POLL, &[0x40]) } else { s };
        }
        let names = &[(0x40, "ask"), (0x50, "report"), (0x52, "render"), (0x60, "serve"), (0x70, "work")];
        let (_, blame) = blame_of(s.finish_with(&mut Namer(names)));
        ms(&blame, |k| k.terminal == Terminal::Timer)
    };
    assert!((190.0..=390.0).contains(&held(true)), "{}", held(true));
    near(held(false), 0.0);
}

#[test]
fn who_asks_again_and_again_for_input_waits_for_whoever_brings_it() {
    let (held, idle) = sleeps_before_the_answer(true, 4);
    assert!((499.0..500.0).contains(&held), "{held}");
    near(idle, 0.0);
}

#[test]
fn a_client_waits_for_its_server_and_a_server_is_at_home() {
    let waits = |focus: u32| {
        let mut s = Schedule::new(2, 40.0);
        programs(&mut s, &[(20, "server"), (30, "client")], |pid| pid == 20);
        s.builder.meta_mut().focus_pids = vec![focus];
        let s = s.switch(0.0, 0, 20, SwitchState::Sleeping, POLL, 0).runs(30, 1, 0.0, 10.0, POLL);
        let s = s.by(10.0, 1, 30, 20).runs(20, 0, 10.0, 40.0, POLL).by(40.0, 0, 20, 30);
        let (_, blame) = s.blame();
        (ms(&blame, |k| k.terminal == Terminal::Running), ms(&blame, |k| k.terminal == Terminal::IdleByDesign))
    };
    // The client waits for 30 ms of the server's work; the server for 10 ms of a client that works on its own.
    let (held, _) = waits(30);
    near(held, 30.0);
    let (held, idle) = waits(20);
    near(held, 0.0);
    near(idle, 10.0);
}

/// A program that listens, too, looks now and then whether there is something to tell.
#[test]
fn a_server_at_home_is_not_held_up_by_who_sleeps_before_asking_it() {
    let held = |server: bool| {
        let mut s = Schedule::new(2, 505.0);
        programs(&mut s, &[(20, "machine"), (30, "script")], |pid| server || pid == 30);
        s.builder.meta_mut().focus_pids = vec![20, 30];
        s = s.switch(0.0, 0, 20, SwitchState::Sleeping, POLL, 0).switch(0.0, 1, 30, SwitchState::Sleeping, SLEEP, 0);
        for turn in 1..=5 {
            let t = 100.0 * f64::from(turn);
            s = s.wakes(t, 1, 0, 30, WakeContext::Timer, 0).by(t + 1.0, 1, 30, 20).runs(30, 1, t, t + 1.0, SLEEP);
            s = s.runs(20, 0, t + 1.0, t + 2.0, POLL);
        }
        let (_, blame) = s.blame();
        ms(&blame, |k| k.terminal == Terminal::Timer)
    };
    near(held(true), 0.0);
    assert!(held(false) > 400.0);
}

#[test]
fn who_waits_for_a_message_waits_for_its_sender_and_not_for_what_carries_it() {
    let mut s = Schedule::new(2, 42.0);
    programs(&mut s, &[(20, "broker"), (30, "client"), (40, "worker"), (50, "other")], |pid| pid == 20);
    s.builder.meta_mut().focus_pids = vec![30];
    // A job for the worker, something of another client meanwhile, and the result.
    let s = [20, 40].into_iter().fold(s, |s, tid| s.switch(0.0, 0, tid, SwitchState::Sleeping, POLL, 0));
    let s = s.runs(30, 1, 0.0, 10.0, POLL).by(10.0, 1, 30, 20);
    let s = s.runs(20, 0, 10.0, 11.0, POLL).by(11.0, 0, 20, 40).runs(40, 1, 11.0, 40.0, POLL);
    let s = s.runs(50, 0, 19.0, 20.0, POLL).by(20.0, 0, 50, 20).runs(20, 0, 20.0, 21.0, POLL);
    let s = s.by(40.0, 1, 40, 20).runs(20, 0, 40.0, 41.0, POLL).by(41.0, 0, 20, 30);
    let (trace, blame) = s.blame();
    let ran = |by: u32| ms(&blame, |k| k.terminal == Terminal::Running && tid(&trace, k) == by);
    // The worker had the job for 29 ms, the broker ran for 1 ms before and after that.
    near(ran(40), 29.0);
    near(ran(20), 2.0);
    near(ran(50), 0.0);
    near(ms(&blame, |k| k.terminal == Terminal::IdleByDesign), 0.0);
}

/// A sensor sends something to a broker every 20 ms, which a consumer writes away.
#[test]
fn who_sends_at_a_pace_of_its_own_holds_nobody_up() {
    let mut s = Schedule::new(3, 210.0);
    programs(&mut s, &[(20, "broker"), (30, "consumer"), (40, "sensor")], |pid| pid == 20);
    s = s.waits_at(20, 0, [0.0, 0.1], POLL, &[0x60]).waits_at(30, 1, [0.0, 0.1], POLL, &[0x40]);
    s = s.waits_at(40, 2, [0.0, 0.1], SLEEP, &[0x50]);
    for message in 1..=10 {
        let t = |at: f64| 20.0 * f64::from(message) + at;
        s = s.wakes(t(0.0), 2, 0, 40, WakeContext::Timer, 0).by(t(0.2), 2, 40, 20);
        s = s.waits_at(40, 2, [t(0.1), t(0.3)], SLEEP, &[0x50]).by(t(0.4), 0, 20, 30);
        s = s.waits_at(20, 0, [t(0.3), t(0.5)], POLL, &[0x60]).waits_at(30, 1, [t(0.5), t(5.0)], POLL, &[0x40]);
    }
    let (_, blame) = s.blame();
    near(ms(&blame, |k| k.terminal == Terminal::Timer), 0.0);
}

/// A worker that has connected to a broker sleeps for each job that comes from a client by way of that; all are of one program.
#[test]
fn who_waits_for_a_worker_behind_a_broker_waits_for_its_sleep() {
    let held = |takes_jobs: bool| {
        let mut s = Schedule::new(3, 230.0);
        programs(&mut s, &[(20, "python"), (30, "python"), (40, "python")], |pid| pid == 20);
        s = s.waits_at(20, 0, [0.0, 0.1], POLL, &[0x60]).waits_at(30, 1, [0.0, 0.1], POLL, &[0x40]);
        s = s.waits_at(40, 2, [0.0, 0.1], SLEEP, &[0x50]);
        for job in 0..10 {
            let t = |at: f64| 20.0 * f64::from(job) + at;
            s = s.wakes(t(19.0), 2, 0, 40, WakeContext::Timer, 0).by(t(19.1), 2, 40, 20);
            let worker = if takes_jobs { (POLL, 0x70) } else { (SLEEP, 0x50) };
            s = s.waits_at(40, 2, [t(19.0), t(19.2)], worker.0, &[worker.1]).by(t(19.2), 0, 20, 30);
            s = s.waits_at(20, 0, [t(19.1), t(19.3)], POLL, &[0x60]).by(t(19.3), 1, 30, 20);
            s = s.waits_at(30, 1, [t(19.2), t(19.4)], POLL, &[0x40]);
            if takes_jobs {
                s = s.by(t(19.4), 0, 20, 40).waits_at(40, 2, [t(19.4), t(19.6)], SLEEP, &[0x50]);
            }
            s = s.waits_at(20, 0, [t(19.3), t(19.5)], POLL, &[0x60]);
        }
        let (_, blame) = s.blame();
        ms(&blame, |k| k.terminal == Terminal::Timer)
    };
    assert!(held(true) > 150.0, "{}", held(true));
    near(held(false), 0.0);
}

/// A proxy, itself a server at home, has three requests under way at another server, which begins a thread for each, of which each sleeps for
/// 30 ms. The one that takes the requests was asked for others meanwhile.
#[test]
fn a_thread_that_was_begun_for_a_request_sleeps_for_who_asked() {
    let mut s = Schedule::new(3, 330.0);
    programs(&mut s, &[(20, "backend"), (30, "proxy")], |_| true);
    s.builder.meta_mut().focus_pids = vec![30];
    s = s.waits_at(20, 0, [0.0, 0.1], POLL, &[0x60]).waits_at(30, 2, [0.0, 0.1], POLL, &[0x40]);
    for request in 0..30 {
        let (t, tid) = (|at: f64| 10.0 * f64::from(request) + at, 100 + request);
        // It came in a softirq; the proxy asks for it, the server begins a thread.
        s = s.wakes(t(1.0), 2, 0, 30, WakeContext::SoftIrq, NET_RX);
        s = s.by(t(1.1), 2, 30, 20).waits_at(30, 2, [t(1.0), t(1.2)], POLL, &[0x40]);
        s.builder.push(ns(t(1.3)), ForkEvent { parent_pid: 20, parent: 20, pid: 20, tid });
        s = s.waits_at(20, 0, [t(1.1), t(1.4)], POLL, &[0x60]).waits_at(tid, 1, [t(1.4), t(1.5)], SLEEP, &[0x50, 0x70]);
        s = s.wakes(t(33.4), 1, 0, tid, WakeContext::Timer, 0).by(t(33.6), 1, tid, 30);
        s = s.switch(t(33.5), 1, 0, SwitchState::Runnable, -1, tid).switch(t(33.7), 1, tid, SwitchState::Dead, EXIT, 0);
        s = s.exits(t(33.7), tid).waits_at(30, 2, [t(33.6), t(33.8)], POLL, &[0x40]);
    }
    let (_, blame) = s.blame();
    let held = ms(&blame, |k| k.terminal == Terminal::Timer);
    // What is left of the time until it is answered belongs to those who ask the proxy.
    assert!(held > 60.0, "{held}");
}

const FLOCK: i16 = 73;

/// How long a client is held up by its backend, which waits for a lock that another one keeps while it waits at home for its own client,
/// whose sleep is nobody's answer.
#[test]
fn who_waits_for_a_backend_that_is_held_up_is_held_up_with_it() {
    let mut s = Schedule::new(2, 130.0);
    programs(&mut s, &[(20, "backend"), (21, "backend"), (30, "client"), (31, "other")], |pid| pid < 30);
    s.builder.meta_mut().focus_pids = vec![30];
    s = s.waits_at(31, 0, [0.0, 1.0], SLEEP, &[0x70]).waits_at(20, 0, [1.0, 2.0], POLL, &[0x50]);
    s = s.waits_at(21, 0, [2.0, 5.0], POLL, &[0x50]);
    s = s.by(10.0, 1, 30, 21).waits_at(30, 1, [5.0, 10.1], POLL, &[0x40]).waits_at(
        21,
        0,
        [10.05, 12.0],
        FLOCK,
        &[0x60],
    );
    s = s.wakes(108.0, 0, 0, 31, WakeContext::Timer, 0).switch(108.0, 0, 0, SwitchState::Runnable, -1, 31);
    s = s.by(108.5, 0, 31, 20).switch(109.0, 0, 31, SwitchState::Sleeping, SLEEP, 20);
    s = s.by(109.5, 0, 20, 21).switch(110.0, 0, 20, SwitchState::Sleeping, POLL, 21);
    s = s.by(111.0, 0, 21, 30).switch(112.0, 1, 0, SwitchState::Runnable, -1, 30);
    let (trace, blame) = s.blame();
    let held = ms(&blame, |k| k.terminal == Terminal::Outside && tid(&trace, k) == 20);
    assert!((94.0..98.0).contains(&held), "{held}");
    assert!(ms(&blame, |k| k.terminal == Terminal::IdleByDesign) < 6.0);
    let answer = traffic::explained(&trace, None);
    let titles: Vec<&str> = answer.findings.iter().map(|f| f.title.as_str()).collect();
    assert!(titles.iter().any(|title| title.contains("waiting for its client other, which slept")), "{titles:?}");
}
