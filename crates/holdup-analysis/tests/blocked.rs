//! Threads that tasks need, and that wait for another program or for their tasks' timers.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::FindingKind;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    Cpu, ExecEvent, Image, ListenerEvent, Location, NameEvent, ParentEvent, SampleEvent, Symbolizer, WakeContext,
};

/// Functions by address: a page for each, from the second on.
const FUNCTIONS: [(&str, &str); 9] = [
    ("app.py", "fetch_rate"),
    ("/usr/lib/python3.11/asyncio/events.py", "Handle._run"),
    ("app.py", "main"),
    // As it is called, it could be of Go's package `main`.
    ("app.py", "main.<locals>.one"),
    ("/usr/lib/python3.11/asyncio/base_events.py", "BaseEventLoop.run_forever"),
    ("node", "uv__io_poll"),
    ("node", "node::SpinEventLoop"),
    ("addon.node", "Addon::lookUp"),
    ("bash", "read_token"),
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

/// What is advised where a thread asks another program, which sleeps before it answers, while so many clients wait for the thread.
fn advised(stack: &[u64], clients: u32) -> String {
    let mut s = Schedule::new(2, 1000.0).thread(10, "server");
    s = (11..11 + clients).fold(s, |s, tid| s.thread(tid, "client")).in_focus();
    let name = s.builder.string("backend");
    s.builder.push(0, NameEvent { pid: 2, tid: 20, name });
    for round in 0..10 {
        let t = 100.0 * f64::from(round);
        s = s.runs(20, 1, t, t + 2.0, READ).waits_at(10, 0, [t, t + 5.0], READ, stack).by(t + 4.9, 0, 10, 20);
        for (tid, at) in (11..11 + clients).zip([0.1, 0.3, 0.5]) {
            s = s.by(t + 1.0 + at, 0, 10, tid).waits_at(tid, 1, [t + 2.0 + at, t + 2.1 + at], READ, &[0x8010]);
        }
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
    for clients in [0, 3] {
        let in_loop = advised(&[0x1010, 0x4010, 0x2010, 0x3010], clients);
        assert!(in_loop.starts_with("fetch_rate blocks the thread of asyncio's event loop"), "{in_loop}");
        assert!(in_loop.contains("see why backend sleeps"), "{in_loop}");
    }
    let other = advised(&[0x1010, 0x3010], 3);
    assert!(other.contains("see why backend sleeps") && !other.contains("event loop,"), "{other}");
}

/// The first title and advice of a script whose program, which a shell waits for, works for 5 ms ten times whenever a time is over in which it
/// looked for input there.
fn paced(stack: &[u64]) -> (String, String) {
    let mut s = Schedule::new(2, 1000.0).thread(10, "sh").in_focus();
    let name = s.builder.string("script");
    s.builder.push(0, NameEvent { pid: 20, tid: 20, name });
    s.builder.push(0, ParentEvent { pid: 20, parent: 10 });
    s.builder.push(0, ListenerEvent { pid: 20, parent: 10, listens: false });
    s.builder.meta_mut().sample_period_ns = MS;
    // Before it was that program it was a shell, to which others wrote.
    for t in (0..10).map(f64::from) {
        s = s.waits_at(20, 0, [t, t + 0.1], READ, &[0x9010]).runs(10, 1, t + 0.5, t + 1.0, WAIT4).by(
            t + 0.9,
            1,
            10,
            20,
        );
    }
    s.builder.push(ns(10.0), ExecEvent { pid: 1 });
    s = s.waits_at(20, 0, [10.0, 10.1], POLL, stack).wakes(99.9, 0, 0, 20, WakeContext::Timer, 0);
    for t in (1..10).map(|round| 100.0 * f64::from(round)) {
        let chain = s.builder.chain(1, &[], &[0x1010, 0x3010]);
        s.builder.push(ns(t + 1.0), SampleEvent { cpu: Cpu(0), tid: 20, ip: 0x1010, bp: 0, chain });
        s = s.waits_at(20, 0, [t, t + 5.0], POLL, stack).wakes(t + 99.9, 0, 0, 20, WakeContext::Timer, 0);
    }
    let s = s.runs(20, 0, 999.9, 999.95, EXIT).by(999.95, 0, 20, 10);
    let found = explain(&s.finish_with(&mut Names), "x", &Options::default(), &NoDisassembler).unwrap().findings;
    let first = found.into_iter().next().expect("a finding");
    (first.title.to_string(), first.advice)
}

#[test]
fn a_loop_that_none_but_its_timers_wake_is_not_in_the_middle_of_its_work() {
    for event_loop in [&[0x5010, 0x3010][..], &[0x6010, 0x7010]] {
        let (title, advice) = paced(event_loop);
        assert!(title.starts_with("1 thread of script, started by sh, waited for its own timer for 9"), "{title}");
        assert!(advice.starts_with("See what sets that timer in script"), "{advice}");
    }
    // In a callback, it is asleep.
    let (title, advice) = paced(&[0x1010, 0x2010, 0x5010, 0x3010]);
    assert!(title.starts_with("script slept for 9"), "{title}");
    assert!(advice.starts_with("fetch_rate blocks the thread of asyncio's event loop"), "{advice}");
    let (title, advice) = paced(&[0x8010, 0x7010]);
    assert!(title.starts_with("script slept for 9"), "{title}");
    assert!(advice.starts_with("Use the asynchronous form of what Addon::lookUp calls"), "{advice}");
}

/// What is said of a program that waits for the disk in this function of the kernel, once in 5 ms.
fn faults_in(function: &'static str) -> (String, String, Option<f64>) {
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    let names = vec![(0x1000, "look_up"), (KERNEL, "io_schedule"), (KERNEL + 0x1000, function)].leak();
    let mut s = Schedule::new(1, 1000.0).thread(10, "index").in_focus();
    for fault in 0..190 {
        let b = 1.0 + 5.0 * f64::from(fault);
        s = s.waits_at(10, 0, [b, b + 0.2], -1, &[KERNEL, KERNEL + 0x1010, 0x1010]);
        s = s.wakes(b + 4.9, 0, 0, 10, WakeContext::HardIrq, 0);
    }
    let trace = s.finish_with(&mut Namer(names));
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let first = answer.findings.first().unwrap_or_else(|| panic!("{answer:#?}"));
    (first.title.to_string(), first.advice.clone(), first.gain_at_most)
}

#[test]
fn what_no_call_asked_for_is_told_as_that() {
    let (title, advice, gain) = faults_in("do_swap_page");
    assert!(title.contains(", for memory that was swapped out; 1 thread stood still"), "{title}");
    assert!(advice.starts_with("Memory is too short") && gain.is_none(), "{advice} {gain:?}");
    let (title, advice, _) = faults_in("filemap_fault");
    assert!(title.contains(", for parts of files that it has mapped; 1 thread stood still"), "{title}");
    assert!(advice.contains("what look_up will need ahead of time"), "{advice}");
    let (_, advice, gain) = faults_in("ext4_sync_file");
    assert_eq!(gain, None, "who commits less often is spared more than the disk");
    assert!(
        advice.starts_with("It waits until what it wrote is on the disk (fsync, O_SYNC): do that once"),
        "{advice}"
    );
    let (title, advice, _) = faults_in("ext4_file_read_iter");
    assert!(title.contains("index waited for the disk for ") && !title.contains(", for "), "{title}");
    assert!(advice.starts_with("Ask the disk less often in look_up: in batches, ahead of time."), "{advice}");
}

/// What is found first where one thread works all the time and another one for all but 190 of 1000 ms, of which it waits for a disk in so many.
fn first_beside_waits(disk: f64) -> FindingKind {
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const NAMES: [(u64, &str); 4] = [(0x1000, "render"), (0x2000, "store"), (0x3000, "meet"), (KERNEL, "io_schedule")];
    let mut s = Schedule::new(2, 1000.0).thread(10, "app").thread(11, "app").in_focus().runs(10, 0, 0.0, 1000.0, -1);
    s.builder.meta_mut().sample_period_ns = MS;
    s = s.waits_at(11, 1, [0.0, 400.0], -1, &[KERNEL, 0x2010]).wakes(400.0 + disk, 1, 0, 11, WakeContext::HardIrq, 0);
    s = s.waits_at(11, 1, [400.0 + disk, 600.0 + disk], FUTEX, &[0x3010]).by(790.0, 0, 10, 11);
    s = s.runs(11, 1, 790.0, 1000.0, -1);
    for t in 0..1000 {
        let chain = s.builder.chain(1, &[], &[0x1010]);
        s.builder.push(ns(f64::from(t) + 0.5), SampleEvent { cpu: Cpu(0), tid: 10, ip: 0x1010, bp: 0, chain });
    }
    let trace = s.finish_with(&mut Namer(&NAMES));
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    answer.findings[0].kind
}

#[test]
fn what_ran_comes_before_several_causes_of_which_none_takes_much() {
    assert_eq!(first_beside_waits(140.0), FindingKind::CpuBound, "an eighth of what ran, in two parts");
    assert_eq!(first_beside_waits(188.0), FindingKind::Disk, "a tenth of what ran, in one");
}

/// What is found first where one thread renders for a second, and another that feeds it waits for a seventh of that while it runs this function.
fn first_where_one_waits_for(function: u64) -> FindingKind {
    const NAMES: [(u64, &str); 4] = [(0x1000, "render"), (0x2000, "merge"), (0x3000, "meet"), (0x4000, "feed")];
    let mut s = Schedule::new(2, 1000.0).thread(10, "app").thread(11, "app").in_focus().runs(10, 0, 0.0, 1000.0, -1);
    s.builder.meta_mut().sample_period_ns = MS;
    s = s.waits_at(11, 1, [0.0, 400.0], FUTEX, &[0x3010]).by(550.0, 0, 10, 11).runs(11, 1, 550.0, 1000.0, -1);
    for t in 0..1000 {
        let waits = (400..550).contains(&t);
        for (cpu, tid) in [(0, 10), (1, 11)].into_iter().filter(|(_, tid)| *tid == 10 || !waits) {
            let own = if tid == 10 { 0x1010 } else { 0x4010 };
            let ip = if waits { function } else { own };
            let chain = s.builder.chain(1, &[], &[ip]);
            s.builder.push(ns(f64::from(t) + 0.5), SampleEvent { cpu: Cpu(cpu), tid, ip, bp: 0, chain });
        }
    }
    let trace = s.finish_with(&mut Namer(&NAMES));
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    answer.findings[0].kind
}

#[test]
fn what_ran_comes_before_what_one_does_of_the_same_work_while_another_waits() {
    assert_eq!(first_where_one_waits_for(0x1010), FindingKind::CpuBound);
    assert_eq!(first_where_one_waits_for(0x2010), FindingKind::Serial, "a phase of its own");
}
