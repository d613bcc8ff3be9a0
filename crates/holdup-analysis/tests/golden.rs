//! The golden schedules S1 to S10 of the design, as they stand there. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::blame::{Key, Terminal};
use holdup_trace::{ExitEvent, SwitchState, WakeContext};

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

/// A parent that looks whether its children are done, and for their output, every 300 ms, has no work to do meanwhile.
#[test]
fn s9_who_looks_now_and_then_leaves_its_place_free() {
    let names = [(10, "parallel"), (11, "job"), (12, "job")];
    let s = names.into_iter().fold(Schedule::new(2, 3000.0).in_focus(), |s, (tid, name)| s.thread(tid, name));
    let mut s = s.runs(11, 0, 0.0, 900.0, EXIT).exits(900.0, 11).runs(12, 1, 0.0, 3000.0, -1);
    for look in 3..10 {
        let t = 300.0 * f64::from(look) + 10.0;
        s = s.waits_at(10, 0, [t, t + 0.1], POLL, &[0x10]).wakes(t + 299.9, 0, 0, 10, WakeContext::Timer, 0);
    }
    let (trace, blame) = s.blame();
    let own = blame.cells.iter().filter(|(k, _)| k.terminal == Terminal::Serial && tid(&trace, k) == 12);
    let serial = own.map(|(_, c)| c.cpu_ns).sum::<f64>() / MS as f64;
    assert!(serial > 1900.0, "{serial}: {:?}", blame.cpu);
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
