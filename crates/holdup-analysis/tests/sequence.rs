//! Processes that one starts one after another.

mod common;

use common::*;
use holdup_analysis::report::{Explanation, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{ForkEvent, NameEvent, SwitchState};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;
const SHELL: u32 = 5;

fn named(mut s: Schedule, t: f64, pid: u32, name: &str) -> Schedule {
    let name = s.builder.string(name);
    s.builder.push(ns(t), NameEvent { pid, tid: pid, name });
    s
}

fn forks(s: Schedule, t: f64, child: u32, name: &str) -> Schedule {
    forks_of(s, t, SHELL, child, name)
}

fn forks_of(mut s: Schedule, t: f64, parent: u32, child: u32, name: &str) -> Schedule {
    s.builder.push(ns(t), ForkEvent { parent_pid: parent, parent, pid: child, tid: child });
    named(s, t, child, name)
}

/// A shell starts a process of each of these names, and waits until it has run on the other CPU for so many of its 10 ms.
fn script(names: &[&str], worked: f64) -> Explanation {
    script_in(names, worked, false)
}

/// The same, with the shell in focus or the whole machine.
fn script_in(names: &[&str], worked: f64, focused: bool) -> Explanation {
    let end = 10.0 * names.len() as f64 + 2.0;
    let mut s = named(Schedule::new(2, end), 0.0, SHELL, "configure");
    s.builder.meta_mut().focus_pids = if focused { vec![SHELL] } else { Vec::new() };
    s = s.switch(0.0, 0, 0, RUNS, -1, SHELL);
    let mut t = 1.0;
    for (child, name) in (100..).zip(names) {
        s = forks(s, t, child, name).by(t, 0, SHELL, child).switch(t + 0.01, 0, SHELL, SLEEPS, WAIT4, 0);
        s = s.switch(t + 0.02, 1, 0, RUNS, -1, child);
        if worked < 9.0 {
            s = s.switch(t + worked, 1, child, SLEEPS, SLEEP, 0).wakes(
                t + 9.8,
                1,
                0,
                child,
                holdup_trace::WakeContext::Timer,
                0,
            );
            s = s.switch(t + 9.81, 1, 0, RUNS, -1, child);
        }
        s = s.by(t + 9.9, 1, child, SHELL).exits(t + 9.9, child).switch(t + 9.91, 1, child, SwitchState::Dead, EXIT, 0);
        s = s.switch(t + 9.92, 0, 0, RUNS, -1, SHELL);
        t += 10.0;
    }
    explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn many_that_do_little_are_one_finding() {
    let answer = script(&["cc1", "cc1", "ld", "sed"].repeat(10), 9.9);
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::Serial, "{first:#?}");
    assert!(
        first.title.starts_with("configure started 40 processes, one after another: 396.0 ms in all"),
        "{}",
        first.title
    );
    assert!(first.title.ends_with("(cc1 50 %, ld 25 %, sed 25 %)"), "{}", first.title);
    assert_eq!((first.culprit.process.as_str(), first.waiters.waits), ("configure", 40));
    // What is charged to each of them is told there, and only there.
    assert!((first.blame_cpu_s - 0.4).abs() < 0.01, "{}", first.blame_cpu_s);
    let sum = &answer.cpu_seconds;
    assert!(sum.held_up - first.blame_cpu_s > -1e-6 && sum.no_work < 0.01, "{sum:?}");
    assert!(answer.findings[1..].iter().all(|f| f.kind != FindingKind::Serial), "{:#?}", answer.findings);
}

#[test]
fn those_of_one_program_are_called_by_its_name() {
    let title = &script(&["gzip"; 12], 9.9).findings[0].title;
    assert!(title.starts_with("configure started 12 gzip processes, one after another: "), "{title}");
}

#[test]
fn one_that_takes_long_is_a_finding_of_its_own() {
    let few = script(&["gzip"; 2], 9.9);
    assert!(!few.findings[0].title.contains("one after another"), "{}", few.findings[0].title);
    let several = script(&["cc1", "ld", "sed"], 9.9);
    assert!(!several.findings[0].title.contains("one after another"), "{}", several.findings[0].title);
    let alike = script(&["gzip"; 3], 9.9);
    assert!(alike.findings[0].title.contains("3 gzip processes, one after another"), "{}", alike.findings[0].title);
    let asleep = script_in(&["sleep"; 3], 0.1, true);
    assert!(
        asleep.findings[0].title.contains("3 sleep processes that slept, one after another"),
        "{:?}",
        asleep.findings[0].title
    );
}

/// Three compressors of 10 ms, each with a child that has to wait for its input for 2 ms.
#[test]
fn a_few_that_keep_others_waiting_meanwhile_are_one_finding() {
    let mut s = named(Schedule::new(2, 32.0), 0.0, SHELL, "backup");
    s.builder.meta_mut().focus_pids = vec![SHELL];
    s = s.switch(0.0, 0, 0, RUNS, -1, SHELL);
    for child in 100..103 {
        let (t, reader) = (1.0 + 10.0 * f64::from(child - 100), child + 100);
        s = forks(s, t, child, "gzip").by(t, 0, SHELL, child).switch(t + 0.01, 0, SHELL, SLEEPS, WAIT4, 0);
        s = s.switch(t + 0.02, 1, 0, RUNS, -1, child);
        s.builder.push(ns(t + 1.0), ForkEvent { parent_pid: child, parent: child, pid: reader, tid: reader });
        s = named(s, t + 1.0, reader, "cat").waits_at(reader, 0, [t + 1.1, t + 3.2], READ, &[0x40]);
        s = s.by(t + 3.1, 1, child, reader).runs(reader, 0, t + 3.2, t + 3.3, EXIT);
        s = s.by(t + 9.9, 1, child, SHELL).exits(t + 9.9, child).switch(t + 9.91, 1, child, SwitchState::Dead, EXIT, 0);
        s = s.switch(t + 9.92, 0, 0, RUNS, -1, SHELL);
    }
    let answer = explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap();
    let title = &answer.findings[0].title;
    assert!(title.starts_with("backup started 3 gzip processes, one after another"), "{title}");
}

#[test]
fn those_that_wait_themselves_are_told_by_what_they_wait_for() {
    let asleep = script(&["retry"; 12], 2.0);
    assert!(!asleep.findings[0].title.contains("configure started"), "{}", asleep.findings[0].title);
}

/// Processes that ask a server, which sleeps before it answers.
#[test]
fn those_that_wait_for_somebody_who_sleeps_could_do_so_at_once() {
    let (end, server) = (122.0, 50);
    let mut s = named(named(Schedule::new(2, end), 0.0, SHELL, "crawl"), 0.0, server, "server");
    s.builder.meta_mut().focus_pids = vec![SHELL];
    s = s.switch(0.0, 0, 0, RUNS, -1, SHELL);
    for (i, child) in (100..112).enumerate() {
        let t = 1.0 + 10.0 * i as f64;
        s = forks(s, t, child, "curl").by(t, 0, SHELL, child).switch(t + 0.01, 0, SHELL, SLEEPS, WAIT4, 0);
        s = s.switch(t + 0.02, 0, 0, RUNS, -1, child).by(t + 0.1, 0, child, server);
        s = s.switch(t + 0.11, 0, child, SLEEPS, READ, 0).switch(t + 0.11, 1, 0, RUNS, -1, server);
        s = s.switch(t + 0.2, 1, server, SLEEPS, SLEEP, 0);
        s = s.wakes(t + 9.6, 1, 0, server, holdup_trace::WakeContext::Timer, 0);
        s = s.switch(t + 9.61, 1, 0, RUNS, -1, server).by(t + 9.7, 1, server, child);
        s = s.switch(t + 9.71, 1, server, SLEEPS, READ, 0).switch(t + 9.71, 0, 0, RUNS, -1, child);
        s = s.by(t + 9.9, 0, child, SHELL).exits(t + 9.9, child).switch(t + 9.91, 0, child, SwitchState::Dead, EXIT, 0);
        s = s.switch(t + 9.92, 0, 0, RUNS, -1, SHELL);
    }
    let first = explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap().findings.remove(0);
    assert!(first.title.starts_with("crawl started 12 curl processes, one after another: "), "{}", first.title);
    assert!(first.title.contains(" they waited for server, which slept"), "{}", first.title);
}

/// A loop that polls: it looks, which works, and sleeps as long as that.
#[test]
fn those_that_sleep_between_the_others_are_told_by_how_long_they_do() {
    let end = 122.0;
    let mut s = named(Schedule::new(2, end), 0.0, SHELL, "deploy").switch(0.0, 0, 0, RUNS, -1, SHELL);
    for (i, child) in (100..112).enumerate() {
        let (t, sleeps) = (1.0 + 10.0 * i as f64, i % 2 == 1);
        s = forks(s, t, child, if sleeps { "sleep" } else { "look" }).by(t, 0, SHELL, child);
        s = s.switch(t + 0.01, 0, SHELL, SLEEPS, WAIT4, 0).switch(t + 0.02, 1, 0, RUNS, -1, child);
        if sleeps {
            s = s.switch(t + 0.1, 1, child, SLEEPS, SLEEP, 0);
            s = s.wakes(t + 9.8, 1, 0, child, holdup_trace::WakeContext::Timer, 0).switch(
                t + 9.81,
                1,
                0,
                RUNS,
                -1,
                child,
            );
        }
        s = s.by(t + 9.9, 1, child, SHELL).exits(t + 9.9, child).switch(t + 9.91, 1, child, SwitchState::Dead, EXIT, 0);
        s = s.switch(t + 9.92, 0, 0, RUNS, -1, SHELL);
    }
    let title = explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap().findings[0].title.clone();
    assert!(title.starts_with("deploy started 12 processes, one after another: "), "{title}");
    assert!(title.contains("look 50 %") || title.contains("look 51 %"), "{title}");
}

/// `make` calls itself for two folders, one after the other, with so many compilers of 10 ms in each.
fn makes(compilers: u32) -> Explanation {
    let folder = 10.0 * f64::from(compilers) + 1.0;
    let mut s = named(Schedule::new(2, 2.0 * folder + 2.0), 0.0, SHELL, "make");
    s.builder.meta_mut().focus_pids = vec![SHELL];
    s = s.switch(0.0, 0, 0, RUNS, -1, SHELL);
    for (make, from) in [(6, 1.0), (7, 1.0 + folder)] {
        s = forks(s, from, make, "make").by(from, 0, SHELL, make).switch(from + 0.01, 0, SHELL, SLEEPS, WAIT4, 0);
        s = s.switch(from + 0.02, 1, 0, RUNS, -1, make);
        for i in 0..compilers {
            let (child, t) = (100 * make + i, from + 0.1 + 10.0 * f64::from(i));
            s = forks_of(s, t, make, child, "cc1").by(t, 1, make, child).switch(t + 0.01, 1, make, SLEEPS, WAIT4, 0);
            s = s.switch(t + 0.02, 0, 0, RUNS, -1, child).by(t + 9.9, 0, child, make).exits(t + 9.9, child);
            s = s.switch(t + 9.91, 0, child, SwitchState::Dead, EXIT, 0).switch(t + 9.92, 1, 0, RUNS, -1, make);
        }
        let end = from + folder - 0.2;
        s = s.by(end, 1, make, SHELL).exits(end, make).switch(end + 0.01, 1, make, SwitchState::Dead, EXIT, 0);
        s = s.switch(end + 0.02, 0, 0, RUNS, -1, SHELL);
    }
    explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap()
}

#[test]
fn what_several_of_one_program_start_is_one_row() {
    let several = makes(3);
    let title = several.findings[0].title.as_str();
    assert!(title.starts_with("make started 6 cc1 processes, one after another: "), "{title}");
    let few = makes(2);
    assert!(
        !few.findings[0].title.contains("one after another"),
        "what starts two is no row: {}",
        few.findings[0].title
    );
}

/// All of them are there at once, and take turns on one CPU.
#[test]
fn those_that_run_beside_each_other_are_none() {
    let mut s = named(Schedule::new(2, 101.0), 0.0, SHELL, "make").switch(0.0, 0, 0, RUNS, -1, SHELL);
    for child in 100..110 {
        s = forks(s, 0.5, child, "cc1").by(0.5, 0, SHELL, child);
    }
    s = s.switch(0.6, 0, SHELL, SLEEPS, WAIT4, 0);
    let mut before = 0;
    for (child, t) in (100..110).zip((0..10).map(|i| 1.0 + 10.0 * f64::from(i))) {
        let state = if before == 0 { RUNS } else { SwitchState::Dead };
        s = s.switch(t, 1, before, state, if before == 0 { -1 } else { EXIT }, child);
        before = child;
    }
    s = s.by(100.9, 1, before, SHELL).switch(100.91, 1, before, SwitchState::Dead, EXIT, 0);
    let answer = explain(&s.finish(), "x", &Options::default(), &NoDisassembler).unwrap();
    assert!(answer.findings.iter().all(|f| !f.title.contains("one after another")), "{:#?}", answer.findings);
}

/// Of the command that was started its user waits for each sleep; on a whole machine nobody is known to.
#[test]
fn those_that_sleep_of_their_own_accord_are_told_of_the_command_that_starts_them() {
    let polls = |focus: Option<&str>, works: bool| {
        let mut s = named(Schedule::new(2, 2002.0), 0.0, SHELL, "deploy").switch(0.0, 0, 0, RUNS, -1, SHELL);
        for (i, child) in (100..110).enumerate() {
            let t = 1.0 + 200.0 * i as f64;
            s = forks(s, t, child, "sleep").by(t, 0, SHELL, child).switch(t + 0.01, 0, SHELL, SLEEPS, WAIT4, 0);
            s = s.switch(t + 0.02, 1, 0, RUNS, -1, child).switch(t + 0.1, 1, child, SLEEPS, SLEEP, 0);
            if works {
                s.builder.push(
                    ns(t + 0.05),
                    ForkEvent { parent_pid: child, parent: child, pid: child + 100, tid: child + 100 },
                );
                s = named(s, t + 0.06, child + 100, "gzip").switch(t + 0.2, 1, 0, RUNS, -1, child + 100);
                s = s.exits(t + 199.6, child + 100).switch(t + 199.7, 1, child + 100, SwitchState::Dead, EXIT, 0);
            }
            s = s.wakes(t + 199.8, 1, 0, child, holdup_trace::WakeContext::Timer, 0);
            s = s.switch(t + 199.81, 1, 0, RUNS, -1, child).by(t + 199.85, 1, child, SHELL).exits(t + 199.9, child);
            s = s.switch(t + 199.91, 1, child, SwitchState::Dead, EXIT, 0).switch(t + 199.92, 0, 0, RUNS, -1, SHELL);
        }
        let options = Options { focus: focus.map(str::to_owned), ..Options::default() };
        explain(&s.finish(), "x", &options, &NoDisassembler).unwrap()
    };
    let first = &polls(Some("deploy"), false).findings[0];
    assert_eq!(first.kind, FindingKind::SleepPolling, "{first:#?}");
    let title = "deploy started 10 sleep processes that slept, one after another: 2.00 s in all, 199.9 ms each";
    assert_eq!(first.title, title);
    assert!(!polls(None, false).findings[0].title.contains("deploy started"));
    let working = &polls(Some("deploy"), true).findings[0];
    assert!(working.title.starts_with("deploy started 10 gzip processes, one after another"), "{}", working.title);
}

/// A script that runs a compiler for most of the time, and then a linter; it does something of its own at the beginning of each.
#[test]
fn what_works_alone_in_one_step_of_several_might_run_beside_the_next() {
    let steps = |names: &[&str]| {
        let long = |name: &str| if name == "tsc" { 60.0 } else { 30.0 };
        let end = names.iter().map(|name| long(name) + 1.0).sum::<f64>() + 2.0;
        let mut s = named(Schedule::new(2, end), 0.0, SHELL, "build").switch(0.0, 0, 0, RUNS, -1, SHELL);
        let mut t = 1.0;
        for (child, name) in (100..).zip(names) {
            s = forks(s, t, child, name).by(t, 0, SHELL, child).switch(t + 5.0, 0, SHELL, SLEEPS, WAIT4, 0);
            let over = t + long(name);
            s = s.switch(t + 0.02, 1, 0, RUNS, -1, child).by(over, 1, child, SHELL).exits(over, child);
            s = s.switch(over + 0.01, 1, child, SwitchState::Dead, EXIT, 0).switch(over + 0.02, 0, 0, RUNS, -1, SHELL);
            t = over + 1.0;
        }
        let options = Options { focus: Some("build".to_owned()), ..Options::default() };
        explain(&s.finish(), "x", &options, &NoDisassembler).unwrap().findings[0].advice.clone()
    };
    let two = steps(&["tsc", "lint"]);
    let told = "build does one thing after another (tsc 60.0 ms, lint 30.0 ms): let those run at once that do not need each other. ";
    assert!(two.starts_with(told), "{two}");
    let one = steps(&["tsc"]);
    assert!(!one.contains("one thing after another"), "{one}");
}
