//! Threads that take turns: the same finding from either side.

mod common;

use common::traffic::{ANSWER, EPOLL, Traffic, explained};
use common::{FUTEX, Namer, READ, Schedule, WAIT4, WRITE};
use holdup_analysis::report::{Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{NameEvent, Trace};

fn first(trace: &Trace, focus: Option<&str>) -> Finding {
    explained(trace, focus).findings.into_iter().next().expect("something is found")
}

/// So many round trips of 1 ms: 0.1 of the client, 0.1 there, 0.6 of the server, 0.2 back; both wait in this call.
fn asked(call: i16, trips: usize) -> Traffic {
    asked_in([call; 2], trips)
}

/// The same where the client and the server wait in these calls.
fn asked_in(calls: [i16; 2], trips: usize) -> Traffic {
    asked_of(Traffic::new(2, trips as f64 + 2.0).thread(10, 10, "client").thread(20, 20, "server"), calls, trips)
}

/// The same between threads 10 and 20.
fn asked_of(mut traffic: Traffic, [client, server]: [i16; 2], trips: usize) -> Traffic {
    traffic.comes(0.0, 0, 10);
    for trip in 0..trips {
        let t = trip as f64;
        traffic.wakes(t + 0.1, 0, 10, 20);
        traffic.leaves(t + 0.11, 0, 10, client);
        traffic.comes(t + 0.2, 1, 20);
        traffic.samples(t, t + 1.0, 1, 20, 20, ANSWER);
        traffic.wakes(t + 0.8, 1, 20, 10);
        traffic.leaves(t + 0.82, 1, 20, server);
        traffic.comes(t + 1.0, 0, 10);
    }
    traffic
}

#[test]
fn a_round_trip_belongs_to_whom_it_takes_longest() {
    for call in [EPOLL, READ, FUTEX] {
        let trace = asked(call, 200).finish();
        for focus in [None, Some("server"), Some("client")] {
            let f = first(&trace, focus);
            let wanted =
                "`server` and `client` take turns: 62 % of each round trip of 995.0 µs is `server`'s (in `answer`)";
            assert_eq!((f.title.as_str(), f.kind), (wanted, FindingKind::Serial), "{call} {focus:?}");
            assert_eq!((f.culprit.tid, f.waiters.names.as_slice()), (20, &["client".to_owned()][..]));
            assert!(f.blame_cpu_s > 0.12 && f.blame_cpu_s <= 0.2001, "{}", f.blame_cpu_s);
            assert!(f.evidence[1].contains("62 % is `server`'s work, 12 % is `client`'s, and 26 % goes"), "{f:?}");
            assert!(f.advice.contains("pipelining"), "{f:?}");
        }
    }
}

#[test]
fn who_waits_for_a_collection_of_its_runtime_does_not_take_turns_with_it() {
    let with = |name| {
        let traffic = Traffic::new(2, 202.0).thread(10, 10, "java").thread(10, 20, name);
        first(&asked_of(traffic, [FUTEX; 2], 200).finish(), None)
    };
    assert!(with("worker").title.contains("take turns"));
    assert!(!with("VM Thread").title.contains("take turns"));
}

#[test]
fn that_a_pipe_has_room_again_is_no_answer() {
    let take_turns = |call| {
        let answer = explained(&asked_in([READ, call], 200).finish(), None);
        answer.findings.iter().any(|f| f.title.contains("take turns"))
    };
    assert!(take_turns(READ) && !take_turns(WRITE));
}

#[test]
fn a_tracer_waits_for_what_it_traces_and_for_no_end() {
    let mut traffic = asked(WAIT4, 200).thread(99, 99, "other");
    // No process of this trace has ended, as far as is known: then it may be that ends were not recorded.
    assert_ne!(
        explained(&asked(WAIT4, 200).finish(), None).findings.first().map(|f| f.kind),
        Some(FindingKind::Serial)
    );
    traffic.ends(1.0, 99);
    let f = first(&traffic.finish(), None);
    assert!(f.title.starts_with("`server` and `client` take turns"), "{}", f.title);
}

#[test]
fn where_most_of_it_is_waking_up_that_is_the_finding() {
    let mut traffic = Traffic::new(2, 42.0).thread(10, 10, "ping").thread(20, 20, "pong");
    traffic.comes(0.0, 0, 10);
    for trip in 0..400 {
        let t = f64::from(trip) * 0.1;
        traffic.wakes(t + 0.01, 0, 10, 20);
        traffic.leaves(t + 0.012, 0, 10, READ);
        traffic.comes(t + 0.05, 1, 20);
        traffic.wakes(t + 0.06, 1, 20, 10);
        traffic.leaves(t + 0.062, 1, 20, READ);
        traffic.comes(t + 0.1, 0, 10);
    }
    let answer = explained(&traffic.finish(), None);
    let kinds: Vec<FindingKind> = answer.findings.iter().map(|f| f.kind).collect();
    assert!(kinds.contains(&FindingKind::WakeLatency) && kinds[0] != FindingKind::Serial, "{kinds:?}");
    let wanted = "take turns: 71 % of each round trip of 99.8 µs goes by until the other runs";
    let turns = answer.findings.iter().find(|f| f.title.ends_with(wanted)).expect("is told as well");
    // What wakes up is not counted twice.
    let sum: f64 = answer.findings.iter().map(|f| f.blame_cpu_s).sum();
    assert!(turns.blame_cpu_s > 0.0 && sum <= 0.0421, "{sum} {kinds:?}");
}

/// A client that goes on with its own work while the server answers takes no turns.
#[test]
fn who_works_meanwhile_takes_no_turns() {
    let mut traffic = Traffic::new(2, 202.0).thread(10, 10, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    for trip in 0..200 {
        let t = f64::from(trip);
        traffic.wakes(t + 0.1, 0, 10, 20);
        traffic.comes(t + 0.1, 1, 20);
        traffic.samples(t, t + 1.0, 1, 20, 20, ANSWER);
        traffic.leaves(t + 0.7, 0, 10, READ);
        traffic.wakes(t + 0.8, 1, 20, 10);
        traffic.leaves(t + 0.82, 1, 20, READ);
        traffic.comes(t + 0.81, 0, 10);
    }
    let answer = explained(&traffic.finish(), None);
    assert!(answer.findings.iter().all(|f| !f.title.contains("take turns")), "{:?}", answer.findings);
}

/// The server takes the client's CPU as soon as it is asked, so that the client cannot go to wait before it has its CPU back.
#[test]
fn who_is_kept_from_running_by_the_other_takes_turns() {
    let mut traffic = Traffic::new(1, 202.0).thread(10, 10, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    for trip in 0..200 {
        let t = f64::from(trip);
        traffic.wakes(t + 0.1, 0, 10, 20);
        traffic.takes_over(t + 0.12, 0, 10, 20);
        traffic.samples(t, t + 1.0, 0, 20, 20, ANSWER);
        traffic.takes_over(t + 0.6, 0, 20, 10);
        traffic.leaves(t + 0.62, 0, 10, READ);
        traffic.comes(t + 0.63, 0, 20);
        traffic.wakes(t + 0.8, 0, 20, 10);
        traffic.leaves(t + 0.82, 0, 20, READ);
        traffic.comes(t + 0.9, 0, 10);
    }
    let answer = explained(&traffic.finish(), None);
    assert!(answer.findings.iter().any(|f| f.title.contains("take turns")), "{:?}", answer.findings);
}

/// Two who ask one server are answered while the other one works.
#[test]
fn two_clients_of_one_server_take_no_turns_with_it() {
    let mut traffic = Traffic::new(3, 202.0).thread(10, 10, "client").thread(11, 11, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    traffic.comes(0.0, 2, 11);
    for trip in 0..200 {
        let (t, cpu, client) = (f64::from(trip), [0, 2][trip as usize % 2], [10, 11][trip as usize % 2]);
        traffic.wakes(t + 0.1, cpu, client, 20);
        traffic.leaves(t + 0.1, cpu, client, READ);
        traffic.comes(t + 0.1, 1, 20);
        traffic.wakes(t + 0.6, 1, 20, client);
        traffic.leaves(t + 0.6, 1, 20, EPOLL);
        traffic.comes(t + 0.6, cpu, client);
    }
    let answer = explained(&traffic.finish(), None);
    assert!(answer.findings.iter().all(|f| !f.title.contains("take turns")), "{:?}", answer.findings);
}

/// What is found first of a client and a server that answers its 2,000 requests in so many milliseconds each.
fn answered(answers: impl Fn(u32) -> f64, end: f64) -> Finding {
    let mut traffic = Traffic::new(2, end).thread(10, 10, "client").thread(20, 20, "server");
    let mut t = 0.0;
    traffic.comes(t, 0, 10);
    for trip in 0..2000 {
        traffic.wakes(t + 0.01, 0, 10, 20);
        traffic.leaves(t + 0.012, 0, 10, EPOLL);
        traffic.comes(t + 0.015, 1, 20);
        t += 0.02 + answers(trip);
        traffic.wakes(t, 1, 20, 10);
        traffic.leaves(t + 0.002, 1, 20, EPOLL);
        t += 0.01;
        traffic.comes(t, 0, 10);
    }
    first(&traffic.finish(), None)
}

/// Each 200th takes 30 ms, as if it were another command.
#[test]
fn a_few_long_answers_are_no_turns() {
    let f = answered(|trip| if trip % 200 == 199 { 30.0 } else { 0.01 }, 520.0);
    assert_eq!(f.title, "10 stalls of 30 ms: `client` waited for `server`");
    assert!(f.advice.starts_with("See what server does meanwhile"), "{}", f.advice);
}

#[test]
fn a_long_answer_that_is_a_small_part_is_not_all_of_it() {
    let f = answered(|trip| if trip == 999 { 300.0 } else { 0.5 }, 1400.0);
    assert!(f.title.contains("take turns"), "{}", f.title);
}

/// Whether two threads of one process take turns that wait for each other below functions with these names.
fn take_turns_in(names: &'static [(u64, &'static str)]) -> bool {
    let place = [0x2004, 0x1004];
    let mut s = Schedule::new(2, 202.0).thread(10, "one").thread(20, "other");
    for trip in 0..200 {
        let t = f64::from(trip);
        s = s.by(t + 0.1, 0, 10, 20).waits_at(10, 0, [t, t + 0.11], FUTEX, &place);
        s = s.by(t + 0.8, 1, 20, 10).waits_at(20, 1, [t + 0.2, t + 0.82], FUTEX, &place);
    }
    let trace = s.finish_with(&mut Namer(names));
    explained(&trace, None).findings.iter().any(|f| f.title.contains("take turns"))
}

#[test]
fn who_meets_at_a_barrier_takes_no_turns() {
    assert!(take_turns_in(&[(0x1000, "run"), (0x2000, "hand_over")]));
    assert!(!take_turns_in(&[(0x1000, "run"), (0x2000, "pthread_barrier_wait")]));
}

/// A program of two threads is stopped by its tracer at each system call, one thread after the other.
#[test]
fn who_is_traced_is_told() {
    const NAMES: [(u64, &str); 3] = [(0x1000, "copy"), (0x2000, "next_event"), (0xffff_ffff_8100_0000, "ptrace_stop")];
    let mut s = Schedule::new(2, 1000.0).thread(10, "dd").thread(11, "dd").in_focus();
    let name = s.builder.string("strace");
    s.builder.push(0, NameEvent { pid: 2, tid: 20, name });
    for stop in 0..190 {
        let (b, tid) = (1.0 + 5.0 * f64::from(stop), 10 + stop % 2);
        s = s.waits_at(tid, 0, [b, b + 0.2], READ, &[0xffff_ffff_8100_0000, 0x1000]).by(b + 0.1, 0, tid, 20);
        s = s.waits_at(20, 1, [b + 0.15, b + 4.9], WAIT4, &[0x2000]).by(b + 4.8, 1, 20, 10 + (stop + 1) % 2);
    }
    let trace = s.finish_with(&mut Namer(&NAMES));
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let first = &answer.findings[0];
    let told =
        "strace worked alone for 902.4 ms, as dd (2 threads) is traced (ptrace); 2 threads stood still 189 times";
    assert!(first.title.starts_with(told), "{}", first.title);
    assert!(first.advice.starts_with("Trace less of it (strace -e trace=…"), "{}", first.advice);
}
