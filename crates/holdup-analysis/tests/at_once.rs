//! How many sleep at a time.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::{Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Image, Location, SwitchState, Symbolizer, WakeContext};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;
struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], _: u64) -> Vec<Location> {
        vec![Location { function: "query".into(), module: "/bin/app".into(), ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// How long each sleeps, in milliseconds.
const SLEPT: f64 = 20.0;

/// Whoever has slept lets the next one in and waits for its turn: of eight threads so many sleep at a time as `starts` has, each
/// since then.
fn pool(starts: &[f64]) -> Finding {
    let end = 1200.0;
    let mut s = Schedule::new(8, end).thread(1, "app").in_focus();
    for tid in 10..18 {
        s = s.thread(tid, &format!("worker-{tid}"));
    }
    let mut queue: std::collections::VecDeque<u32> = (10..18).collect();
    // When who wakes on which CPU.
    let mut asleep: Vec<(f64, u16, u32)> = Vec::new();
    for (cpu, &at) in (0..).zip(starts) {
        let tid = queue.pop_front().unwrap();
        s = s.waits_at(tid, cpu, [at, at + 0.01], SLEEP, &[0x1000]);
        asleep.push((at + 0.01 + SLEPT, cpu, tid));
    }
    loop {
        asleep.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (t, cpu, tid) = asleep.pop().unwrap();
        if t + 1.0 > end {
            break;
        }
        s = s.wakes(t, cpu, 0, tid, WakeContext::Timer, 0).switch(t + 0.01, cpu, 0, RUNS, -1, tid);
        queue.push_back(tid);
        let next = queue.pop_front().unwrap();
        s = s.futex(t + 0.02, tid, 0).by(t + 0.03, cpu, tid, next).switch(t + 0.04, cpu, tid, SLEEPS, FUTEX, 0);
        s = s.waits_at(next, cpu, [t + 0.05, t + 0.06], SLEEP, &[0x1000]);
        asleep.push((t + 0.06 + SLEPT, cpu, next));
    }
    let answer = explain(&s.finish_with(&mut Namer), "x", &Options::default(), &NoDisassembler).unwrap();
    let found = answer.findings.iter().find(|f| f.kind == FindingKind::SleepPolling);
    found.unwrap_or_else(|| panic!("{:#?}", answer.findings)).clone()
}

#[test]
fn as_many_as_are_let_in() {
    let two = pool(&[0.0, 7.0]);
    assert!(two.title.contains(", 2 at a time, in the middle of their work"), "{}", two.title);
    assert!(two.advice.starts_with("Never more than 2 at once: find what lets no more in"), "{}", two.advice);

    let one = pool(&[0.0]);
    assert!(one.title.contains(", one at a time, in the middle of their work"), "{}", one.title);
    assert!(one.advice.starts_with("Never two at once: "), "{}", one.advice);
}

#[test]
fn where_most_of_them_sleep_nobody_keeps_them_out() {
    let most = pool(&[0.0, 3.0, 6.0, 9.0, 12.0]);
    assert!(!most.title.contains("at a time"), "{}", most.title);
}
