//! Who sleeps a little, looks whether others are done, and sleeps again.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::{Confidence, Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Cpu, Image, Location, SampleEvent, Symbolizer, WakeContext};

struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], at: u64) -> Vec<Location> {
        let function = ["look", "simulate", "track"][(at / 0x1000) as usize - 1];
        vec![Location { function: function.into(), module: "app".into(), ..Default::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// What is found where one thread sleeps 60 times for 15 ms, another one waits for it to the end, or each time, and a third works until then.
fn found(lets_go_each_time: bool, works_until: f64) -> Vec<Finding> {
    let mut s = Schedule::new(2, 1000.0).thread(10, "main").thread(11, "worker").thread(12, "tracker").in_focus();
    s = s.runs(11, 1, 0.0, works_until, FUTEX).waits_at(12, 0, [0.1, 0.2], READ, &[0x3010]);
    for n in 0..60 {
        let t = 1.0 + 16.0 * f64::from(n);
        if n > 0 && lets_go_each_time {
            s = s.by(t + 0.02, 0, 10, 12);
        }
        s = s.waits_at(10, 0, [t, t + 0.1], SLEEP, &[0x1010]);
        if n > 0 && lets_go_each_time {
            s = s.waits_at(12, 0, [t + 0.1, t + 0.2], READ, &[0x3010]);
        }
        s = s.wakes(t + 15.9, 0, 0, 10, WakeContext::Timer, 0);
    }
    let chain = s.builder.chain(1, &[], &[0x2010]);
    for t in 1..works_until as u32 {
        s.builder.push(ns(f64::from(t)), SampleEvent { cpu: Cpu(1), tid: 11, ip: 0x2010, bp: 0, chain });
    }
    s = s.runs(10, 0, 980.0, 981.0, FUTEX).by(980.5, 0, 10, 12).runs(12, 0, 981.5, 982.0, FUTEX);
    explain(&s.finish_with(&mut Names), "x", &Options::default(), &NoDisassembler).unwrap().findings
}

fn sleep(all: &[Finding]) -> (usize, &Finding) {
    let mut all = all.iter().enumerate();
    all.find(|(_, f)| f.kind == FindingKind::SleepPolling).expect("the sleep")
}

#[test]
fn what_works_meanwhile_comes_before_who_only_looks() {
    let all = found(false, 990.0);
    assert_eq!(all[0].culprit.function, "simulate", "{all:#?}");
    let (at, look) = sleep(&all);
    assert!(at > 0 && look.confidence == Confidence::Low && look.gain_at_most.is_none(), "{look:#?}");
}

#[test]
fn who_lets_others_go_each_time_or_sleeps_while_nobody_works_does_not_only_look() {
    for all in [found(true, 990.0), found(false, 100.0)] {
        let (at, sleep) = sleep(&all);
        assert!(at == 0 && sleep.confidence < Confidence::Low, "{all:#?}");
    }
}
