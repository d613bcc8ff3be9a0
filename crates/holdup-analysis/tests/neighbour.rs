//! What ran beside others that have nothing to do with it.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::{Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Cpu, Image, Location, NameEvent, SampleEvent, SwitchState, Symbolizer};

const RUNS: SwitchState = SwitchState::Runnable;

struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], _: u64) -> Vec<Location> {
        vec![Location { function: "render".into(), module: "app".into(), ..Default::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// What is found where a thread works for 100 ms less ten times `lost`, which a neighbour takes that has the other CPU, too.
fn found(lost: f64) -> Vec<Finding> {
    let mut s = Schedule::new(2, 100.0).thread(10, "app");
    let name = s.builder.string("hog");
    for tid in [20, 21] {
        s.builder.push(0, NameEvent { pid: tid, tid, name });
    }
    s = s.switch(0.0, 0, 0, RUNS, -1, 21).switch(0.0, 1, 0, RUNS, -1, 10);
    let chain = s.builder.chain(1, &[], &[0x1010]);
    for turn in 0..10 {
        let t = 10.0 * f64::from(turn);
        s = s.switch(t + 9.5 - lost, 1, 10, RUNS, -1, 20).switch(t + 9.5, 1, 20, RUNS, -1, 10);
        for at in 0..(9.0 - lost) as u32 {
            s.builder.push(ns(t + f64::from(at) + 0.1), SampleEvent { cpu: Cpu(1), tid: 10, ip: 0x1010, bp: 0, chain });
        }
    }
    let options = Options { focus: Some("1".to_owned()), ..Options::default() };
    explain(&s.finish_with(&mut Names), "x", &options, &NoDisassembler).unwrap().findings
}

#[test]
fn a_neighbour_that_takes_little_comes_behind_what_ran() {
    let kinds = |lost| found(lost).iter().map(|f| f.kind).collect::<Vec<_>>();
    assert_eq!(kinds(1.5), [FindingKind::CpuBound, FindingKind::CpuStarved]);
    assert_eq!(kinds(4.5)[0], FindingKind::CpuStarved);
}
