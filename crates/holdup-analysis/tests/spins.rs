//! Threads that run and only wait: where, how long, for whom.

// Long because all of it runs the same made-up code.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{MS, SLEEP, Schedule, ns};
use holdup_analysis::report::{Confidence, Finding, FindingKind};
use holdup_analysis::{CodeLoop, Decoded, Disassembler, Disassembly, Explanation, Options, explain};
use holdup_trace::{Cpu, Image, Location, MapEvent, NameEvent, SampleEvent, SwitchState, Symbolizer, Trace};

/// sched_yield.
const YIELD: i16 = 24;

const WORK: u64 = 0x1000;
const SPIN: u64 = 0x1014;
const SCAN: u64 = 0x1024;
/// Behind an atomic instruction on the variable 0x4000, on 0x4008, on 0x4100, and on one whose address is in a register.
const SENT: u64 = 0x1034;
const RECEIVED: u64 = 0x1044;
const APART: u64 = 0x1054;
const SOMEWHERE: u64 = 0x1064;
/// Behind such an instruction, and behind one that reads memory, in one function; and in one that reads none.
const LATCHED: [u64; 2] = [0x1094, 0x109c];
const COUNTED: [u64; 2] = [0x10a4, 0x10ac];

/// Below [`DEVICE`]'s caller.
const DEVICE: [u64; 3] = [0x1084, 0x1074, WORK];
/// Functions of the kernel, of 16 bytes.
const KERNEL: [&str; 4] =
    ["native_queued_spin_lock_slowpath", "_raw_spin_lock", "__pte_offset_map_lock", "some_drivers_function"];
const KERNEL_AT: u64 = 0xffff_ffff_8000_0000;

/// Functions of 16 bytes.
struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, kernel: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        if kernel {
            let module = "[kernel]".into();
            let function = KERNEL[(address >> 4 & 15) as usize].into();
            return vec![Location { function, module, file: String::new(), line: 0, offset: 1 }];
        }
        let function = match address & !15 {
            0x1000 => "update_book",
            0x1010 => "acquire_book",
            0x1020 => "scan_bitmap",
            0x1030 => "count_sent",
            0x1040 => "count_received",
            0x1050 => "count_apart",
            0x1060 => "count_somewhere",
            0x1070 => "cuStreamSynchronize",
            0x1080 => "read_status",
            0x1090 => "take_latch",
            0x10a0 => "count_and_add",
            0x10b0 | 0x10c0 => "<module>",
            _ => return Vec::new(),
        };
        let file = if address & !15 == 0x10c0 { "/src/other.py" } else { "/src/x.c" }.to_owned();
        let module = "/bin/x".into();
        vec![Location { function: function.into(), module, file, line: 7, offset: address & 15 }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], address: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((address & !15, vec![(address >> 4) as u8; 16]))
    }
}

/// Four instructions each, all in one loop; that of `acquire_book` only looks at one place.
struct Four;

impl Disassembler for Four {
    fn disassemble(&self, _: &str, _: &[u8], start: u64) -> Disassembly {
        let one = |i: u64| Decoded { address: start + 4 * i, ..Decoded::default() };
        let mut code: Vec<Decoded> = (0..4).map(one).collect();
        code[0].atomic = (0x1030..0x10b0).contains(&start);
        code[2].memory = start == 0x1090;
        code[0].variable = match start {
            0x1030 => Some(0x4000),
            0x1040 => Some(0x4008),
            0x1050 => Some(0x4100),
            _ => None,
        };
        let instructions = (0..4).map(|i| start + 4 * i).collect();
        let around = CodeLoop { instructions, looks: start == 0x1010, ..CodeLoop::default() };
        Disassembly { instructions: code, loops: vec![around] }
    }

    fn text(&self, _: &str, code: &[u8], _: u64) -> String {
        format!("op{}", 4 - code.len() / 4)
    }
}

/// Samples every millisecond of threads of one process: thread, CPU, instruction, from, to.
fn sampled(schedule: Schedule, samples: &[(u32, u16, u64, f64, f64)]) -> Trace {
    sampled_in(schedule, |_| 1, samples)
}

/// The same of threads whose processes `pid_of` tells.
fn sampled_in(mut schedule: Schedule, pid_of: fn(u32) -> u32, samples: &[(u32, u16, u64, f64, f64)]) -> Trace {
    let pids: BTreeSet<u32> = samples.iter().map(|(tid, ..)| pid_of(*tid)).collect();
    for pid in pids {
        let image = Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid, ..Image::default() };
        let image = schedule.builder.image(image);
        schedule.builder.push(0, MapEvent { pid, image });
    }
    schedule.builder.meta_mut().sample_period_ns = MS;
    for &(tid, cpu, ip, from, to) in samples {
        let mut t = from + 0.5;
        while t < to {
            let chain = schedule.builder.chain(pid_of(tid), &[], &[ip]);
            schedule.builder.push(ns(t), SampleEvent { cpu: Cpu(cpu), tid, ip, bp: 0, chain });
            t += 1.0;
        }
    }
    schedule.finish_with(&mut Namer)
}

/// Samples every millisecond of one thread on CPU 0, with these frames of the kernel and of the program.
fn at(kernel: &[u64], user: &[u64]) -> Explanation {
    let mut schedule = Schedule::new(2, 100.0).thread(10, "loader").runs(10, 0, 0.0, 100.0, SLEEP);
    let image = Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid: 1, ..Image::default() };
    let image = schedule.builder.image(image);
    schedule.builder.push(0, MapEvent { pid: 1, image });
    schedule.builder.meta_mut().sample_period_ns = MS;
    for t in 0..100 {
        let kernel: Vec<u64> = kernel.iter().map(|i| KERNEL_AT + 16 * i + 8).collect();
        let chain = schedule.builder.chain(1, &kernel, user);
        let ip = kernel.first().copied().unwrap_or(user[0]);
        schedule.builder.push(ns(f64::from(t) + 0.5), SampleEvent { cpu: Cpu(0), tid: 10, ip, bp: 0, chain });
    }
    explained(&schedule.finish_with(&mut Namer))
}

#[test]
fn who_waits_for_a_device_waits_for_no_thread() {
    let answer = at(&[], &DEVICE);
    near(answer.cpu_seconds.spin, 0.1);
    let found = spin(&answer);
    assert!(found.title.contains("in cuStreamSynchronize until a device was done"), "{}", found.title);
    assert_eq!(found.confidence, Confidence::High, "{found:#?}");
    assert!(!found.evidence.iter().any(|line| line.contains("other")), "{:?}", found.evidence);
}

#[test]
fn a_lock_of_the_kernel_is_called_by_its_name() {
    let answer = at(&[0, 1, 2], &[WORK]);
    near(answer.cpu_seconds.spin, 0.1);
    let found = spin(&answer);
    assert!(found.title.contains("page tables in update_book"), "{}", found.title);
    assert!(found.advice.starts_with("Touch less fresh memory in update_book"), "{}", found.advice);
    let unknown = at(&[0, 1, 3], &[WORK]);
    assert!(spin(&unknown).title.contains("a lock of the kernel in update_book"), "{}", spin(&unknown).title);
}

fn explained(trace: &Trace) -> Explanation {
    let answer = explain(trace, "t", &Options::default(), &Four).unwrap();
    let cpu = &answer.cpu_seconds;
    assert!((cpu.sum() - cpu.total).abs() <= 1e-3 * cpu.total, "{cpu:?}");
    answer
}

fn spin(answer: &Explanation) -> &Finding {
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::Spin, "{first:#?}");
    assert!(!answer.findings.iter().any(|f| f.kind == FindingKind::CpuBound));
    first
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 0.002, "found {found}, wanted {wanted}");
}

#[test]
fn processes_of_one_program_wait_for_each_other() {
    for (other, known) in [("rank", true), ("hog", false)] {
        let mut schedule = Schedule::new(2, 100.0);
        for (pid, name) in [(20, "rank"), (21, other)] {
            let name = schedule.builder.string(name);
            schedule.builder.push(0, NameEvent { pid, tid: pid, name });
        }
        let schedule = schedule.runs(20, 0, 0.0, 100.0, SLEEP).runs(21, 1, 0.0, 100.0, SLEEP);
        let samples = [(20, 0, SPIN, 0.0, 100.0), (21, 1, WORK, 0.0, 100.0)];
        let answer = explained(&sampled_in(schedule, |tid| tid, &samples));
        let found = spin(&answer);
        assert_eq!(found.culprit.function == "update_book", known, "{found:#?}");
        let sure = if known { Confidence::Medium } else { Confidence::Low };
        assert_eq!(found.confidence, sure, "{:?}", found.doubts);
    }
}

#[test]
fn who_spins_waits_for_who_works_meanwhile() {
    let schedule = Schedule::new(2, 100.0).thread(10, "taker").thread(11, "holder");
    let schedule = schedule.runs(10, 0, 0.0, 100.0, SLEEP).runs(11, 1, 0.0, 100.0, SLEEP);
    let trace = sampled(schedule, &[(10, 0, SPIN, 0.0, 100.0), (11, 1, WORK, 0.0, 100.0)]);
    let answer = explained(&trace);
    near(answer.cpu_seconds.spin, 0.1);
    near(answer.cpu_seconds.busy, 0.1);
    let found = spin(&answer);
    near(found.blame_cpu_s, 0.1);
    assert_eq!((found.culprit.thread.as_str(), found.culprit.function.as_str()), ("holder", "update_book"));
    assert_eq!((found.waiters.threads, found.waiters.function.as_str()), (1, "acquire_book"));
    assert_eq!(found.waiters.names, ["taker"]);
    assert_eq!(found.confidence, Confidence::High, "{:?}", found.doubts);
}

#[test]
fn who_gives_way_again_and_again_waits_and_lacks_no_cpu() {
    let mut schedule = Schedule::new(2, 100.0).thread(10, "taker").thread(11, "holder");
    let name = schedule.builder.string("hog");
    schedule.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    schedule = schedule.runs(11, 0, 0.0, 100.0, SLEEP);
    for turn in 0..20 {
        let t = 5.0 * f64::from(turn);
        schedule = schedule.switch(t, 1, 20, SwitchState::Runnable, -1, 10);
        schedule = schedule.switch(t + 0.2, 1, 10, SwitchState::Runnable, YIELD, 20);
    }
    // The taker is met once.
    let samples = [(11, 0, WORK, 0.0, 100.0), (10, 1, SPIN, -0.4, 0.2), (20, 1, SCAN, 0.2, 100.0)];
    let options = Options { focus: Some("1".to_owned()), ..Options::default() };
    let answer = explain(&sampled(schedule, &samples), "t", &options, &Four).unwrap();
    let found = spin(&answer);
    assert!(found.title.contains("gave way to other programs"), "{}", found.title);
    assert_eq!((found.culprit.thread.as_str(), found.waiters.function.as_str()), ("holder", "acquire_book"));
    assert!(found.blame_cpu_s > 0.09, "{found:#?}");
    assert!(answer.findings.iter().all(|f| f.kind != FindingKind::CpuStarved), "{:#?}", answer.findings);
}

/// A thread that spins until a neighbour takes its CPU, beside one that works; so much of its time it works, too.
fn beside_a_hog(works: f64) -> Explanation {
    let mut schedule = Schedule::new(2, 100.0).thread(10, "taker").thread(11, "holder");
    let name = schedule.builder.string("hog");
    schedule.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    let schedule = schedule.runs(11, 0, 0.0, 100.0, SLEEP).runs(10, 1, 0.0, 40.0, -1).runs(20, 1, 40.0, 100.0, SLEEP);
    let samples = [(11, 0, WORK, 0.0, 100.0), (10, 1, WORK, 0.0, works), (10, 1, SPIN, works, 40.0)];
    let options = Options { focus: Some("1".to_owned()), ..Options::default() };
    explain(&sampled(schedule, &samples), "t", &options, &Four).unwrap()
}

#[test]
fn a_cpu_denied_to_one_who_would_have_spun_there_is_no_lost_work() {
    let answer = beside_a_hog(0.0);
    near(spin(&answer).blame_cpu_s, 0.04);
    assert!(answer.findings.iter().all(|f| f.kind != FindingKind::CpuStarved), "{:#?}", answer.findings);
    let answer = beside_a_hog(30.0);
    let starved = answer.findings.iter().find(|f| f.kind == FindingKind::CpuStarved).expect("work was denied");
    near(starved.blame_cpu_s, 0.045);
    assert!(starved.evidence.iter().any(|line| line.contains("another 15")), "{starved:#?}");
}

#[test]
fn in_turns_each_waits_for_the_other() {
    let schedule = Schedule::new(2, 100.0).thread(10, "a").thread(11, "b");
    let schedule = schedule.runs(10, 0, 0.0, 100.0, SLEEP).runs(11, 1, 0.0, 100.0, SLEEP);
    let samples =
        [(10, 0, SPIN, 0.0, 50.0), (11, 1, WORK, 0.0, 50.0), (10, 0, WORK, 50.0, 100.0), (11, 1, SPIN, 50.0, 100.0)];
    let answer = explained(&sampled(schedule, &samples));
    near(answer.cpu_seconds.spin, 0.1);
    let found = spin(&answer);
    assert_eq!((found.waiters.threads, found.culprit.function.as_str()), (2, "update_book"));
    assert!(found.title.contains("in turns"), "{}", found.title);
    assert_eq!(found.confidence, Confidence::Medium, "which of them held it is a guess");
}

#[test]
fn a_holder_without_a_cpu_is_told() {
    // Two spin on both CPUs while the third is ready.
    let schedule = Schedule::new(2, 100.0).thread(10, "a").thread(11, "b").thread(12, "holder");
    let schedule = schedule.runs(12, 0, 0.0, 10.0, -1).runs(10, 0, 10.0, 100.0, SLEEP).runs(11, 1, 10.0, 100.0, SLEEP);
    let samples = [(12, 0, WORK, 0.0, 10.0), (10, 0, SPIN, 10.0, 100.0), (11, 1, SPIN, 10.0, 100.0)];
    let answer = explained(&sampled(schedule, &samples));
    near(answer.cpu_seconds.spin, 0.18);
    let found = spin(&answer);
    assert_eq!((found.culprit.thread.as_str(), found.culprit.function.as_str()), ("holder", "update_book"));
    assert!(found.title.contains("had no CPU"), "{}", found.title);
}

#[test]
fn nobody_is_accused_where_nobody_worked() {
    let schedule = Schedule::new(2, 100.0).thread(10, "a").thread(11, "b").runs(10, 0, 0.0, 100.0, SLEEP);
    let answer = explained(&sampled(schedule, &[(10, 0, SPIN, 0.0, 100.0)]));
    near(answer.cpu_seconds.spin, 0.1);
    assert_eq!(spin(&answer).confidence, Confidence::Low);
}

#[test]
fn a_loop_that_walks_memory_is_work() {
    let schedule = Schedule::new(2, 100.0).thread(10, "janitor").runs(10, 0, 0.0, 100.0, SLEEP);
    let answer = explained(&sampled(schedule, &[(10, 0, SCAN, 0.0, 100.0)]));
    near(answer.cpu_seconds.spin, 0.0);
    near(answer.cpu_seconds.busy, 0.1);
    assert!(answer.findings.iter().all(|f| f.kind != FindingKind::Spin), "{:#?}", answer.findings);
}

/// What is found where one of two threads ended after 30 ms, and what each ran: the one that stays first.
fn left_behind([stays, ends]: [u64; 2]) -> FindingKind {
    let schedule = Schedule::new(2, 101.0).thread(1, "main").thread(10, "a").thread(11, "b").in_focus();
    let schedule = schedule.switch(0.0, 0, 1, SwitchState::Sleeping, common::WAIT4, 0).runs(10, 0, 0.0, 100.0, SLEEP);
    let schedule = schedule.switch(0.0, 1, 0, SwitchState::Runnable, -1, 11);
    let schedule = schedule.switch(30.0, 1, 11, SwitchState::Dead, 60, 0).exits(30.0, 11);
    let schedule = schedule.by(100.0, 0, 10, 1).exits(100.0, 10).switch(100.0, 1, 0, SwitchState::Runnable, -1, 1);
    explained(&sampled(schedule, &[(10, 0, stays, 0.0, 100.0), (11, 1, ends, 0.0, 30.0)])).findings[0].kind
}

#[test]
fn who_goes_on_with_what_the_others_have_done_is_the_last_to_finish() {
    assert_eq!(left_behind([WORK, WORK]), FindingKind::Imbalance);
    assert_eq!(left_behind([WORK, SCAN]), FindingKind::Serial);
}

#[test]
fn what_each_file_has_is_not_the_same_work() {
    let [own, other] = [0x10b4, 0x10c4];
    assert_eq!(left_behind([own, own]), FindingKind::Imbalance);
    assert_eq!(left_behind([own, other]), FindingKind::Serial, "the `<module>` of another file");
}

/// What is found where a program began two processes at the same time, or one after the other, of which one ended after 30 ms; the one that
/// began them waits for the other, and looks again and again.
fn siblings(at_once: bool) -> FindingKind {
    let mut schedule = Schedule::new(3, 141.0).thread(1, "pool").in_focus();
    let name = schedule.builder.string("pool");
    let begins = if at_once { 0.0 } else { 35.0 };
    for (pid, at) in [(20, begins), (21, 0.0)] {
        schedule.builder.push(common::ns(at), holdup_trace::ForkEvent { parent: 1, parent_pid: 1, pid, tid: pid });
        schedule.builder.push(common::ns(at), NameEvent { pid, tid: pid, name });
    }
    schedule = schedule.switch(0.0, 1, 0, SwitchState::Runnable, -1, 21).switch(30.0, 1, 21, SwitchState::Dead, 60, 0);
    schedule = schedule.exits(30.0, 21).runs(20, 0, begins, begins + 100.0, SLEEP);
    let mut from = begins;
    while from < begins + 95.0 {
        schedule = schedule.waits_at(1, 2, [from, from + 0.1], common::FUTEX, &[SCAN]).by(from + 4.9, 0, 20, 1);
        from += 5.0;
    }
    let samples = [(20, 0, WORK, begins, begins + 100.0), (21, 1, WORK, 0.0, 30.0)];
    explained(&sampled(schedule, &samples)).findings[0].kind
}

#[test]
fn processes_begun_for_the_same_work_share_it_unevenly() {
    assert_eq!([true, false].map(siblings), [FindingKind::Imbalance, FindingKind::Serial]);
}

/// What is found where one thread goes on with what two others do, too, and answers each of them again and again.
fn served() -> FindingKind {
    let schedule = Schedule::new(3, 101.0).thread(10, "gui").thread(11, "a").thread(12, "b").in_focus();
    let mut schedule = schedule.runs(10, 0, 0.0, 100.0, SLEEP);
    let mut samples = vec![(10, 0, WORK, 0.0, 100.0)];
    for round in 0..20 {
        for (tid, cpu, at) in [(11, 1, 0.0), (12, 2, 2.5)] {
            let from = at + 5.0 * f64::from(round);
            schedule = schedule.waits_at(tid, cpu, [from, from + 1.0], common::FUTEX, &[SCAN]);
            schedule = schedule.by(from + 4.9, 0, 10, tid);
            samples.push((tid, cpu, WORK, from, from + 1.0));
        }
    }
    explained(&sampled(schedule, &samples)).findings[0].kind
}

#[test]
fn who_answers_again_and_again_is_not_the_last_to_finish() {
    assert_eq!(served(), FindingKind::Serial);
}

/// What is found where a process waits for another one of its program, which does for longer what it has done itself.
fn behind_another(listens: bool) -> FindingKind {
    let mut schedule = Schedule::new(2, 101.0);
    let name = schedule.builder.string("stored");
    for pid in [20, 21] {
        schedule.builder.push(0, NameEvent { pid, tid: pid, name });
        schedule.builder.push(0, holdup_trace::ListenerEvent { pid, parent: 1, listens });
    }
    let schedule = schedule.runs(20, 0, 0.0, 100.0, SLEEP).runs(21, 1, 0.0, 30.0, common::FUTEX);
    let schedule = schedule.by(99.9, 0, 20, 21).switch(99.9, 1, 0, SwitchState::Runnable, -1, 21);
    explained(&sampled(schedule, &[(20, 0, WORK, 0.0, 100.0), (21, 1, WORK, 0.0, 30.0)])).findings[0].kind
}

#[test]
fn processes_of_a_server_have_no_work_in_common() {
    assert_eq!([false, true].map(behind_another), [FindingKind::Imbalance, FindingKind::Serial]);
}

/// Two threads on two CPUs, or on one in turns, each at its instruction for 100 ms.
fn writing(at: [u64; 2], at_once: bool) -> Explanation {
    let schedule = Schedule::new(2, 200.0).thread(10, "a").thread(11, "b");
    let later = if at_once { 0.0 } else { 100.0 };
    let schedule = schedule.runs(10, 0, 0.0, 100.0, SLEEP).runs(11, 1, later, later + 100.0, SLEEP);
    explained(&sampled(schedule, &[(10, 0, at[0], 0.0, 100.0), (11, 1, at[1], later, later + 100.0)]))
}

fn cache_line(answer: &Explanation) -> Option<&Finding> {
    answer.findings.iter().find(|f| f.kind == FindingKind::CacheLine)
}

#[test]
fn one_variable_changed_by_two_at_once_is_contended() {
    let answer = writing([SENT, SENT], true);
    let found = cache_line(&answer).expect("it is one variable");
    near(found.blame_cpu_s, 0.2);
    assert_eq!((found.culprit.function.as_str(), found.waiters.threads), ("count_sent", 2));
    assert_eq!(found.confidence, Confidence::High);
    assert!(!answer.findings.iter().any(|f| f.kind == FindingKind::CpuBound));
    assert!(cache_line(&writing([SENT, SENT], false)).is_none(), "one after the other is no contention");
}

#[test]
fn two_variables_of_one_line_are_false_sharing() {
    let answer = writing([SENT, RECEIVED], true);
    let found = cache_line(&answer).expect("they lie in one line");
    near(found.blame_cpu_s, 0.2);
    assert!(found.title.contains("two variables of one cache line"), "{}", found.title);
    assert!(found.evidence.iter().any(|e| e.contains("0x4000 and 0x4008")), "{:?}", found.evidence);
    assert!(cache_line(&writing([SENT, APART], true)).is_none(), "they lie in two lines");
}

/// Each of two threads is at the first instruction while the other one is at the second.
fn changing([first, second]: [u64; 2]) -> Explanation {
    let schedule = Schedule::new(2, 100.0).thread(10, "a").thread(11, "b");
    let schedule = schedule.runs(10, 0, 0.0, 100.0, SLEEP).runs(11, 1, 0.0, 100.0, SLEEP);
    let samples = [(10, 0, first, 0.0, 40.0), (10, 0, second, 40.0, 100.0)];
    let others = [(11, 1, second, 0.0, 60.0), (11, 1, first, 60.0, 100.0)];
    explained(&sampled(schedule, &[samples, others].concat()))
}

#[test]
fn memory_read_beside_an_atomic_instruction_may_be_its_line() {
    let answer = changing(LATCHED);
    let found = cache_line(&answer).expect("what is read may lie in the line that the other one changes");
    near(found.blame_cpu_s, 0.08);
    assert_eq!((found.culprit.function.as_str(), found.confidence), ("take_latch", Confidence::Low));
    assert!(cache_line(&changing(COUNTED)).is_none(), "most of that is no memory");
}

#[test]
fn time_in_the_kernel_is_told_apart() {
    let answer = at(&[3], &[WORK]);
    let (hot, first) = (&answer.hot[0], &answer.findings[0]);
    assert_eq!((hot.function.as_str(), hot.below.as_str()), ("update_book", "some_drivers_function"));
    near(hot.kernel, 1.0);
    near(hot.below_share, 1.0);
    assert!(first.advice.starts_with("Ask the kernel less often in update_book"), "{}", first.advice);
    assert!(first.evidence.iter().any(|e| e.contains("100 % of its time is the kernel's")), "{:?}", first.evidence);
    let own = at(&[], &[WORK]);
    near(own.hot[0].kernel, 0.0);
    assert!(own.hot[0].below.is_empty() && own.findings[0].advice.starts_with("There is no wait"), "{own:#?}");
}

#[test]
fn what_is_written_through_registers_is_a_guess() {
    let answer = writing([SOMEWHERE, SOMEWHERE], true);
    let found = cache_line(&answer).expect("it may be one line");
    assert_eq!((found.confidence, found.doubts.len()), (Confidence::Low, 1));
    assert!(cache_line(&writing([SOMEWHERE, SENT], true)).is_none());
}
