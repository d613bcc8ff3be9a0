//! Threads that are all woken for what one of them gets.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::Explanation;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Cpu, Image, Location, LockId, Symbolizer, WakeContext, WakeEvent};

const FUTEX: i16 = 202;
/// Functions by address: a page for each, from the second on.
const FUNCTIONS: [(&str, &str); 4] =
    [("libc.so.6", "pthread_cond_broadcast"), ("app", "worker"), ("app", "submit"), ("[kernel]", "tcp_child_process")];

struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], at: u64) -> Vec<Location> {
        let (module, function) = FUNCTIONS[(at / 0x1000) as usize - 1];
        vec![Location { function: function.into(), module: module.into(), ..Default::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// `rounds` times a thread wakes four at once, in the function at `by`, who each run for `each` milliseconds and wait again.
fn herd(rounds: u32, each: f64, by: u64) -> Explanation {
    let names = [(1, "app"), (10, "boss"), (11, "w"), (12, "w"), (13, "w"), (14, "w")];
    let mut s =
        names.into_iter().fold(Schedule::new(2, f64::from(rounds)).in_focus(), |s, (tid, name)| s.thread(tid, name));
    let waits = vec![0x2010];
    for tid in 11..15 {
        s = s.waits_at(tid, 1, [0.01 * f64::from(tid), 0.01 * f64::from(tid) + 0.01], FUTEX, &waits);
    }
    for round in 1..rounds {
        let t = f64::from(round);
        for (i, tid) in (11..15).enumerate() {
            let chain = s.builder.chain(1, &[], &[by, 0x3010]);
            let (context, lock, target) = (WakeContext::Task, LockId::NONE, Cpu::NONE);
            let wake = WakeEvent { cpu: Cpu(0), waker: 10, wakee: tid, context, source: 0, target, lock, chain };
            s.builder.push(ns(t), wake);
            let from = t + 0.01 + each * i as f64;
            s = s.waits_at(tid, 1, [from, from + each], FUTEX, &waits);
        }
    }
    let trace = s.runs(10, 0, 0.0, f64::from(rounds), -1).finish_with(&mut Names);
    explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn who_is_woken_in_vain_is_said_to_be() {
    let said_of = |each, by| {
        let answer = herd(2000, each, by);
        answer.findings.iter().map(|f| format!("{} {}", f.title, f.advice)).collect::<Vec<_>>().join("\n")
    };
    let said = |each| said_of(each, 0x1010);
    let vain = said(0.01);
    assert!(vain.contains("4 threads were woken 7,99") && vain.contains("mostly for nothing"), "{vain}");
    assert!(vain.contains("notify_one"), "{vain}");
    let vain = said_of(0.01, 0x4010);
    assert!(vain.contains("mostly for nothing") && vain.contains("EPOLLEXCLUSIVE"), "{vain}");
    assert!(!said(0.1).contains("for nothing"), "each works");
}

/// Four threads work in turn, each of which wakes the next one by a broadcast: nobody else is woken.
#[test]
fn who_works_when_he_is_woken_is_none_of_a_herd() {
    let names = [(1, "app"), (11, "w"), (12, "w"), (13, "w"), (14, "w")];
    let mut s = names.into_iter().fold(Schedule::new(2, 1000.0).in_focus(), |s, (tid, name)| s.thread(tid, name));
    for round in 0..1990 {
        let (t, tid) = (0.5 * f64::from(round), 11 + round % 4);
        let chain = s.builder.chain(1, &[], &[0x1010, 0x3010]);
        let (context, lock, target) = (WakeContext::Task, LockId::NONE, Cpu::NONE);
        let wakee = 11 + (round + 1) % 4;
        s.builder
            .push(ns(t + 0.4), WakeEvent { cpu: Cpu(1), waker: tid, wakee, context, source: 0, target, lock, chain });
        s = s.waits_at(tid, 1, [t, t + 0.45], FUTEX, &[0x2010]);
    }
    let answer = explain(&s.finish_with(&mut Names), "x", &Options::default(), &NoDisassembler).unwrap();
    let first = answer.findings.first().unwrap_or_else(|| panic!("{answer:#?}"));
    assert!(answer.findings.iter().all(|f| !f.title.contains("for nothing")), "{}", first.title);
}
