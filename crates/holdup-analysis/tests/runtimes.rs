//! What is said of programs whose language's runtime has threads, pauses and locks of its own.
// Long because all of it is on one table of functions.

mod common;

use std::sync::Arc;

use common::*;
use holdup_analysis::report::{Confidence, Explanation, Finding, FindingKind};
use holdup_analysis::threads::Role;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    Cpu, ForkEvent, FutexEvent, Image, Location, LockKey, LockKind, MapEvent, NameEvent, SampleEvent, SwitchEvent,
    SwitchState, Symbolizer, WakeContext,
};

/// Functions by address: a page for each.
const FUNCTIONS: &[(&str, &str)] = &[
    ("libjvm.so", "Monitor::wait"),
    ("libjvm.so", "MemAllocator::allocate"),
    ("[jit]", "Caches.fill"),
    ("libjvm.so", "CompileQueue::get"),
    ("libjvm.so", "os::PlatformEvent::park"),
    ("libjvm.so", "ObjectMonitor::EnterI"),
    ("libjvm.so", "thread_native_entry"),
    ("libjvm.so", "ObjectMonitor::wait"),
    ("libjvm.so", "InstanceKlass::initialize_impl"),
    ("python3.11", "take_gil"),
    ("app.py", "answer"),
    // Code that V8 has made: nobody tells its name.
    ("", ""),
    ("node", "Builtins_JSEntry"),
    ("node", "uv_run"),
    ("addon.node", "Addon::hash"),
    ("[kernel]", "get_signal"),
    ("/usr/lib/python3.11/multiprocessing/process.py", "BaseProcess._bootstrap"),
    ("/usr/lib/python3.11/json/decoder.py", "JSONDecoder.decode"),
    ("node", "v8::internal::Scavenger::Process"),
    ("app", "runtime.findRunnable"),
    ("app", "sync.(*Mutex).Unlock"),
    ("app", "runtime.newproc"),
    ("app", "main.digest"),
    ("app", "runtime.goexit"),
    ("libjvm.so", "JavaThread::sleep"),
    ("libjvm.so", "SafepointSynchronize::synchronize_threads"),
    ("libjvm.so", "VMThread::wait_for_operation"),
    ("[jit]", "Report.sum"),
    ("/venv/lib/python3.11/site-packages/jinja2/environment.py", "Template.render"),
    ("/venv/lib/python3.11/site-packages/flask/templating.py", "render_template"),
    ("/usr/bin/perl", "Perl_runops_standard"),
    ("/usr/bin/perl", "perl_run"),
    ("/usr/bin/perl", "Perl_pp_sort"),
    ("/venv/lib/python3.11/site-packages/_pytest/python.py", "pytest_pyfunc_call"),
    ("/app/test_orders.py", "check"),
    ("/app/test_orders.py", "test_add"),
    ("/app/test_orders.py", "test_drop"),
    ("/app/test_users.py", "sign_in"),
    ("convert", "main"),
    ("convert", "MagickMain"),
    ("convert", "ConvertImageCommand"),
    ("/usr/lib/libz.so.1", "deflate"),
    ("/usr/lib/libMagickCore.so", "BlurImage"),
];

fn address(function: &str) -> u64 {
    let at = FUNCTIONS.iter().position(|(_, name)| *name == function).expect("it is in the table");
    0x1000 * (at as u64 + 1) + 0x10
}

fn stack(functions: &[&str]) -> Vec<u64> {
    functions.iter().map(|f| address(f)).collect()
}

struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], at: u64) -> Vec<Location> {
        let found = FUNCTIONS.get((at / 0x1000).saturating_sub(1) as usize);
        let (module, function) = *found.expect("an address of the table");
        let file = if module.ends_with(".py") { module } else { "" };
        let (function, module, file) = (function.into(), module.into(), file.into());
        vec![Location { function, module, file, ..Default::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

/// A virtual machine whose compiler has nothing to do.
fn machine(end: f64) -> Schedule {
    let names = [(1, "java"), (2, "VM Thread"), (3, "C2 CompilerThre"), (4, "cache-0"), (5, "cache-1")];
    let mut machine = names.into_iter().fold(Schedule::new(2, end).in_focus(), |s, (tid, name)| s.thread(tid, name));
    let image = Image { start: 0, end: 0x10000, path: "/bin/java".into(), pid: 1, ..Image::default() };
    let image = machine.builder.image(image);
    machine.builder.push(0, MapEvent { pid: 1, image });
    let idle = stack(&["Monitor::wait", "CompileQueue::get", "thread_native_entry"]);
    machine.waits_at(3, 1, [0.0, 0.5], FUTEX, &idle)
}

fn explained(schedule: Schedule) -> Explanation {
    let trace = schedule.finish_with(&mut Names);
    explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap()
}

const FUTEX: i16 = 202;
const NANOSLEEP: i16 = 35;

#[test]
fn a_collection_is_told_by_who_asked_for_it() {
    let asks = stack(&["Monitor::wait", "MemAllocator::allocate", "Caches.fill"]);
    let s = machine(30.0).waits_at(4, 0, [0.0, 2.0], FUTEX, &asks);
    let s = s.by(1.9, 0, 4, 2).runs(2, 1, 2.0, 20.0, FUTEX);
    // The machine wakes its compiler, too, which has waited for nobody.
    let s = s.by(19.0, 1, 2, 3).by(19.9, 1, 2, 4).runs(4, 0, 20.0, 30.0, -1);
    let answer = explained(s.runs(3, 1, 21.0, 22.0, FUTEX));
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::Gc, "{}", first.title);
    assert_eq!((first.culprit.thread.as_str(), first.culprit.function.as_str()), ("VM Thread", "Caches.fill"));
    assert_eq!(first.waiters.names, ["cache-0"], "a compiler without work is no waiter");
    assert!(first.title.contains("60 % of the time"), "{}", first.title);
    assert!(first.advice.contains("-Xmx") && first.advice.contains("Caches.fill"), "{}", first.advice);
}

/// What the machine's own thread runs may be how it stops the others; what it sends for is done by threads that do nothing else.
#[test]
fn a_collection_is_what_the_collectors_do() {
    let asks = stack(&["Monitor::wait", "MemAllocator::allocate", "Caches.fill"]);
    let s = machine(21.0).thread(6, "GC Thread#0").thread(7, "GC Thread#1").waits_at(4, 0, [0.0, 0.5], FUTEX, &asks);
    let mut s = s.by(0.4, 0, 4, 2).runs(2, 1, 0.5, 6.0, FUTEX).by(5.9, 1, 2, 6).runs(6, 0, 6.0, 11.0, FUTEX);
    s.builder.meta_mut().sample_period_ns = MS;
    let frames = stack(&["get_signal"]);
    for i in 1..6 {
        let chain = s.builder.chain(1, &[], &frames);
        s.builder.push(i * MS + MS / 2, SampleEvent { cpu: Cpu(1), tid: 2, ip: frames[0], bp: 0, chain });
    }
    let s = s.by(10.9, 0, 6, 7).runs(7, 0, 11.0, 16.0, FUTEX).by(15.9, 0, 7, 2);
    let answer = explained(s.runs(2, 1, 16.0, 20.0, FUTEX).by(19.9, 1, 2, 4).runs(4, 0, 20.0, 21.0, -1));
    assert_eq!(answer.findings[0].kind, FindingKind::Gc, "{}", answer.findings[0].title);
}

/// All CPUs collect, so that next to none stands idle.
#[test]
fn a_program_that_only_collects_is_not_told_that_it_works() {
    let asks = stack(&["Monitor::wait", "MemAllocator::allocate", "Caches.fill"]);
    let mut s = machine(1000.0).thread(6, "GC Thread#0").thread(7, "GC Thread#1");
    s.builder.meta_mut().sample_period_ns = MS;
    for round in 0..10 {
        let t = 100.0 * f64::from(round);
        s = s.waits_at(4, 0, [t, t + 4.0], FUTEX, &asks).by(t + 3.9, 0, 4, 6).by(t + 3.9, 0, 4, 7);
        s = s.runs(6, 0, t + 4.0, t + 98.0, FUTEX).runs(7, 1, t + 4.0, t + 97.0, FUTEX).by(t + 97.9, 0, 6, 4);
        for i in 5..97 {
            let frames = stack(&["get_signal"]);
            let chain = s.builder.chain(1, &[], &frames);
            let at = ns(t) + i * MS;
            s.builder.push(at, SampleEvent { cpu: Cpu(0), tid: 6, ip: frames[0], bp: 0, chain });
        }
    }
    let answer = explained(s.runs(4, 0, 1000.0 - 0.5, 1000.0, -1));
    let first = answer.on_page().next().expect("a finding");
    assert_eq!(first.kind, FindingKind::Gc, "{:#?}", answer.findings);
    assert!(first.title.contains("of the time"), "{}", first.title);
}

#[test]
fn a_monitor_has_its_name() {
    let enters = stack(&["os::PlatformEvent::park", "ObjectMonitor::EnterI", "Caches.fill"]);
    let s = machine(30.0).waits_at(4, 0, [0.0, 2.0], FUTEX, &enters).runs(5, 1, 1.0, 30.0, -1);
    let answer = explained(s.by(25.0, 1, 5, 4).runs(4, 0, 25.1, 30.0, -1));
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::LockHeld, "{}", first.title);
    assert!(first.title.contains("cache-1 kept a monitor of Java"), "{}", first.title);
    assert_eq!(first.culprit.function, "Caches.fill", "nobody saw what it ran: where the monitor is entered");
    assert!(first.advice.contains("synchronized"), "{}", first.advice);
}

#[test]
fn who_initialises_a_class_keeps_the_others_waiting() {
    let waits = stack(&["os::PlatformEvent::park", "ObjectMonitor::wait", "InstanceKlass::initialize_impl"]);
    let s = machine(30.0).waits_at(4, 0, [0.0, 2.0], FUTEX, &waits).runs(5, 1, 1.0, 30.0, -1);
    let answer = explained(s.by(25.0, 1, 5, 4).runs(4, 0, 25.1, 30.0, -1));
    let first = &answer.findings[0];
    assert_eq!((first.kind, first.culprit.thread.as_str()), (FindingKind::LockHeld, "cache-1"), "{}", first.title);
    assert_eq!(first.waiters.names, ["cache-0"]);
}

/// Who looks every 5 ms whether it may run waits for the one who does, though that one lets nobody know that it has let go.
#[test]
fn who_runs_has_the_lock_of_a_language_of_which_one_thread_runs() {
    let mut s = machine(41.0).runs(5, 1, 1.0, 41.0, -1);
    let looks = stack(&["take_gil", "answer"]);
    for look in 0..4 {
        let t = 10.0 * f64::from(look);
        s = s.futex(t + 4.9, 4, 0).waits_at(4, 0, [t, t + 4.9], FUTEX, &looks);
        s = s.wakes(t + 9.9, 0, 0, 4, holdup_trace::WakeContext::Timer, 0);
    }
    let answer = explained(s.runs(4, 0, 39.9, 41.0, -1));
    let first = &answer.findings[0];
    assert_eq!((first.kind, first.culprit.thread.as_str()), (FindingKind::LockHeld, "cache-1"), "{}", first.title);
    assert!(first.title.contains("kept Python's interpreter lock (GIL) for 20.0 ms"), "{}", first.title);
    let bound = first.gain_at_most.expect("a bound");
    assert!(bound > 1.3, "another process may do what it does meanwhile: {bound}");
}

/// How much could be gained without code that has 60 of a hundred samples, for 40 of which somebody waits, if 30 are in `beside`.
fn bound_beside(beside: &str) -> Option<f64> {
    let waits = stack(&["os::PlatformEvent::park", "uv_run"]);
    let mut s = machine(101.0).waits_at(4, 0, [0.0, 0.5], FUTEX, &waits).runs(5, 1, 0.5, 101.0, -1);
    s.builder.meta_mut().sample_period_ns = ns(1.0);
    for i in 0..100 {
        let function = match i % 10 {
            0..6 => "Addon::hash",
            6..9 => beside,
            _ => "uv_run",
        };
        let frames = stack(&[function, "Builtins_JSEntry", "uv_run"]);
        let chain = s.builder.chain(1, &[], &frames);
        s.builder.push(ns(f64::from(i) + 0.6), SampleEvent { cpu: Cpu(1), tid: 5, ip: frames[0], bp: 0, chain });
    }
    let answer = explained(s.by(40.5, 1, 5, 4).runs(4, 0, 40.5, 41.0, NANOSLEEP));
    let first = answer.findings.into_iter().next().expect("a finding");
    assert_eq!((first.kind, first.culprit.function.as_str()), (FindingKind::Serial, "Addon::hash"), "{}", first.title);
    first.gain_at_most
}

#[test]
fn garbage_may_be_of_what_is_taken_out() {
    let bound = bound_beside("answer").expect("a bound");
    assert!((bound / (101.0 / 24.0) - 1.0).abs() < 0.1, "{bound}");
    assert_eq!(
        bound_beside("v8::internal::Scavenger::Process"),
        None,
        "a tenth may be left, of which nothing is known"
    );
}

/// How much could be gained without what a goroutine does, if that wakes idle threads by `wakes`.
fn bound_of_goroutine(wakes: &str) -> Option<f64> {
    let mut s = machine(200.0).futex(0.0, 4, 0);
    s.builder.meta_mut().sample_period_ns = ns(1.0);
    let works = stack(&["main.digest", "runtime.goexit"]);
    for round in 0..20 {
        let t = 10.0 * f64::from(round);
        s = s.waits_at(4, 0, [t, t + 1.0], FUTEX, &stack(&["runtime.findRunnable"]));
        let chain = s.builder.chain(1, &[], &stack(&[wakes, "main.digest", "runtime.goexit"]));
        let (context, lock, target) = (holdup_trace::WakeContext::Task, holdup_trace::LockId::NONE, Cpu::NONE);
        let wake = holdup_trace::WakeEvent { cpu: Cpu(1), waker: 5, wakee: 4, context, source: 0, target, lock, chain };
        s.builder.push(ns(t + 9.9), wake);
    }
    s = s.runs(5, 1, 0.0, 200.0, -1);
    for i in 0..200 {
        let chain = s.builder.chain(1, &[], &works);
        s.builder.push(ns(f64::from(i) + 0.5), SampleEvent { cpu: Cpu(1), tid: 5, ip: works[0], bp: 0, chain });
    }
    let answer = explained(s);
    let first = answer.findings.into_iter().next().expect("a finding");
    assert_eq!((first.kind, first.culprit.function.as_str()), (FindingKind::Serial, "main.digest"), "{}", first.title);
    first.gain_at_most
}

/// A thread without a task waits for one, not for a CPU for whoever will give it one.
#[test]
fn who_has_no_task_does_not_wait_for_another_ones_cpu() {
    use holdup_trace::SwitchState::Runnable;
    let mut s = machine(200.0);
    let name = s.builder.string("hog");
    s.builder.push(0, holdup_trace::NameEvent { pid: 9, tid: 9, name });
    s = s.waits_at(4, 0, [0.0, 1.0], FUTEX, &stack(&["runtime.findRunnable"]));
    s = s.switch(0.0, 1, 0, Runnable, -1, 5).switch(40.0, 1, 5, Runnable, -1, 9).switch(180.0, 1, 9, Runnable, -1, 5);
    s.builder.meta_mut().sample_period_ns = MS;
    let works = stack(&["main.digest", "runtime.goexit"]);
    for t in (1..40).chain(181..199) {
        let chain = s.builder.chain(1, &[], &works);
        s.builder.push(t * MS, SampleEvent { cpu: Cpu(1), tid: 5, ip: works[0], bp: 0, chain });
    }
    let answer = explained(s.by(199.0, 1, 5, 4).runs(4, 0, 199.1, 200.0, -1));
    let kinds: Vec<FindingKind> = answer.findings.iter().map(|f| f.kind).collect();
    assert!(kinds.contains(&FindingKind::Serial) && !kinds.contains(&FindingKind::OwnerNotRunning), "{kinds:?}");
}

/// Its goroutines wait for a lock: what is done with it has to be done.
#[test]
fn what_a_goroutine_does_with_a_lock_remains() {
    let bound = bound_of_goroutine("sync.(*Mutex).Unlock").expect("a bound");
    assert!((1.8..2.4).contains(&bound), "220 ms of work on two CPUs: {bound}");
    assert_eq!(bound_of_goroutine("runtime.newproc"), None, "nothing is left without it");
}

/// What is found where a thread waits for one of whose hundred samples so many are of the first stack, and the others of the second.
fn ran(few: usize, stacks: [&[&str]; 2]) -> Finding {
    let waits = stack(&["os::PlatformEvent::park", "uv_run"]);
    let mut s = machine(102.0).waits_at(4, 0, [0.0, 1.0], FUTEX, &waits).runs(5, 1, 1.0, 102.0, -1);
    s.builder.meta_mut().sample_period_ns = ns(1.0);
    for i in 0..100 {
        let frames = stack(if i < few { stacks[0] } else { stacks[1] });
        let chain = s.builder.chain(1, &[], &frames);
        s.builder.push(ns(i as f64 + 1.5), SampleEvent { cpu: Cpu(1), tid: 5, ip: frames[0], bp: 0, chain });
    }
    let answer = explained(s.by(101.0, 1, 5, 4).runs(4, 0, 101.1, 102.0, -1));
    let first = answer.findings.into_iter().next().expect("a finding");
    assert_eq!(first.culprit.thread, "cache-1", "{}", first.title);
    first
}

/// What a thread is said to have run whose samples are JavaScript without names, but for `few` of a hundred in an addon's function.
fn named_beside_javascript(few: usize) -> String {
    let first = ran(few, [&["Addon::hash", "Builtins_JSEntry", "uv_run"], &["", "Builtins_JSEntry", "uv_run"]]);
    let is_sure = first.confidence == Confidence::High;
    assert_eq!(is_sure, first.culprit.function != "JavaScript without names", "{first:#?}");
    first.culprit.function
}

#[test]
fn next_to_nothing_beside_code_without_names_is_not_what_ran() {
    assert_eq!(named_beside_javascript(3), "JavaScript without names");
    assert_eq!(named_beside_javascript(90), "Addon::hash");
}

#[test]
fn what_runs_everything_of_a_language_is_not_what_ran() {
    let stacks: [&[&str]; 2] =
        [&["Perl_pp_sort", "Perl_runops_standard", "perl_run"], &["Perl_runops_standard", "perl_run"]];
    let any = ran(30, stacks);
    assert_eq!(any.culprit.function, "Perl code without names");
    assert!(any.advice.starts_with("A profiler for Perl") && any.advice.contains("this code"), "{}", any.advice);
    assert_eq!(ran(90, stacks).culprit.function, "Perl_pp_sort");
}

#[test]
fn what_an_installed_package_ran_has_the_programs_own_function_beside_it() {
    let render: &[&str] = &["Template.render", "render_template", "answer"];
    let culprit = ran(100, [render, render]).culprit;
    assert_eq!((culprit.function.as_str(), culprit.called_by.as_str()), ("Template.render", "answer"));
    let alone = ran(100, [&render[..2], &render[..2]]).culprit;
    assert_eq!(
        (alone.function.as_str(), alone.called_by.as_str()),
        ("Template.render", ""),
        "a program that was installed"
    );
}

/// Under what an interpreter runs lie words of its stack that look like calls of the code around it.
#[test]
fn what_is_interpreted_is_called_by_what_is_interpreted() {
    let sums: &[&str] = &["Report.sum", "Addon::hash", "Caches.fill", "uv_run"];
    let culprit = ran(100, [sums, sums]).culprit;
    assert_eq!((culprit.function.as_str(), culprit.called_by.as_str()), ("Report.sum", "Caches.fill"));
    let native = ran(100, [&sums[1..], &sums[1..]]).culprit;
    assert_eq!((native.function.as_str(), native.called_by.as_str()), ("Addon::hash", "Caches.fill"));
}

/// One that has a lock and is preempted by another of its own program.
#[test]
fn who_loses_its_cpu_to_its_own_program_needs_no_other_priority() {
    let enters = stack(&["os::PlatformEvent::park", "ObjectMonitor::EnterI", "Caches.fill"]);
    let mut s = machine(100.0).thread(6, "cache-2").futex(0.5, 6, 4).waits_at(6, 1, [0.0, 1.0], FUTEX, &enters);
    s = s.switch(0.0, 0, 0, holdup_trace::SwitchState::Runnable, -1, 4);
    s = s.switch(5.0, 0, 4, holdup_trace::SwitchState::Runnable, -1, 5);
    s = s.switch(90.0, 0, 5, holdup_trace::SwitchState::Runnable, -1, 4);
    let answer = explained(s.by(95.0, 0, 4, 6).runs(6, 1, 95.1, 100.0, -1));
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::OwnerNotRunning, "{}", first.title);
    assert!(first.title.contains("mostly others of its program had it"), "{}", first.title);
    assert!(first.advice.starts_with("Let no more threads at a time come to"), "{}", first.advice);
}

/// Which of the threads of a process that ends closes its files is chance.
#[test]
fn who_waits_for_the_end_of_a_process_waits_for_what_it_did() {
    let s = machine(100.0).waits_at(5, 1, [0.0, 1.0], NANOSLEEP, &stack(&["answer"]));
    let mut s = s.waits_at(4, 1, [1.0, 2.0], 0, &stack(&["Caches.fill"])).runs(1, 0, 0.0, 80.0, FUTEX);
    let chain = s.builder.chain(1, &[address("get_signal")], &[]);
    let (context, lock, target) = (holdup_trace::WakeContext::Task, holdup_trace::LockId::NONE, Cpu::NONE);
    s = s.wakes(80.0, 1, 0, 5, holdup_trace::WakeContext::Timer, 0);
    let closes = holdup_trace::WakeEvent { cpu: Cpu(1), waker: 5, wakee: 4, context, source: 0, target, lock, chain };
    s = s.runs(5, 1, 80.0, 80.2, FUTEX);
    s.builder.push(ns(80.1), closes);
    let answer = explained(s.runs(4, 1, 80.3, 100.0, -1));
    let first = &answer.findings[0];
    assert_eq!((first.culprit.tid, first.waiters.names.join(",").as_str()), (1, "cache-0"), "{}", first.title);
}

/// What runs with this stack for 50 ms, and is all that runs.
fn running(frames: &[&str]) -> Explanation {
    running_beside(frames, frames)
}

/// The same, where two of its samples are of another stack.
fn running_beside(frames: &[&str], others: &[&str]) -> Explanation {
    let mut schedule = machine(50.0).runs(4, 0, 0.0, 50.0, -1);
    schedule.builder.meta_mut().sample_period_ns = MS;
    let stacks = [stack(frames), stack(others)];
    for i in 0..50 {
        let frames = &stacks[usize::from(i % 25 == 7)];
        let chain = schedule.builder.chain(1, &[], frames);
        schedule.builder.push(i * MS, SampleEvent { cpu: Cpu(0), tid: 4, ip: frames[0], bp: 0, chain });
    }
    explained(schedule)
}

#[test]
fn what_a_forked_child_does_is_not_what_its_parent_was_in() {
    let child = running(&["JSONDecoder.decode", "BaseProcess._bootstrap", "answer"]);
    assert_eq!(child.findings[0].culprit.function, "JSONDecoder.decode", "{:#?}", child.findings[0]);
    // What a pool's worker is sent takes it longer to unpack than to work on.
    let unpacks =
        running_beside(&["JSONDecoder.decode", "BaseProcess._bootstrap"], &["answer", "BaseProcess._bootstrap"]);
    assert_eq!(unpacks.findings[0].culprit.function, "JSONDecoder.decode", "{:#?}", unpacks.findings[0]);
    let parent = running(&["JSONDecoder.decode", "answer"]);
    assert_eq!(parent.findings[0].culprit.function, "answer", "{:#?}", parent.findings[0]);
}

#[test]
fn threads_of_erlang_are_numbered() {
    let names = [(1, "beam.smp"), (2, "sys_sig_dispatc"), (3, "1_aux"), (4, "0_poller"), (5, "1_scheduler")];
    let erlang = names.into_iter().fold(Schedule::new(2, 5.0).in_focus(), |s, (tid, name)| s.thread(tid, name));
    let list = holdup_analysis::threads::list(&erlang.runs(5, 0, 1.0, 2.0, FUTEX).finish(), "x", None, true).unwrap();
    let role = |tid| list.threads.iter().find(|t| t.tid == tid).and_then(|t| t.role);
    assert_eq!([2, 3, 4].map(role), [Some(Role::Housekeeping); 3]);
    assert_eq!(role(5), None, "it runs the program");
}

#[test]
fn threads_of_a_runtime_have_roles() {
    let trace = machine(5.0).finish_with(&mut Names);
    let list = holdup_analysis::threads::list(&trace, "x", None, true).unwrap();
    let role = |tid| list.threads.iter().find(|t| t.tid == tid).and_then(|t| t.role);
    assert_eq!([2, 3, 4].map(role), [Some(Role::Operations), Some(Role::Compiler), None]);
}

/// A thread that waits for a time-out three times on one futex, below `functions`, and then until the end.
fn timed_out(functions: &[&str]) -> Explanation {
    let mut s = Schedule::new(2, 400.0).thread(10, "pacer").in_focus();
    let lock = s.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address: 0x10 });
    let chain = s.builder.chain(1, &[], &stack(functions));
    for at in [0.0, 100.0, 200.0, 300.0] {
        s = s.switch(at, 0, 0, SwitchState::Runnable, -1, 10);
        s.builder.push(ns(at + 0.1), FutexEvent { tid: 10, lock, owner: 0, operation: 0, timed: true });
        let (cpu, state) = (Cpu(0), SwitchState::Sleeping);
        let out = SwitchEvent { cpu, prev: 10, next: 0, state, io_wait: false, syscall: FUTEX, lock, chain };
        s.builder.push(ns(at + 0.1), out);
        if at < 300.0 {
            s = s.wakes(at + 99.9, 1, 0, 10, WakeContext::Timer, 0);
        }
    }
    explain(&s.finish_with(&mut Names), "t", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn sleeps_of_java_are_sleeps_of_their_own() {
    let title = |functions: &[&str]| timed_out(functions).findings[0].title.clone();
    assert_eq!(title(&["JavaThread::sleep", "Caches.fill"]), "1 thread of pacer slept by its own timer for 299.4 ms");
    assert_eq!(
        title(&["os::PlatformEvent::park", "Caches.fill"]),
        "1 thread of pacer waited for work that nobody sent"
    );
}

/// The virtual machine naps until `report` stops as well, which takes it 80 ms; then it works for 5 ms, and lets all go on.
fn safepoint(naps_in: &str) -> Explanation {
    let mut s = Schedule::new(2, 100.0).in_focus().thread(2, "VM Thread").thread(4, "report").thread(5, "handler");
    s.builder.meta_mut().sample_period_ns = MS;
    let chain = stack(&[naps_in, "thread_native_entry"]);
    let works = s.builder.chain(1, &[], &stack(&["Report.sum"]));
    for t in 1..90 {
        s.builder.push(ns(f64::from(t)), SampleEvent { cpu: Cpu(1), tid: 4, ip: 0, bp: 0, chain: works });
    }
    s = s.runs(4, 1, 0.0, 90.0, FUTEX).waits_at(5, 0, [0.0, 1.0], FUTEX, &stack(&["Caches.fill"]));
    for nap in 0..80 {
        let t = 2.0 + f64::from(nap);
        s = s.waits_at(2, 0, [t, t + 0.01], SLEEP, &chain).wakes(t + 0.95, 0, 0, 2, WakeContext::Timer, 0);
    }
    let home = stack(&["Monitor::wait", "VMThread::wait_for_operation", "thread_native_entry"]);
    s = s.waits_at(2, 0, [82.0, 96.0], FUTEX, &home).by(95.9, 0, 2, 5).runs(5, 1, 96.0, 100.0, FUTEX);
    explain(&s.finish_with(&mut Names), "t", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn who_does_not_stop_for_the_virtual_machine_is_who_runs() {
    let answer = safepoint("SafepointSynchronize::synchronize_threads");
    let first = &answer.findings[0];
    assert!(first.title.starts_with("report ran on for "), "{}", first.title);
    assert_eq!(first.culprit.function, "Report.sum");
    assert!(first.advice.contains("safepoint"), "{}", first.advice);
    let other = safepoint("ObjectMonitor::wait");
    assert!(!other.findings[0].title.contains("ran on"), "{}", other.findings[0].title);
}

/// What runs for `ms` on a CPU from `from` on: one sample a millisecond, of these stacks in turn.
fn samples(mut s: Schedule, tid: u32, cpu: u16, from: f64, ms: u64, stacks: &[&[&str]]) -> Schedule {
    s.builder.meta_mut().sample_period_ns = MS;
    for (i, functions) in (0..ms).zip(stacks.iter().cycle()) {
        let frames = stack(functions);
        let chain = s.builder.chain(tid, &[], &frames);
        s.builder.push(ns(from) + i * MS + MS / 2, SampleEvent { cpu: Cpu(cpu), tid, ip: frames[0], bp: 0, chain });
    }
    s
}

/// Two processes that a runner of tests has started, each with other tests of which one has a helper.
#[test]
fn a_runner_of_tests_is_no_place_to_mend_and_shows_that_its_processes_do_the_same() {
    let mut s = Schedule::new(2, 110.0);
    s.builder.meta_mut().focus_pids = vec![5];
    for (pid, parent) in [(5, 1), (10, 5), (11, 5)] {
        let name = s.builder.string("pytest");
        if parent == 5 {
            s.builder.push(ns(0.1), ForkEvent { parent_pid: parent, parent, pid, tid: pid });
        }
        s.builder.push(ns(0.2), NameEvent { pid, tid: pid, name });
        let image = Image { start: 0, end: 0x10_0000, path: "/bin/pytest".into(), pid, ..Image::default() };
        let image = s.builder.image(image);
        s.builder.push(ns(0.2), MapEvent { pid, image });
    }
    let of = |test: &'static str| ["check", test, "pytest_pyfunc_call"];
    let (add, drop, users) = (of("test_add"), of("test_drop"), ["sign_in", "pytest_pyfunc_call"]);
    s = s.waits_at(5, 0, [0.0, 0.5], WAIT4, &stack(&["BaseProcess._bootstrap"]));
    s = samples(s, 11, 1, 1.0, 20, &[&users, &users, &users, &["check", "sign_in", "pytest_pyfunc_call"]]);
    s = samples(s, 10, 0, 1.0, 100, &[&add, &drop]).runs(11, 1, 1.0, 21.0, EXIT);
    let answer = explained(s.runs(10, 0, 1.0, 101.0, EXIT).by(100.9, 0, 10, 5).runs(5, 0, 101.0, 102.0, -1));
    let first = &answer.findings[0];
    assert_eq!((first.kind, first.culprit.function.as_str()), (FindingKind::Imbalance, "check"), "{}", first.title);
}

/// A command that hands all on to libraries: to one most of it.
#[test]
fn who_hands_all_on_is_told_by_the_library_that_does_most() {
    let ran = |deflates: usize| {
        let hands_on = ["ConvertImageCommand", "MagickMain", "main"];
        let [packs, blurs] = ["deflate", "BlurImage"].map(|leaf| [&[leaf], &hands_on[..]].concat());
        let stacks: Vec<&[&str]> = (0..10).map(|i| if i < deflates { &packs[..] } else { &blurs[..] }).collect();
        let s = samples(machine(101.0), 5, 0, 0.0, 100, &stacks).runs(5, 0, 0.0, 100.0, -1);
        explained(s).findings[0].culprit.function.clone()
    };
    assert_eq!(ran(5), "deflate");
    assert_eq!(ran(3), "BlurImage");
}
