//! Threads that tasks need, and that wait for another program.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::FindingKind;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Image, Location, NameEvent, Symbolizer, WakeContext};

/// Functions by address: a page for each, from the second on.
const FUNCTIONS: [(&str, &str); 4] = [
    ("app.py", "fetch_rate"),
    ("/usr/lib/python3.11/asyncio/events.py", "Handle._run"),
    ("app.py", "main"),
    // As it is called, it could be of Go's package `main`.
    ("app.py", "main.<locals>.one"),
];

struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], at: u64) -> Vec<Location> {
        let (module, function) = FUNCTIONS[(at / 0x1000) as usize - 1];
        vec![Location { function: function.into(), module: module.into(), file: module.into(), ..Default::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// What is advised where a thread asks another program, which sleeps before it answers.
fn advised(stack: &[u64]) -> String {
    let mut s = Schedule::new(2, 1000.0).thread(10, "server").in_focus();
    let name = s.builder.string("backend");
    s.builder.push(0, NameEvent { pid: 2, tid: 20, name });
    for round in 0..10 {
        let t = 100.0 * f64::from(round);
        s = s.runs(20, 1, t, t + 2.0, READ).waits_at(10, 0, [t, t + 5.0], READ, stack).by(t + 4.9, 0, 10, 20);
        s = s.runs(20, 1, t + 5.0, t + 6.0, SLEEP).wakes(t + 90.0, 1, 0, 20, WakeContext::Timer, 0);
        s = s.runs(20, 1, t + 90.0, t + 91.0, READ).by(t + 90.9, 1, 20, 10);
    }
    let trace = s.finish_with(&mut Names);
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let sleep = answer.findings.into_iter().find(|f| f.kind == FindingKind::SleepPolling).expect("the sleep");
    sleep.advice
}

#[test]
fn who_keeps_an_event_loop_waiting_is_told() {
    let in_loop = advised(&[0x1010, 0x4010, 0x2010, 0x3010]);
    assert!(in_loop.starts_with("fetch_rate blocks the thread of asyncio's event loop"), "{in_loop}");
    assert!(in_loop.contains("see why backend sleeps"), "{in_loop}");
    let other = advised(&[0x1010, 0x3010]);
    assert!(other.contains("see why backend sleeps") && !other.contains("event loop,"), "{other}");
}
