//! Who asks, and what keeps it from asking for more at once.

mod common;

use common::{FUTEX, POLL, READ, SLEEP, Schedule};
use holdup_analysis::report::{Confidence, Finding};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{ListenerEvent, NameEvent, WakeContext};

const FSYNC: i16 = 74;

const NAMES: [(u64, &str); 8] = [
    (0x1000, "ask"),
    (0x2000, "with_lock"),
    (0x3000, "serve"),
    (0x4000, "load"),
    (0x5000, "request"),
    (0xffff_ffff_8100_0000, "ep_poll"),
    (0xffff_ffff_8100_1000, "do_sys_poll"),
    (0xffff_ffff_8100_2000, "request_wait_answer"),
];

/// A service that answers after 30 ms of sleep, a web server, and its client.
fn three(cpus: u16) -> Schedule {
    let mut s = Schedule::new(cpus, 1000.0);
    for (pid, tid, name) in [(20, 20, "service"), (30, 30, "web"), (30, 31, "web"), (40, 40, "client")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid, name });
        s.builder.push(0, ListenerEvent { pid, parent: 1, listens: pid != 40 });
    }
    s
}

fn first(s: Schedule, focus: Option<&str>) -> Finding {
    let options = Options { focus: focus.map(str::to_owned), ..Options::default() };
    let answer = explain(&s.finish_with(&mut common::Namer(&NAMES)), "x", &options, &NoDisassembler).unwrap();
    answer.findings.first().expect("somebody is waited for").clone()
}

/// The service's part of what is asked at `b`.
fn served(s: Schedule, b: f64, asker: u32) -> Schedule {
    s.waits_at(20, 0, [b + 0.1, b + 0.4], SLEEP, &[0x4000])
        .wakes(b + 30.0, 0, 0, 20, WakeContext::Timer, 0)
        .by(b + 30.2, 0, 20, asker)
        .waits_at(20, 0, [b + 30.0, b + 30.4], POLL, &[0x3000])
}

/// The web server's one thread asks for each request, and never waits for a client: there is always one more. It waits for the answer at `asks`.
fn one_worker(asks: &[u64]) -> Finding {
    let mut s = three(3);
    for asked in 0..32 {
        let b = 1.0 + 31.0 * f64::from(asked);
        s = s.waits_at(30, 1, [b, b + 0.3], POLL, asks).by(b + 0.05, 1, 30, 40);
        s = s.wakes(b + 0.1, 1, 30, 20, WakeContext::Task, 8);
        s = served(s, b, 30).waits_at(40, 2, [b + 0.1, b + 0.3], POLL, &[0x3000]);
    }
    first(s, Some("web"))
}

#[test]
fn the_only_worker_is_told_from_an_event_loop() {
    let worker = one_worker(&[0xffff_ffff_8100_1010, 0x1010]);
    assert!(worker.title.contains(", asked by web one at a time (in ask), while others"), "{}", worker.title);
    let told = "web, in ask, never asks two at once: always the same thread does so. Have more of them (workers, processes), or let";
    assert!(worker.advice.starts_with(told), "{}", worker.advice);

    let event_loop = one_worker(&[0xffff_ffff_8100_0010, 0x1010]);
    assert!(event_loop.title.contains(", asked by web over one connection"), "{}", event_loop.title);
}

/// A thread waits for each answer while the loop of its process asks.
#[test]
fn the_thread_that_waits_for_the_loop_that_asks_is_told() {
    let mut s = three(4);
    for asked in 0..32 {
        let b = 1.0 + 31.0 * f64::from(asked);
        s = s.by(b - 0.3, 1, 31, 40).waits_at(31, 1, [b - 0.4, b - 0.2], READ, &[0x2000]);
        s = s.waits_at(40, 3, [b - 0.25, b - 0.1], POLL, &[0x5000]).wakes(b - 0.15, 3, 40, 31, WakeContext::Task, 7);
        s = s.wakes(b, 1, 31, 30, WakeContext::Task, 5).waits_at(31, 1, [b - 0.1, b + 0.05], READ, &[0x1000]);
        s = s.wakes(b + 0.1, 2, 30, 20, WakeContext::Task, 8);
        s = s.waits_at(30, 2, [b + 0.02, b + 0.4], POLL, &[0xffff_ffff_8100_0010]);
        s = served(s, b, 30).by(b + 30.4, 2, 30, 31);
        s = s.waits_at(30, 2, [b + 30.3, b + 30.5], POLL, &[0xffff_ffff_8100_0010]);
    }
    let found = first(s, None);
    assert!(found.title.contains(", asked by web over one connection (in ask), while others"), "{}", found.title);
    let told = "web, in ask, asks over no more than one connection, and always the same thread (web) waits there for the answer.";
    assert!(found.advice.starts_with(told), "{}", found.advice);
}

#[test]
fn who_keeps_a_lock_while_another_sleeps_for_it_is_told() {
    let mut s = three(3).futex(0.5, 31, 30).waits_at(31, 2, [0.4, 0.6], FUTEX, &[0x2000]);
    for round in 0..32u16 {
        let b = 1.0 + 31.0 * f64::from(round);
        let (cpu, owner, other) = (1 + round % 2, 30 + u32::from(round % 2), 31 - u32::from(round % 2));
        s = s.waits_at(owner, cpu, [b, b + 0.3], READ, &[0x1000]).wakes(b + 0.1, cpu, owner, 20, WakeContext::Task, 8);
        s = served(s, b, owner).by(b + 30.6, cpu, owner, other).futex(b + 30.7, owner, other);
        s = s.waits_at(owner, cpu, [b + 30.3, b + 30.8], FUTEX, &[0x2000]);
    }
    let found = first(s, Some("web"));
    assert!(found.title.starts_with("service slept for 947.2 ms while web kept a lock for it; "), "{}", found.title);
    assert!(found.advice.starts_with("Let the lock go before waiting for service, or see why"), "{}", found.advice);
}

#[test]
fn what_one_thread_sleeps_in_several_functions_is_one_sum() {
    let names = vec![(0x1000, "test_a"), (0x2000, "test_b"), (0x3000, "test_c"), (0x4000, "test_d"), (0x5000, "wait")];
    let mut s = Schedule::new(2, 500.0).thread(10, "runner").thread(11, "tests").in_focus();
    s = s.waits_at(10, 0, [0.0, 0.5], FUTEX, &[0x5000]);
    for test in 0..4u32 {
        let b = 1.0 + 100.0 * f64::from(test);
        s = s.waits_at(11, 1, [b, b + 0.5], SLEEP, &[0x1000 * u64::from(test + 1)]);
        s = s.wakes(b + 99.0, 1, 0, 11, WakeContext::Timer, 0);
    }
    s = s.runs(11, 1, 400.0, 401.0, FUTEX).by(400.5, 1, 11, 10).runs(10, 0, 401.0, 402.0, FUTEX);
    let options = Options::default();
    let answer = explain(&s.finish_with(&mut common::Namer(names.leak())), "x", &options, &NoDisassembler).unwrap();
    let title = &answer.findings[0].title.to_string();
    assert!(title.starts_with("tests slept in 4 functions (test_"), "{title}");
    assert!(title.contains(", …) for 39"), "{title}");
}

/// A daemon sleeps for each of three readers, which wait where the kernel waits for its answer.
#[test]
fn who_waits_outside_of_the_focus_is_told() {
    let daemon = |asks: u64| {
        let mut s = Schedule::new(2, 1000.0);
        for (pid, name) in [(20, "daemon"), (50, "dd"), (51, "dd"), (52, "dd")] {
            let name = s.builder.string(name);
            s.builder.push(0, NameEvent { pid, tid: pid, name });
        }
        for turn in 0..90 {
            let (b, reader) = (10.5 * f64::from(turn), 50 + turn % 3);
            s = s.wakes(b, 0, 0, 20, WakeContext::Timer, 0).by(b + 0.1, 0, 20, reader);
            let mut from = b;
            if turn % 4 == 0 {
                s = s.waits_at(20, 0, [b, b + 0.12], FSYNC, &[0x3000, 0x5010]);
                s = s.wakes(b + 0.15, 0, 0, 20, WakeContext::SoftIrq, 0);
                from = b + 0.15;
            }
            s = s.waits_at(20, 0, [from, b + 0.2], SLEEP, &[0x4000, 0x5010]);
            s = s.waits_at(reader, 1, [b + 0.15, b + 0.35], READ, &[asks, 0x5010]);
        }
        first(s, Some("daemon"))
    };
    let found = daemon(0xffff_ffff_8100_2000);
    assert!(found.title.ends_with(" while 3 threads of dd waited for it"), "{}", found.title);
    assert!(found.advice.starts_with("One thread answers all of them, and sleeps for each"), "{}", found.advice);
    assert_eq!(found.confidence, Confidence::Medium);
    let found = daemon(0xffff_ffff_8100_0000);
    assert!(found.title.ends_with(" in the middle of its work"), "they wait for whatever comes: {}", found.title);
}
