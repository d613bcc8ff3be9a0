//! The golden schedules S1 to S10 of the design, as they stand there. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::blame::{Key, Terminal};
use holdup_trace::{Cpu, ExitEvent, ListenerEvent, NameEvent, ParentEvent, SampleEvent, SwitchState, WakeContext};

#[test]
fn s1_chains_end_at_the_network_not_at_every_hop() {
    let s = Schedule::new(2, 110.0).thread(10, "user").thread(11, "parser");
    let s = s.switch(0.0, 1, 10, SwitchState::Sleeping, FUTEX, 0).runs(11, 0, 0.0, 20.0, READ);
    let s = s.wakes(100.0, 0, 0, 11, WakeContext::SoftIrq, NET_RX).runs(11, 0, 100.0, 105.0, READ);
    let (trace, blame) = s.by(105.0, 0, 11, 10).runs(10, 1, 105.0, 110.0, FUTEX).blame();
    near(ms(&blame, |k| k.terminal == Terminal::Running && tid(&trace, k) == 11), 25.0);
    near(ms(&blame, |k| k.terminal == Terminal::IdleByDesign), 165.0);
}

#[test]
fn s2_three_waiters_charge_the_holder_three_times() {
    let mut s = Schedule::new(4, 1000.0).thread(10, "holder").thread(11, "a").thread(12, "b").thread(13, "c");
    s = s.runs(10, 0, 0.0, 1000.0, -1);
    for w in 11..14 {
        let cpu = w as u16 - 10;
        s = s.runs(w, cpu, 0.0, 10.0, FUTEX);
    }
    for w in 11..14 {
        s = s.by(1000.0, 0, 10, w);
    }
    let (trace, blame) = s.blame();
    near(ms(&blame, |k| k.terminal == Terminal::Running && tid(&trace, k) == 10), 2970.0);
    near(ms(&blame, |_| true), 2970.0);
}

#[test]
fn s3_a_convoy_charges_who_runs_and_one_lock() {
    let mut s = Schedule::new(1, 90.0).thread(10, "a").thread(11, "b").thread(12, "c");
    for w in 11..13 {
        s = s.futex(0.0, w, 0).switch(0.0, 0, w, SwitchState::Sleeping, FUTEX, 0);
    }
    for turn in 0..90u32 {
        let (t, now, next) = (f64::from(turn), 10 + turn % 3, 10 + (turn + 1) % 3);
        s = s.switch(t, 0, 0, SwitchState::Runnable, -1, now);
        let end = t + 1.0;
        if turn < 89 {
            s = s.by(end, 0, now, next);
        }
        let last = turn + 3 >= 90;
        let state = if last { SwitchState::Dead } else { SwitchState::Sleeping };
        if !last {
            s = s.futex(end, now, 0);
        }
        s = s.switch(end, 0, now, state, FUTEX, 0);
    }
    let (trace, blame) = s.blame();
    let by = |wanted: u32| ms(&blame, |k| k.terminal == Terminal::Running && tid(&trace, k) == wanted);
    near(by(10), 60.0);
    near(by(11), 59.0);
    near(by(12), 58.0);
    let lock = blame.cells.iter().map(|(k, _)| k.lock).max().unwrap();
    near(ms(&blame, |k| k.lock == lock), 177.0);
}

#[test]
fn s4_waiting_for_a_sleeper_is_waiting_for_a_timer() {
    let s = Schedule::new(2, 102.0).thread(10, "consumer").thread(11, "producer");
    let s = s.switch(0.0, 0, 10, SwitchState::Sleeping, FUTEX, 0).switch(0.0, 1, 11, SwitchState::Sleeping, SLEEP, 0);
    let s = s.wakes(100.0, 1, 0, 11, WakeContext::Timer, 0).runs(11, 1, 100.0, 101.0, SLEEP);
    let (trace, blame) =
        s.by(101.0, 1, 11, 10).runs(10, 0, 101.0, 102.0, FUTEX).wakes(102.0, 1, 0, 11, WakeContext::Timer, 0).blame();
    near(ms(&blame, |k| k.terminal == Terminal::Running && tid(&trace, k) == 11), 1.0);
    let timers = |k: &Key| matches!(k.terminal, Terminal::Timer | Terminal::IdleByDesign);
    near(ms(&blame, timers), 201.0);
}

#[test]
fn s5_a_preempted_holder_is_not_the_hogs_fault_alone() {
    let s = Schedule::new(2, 100.0).thread(10, "hog").thread(11, "holder").thread(12, "waiter");
    let s = s.runs(10, 0, 0.0, 100.0, -1).runs(12, 1, 0.0, 5.0, FUTEX);
    // The holder runs on a third CPU of its own making: what counts is that it is runnable from 10 to 60.
    let s = s.runs(11, 2, 0.0, 10.0, -1).runs(11, 2, 60.0, 70.0, SLEEP);
    let (trace, blame) =
        s.by(70.0, 2, 11, 12).runs(12, 1, 70.0, 100.0, -1).wakes(100.0, 2, 0, 11, WakeContext::Timer, 0).blame();
    let holder = |t: Terminal| ms(&blame, |k| k.terminal == t && tid(&trace, k) == 11);
    near(holder(Terminal::NotRunning), 50.0);
    near(holder(Terminal::Running), 15.0);
    near(holder(Terminal::IdleByDesign), 30.0);
}

#[test]
fn s6_an_owner_that_does_not_run_is_not_runnable_but_idle() {
    let s = Schedule::new(2, 100.0).thread(10, "hog").thread(11, "owner").thread(12, "waiter");
    let s = s.switch(0.0, 1, 11, SwitchState::Runnable, -1, 10).switch(0.0, 0, 12, SwitchState::Sleeping, FUTEX, 0);
    let s = s.switch(60.0, 1, 10, SwitchState::Dead, -1, 11).by(100.0, 1, 11, 12);
    let (trace, blame) = s.blame();
    let cpu = |t: Terminal| {
        let own = blame.cells.iter().filter(|(k, _)| k.terminal == t && tid(&trace, k) == 11);
        own.map(|(_, c)| c.cpu_ns).sum::<f64>() / MS as f64
    };
    near(blame.cpu.running / MS as f64, 100.0);
    near(cpu(Terminal::NotRunning), 60.0);
    near(cpu(Terminal::Running), 40.0);
    near(blame.cpu.runnable_idle / MS as f64, 0.0);
}

#[test]
fn s7_a_pool_woken_only_to_exit_is_not_held_up() {
    let mut s = Schedule::new(2, 100.1).thread(10, "main").thread(11, "worker");
    for pool in 20..44 {
        s = s.thread(pool, "pool").switch(0.0, 0, pool, SwitchState::Sleeping, FUTEX, 0);
    }
    s = s.switch(0.0, 0, 10, SwitchState::Sleeping, FUTEX, 0).runs(11, 1, 0.0, 100.0, 60);
    for pool in 20..44 {
        s = s.by(100.0, 1, 11, pool);
    }
    s = s.by(100.0, 1, 11, 10);
    s.builder.push(ns(100.0), ExitEvent { tid: 11 });
    for pool in 20..44 {
        s = s.switch(100.05, 0, 0, SwitchState::Runnable, -1, pool);
        s.builder.push(ns(100.06), ExitEvent { tid: pool });
        s = s.switch(100.06, 0, pool, SwitchState::Dead, 60, 0);
    }
    let (_, blame) = s.blame();
    near(blame.cpu.running / MS as f64, 100.0);
    near(blame.cpu.held_up / MS as f64, 0.0);
    assert!((blame.cpu.no_work / MS as f64 - 100.0).abs() < 0.3, "{:?}", blame.cpu);
}

#[test]
fn s8_timed_rewaits_are_one_wait_for_the_owner() {
    let mut s = Schedule::new(2, 50.0).thread(10, "owner").thread(11, "waiter").runs(10, 0, 0.0, 50.0, -1);
    let mut t = 0.0;
    while t < 50.0 {
        s = s.futex(t, 11, 10).switch(t, 1, 11, SwitchState::Sleeping, FUTEX, 0);
        if t + 5.0 < 50.0 {
            s = s.wakes(t + 5.0, 1, 0, 11, WakeContext::Timer, 0);
            s = s.switch(t + 5.0, 1, 0, SwitchState::Runnable, -1, 11);
        }
        t += 5.1;
    }
    let (trace, blame) = s.by(50.0, 0, 10, 11).blame();
    near(ms(&blame, |k| k.terminal == Terminal::Running && tid(&trace, k) == 10), 49.1);
    near(ms(&blame, |k| matches!(k.terminal, Terminal::Timer | Terminal::IdleByDesign)), 0.0);
}

#[test]
fn s9_what_runs_alone_is_charged_for_the_places_it_leaves_free() {
    let names = [(10, "make"), (11, "a"), (12, "b"), (13, "link")];
    let s = names.into_iter().fold(Schedule::new(2, 100.0).in_focus(), |s, (tid, name)| s.thread(tid, name));
    let s = s.switch(0.0, 0, 10, SwitchState::Sleeping, WAIT4, 0);
    let s = s.runs(11, 0, 0.0, 60.0, EXIT).exits(60.0, 11).runs(12, 1, 0.0, 60.0, EXIT).exits(60.0, 12);
    let (trace, blame) = s.runs(13, 0, 60.0, 100.0, -1).blame();
    let serial = |wanted: u32| {
        let own = blame.cells.iter().filter(|(k, _)| k.terminal == Terminal::Serial && tid(&trace, k) == wanted);
        own.map(|(_, c)| c.cpu_ns).sum::<f64>() / MS as f64
    };
    near(blame.cpu.running / MS as f64, 160.0);
    near(serial(13), 40.0);
    near(serial(11) + serial(12), 0.0);
    near(blame.cpu.no_work / MS as f64, 0.0);
}

#[test]
fn s10_who_waits_in_the_middle_of_its_work_is_held_up_by_one_who_waits_for_his_client() {
    // Both read their clients' commands in one place; `b` waits for what `a` has locked in another.
    let (home, locked) = ([0x100, 0x10], [0x100, 0x900, 0x10]);
    // Input that does not come in a time that one set oneself is a sleep.
    for (context, end) in [(WakeContext::SoftIrq, Terminal::Outside), (WakeContext::Timer, Terminal::Timer)] {
        let s = Schedule::new(2, 60.0).thread(10, "a").thread(11, "b");
        let s = s.waits_at(11, 1, [0.0, 0.0], POLL, &home).wakes(10.0, 1, 0, 11, WakeContext::SoftIrq, NET_RX);
        let s = s.waits_at(10, 0, [0.0, 1.0], POLL, &home).waits_at(11, 1, [10.0, 11.0], POLL, &locked);
        let s = s.wakes(49.0, 0, 0, 10, context, NET_RX).by(50.0, 0, 10, 11);
        let s = s.waits_at(10, 0, [49.0, 50.0], POLL, &home).waits_at(11, 1, [50.0, 51.0], POLL, &home);
        let (trace, blame) = s.blame();
        let by_a = |t: Terminal| ms(&blame, |k| k.terminal == t && tid(&trace, k) == 10);
        near(by_a(end), 38.0);
        near(by_a(Terminal::Running), 1.0);
        near(ms(&blame, |k| k.terminal.holds_up()), 39.0);
    }
}

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

/// A proxy, itself a server at home, asks two threads of another at once; each sleeps for 30 ms before it answers.
#[test]
fn a_server_waits_for_the_sleeps_of_all_that_it_asked() {
    let mut s = Schedule::new(3, 130.0);
    programs(&mut s, &[(20, "backend"), (30, "proxy")], |_| true);
    second_thread(&mut s, "backend");
    s.builder.meta_mut().focus_pids = vec![30];
    s = s.waits_at(20, 0, [0.0, 0.1], READ, &[0x60]).waits_at(21, 1, [0.0, 0.1], READ, &[0x60]);
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
            let chain = s.builder.chain(20, &[], &[0x52, 0x70]);
            s.builder.push(ns(t(11.0)), SampleEvent { cpu: Cpu(1), tid: 21, ip: 0x52, chain });
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
