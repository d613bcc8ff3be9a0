//! Programs that have nothing to do, and from whom work would come.

mod common;

use common::{FUTEX, MS, Namer, POLL, READ, SLEEP, Schedule};
use holdup_analysis::report::{Confidence, Explanation, Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{ForkEvent, ListenerEvent, NameEvent, ParentEvent, WakeContext};

/// Ten times a second `sender` (30) sends `fetch` (10) something, who gives it on to `pack` (20), who works for `work` ms.
fn pipeline(focus: &[u32], work: f64, listens: bool) -> Explanation {
    pipeline_from(1.0, focus, work, listens)
}

/// The same from a sender who works for `sends` ms before he sends something.
fn pipeline_from(sends: f64, focus: &[u32], work: f64, listens: bool) -> Explanation {
    let mut s = Schedule::new(2, 2000.0);
    for (tid, name) in [(10, "fetch"), (20, "pack"), (30, "sender")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid: tid, tid, name });
        s.builder.push(0, ListenerEvent { pid: tid, parent: 0, listens });
    }
    s.builder.meta_mut().focus_pids = focus.to_vec();
    for round in 0..20 {
        let t = 100.0 * f64::from(round);
        let sent = t + sends;
        s = s.runs(30, 0, t, sent, POLL).by(sent, 0, 30, 10);
        s = s.runs(10, 0, sent, sent + 1.0, READ).by(sent + 1.0, 0, 10, 20);
        s = s.runs(20, 1, sent + 1.0, sent + 1.0 + work, READ);
    }
    explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap()
}

fn idle(answer: &Explanation) -> Vec<&str> {
    let findings = answer.findings.iter().filter(|f| f.kind == FindingKind::IdleByDesign);
    findings.map(|f| f.title.as_str()).collect()
}

#[test]
fn the_idleness_of_a_pipeline_is_that_of_its_source() {
    let answer = pipeline(&[10, 20], 5.0, false);
    assert_eq!(idle(&answer), ["1 thread of fetch waited for work from sender, and another one for it"]);
    assert!(answer.mostly_idle, "{:?}", answer.cpu_seconds);
    assert_eq!(answer.on_page().next().map(|f| f.kind), Some(FindingKind::IdleByDesign));
}

#[test]
fn who_gets_work_from_beside_the_focus_is_its_own_source() {
    assert_eq!(idle(&pipeline(&[20], 5.0, false)), ["1 thread of pack waited for work from fetch"]);
    assert_eq!(idle(&pipeline(&[30], 5.0, false)), ["1 thread of sender waited for work that nobody sent"]);
}

#[test]
fn a_sender_who_works_for_it_is_told() {
    let answer = pipeline_from(40.0, &[10, 20], 5.0, false);
    let told =
        "1 thread of fetch waited for work from sender, which worked for 800.0 ms meanwhile, and another one for it";
    assert_eq!(idle(&answer), [told]);
    let found = answer.findings.iter().find(|f| f.kind == FindingKind::IdleByDesign).expect("idleness");
    assert!(found.advice.starts_with("See what sender does meanwhile"), "{}", found.advice);
}

#[test]
fn who_works_with_one_thread_is_not_idle() {
    let answer = pipeline(&[10, 20], 80.0, false);
    assert!(!answer.mostly_idle, "{:?}", answer.cpu_seconds);
    assert_ne!(answer.on_page().next().map(|f| f.kind), Some(FindingKind::IdleByDesign));
}

#[test]
fn that_a_server_waits_for_requests_is_no_news() {
    let answer = pipeline(&[10, 20], 5.0, true);
    assert!(!answer.mostly_idle, "{:?}", answer.cpu_seconds);
}

/// A process in focus, 10, that serves nobody.
fn process(end: f64, name: &str) -> Schedule {
    let mut s = Schedule::new(2, end);
    let name = s.builder.string(name);
    s.builder.push(0, NameEvent { pid: 10, tid: 10, name });
    s.builder.push(0, ListenerEvent { pid: 10, parent: 0, listens: false });
    s.builder.meta_mut().focus_pids = vec![10];
    s
}

/// A command that works for 500 ms, sleeps for 600 ms, and works again, with 400 ms at a disk; `beside` a thread of its own.
fn command(beside: bool) -> Explanation {
    let mut s = process(2000.0, "job");
    let name = s.builder.string("helper");
    s.builder.push(0, NameEvent { pid: 10, tid: 11, name });
    s = s
        .runs(10, 0, 0.0, 500.0, SLEEP)
        .wakes(1100.0, 0, 0, 10, WakeContext::Timer, 0)
        .runs(10, 0, 1100.0, 1600.0, READ);
    if beside {
        s = s.runs(11, 1, 100.0, 1500.0, READ);
    }
    s = s.wakes(2000.0, 0, 0, 10, WakeContext::HardIrq, 0);
    explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn a_command_that_slept_longest_hears_that_first() {
    let first = |beside| command(beside).on_page().next().map(|f| f.title.clone());
    assert_eq!(first(false).as_deref(), Some("1 thread of job slept by its own timer for 600.0 ms"));
    assert_ne!(first(true), first(false), "others of it worked meanwhile");
}

/// A rate limiter sleeps for nearly all of the time; what comes behind it works for a part of that.
#[test]
fn who_sleeps_while_mostly_nothing_runs_comes_first_though_others_work_a_little_meanwhile() {
    let first = |works: f64| {
        let mut s = process(1000.0, "limiter").runs(10, 0, 0.0, 1.0, SLEEP);
        let name = s.builder.string("packer");
        s.builder.push(0, NameEvent { pid: 10, tid: 11, name });
        s = s.runs(11, 1, 0.0, works, READ).wakes(950.0, 0, 0, 10, WakeContext::Timer, 0);
        s = s.by(951.0, 0, 10, 11).runs(10, 0, 950.0, 952.0, READ).runs(11, 1, 952.0, 1000.0, READ);
        explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap().mostly_idle
    };
    assert!(first(450.0));
    assert!(!first(850.0), "who works for nearly all of it is why");
}

/// A test that serves others from a thread of its own, and waits for that to be ready: its user waits for its end.
#[test]
fn a_command_that_serves_meanwhile_is_no_server_that_waits_for_requests() {
    let first = |recorder: u32| {
        let mut s = Schedule::new(2, 2000.0);
        let name = s.builder.string("pytest");
        for tid in [10, 11] {
            s.builder.push(0, NameEvent { pid: 10, tid, name });
        }
        s.builder.push(0, ListenerEvent { pid: 10, parent: 5, listens: true });
        let recorder_name = s.builder.string("holdup");
        s.builder.push(0, NameEvent { pid: 5, tid: 5, name: recorder_name });
        s.builder.push(0, ParentEvent { pid: 10, parent: 5 });
        let meta = s.builder.meta_mut();
        (meta.focus_pids, meta.recorder_pid) = (vec![10], recorder);
        s = s.waits_at(11, 1, [0.0, 1.0], POLL, &[0x2000]).waits_at(10, 0, [0.0, 100.0], SLEEP, &[0x1000]);
        s = s.wakes(1900.0, 0, 0, 10, WakeContext::Timer, 0).runs(10, 0, 1900.0, 2000.0, READ);
        s = s.wakes(1950.0, 1, 0, 11, WakeContext::SoftIrq, 3).waits_at(11, 1, [1950.0, 1951.0], POLL, &[0x2000]);
        let trace = s.finish_with(&mut Namer(&[(0x1000, "wait_until_ready"), (0x2000, "serve_forever")]));
        let answer = explain(&trace, "t", &Options::default(), &NoDisassembler).unwrap();
        answer.mostly_idle.then(|| answer.on_page().next().expect("a finding").title.clone())
    };
    assert_eq!(first(5).as_deref(), Some("1 thread of pytest slept by its own timer for 1.80 s"));
    assert_eq!(first(7), None, "a server that was there before");
}

/// A runner that waits for its child, which sleeps.
#[test]
fn who_waits_for_a_child_that_sleeps_is_behind_it() {
    let mut s = process(1000.0, "runner");
    let name = s.builder.string("test");
    s.builder.push(0, NameEvent { pid: 20, tid: 20, name });
    s.builder.push(0, ParentEvent { pid: 20, parent: 10 });
    s = s.runs(10, 0, 0.0, 10.0, POLL).runs(20, 1, 0.0, 20.0, SLEEP);
    s = s.wakes(900.0, 1, 0, 20, WakeContext::Timer, 0).runs(20, 1, 900.0, 950.0, READ);
    let answer = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
    let idle: Vec<_> = answer.findings.iter().filter(|f| f.kind == FindingKind::IdleByDesign).collect();
    assert!(
        idle[0].title.starts_with("1 thread of test, started by runner, slept by its own timer for 880.0 ms"),
        "{idle:#?}"
    );
    assert!(idle.iter().all(|f| !f.title.contains("of runner waited")), "{idle:#?}");
}

/// What several slept at once is more than the time that went by, and no mistake.
#[test]
fn several_that_sleep_at_once_are_told_without_their_sum() {
    let mut s = Schedule::new(2, 1000.0);
    let name = s.builder.string("napper");
    for tid in 10..15 {
        s.builder.push(0, NameEvent { pid: tid, tid, name });
        s = s.runs(tid, 0, f64::from(tid), f64::from(tid) + 0.5, SLEEP);
        s = s.wakes(900.0, 1, 0, tid, WakeContext::Timer, 0);
    }
    for tid in 10..15 {
        s = s.runs(tid, 0, 900.0 + f64::from(tid), 900.5 + f64::from(tid), READ);
    }
    let answer = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
    assert!(idle(&answer).iter().any(|title| title.ends_with("slept by their own timer")), "{:?}", idle(&answer));
    assert_eq!(answer.health.impossible, 0);
}

/// A script that starts one `sleep` after another has done next to nothing, and what it did is known, whoever has started it.
#[test]
fn sleeps_one_after_another_explain_the_time() {
    let told = |recorder: u32| {
        let mut s = Schedule::new(1, 1000.0);
        let [holdup, script, sleep] = ["holdup", "script", "sleep"].map(|name| s.builder.string(name));
        for (pid, name) in [(5, holdup), (10, script)] {
            s.builder.push(0, NameEvent { pid, tid: pid, name });
        }
        s.builder.push(0, ListenerEvent { pid: 10, parent: 5, listens: false });
        s.builder.meta_mut().focus_pids = vec![10];
        s.builder.push(0, ParentEvent { pid: 10, parent: 5 });
        s.builder.meta_mut().recorder_pid = recorder;
        for (pid, t) in (20..22).zip([1.0, 491.0]) {
            s.builder.push(common::ns(t), ForkEvent { parent_pid: 10, parent: 10, pid, tid: pid });
            s.builder.push(common::ns(t), NameEvent { pid, tid: pid, name: sleep });
            s = s.runs(pid, 0, t, t + 0.2, SLEEP).wakes(t + 480.0, 0, 0, pid, WakeContext::Timer, 0);
            s = s.runs(pid, 0, t + 480.0, t + 480.3, READ).exits(t + 480.3, pid);
        }
        let answer = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
        (idle(&answer).join("; "), answer.caveats.into_iter().map(|c| c.what).collect::<String>())
    };
    for recorder in [5, 7] {
        let (title, caveats) = told(recorder);
        let slept = "2 threads of sleep, started by script, slept by their own timer, one after another, for ";
        assert!(title.contains(slept), "{title}");
        assert_eq!(caveats, "");
    }
}

/// What the recorder of a whole machine has started, and what was there before.
#[test]
fn of_a_whole_machine_it_counts_what_its_user_has_started() {
    let first = |command: &str| {
        let mut s = process(1000.0, command);
        // However many others are idle meanwhile.
        for (pid, name) in [(5, "holdup")].into_iter().chain((30..38).map(|pid| (pid, "agent"))) {
            let name = s.builder.string(name);
            s.builder.push(0, NameEvent { pid, tid: pid, name });
        }
        s.builder.push(0, ParentEvent { pid: 10, parent: 5 });
        let meta = s.builder.meta_mut();
        (meta.focus_pids, meta.recorder_pid, meta.command) = (Vec::new(), 5, vec![format!("/bin/{command}")]);
        for (pid, t) in (30..38).map(|pid| (pid, f64::from(pid - 30))) {
            s = s.runs(pid, 1, t, t + 1.0, SLEEP).wakes(990.0, 1, 0, pid, WakeContext::Timer, 0);
        }
        s = (30..38).fold(s, |s, pid| s.runs(pid, 1, 990.0 + f64::from(pid - 30), 991.0 + f64::from(pid - 30), READ));
        let s = s
            .runs(10, 0, 0.0, 20.0, SLEEP)
            .wakes(900.0, 0, 0, 10, WakeContext::Timer, 0)
            .runs(10, 0, 900.0, 950.0, READ);
        let answer = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
        answer.mostly_idle.then(|| answer.on_page().next().expect("a finding").title.clone())
    };
    assert_eq!(first("job").as_deref(), Some("1 thread of job slept by its own timer for 880.0 ms"));
    assert_eq!(first("sleep"), None, "it measures the time");
}

/// A client that looks for input until a time is over, ten times, and then works on what is there.
#[test]
fn who_looks_for_input_until_a_time_is_over_sets_itself_that_time() {
    let title = |context| {
        let mut s = process(1000.0, "loader");
        for t in (0..10).map(|round| 100.0 * f64::from(round)) {
            s = s.runs(10, 0, t, t + 1.0, POLL).wakes(t + 100.0, 0, 0, 10, context, 3);
        }
        let answer = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
        answer.findings.iter().map(|f| f.title.as_str()).collect::<Vec<_>>().join("; ")
    };
    assert!(title(WakeContext::Timer).contains("slept by its own timer"), "{}", title(WakeContext::Timer));
    assert!(!title(WakeContext::SoftIrq).contains("timer"));
}

/// What perf recorded, by the name of its command.
fn recorded_by_perf(command: &str) -> Explanation {
    let mut s = Schedule::new(1, 100.0).thread(50, "perf").thread(60, "server").runs(60, 0, 0.0, 90.0, POLL);
    let meta = s.builder.meta_mut();
    meta.format = "perf.data".into();
    meta.command = ["/usr/bin/perf", "record", "-a", "--", command].map(str::to_owned).to_vec();
    let name = s.builder.string(command);
    s.builder.push(MS, NameEvent { pid: 50, tid: 50, name });
    explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn what_only_measures_the_time_is_not_in_focus() {
    assert!(!recorded_by_perf("build").trace.focus.is_empty());
    assert!(recorded_by_perf("sleep").trace.focus.is_empty());
}

#[test]
fn nobody_asks_what_holds_up_the_recorder() {
    let of = |recorder| {
        let mut s = Schedule::new(2, 100.0).thread(10, "worker");
        let name = s.builder.string("holdup");
        s.builder.push(0, NameEvent { pid: 9, tid: 9, name });
        s.builder.meta_mut().recorder_pid = recorder;
        // It waits for the worker.
        s = s.runs(9, 0, 0.0, 1.0, READ).runs(10, 1, 0.0, 90.0, POLL).by(90.0, 1, 10, 9).runs(9, 0, 90.0, 91.0, READ);
        let found = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
        found.findings.iter().any(|f| f.waiters.names.iter().any(|name| name.contains("holdup")))
    };
    assert!(of(0), "by an earlier version");
    assert!(!of(9));
}

/// A thread of a server keeps a lock for `kept` ms, for which another one waits, and both wait for input otherwise.
fn first_beside_idleness(kept: f64) -> (Explanation, Finding) {
    let mut s = Schedule::new(2, 1000.0).thread(11, "keeper").thread(12, "worker").in_focus();
    s.builder.push(0, ListenerEvent { pid: 1, parent: 0, listens: true });
    let s = s
        .runs(11, 0, 100.0, 110.0 + kept, POLL)
        .futex(105.0, 12, 11)
        .runs(12, 1, 104.0, 106.0, FUTEX)
        .by(105.0 + kept, 0, 11, 12)
        .runs(12, 1, 105.0 + kept, 107.0 + kept, POLL);
    let answer = explain(&s.finish(), "t", &Options::default(), &NoDisassembler).unwrap();
    let first = answer.findings.iter().find(|f| f.is_cause()).unwrap_or_else(|| panic!("{answer:#?}")).clone();
    (answer, first)
}

#[test]
fn what_cost_next_to_nothing_is_not_sure_to_be_what_was_waited_for() {
    let (answer, first) = first_beside_idleness(50.0);
    assert!(answer.cpu_seconds.leaves_next_to_nothing(&first), "{:?} {first:?}", answer.cpu_seconds);
    let doubts =
        first.doubts.iter().filter(|doubt| doubt.starts_with("most of the time nobody is known to wait")).count();
    assert_eq!((doubts, first.confidence >= Confidence::Medium), (1, true));
    let (answer, first) = first_beside_idleness(700.0);
    assert!(!answer.cpu_seconds.leaves_next_to_nothing(&first), "{:?} {first:?}", answer.cpu_seconds);
    assert!(first.doubts.iter().all(|doubt| !doubt.contains("nobody is known to wait")), "{first:?}");
}
