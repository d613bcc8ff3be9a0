//! Short stalls: found where they are unusual, whoever is in focus, and not where waiting is idle or usual.

mod common;

use common::traffic::{EPOLL, FSYNC, REWRITE, SCAN, Traffic, explained};
use common::{FUTEX, NET_RX, SLEEP};
use holdup_analysis::report::Stall;
use holdup_trace::{Trace, WakeContext};

fn titles(trace: &Trace, focus: Option<&str>) -> Vec<String> {
    explained(trace, focus).stalls.into_iter().map(|s| s.title).collect()
}

/// A server and its client; each time after `usual` quick answers comes a slow one, which takes so long in so a function.
fn served(usual: usize, slow: &[(f64, u64)]) -> Traffic {
    served_to("client", usual, slow)
}

/// The same of a client with a thread of this name.
fn served_to(client: &str, usual: usize, slow: &[(f64, u64)]) -> Traffic {
    let length: f64 = slow.iter().map(|s| s.0 + 0.15 * (usual + 1) as f64).sum();
    let mut traffic = Traffic::new(2, length + 20.0).thread(10, 10, client).thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    traffic.t = 0.05;
    for &(work, function) in slow {
        (0..usual).for_each(|_| traffic.round_trip(10, 20, 0.1, EPOLL));
        let from = traffic.t;
        traffic.samples(from, from + work, 1, 20, 20, function);
        traffic.round_trip(10, 20, work, EPOLL);
    }
    (0..usual).for_each(|_| traffic.round_trip(10, 20, 0.1, EPOLL));
    traffic
}

#[test]
fn a_server_that_scans_once_in_a_while_is_told_to_all_who_ask() {
    let trace = served(50, &[(98.0, SCAN), (105.0, SCAN), (100.0, SCAN)]).finish();
    let wanted = ["3 stalls of 98–105 ms: `client` waited for `server` in `scan_all`"];
    for focus in [None, Some("server"), Some("client")] {
        assert_eq!(titles(&trace, focus), wanted, "{focus:?}");
    }
    let answer = explained(&trace, None);
    let Stall { windows, count, longest_s, waiters, culprit, .. } = &answer.stalls[0];
    assert_eq!((*count, *waiters, culprit.tid), (3, 1, 20));
    assert!((longest_s - 0.105).abs() < 1e-6, "{longest_s}");
    assert!((windows[0][1] - windows[0][0] - 0.098).abs() < 1e-3, "{windows:?}");
}

#[test]
fn a_runtimes_own_threads_miss_nobody() {
    let stalls = |client| {
        let trace = served_to(client, 50, &[(98.0, SCAN), (105.0, SCAN)]).thread(10, 11, "VM Thread").finish();
        titles(&trace, None).len()
    };
    assert_eq!([stalls("http-1"), stalls("GC Thread#0")], [1, 0]);
}

/// A scan of what grows takes longer each time: the stalls say so, and so does the evidence against the server.
#[test]
fn what_grows_is_told() {
    let slow: Vec<(f64, u64)> = (0..24).map(|i| (40.0 + 5.0 * f64::from(i), SCAN)).collect();
    let trace = served(30, &slow).finish();
    assert_eq!(
        titles(&trace, Some("server")),
        ["24 stalls of 40–155 ms, longer and longer: `client` waited for `server` in `scan_all`"]
    );
    let found = explained(&trace, Some("server")).findings;
    let evidence = found.iter().find(|f| f.culprit.tid == 20).map(|f| f.evidence.join("\n")).unwrap_or_default();
    assert!(
        evidence.contains(
            "it grows: server worked for 1.5 ms between two waits for input at first and for 4.8 ms in the end"
        ),
        "{evidence}"
    );
    let same = served(30, &[(100.0, SCAN); 24]).finish();
    for f in explained(&same, Some("server")).findings {
        assert!(!f.evidence.join("\n").contains("grows"), "{:?}", f.evidence);
    }
}

#[test]
fn two_causes_are_two_stalls_the_longest_first() {
    let slow: Vec<(f64, u64)> = (0..6).map(|i| if i % 2 == 0 { (40.0, SCAN) } else { (160.0, REWRITE) }).collect();
    let wanted = [
        "3 stalls of 160 ms: `client` waited for `server` in `rewrite`",
        "3 stalls of 40 ms: `client` waited for `server` in `scan_all`",
    ];
    assert_eq!(titles(&served(30, &slow).finish(), Some("server")), wanted);
}

#[test]
fn what_happens_as_a_rule_is_no_stall() {
    assert_eq!(titles(&served(4, &[(50.0, SCAN); 30]).finish(), None), [""; 0]);
}

/// The client has nothing to ask for half a second: nobody stalls.
#[test]
fn a_server_without_requests_does_not_stall() {
    let mut traffic = Traffic::new(2, 540.0).thread(10, 10, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    traffic.t = 0.05;
    (0..40).for_each(|_| traffic.round_trip(10, 20, 0.1, EPOLL));
    let asleep = traffic.t;
    traffic.leaves(asleep, 0, 10, SLEEP);
    traffic.wakes_in(asleep + 500.0, 0, 0, 10, WakeContext::Timer, 0);
    traffic.comes(asleep + 500.0, 0, 10);
    traffic.t = asleep + 500.1;
    (0..40).for_each(|_| traffic.round_trip(10, 20, 0.1, EPOLL));
    assert_eq!(titles(&traffic.finish(), None), [""; 0]);
}

/// Clients of another machine are no threads: what tells of the stall is that the server is away from its events.
#[test]
fn clients_elsewhere_are_answered_by_nobody() {
    let mut traffic = Traffic::new(1, 900.0).thread(20, 20, "server");
    let mut t = 0.0;
    traffic.comes(t, 0, 20);
    for request in 0..200 {
        let work = if request % 60 == 50 { 101.0 } else { 0.1 };
        traffic.samples(t, t + work, 0, 20, 20, SCAN);
        traffic.leaves(t + work, 0, 20, EPOLL);
        t += work + 0.9;
        traffic.wakes_in(t, 0, 0, 20, WakeContext::SoftIrq, NET_RX);
        traffic.comes(t, 0, 20);
    }
    assert_eq!(titles(&traffic.finish(), None), ["3 stalls of 101 ms: `server` was in `scan_all` and answered nobody"]);
}

#[test]
fn a_slow_disk_is_one_stall_for_all_who_wait() {
    let mut traffic = Traffic::new(2, 600.0).thread(30, 30, "writer").thread(30, 31, "writer");
    for (cpu, tid) in [(0, 30), (1, 31)] {
        let mut t = 0.0;
        traffic.comes(t, cpu, tid);
        for request in 0..60 {
            let takes = if request == 40 { 150.0 + f64::from(cpu) } else { 1.0 };
            traffic.leaves(t + 0.1, cpu, tid, FSYNC);
            t += takes + 0.1;
            traffic.wakes_in(t, cpu, 0, tid, WakeContext::HardIrq, 7);
            traffic.comes(t, cpu, tid);
        }
    }
    assert_eq!(titles(&traffic.finish(), None), ["1 stall of 151.0 ms: 2 threads of `writer` waited for the disk"]);
}

/// Threads hand a lock around quickly, and once one of them keeps it.
#[test]
fn one_who_keeps_a_lock_stalls_the_others() {
    let mut traffic = Traffic::new(2, 300.0).thread(40, 40, "pool").thread(40, 41, "pool");
    traffic.comes(0.0, 0, 40);
    traffic.t = 0.05;
    for request in 0..80 {
        let work = if request == 60 { 90.0 } else { 0.2 };
        let from = traffic.t;
        traffic.samples(from, from + work, 1, 40, 41, REWRITE);
        traffic.round_trip(40, 41, work, FUTEX);
    }
    assert_eq!(titles(&traffic.finish(), None), ["1 stall of 90.0 ms: `pool` waited for `pool` in `rewrite`"]);
}

/// Whatever lies at the borders of parts: a stall is counted once.
#[test]
fn borders_of_parts_cut_no_stall() {
    let trace = served(800, &[(60.0, SCAN); 150]).finish();
    assert!(trace.switches.rows() > 400_000, "{}", trace.switches.rows());
    for focus in [None, Some("server"), Some("client")] {
        let wanted = "150 stalls of 60 ms: `client` waited for `server` in `scan_all`";
        assert_eq!(titles(&trace, focus), [wanted], "{focus:?}");
    }
}
