//! What a chain ends at, in words.

use holdup_trace::{LATE_ACK, Nanos, WakeContext};

use super::Study;
use super::report::{End, EndKind, Hop};
use super::walk::{Links, Parts, Stop};
use crate::classify::WaitKind;
use crate::intervals::Wait;
use crate::label::duration;

/// Softirq vectors, by the kernel's numbers.
const TIMER: [u16; 2] = [1, 8];
const NETWORK: [u16; 3] = [2, 3, LATE_ACK];
const BLOCK: [u16; 2] = [4, 5];

/// What ended a wait.
pub(super) fn ended_by(wait: &Wait) -> String {
    match wait.context {
        _ if wait.open => "nobody".to_owned(),
        WakeContext::Task if wait.waker.is_real() => "thread".to_owned(),
        WakeContext::Timer => "timer".to_owned(),
        WakeContext::HardIrq => format!("interrupt {}", wait.source),
        WakeContext::SoftIrq => match wait.source {
            s if TIMER.contains(&s) => "softirq timer".to_owned(),
            s if BLOCK.contains(&s) => "softirq block".to_owned(),
            LATE_ACK => "softirq network, behind an acknowledgement that was held back".to_owned(),
            s if NETWORK.contains(&s) => "softirq network".to_owned(),
            s => format!("softirq {s}"),
        },
        WakeContext::Ipi => "another CPU".to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// The end of a chain whose hops are known.
pub(super) fn of(study: &Study, parts: &Parts, walked: &Links, hops: &[Hop]) -> End {
    let total = walked.to.since(walked.from).seconds();
    let last = walked.links.last();
    // It ends with a wait if nothing was left to answer for before it.
    let wait = last.and_then(|link| link.wait.filter(|_| walked.links.len() == 1 || link.alone > Nanos::ZERO));
    let (kind, text) = match (walked.stop, wait) {
        (Stop::Circle, _) => (
            EndKind::Circle,
            "the chain comes back to a wait that it has passed: these threads wait for each other".into(),
        ),
        (Stop::Cut, _) => (EndKind::Cut, format!("the chain goes on; {} hops are followed", walked.links.len())),
        (Stop::Begin, Some(wait)) => of_wait(study, parts.wait(wait), hops.last()),
        (Stop::Begin, None) => of_thread(study, hops.last()),
        (Stop::Unknown, _) => (EndKind::Unknown, "who started that thread is not in the trace".to_owned()),
    };
    let part = walked.rest + last.filter(|_| wait.is_some()).map_or(Nanos::ZERO, |link| link.alone);
    let mut end = End { kind, text, part_s: part.seconds(), ..End::default() };
    let (mut main, mut most) = (hops.len(), end.part_s);
    for (i, hop) in hops.iter().enumerate() {
        let part = hop.part_s + hop.alone_s;
        if part > most {
            (main, most) = (i, part);
        }
    }
    (end.main_hop, end.main_share) = (main, if total > 0.0 { most / total } else { 0.0 });
    end
}

/// What a wait that no thread ended was for.
pub(super) fn kind_of(study: &Study, parts: &Parts, wait: usize) -> EndKind {
    of_wait(study, parts.wait(wait), None).0
}

/// The same of any wait; `lost` events make a wait whose end is not there one that is not known.
pub(crate) fn kind(wait: &Wait, lost: u64) -> EndKind {
    sentence(wait, "", lost).0
}

/// Ends at a thread that did not wait meanwhile.
fn of_thread(study: &Study, hop: Option<&Hop>) -> (EndKind, String) {
    let Some(hop) = hop else { return (EndKind::Unknown, "nothing is known".into()) };
    let (did, name) = (&hop.did, name(hop));
    if did.ran_s + did.ready_s <= 0.0 && did.to_s > did.from_s {
        return match study.intervals.health.lost_events {
            0 => (EndKind::Unknown, format!("what {name} did is not in the trace")),
            _ => (EndKind::Lost, format!("what {name} did is not known: events were lost")),
        };
    }
    if did.ready_s > did.ran_s {
        let behind = did.behind.first().map_or(String::new(), |b| {
            format!(": its CPU ran `{}` (pid {}) for {}", b.who.thread, b.who.pid, duration(b.ran_s))
        });
        return (
            EndKind::Runnable,
            format!("{name} could run and did not get a CPU for {}{behind}", duration(did.ready_s)),
        );
    }
    let place = match (did.function.as_str(), did.source.as_str()) {
        ("", _) => String::new(),
        (function, "") => format!(" in `{function}`"),
        (function, source) => format!(" in `{function}` ({source})"),
    };
    (EndKind::Running, format!("{name} ran{place} for {}; it did not wait meanwhile", duration(did.ran_s)))
}

/// Ends at a wait that no thread ended.
fn of_wait(study: &Study, wait: &Wait, hop: Option<&Hop>) -> (EndKind, String) {
    sentence(wait, &hop.map_or(String::new(), name), study.intervals.health.lost_events)
}

fn sentence(wait: &Wait, name: &str, lost: u64) -> (EndKind, String) {
    let ended = ended_by(wait);
    let is = |vectors: &[u16]| wait.context == WakeContext::SoftIrq && vectors.contains(&wait.source);
    match wait.kind {
        _ if wait.open => (EndKind::Nobody, format!("nobody ended the wait of {name} within the trace")),
        WaitKind::Disk | WaitKind::PageFault => (EndKind::Disk, format!("{name} waited for a disk (ended by {ended})")),
        WaitKind::Timer => (EndKind::Timer, format!("{name} slept until its own timer")),
        WaitKind::Stopped => {
            (EndKind::Stopped, format!("a signal had stopped {name}, or it was frozen with its control group"))
        }
        _ if wait.context == WakeContext::Timer || is(&TIMER) => {
            (EndKind::Timer, format!("the wait of {name} was ended by a timer: it timed out"))
        }
        _ if is(&BLOCK) => (EndKind::Disk, format!("{name} waited for a disk (ended by {ended})")),
        _ if is(&NETWORK) => (EndKind::Network, format!("{name} waited for the network (ended by {ended})")),
        WaitKind::Input | WaitKind::Read if wait.context != WakeContext::Unknown => {
            (EndKind::Input, format!("{name} waited for input from outside (ended by {ended})"))
        }
        _ if matches!(wait.context, WakeContext::HardIrq | WakeContext::SoftIrq | WakeContext::Ipi) => {
            (EndKind::Interrupt, format!("the wait of {name} was ended by {ended}"))
        }
        _ if lost > 0 => (EndKind::Lost, format!("who ended the wait of {name} is not known: events were lost")),
        _ => (EndKind::Unknown, format!("who ended the wait of {name} is not in the trace")),
    }
}

fn name(hop: &Hop) -> String {
    format!("`{}` (tid {})", hop.who.thread, hop.who.tid)
}
