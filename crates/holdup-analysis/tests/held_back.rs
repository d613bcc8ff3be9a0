//! Messages that the network held back: the same finding from either side.

mod common;

use common::traffic::{EPOLL, Traffic, explained};
use common::{FUTEX, NET_RX, READ};
use holdup_analysis::report::{Confidence, Finding, FindingKind};
use holdup_trace::{LATE_ACK, Trace, WakeContext};

fn first(trace: &Trace, focus: Option<&str>) -> Finding {
    explained(trace, focus).findings.into_iter().next().expect("something is found")
}

/// The client writes twice; the second part arrives `delay` later, by a timer of the kernel.
fn written_twice(delay: f64) -> Trace {
    let mut traffic = Traffic::new(2, 20.0 * (delay + 1.0)).thread(10, 10, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    for trip in 0..18 {
        let t = f64::from(trip) * (delay + 1.0);
        traffic.wakes(t + 0.1, 0, 10, 20);
        traffic.leaves(t + 0.15, 0, 10, READ);
        traffic.comes(t + 0.12, 1, 20);
        traffic.leaves(t + 0.2, 1, 20, READ);
        traffic.wakes_in(t + 0.2 + delay, 1, 0, 20, WakeContext::SoftIrq, NET_RX);
        traffic.comes(t + 0.2 + delay, 1, 20);
        traffic.wakes(t + 0.3 + delay, 1, 20, 10);
        traffic.leaves(t + 0.35 + delay, 1, 20, READ);
        traffic.comes(t + 0.4 + delay, 0, 10);
    }
    traffic.finish()
}

#[test]
fn a_message_held_back_is_told_from_either_side() {
    let trace = written_twice(41.0);
    for focus in [None, Some("server"), Some("client")] {
        let f = first(&trace, focus);
        // Who sent the first of the 18 is not known: nobody was seen to wake its receiver before.
        let wanted = "`client` and `server` both stood still 17 times for 41.0 ms: the network held a message of `client` back \
                      (Nagle and delayed acknowledgement)";
        assert_eq!((f.title.as_str(), f.kind), (wanted, FindingKind::Network), "{focus:?}");
        assert!(f.advice.contains("TCP_NODELAY"), "{f:?}");
    }
}

/// Who asks a server for something that is held back behind it sees the same.
#[test]
fn a_message_held_back_is_told_once_and_to_those_behind() {
    let (delay, cycle) = (41.0, 42.0);
    let mut traffic =
        Traffic::new(3, 20.0 * cycle).thread(10, 10, "store").thread(20, 20, "proxy").thread(30, 30, "browser");
    traffic.comes(0.0, 2, 30);
    traffic.comes(0.0, 1, 20);
    for trip in 0..18 {
        let t = f64::from(trip) * cycle;
        // The browser asks the proxy, that the store, which answers in two parts.
        traffic.leaves(t + 0.05, 2, 30, READ);
        traffic.wakes(t + 0.1, 1, 20, 10);
        traffic.leaves(t + 0.12, 1, 20, READ);
        traffic.comes(t + 0.13, 0, 10);
        traffic.wakes(t + 0.2, 0, 10, 20);
        traffic.leaves(t + 0.25, 0, 10, READ);
        traffic.comes(t + 0.22, 1, 20);
        traffic.leaves(t + 0.3, 1, 20, READ);
        traffic.wakes_in(t + 0.3 + delay, 1, 0, 20, WakeContext::SoftIrq, NET_RX);
        traffic.comes(t + 0.3 + delay, 1, 20);
        traffic.wakes(t + 0.4 + delay, 1, 20, 30);
        traffic.comes(t + 0.41 + delay, 2, 30);
    }
    let trace = traffic.finish();
    for focus in [None, Some("store"), Some("proxy"), Some("browser")] {
        let answer = explained(&trace, focus);
        let told: Vec<&str> =
            answer.findings.iter().map(|f| f.title.as_str()).filter(|t| t.contains("held a message")).collect();
        let wanted = "`store` and `proxy` both stood still 17 times for 41.0 ms: the network held a message of `store` back \
                      (Nagle and delayed acknowledgement)";
        assert_eq!(told, [wanted], "{focus:?}");
    }
}

/// A client of two servers' threads waits for neither so long: messages of the other one wake it meanwhile.
#[test]
fn messages_held_back_on_many_connections_are_told_by_who_sends() {
    let of = |delay: f64| {
        let mut traffic = Traffic::new(3, 20.0 * (delay + 1.0));
        traffic = traffic.thread(10, 10, "server").thread(10, 11, "server").thread(30, 30, "client");
        traffic.comes(0.0, 2, 30);
        traffic.leaves(0.02, 2, 30, EPOLL);
        for turn in 0..36u32 {
            // Each of the two has answered in two parts, half a delay after the other.
            let (t, server, cpu) = (f64::from(turn) * (delay + 1.0) / 2.0, 10 + turn % 2, (turn % 2) as u16);
            traffic.wakes_in(t + 0.1, 2, 0, 30, WakeContext::SoftIrq, NET_RX);
            traffic.comes(t + 0.11, 2, 30);
            traffic.wakes(t + 0.2, 2, 30, server);
            traffic.leaves(t + 0.25, 2, 30, EPOLL);
            traffic.comes(t + 0.3, cpu, server);
            traffic.leaves(t + 1.2, cpu, server, READ);
        }
        explained(&traffic.finish(), Some("client"))
    };
    let answer = of(41.0);
    let first = &answer.findings[0];
    assert!(first.title.starts_with("`server` and `client` both stood still 34 times for 41.1 ms"), "{answer:#?}");
    assert_eq!(answer.caveats.iter().filter(|c| c.what.contains("more than time allows")).count(), 0);
    assert!(of(20.0).findings.iter().all(|f| f.kind != FindingKind::Network));
}

/// Whatever else takes long on the network takes other times.
#[test]
fn other_delays_are_not_held_back() {
    for delay in [10.0, 70.0] {
        let answer = explained(&written_twice(delay), None);
        assert!(answer.findings.iter().all(|f| !f.title.contains("held a message")), "{:?}", answer.findings);
    }
}

/// The client, 10, asks the server, 20, gets a part of the answer, and waits for the rest.
fn is_answered_in_part(traffic: &mut Traffic, t: f64) {
    traffic.wakes(t + 0.1, 0, 10, 20);
    traffic.leaves(t + 0.12, 0, 10, EPOLL);
    traffic.comes(t + 0.13, 1, 20);
    traffic.wakes(t + 0.2, 1, 20, 10);
    traffic.leaves(t + 0.22, 1, 20, EPOLL);
    traffic.comes(t + 0.23, 0, 10);
    traffic.leaves(t + 0.25, 0, 10, EPOLL);
}

/// Another thread, which waits in this call before and after, wakes 10 meanwhile for something else.
fn is_woken_between(traffic: &mut Traffic, t: f64, waker: u32, call: i16) {
    traffic.comes(t, 2, waker);
    traffic.wakes(t + 0.1, 2, waker, 10);
    traffic.leaves(t + 0.2, 2, waker, call);
    traffic.comes(t + 0.3, 0, 10);
    traffic.leaves(t + 0.4, 0, 10, EPOLL);
}

/// A server answers in two parts, of which the second waits for an acknowledgement; the client has other connections, and others of them wake it
/// meanwhile.
#[test]
fn an_acknowledgement_that_was_seen_to_be_late_needs_no_guess() {
    let mut traffic = Traffic::new(2, 1020.0).thread(10, 10, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    for trip in 0..20 {
        let t = 50.0 * f64::from(trip);
        is_answered_in_part(&mut traffic, t);
        traffic.wakes_in(t + 40.6, 0, 0, 10, WakeContext::SoftIrq, LATE_ACK);
        traffic.comes(t + 40.7, 0, 10);
    }
    let trace = traffic.finish();
    for focus in [None, Some("server"), Some("client")] {
        let f = first(&trace, focus);
        let wanted = "the network held 20 messages of `server` to `client` back, each for 40.5 ms (Nagle and delayed acknowledgement)";
        assert_eq!((f.title.as_str(), f.kind), (wanted, FindingKind::Network), "{focus:?}");
        assert_eq!(f.confidence, Confidence::High);
    }
}

/// A proxy is woken by its client between the two parts of its server's answer: the part that was to be acknowledged came 40 ms before.
#[test]
fn what_was_held_back_is_of_who_sent_when_the_acknowledgement_began_to_wait() {
    let mut traffic = Traffic::new(3, 520.0).thread(10, 10, "proxy").thread(20, 20, "server").thread(30, 30, "client");
    traffic.comes(0.0, 0, 10);
    for trip in 0..10 {
        let t = 50.0 * f64::from(trip);
        is_answered_in_part(&mut traffic, t);
        is_woken_between(&mut traffic, t + 20.0, 30, EPOLL);
        traffic.wakes_in(t + 40.6, 0, 0, 10, WakeContext::SoftIrq, LATE_ACK);
        traffic.comes(t + 40.7, 0, 10);
    }
    let answer = explained(&traffic.finish(), None);
    let held_back = answer.findings.iter().find(|f| f.kind == FindingKind::Network).expect("messages are held back");
    let wanted = "the network held 10 messages of `server` to `proxy` back, ";
    assert!(held_back.title.starts_with(wanted), "{}", held_back.title);
    assert_eq!(held_back.confidence, Confidence::High, "{:?}", held_back.doubts);
}

/// The client has a thread of its own that wakes the one that waits for bytes, between the two parts of an answer.
#[test]
fn who_sent_what_was_held_back_is_no_thread_of_the_receiver() {
    let mut traffic = Traffic::new(3, 420.0).thread(10, 10, "client").thread(10, 11, "client").thread(20, 20, "server");
    traffic.comes(0.0, 0, 10);
    for trip in 0..10 {
        let t = 40.0 * f64::from(trip);
        is_answered_in_part(&mut traffic, t);
        is_woken_between(&mut traffic, t + 1.0, 11, FUTEX);
        traffic.wakes_in(t + 35.0, 0, 0, 10, WakeContext::SoftIrq, LATE_ACK);
        traffic.comes(t + 35.01, 0, 10);
    }
    let answer = explained(&traffic.finish(), None);
    let held_back: Vec<_> = answer.findings.iter().filter(|f| f.kind == FindingKind::Network).collect();
    let wanted = "the network held 10 messages of `server` to `client` back, ";
    assert!(held_back.len() == 1 && held_back[0].title.starts_with(wanted), "{:#?}", answer.findings);
    assert_eq!(held_back[0].culprit.tid, 20);
}
