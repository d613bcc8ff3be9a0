//! Threads that are ready and do not run: why, told apart. One tick is a millisecond.

mod common;

use common::*;
use holdup_analysis::report::{Confidence, Finding, FindingKind};
use holdup_analysis::{Explanation, NoDisassembler, Options, explain};
use holdup_trace::{PlacementEvent, QuotaEvent, SwitchState, Trace, WakeContext};

const RUNS: SwitchState = SwitchState::Runnable;
const SLEEPS: SwitchState = SwitchState::Sleeping;

fn ask(trace: &Trace, focus: Option<&str>) -> Explanation {
    let options = Options { focus: focus.map(str::to_owned), ..Options::default() };
    explain(trace, "t", &options, &NoDisassembler).unwrap()
}

fn only(answer: &Explanation, kind: FindingKind) -> &Finding {
    let found: Vec<&Finding> = answer.findings.iter().filter(|f| f.kind == kind).collect();
    assert_eq!(found.len(), 1, "{:#?}", answer.findings);
    found[0]
}

fn first(answer: &Explanation) -> &Finding {
    answer.findings.first().expect("something is found")
}

/// Two threads that take turns on CPUs of their own: each is woken for an idle CPU and needs 0.8 to get there.
fn turns() -> Trace {
    let mut s = Schedule::new(2, 100.0).thread(10, "player").thread(11, "player");
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 11, SLEEPS, READ, 0);
    for turn in 0..100u32 {
        let (t, me) = (f64::from(turn), (turn % 2) as u16);
        let (own, other) = (10 + u32::from(me), 11 - u32::from(me));
        s = s.by(t + 0.2, me, own, other).switch(t + 0.2, me, own, SLEEPS, READ, 0);
        s = s.switch(t + 1.0, 1 - me, 0, RUNS, -1, other);
    }
    s.finish()
}

#[test]
fn wake_ups_of_idle_cpus_are_counted_and_are_no_affinity() {
    let answer = ask(&turns(), None);
    let found = first(&answer);
    assert_eq!(found.kind, FindingKind::WakeLatency, "{:#?}", answer.findings);
    // Both CPUs stand idle for 0.8 of each turn, and there is one thread that waits, for the other.
    near(found.blame_cpu_s * 1e3, 80.0);
    assert_eq!((found.waiters.waits, found.waiters.threads), (100, 2));
    near(found.waiters.mean_s * 1e3, 0.8);
    assert!(found.title.contains("100 times") && found.title.contains("800"), "{}", found.title);
    assert!(found.advice.contains("batch") && found.advice.contains("C-states"), "{}", found.advice);
    assert_eq!(found.gain_at_most, None);
    assert!(answer.findings.iter().all(|f| f.kind != FindingKind::RunnableWhileIdle), "{:#?}", answer.findings);
    near(answer.cpu_seconds.sum() * 1e3, 200.0);
}

#[test]
fn a_wake_up_for_which_another_waits_is_no_work_of_that_thread() {
    // The server is held up to nothing but waking up: what its client waits for is mostly that.
    let mut s = Schedule::new(2, 100.0).thread(10, "client").thread(11, "server");
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 11, SLEEPS, READ, 0);
    for turn in 0..50u32 {
        let t = 2.0 * f64::from(turn);
        s = s.by(t + 0.5, 0, 10, 11).switch(t + 0.5, 0, 10, SLEEPS, READ, 0);
        s = s.switch(t + 1.3, 1, 0, RUNS, -1, 11).by(t + 1.5, 1, 11, 10);
        s = s.switch(t + 1.5, 1, 11, SLEEPS, READ, 0).switch(t + 2.0, 0, 0, RUNS, -1, 10);
    }
    let answer = ask(&s.finish(), None);
    assert_eq!(first(&answer).kind, FindingKind::WakeLatency);
    // 0.8 for the server, 0.5 for the client; what they work, 0.2 and 0.5, is theirs.
    let all = |kind| answer.findings.iter().filter(|f| f.kind == kind).map(|f| f.blame_cpu_s).sum::<f64>();
    near(all(FindingKind::WakeLatency) * 1e3, 65.0);
    near(all(FindingKind::Serial) * 1e3, 35.0);
}

#[test]
fn a_thread_behind_another_while_a_cpu_is_idle_is_the_schedulers() {
    let s = Schedule::new(2, 100.0).thread(10, "a").thread(11, "b");
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(80.0, 0, 10, SwitchState::Dead, -1, 11);
    let answer = ask(&s.finish(), None);
    let found = first(&answer);
    assert_eq!(found.kind, FindingKind::RunnableWhileIdle);
    near(found.blame_cpu_s * 1e3, 80.0);
    // Without masks it may be affinity just as well.
    assert_eq!(found.confidence, Confidence::Low);
    assert!(found.doubts.iter().any(|d| d.contains("affinity")), "{:?}", found.doubts);
    near(answer.cpu_seconds.runnable_idle * 1e3, 80.0);
}

#[test]
fn a_thread_taken_off_a_cpu_that_then_stands_idle_is_throttled() {
    let mut s = Schedule::new(2, 400.0).thread(10, "busy");
    for period in 0..4 {
        let t = f64::from(period) * 100.0;
        s = s.runs(10, 0, t, t + 50.0, -1);
    }
    let answer = ask(&s.finish(), None);
    let found = first(&answer);
    assert_eq!(found.kind, FindingKind::Throttled, "{:#?}", answer.findings);
    near(found.blame_cpu_s * 1e3, 200.0);
    assert!(found.advice.contains("cpu.max"), "{}", found.advice);
    assert_eq!(found.confidence, Confidence::Low, "what is inferred is no promise");
}

#[test]
fn a_thread_that_waits_for_a_cpu_of_others_is_starved_by_them() {
    // Two CPUs; the program's second thread finds them taken by the first and by a hog from elsewhere.
    let mut s = Schedule::new(2, 100.0).thread(10, "app").thread(11, "app");
    let name = s.builder.string("hog");
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    let s =
        s.runs(10, 0, 0.0, 100.0, -1).switch(0.0, 1, 11, RUNS, -1, 20).switch(70.0, 1, 20, SwitchState::Dead, -1, 11);
    let trace = s.finish();
    let answer = ask(&trace, Some("1"));
    let found = only(&answer, FindingKind::CpuStarved);
    near(found.blame_cpu_s * 1e3, 70.0);
    assert_eq!((found.culprit.process.as_str(), found.culprit.pid), ("hog", 2));
    assert!(found.title.contains("hog") && found.evidence.iter().any(|e| e.contains("100 %")), "{found:#?}");
    // From the machine's side both CPUs worked.
    assert!(ask(&trace, None).findings.iter().all(|f| f.kind != FindingKind::CpuStarved));
}

#[test]
fn who_is_ready_while_its_client_runs_is_not_starved_by_it() {
    // One CPU: the client asks, goes on for 3, and sleeps only then; the server answers, and goes on for 1.
    let mut s = Schedule::new(1, 100.0).thread(10, "server");
    let name = s.builder.string("client");
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    s = s.switch(0.0, 0, 10, SLEEPS, READ, 20);
    for turn in 0..20 {
        let t = 5.0 * f64::from(turn);
        s = s.by(t + 1.0, 0, 20, 10).switch(t + 4.0, 0, 20, SLEEPS, READ, 10);
        s = s.by(t + 4.5, 0, 10, 20).switch(t + 5.0, 0, 10, SLEEPS, READ, 20);
    }
    let trace = s.finish();
    for focus in ["1", "2"] {
        let answer = ask(&trace, Some(focus));
        assert!(answer.findings.iter().all(|f| f.kind != FindingKind::CpuStarved), "{:#?}", answer.findings);
    }
}

#[test]
fn threads_that_take_turns_on_cpus_of_their_own_program_are_not_starved() {
    let s = Schedule::new(1, 100.0).thread(10, "a").thread(11, "b");
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(50.0, 0, 10, RUNS, -1, 11);
    let answer = ask(&s.finish(), None);
    assert!(answer.findings.iter().all(|f| f.kind == FindingKind::CpuBound), "{:#?}", answer.findings);
}

/// `tid` may run on `cpus` with this nice value, in the control group `group`.
fn placed(mut s: Schedule, t: f64, tid: u32, cpus: &str, nice: i16, group: &str) -> Schedule {
    let (cpus, group) = (s.builder.string(cpus), s.builder.string(group));
    let span = holdup_trace::Nanos(0);
    s.builder.push(ns(t), PlacementEvent { tid, cpus, nice, policy: 0, group, span });
    s
}

#[test]
fn two_threads_that_may_use_one_cpu_alone_are_pinned() {
    let s = Schedule::new(2, 100.0).thread(10, "a").thread(11, "a");
    let s = placed(placed(s, 0.0, 10, "0", 0, "/"), 0.0, 11, "0", 0, "/");
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(80.0, 0, 10, SwitchState::Dead, -1, 11);
    let answer = ask(&s.finish(), None);
    let found = first(&answer);
    assert_eq!((found.kind, found.confidence), (FindingKind::RunnableWhileIdle, Confidence::High));
    near(found.blame_cpu_s * 1e3, 80.0);
    assert!(found.title.contains("may run on CPU 0 alone") && found.advice.contains("taskset"), "{found:#?}");
}

#[test]
fn a_mask_that_holds_an_idle_cpu_is_no_excuse() {
    let s = Schedule::new(3, 100.0).thread(10, "a").thread(11, "a");
    let s = placed(placed(s, 0.0, 10, "0-1", 0, "/"), 0.0, 11, "0-1", 0, "/");
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(80.0, 0, 10, SwitchState::Dead, -1, 11);
    let answer = ask(&s.finish(), None);
    let found = first(&answer);
    assert_eq!((found.kind, found.confidence), (FindingKind::RunnableWhileIdle, Confidence::High));
    assert!(found.title.contains("behind others, while another CPU stood idle"), "{}", found.title);
    assert!(found.evidence.iter().any(|e| e.contains("CPU 0-1 alone")), "{found:#?}");
}

#[test]
fn a_mask_may_change_and_is_inherited() {
    let s = placed(Schedule::new(2, 100.0).thread(10, "a"), 0.0, 10, "0-1", 0, "/");
    let mut s = placed(s.switch(0.0, 0, 0, RUNS, -1, 10), 10.0, 10, "0", 0, "/");
    s.builder.push(ns(20.0), holdup_trace::ForkEvent { parent_pid: 1, parent: 10, pid: 1, tid: 11 });
    let s = s.switch(80.0, 0, 10, SwitchState::Dead, -1, 11);
    let answer = ask(&s.finish(), None);
    assert!(first(&answer).title.contains("may run on CPU 0 alone"), "{:#?}", answer.findings);
    near(first(&answer).blame_cpu_s * 1e3, 60.0);
}

#[test]
fn a_pinned_thread_does_not_miss_what_others_use_elsewhere_for_want_of_a_cpu() {
    // A neighbour uses the CPU on which it may not run: that is its mask, not starvation.
    let mut s = Schedule::new(2, 100.0).thread(10, "a").thread(11, "a");
    let name = s.builder.string("hog");
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    let s = placed(placed(s, 0.0, 10, "0", 0, "/"), 0.0, 11, "0", 0, "/").runs(20, 1, 0.0, 100.0, -1);
    let s = s.switch(0.0, 0, 11, RUNS, -1, 10).switch(80.0, 0, 10, SwitchState::Dead, -1, 11);
    let answer = ask(&s.finish(), Some("1"));
    near(only(&answer, FindingKind::RunnableWhileIdle).blame_cpu_s * 1e3, 80.0);
    assert!(answer.findings.iter().all(|f| f.kind != FindingKind::CpuStarved), "{:#?}", answer.findings);
}

#[test]
fn a_quota_that_was_reached_is_told_with_its_figures() {
    let mut s = Schedule::new(2, 400.0).thread(10, "busy");
    let group = s.builder.string("/limits");
    for period in 0..4 {
        let t = f64::from(period) * 100.0;
        s = s.runs(10, 0, t, t + 50.0, -1);
    }
    let (quota_us, period_us, periods, throttled, throttled_us) = (50_000, 100_000, 4, 4, 200_000);
    s.builder.push(ns(400.0), QuotaEvent { group, quota_us, period_us, periods, throttled, throttled_us });
    let answer = ask(&placed(s, 0.0, 10, "0-1", 0, "/limits/app").finish(), None);
    let found = first(&answer);
    assert_eq!((found.kind, found.confidence), (FindingKind::Throttled, Confidence::High));
    near(found.blame_cpu_s * 1e3, 200.0);
    let said = "its control group /limits may use 0.50 CPUs, and was throttled in 4 of 4 periods, for 200.0 ms in all";
    assert!(found.evidence.iter().any(|e| e == said), "{:#?}", found.evidence);
}

/// Whom others wait for is kept from running by a quota, whoever has the CPU meanwhile.
#[test]
fn an_owner_that_a_quota_keeps_from_running_is_told_so() {
    let kind = |throttled_us: u32| {
        let mut s = Schedule::new(1, 100.0).thread(10, "worker").thread(11, "waiter");
        let (name, group) = (s.builder.string("hog"), s.builder.string("/limits"));
        s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
        s = placed(s, 0.0, 10, "0", 0, "/limits").switch(0.0, 0, 11, SwitchState::Sleeping, FUTEX, 10);
        s = s.switch(10.0, 0, 10, RUNS, -1, 20).switch(90.0, 0, 20, RUNS, -1, 10);
        s = s.by(98.0, 0, 10, 11).switch(98.1, 0, 10, SwitchState::Sleeping, FUTEX, 11);
        let (quota_us, period_us, periods, throttled) = (10_000, 100_000, 1, 1);
        s.builder.push(ns(99.0), QuotaEvent { group, quota_us, period_us, periods, throttled, throttled_us });
        let answer = ask(&s.finish(), Some("1"));
        let first = answer.findings.iter().find(|f| f.waiters.waits > 0).expect("a finding").clone();
        (
            first.kind,
            first.title.contains("the quota of its control group was used up"),
            first.advice.contains("cpu.max"),
        )
    };
    assert_eq!(kind(79_000), (FindingKind::OwnerNotRunning, true, true));
    assert_eq!(kind(1_000), (FindingKind::Serial, false, false));
}

#[test]
fn who_had_next_to_no_cpu_is_not_told_to_have_worked() {
    let told = |back: f64| {
        let mut s = Schedule::new(1, 100.0).thread(10, "worker").thread(11, "waiter");
        let name = s.builder.string("hog");
        s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
        s = s.switch(0.0, 0, 11, SLEEPS, FUTEX, 10).switch(1.0, 0, 10, RUNS, -1, 20).switch(back, 0, 20, RUNS, -1, 10);
        s = s.by(98.0, 0, 10, 11).switch(98.1, 0, 10, SLEEPS, FUTEX, 11);
        let answer = ask(&s.finish(), Some("1"));
        let found = answer.findings.iter().find(|f| f.waiters.waits > 0).expect("a finding").clone();
        (found.kind, found.title.to_string())
    };
    let (kind, title) = told(97.0);
    assert_eq!(kind, FindingKind::OwnerNotRunning);
    assert!(title.contains("was ready and got no CPU for 100 % of 98.0 ms (mostly hog had it)"), "{title}");
    assert_eq!(told(60.0).0, FindingKind::Serial, "on a busy machine everything starves");
}

/// A thread that a neighbour keeps from its CPU, where the two have these policies of scheduling.
fn starved(neighbour: u8, own: u8) -> String {
    let mut s = Schedule::new(1, 100.0).thread(10, "app");
    let (name, group, cpus) = (s.builder.string("hog"), s.builder.string("/"), s.builder.string("0"));
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    for (tid, policy) in [(10, own), (20, neighbour)] {
        s.builder.push(0, PlacementEvent { tid, cpus, nice: 0, policy, group, span: holdup_trace::Nanos(0) });
    }
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(10.0, 0, 10, RUNS, -1, 20).switch(90.0, 0, 20, RUNS, -1, 10);
    only(&ask(&s.finish(), Some("1")), FindingKind::CpuStarved).advice.clone()
}

#[test]
fn what_decides_between_neighbours_is_told_by_their_policies() {
    assert!(starved(1, 0).starts_with("hog has real-time priority"), "{}", starved(1, 0));
    assert!(starved(0, 5).starts_with("app has the policy for idle times"), "{}", starved(0, 5));
    assert!(starved(0, 0).starts_with("Move one of the two elsewhere"), "{}", starved(0, 0));
}

#[test]
fn where_quotas_are_known_to_be_none_an_idle_cpu_was_slow() {
    let s = placed(Schedule::new(2, 100.0).thread(10, "a"), 0.0, 10, "0-1", 0, "/");
    let s = s.runs(10, 0, 0.0, 20.0, -1).runs(10, 0, 60.0, 100.0, -1);
    let answer = ask(&s.finish(), None);
    assert_eq!(first(&answer).kind, FindingKind::WakeLatency, "{:#?}", answer.findings);
}

#[test]
fn no_cpu_stands_idle_for_a_second_for_a_thread_that_is_ready() {
    let first = |ready: f64| {
        let s = placed(Schedule::new(2, 2000.0).thread(10, "a"), 0.0, 10, "0-1", 0, "/");
        let s = s.runs(10, 0, 0.0, 20.0, -1).runs(10, 0, 20.0 + ready, 1900.0, -1);
        ask(&s.finish(), None).findings.iter().any(|f| f.kind == FindingKind::WakeLatency)
    };
    assert!(first(90.0));
    assert!(!first(1500.0), "an event must be missing");
}

#[test]
fn the_priority_of_a_neighbour_is_told() {
    let mut s = Schedule::new(1, 100.0).thread(10, "app");
    let name = s.builder.string("hog");
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    let s = placed(placed(s, 0.0, 10, "0", 19, "/"), 0.0, 20, "0", -5, "/");
    let s = s.switch(0.0, 0, 10, RUNS, -1, 20).switch(70.0, 0, 20, SwitchState::Dead, -1, 10);
    let answer = ask(&s.finish(), Some("1"));
    let found = only(&answer, FindingKind::CpuStarved);
    let lines = found.evidence.join("\n");
    assert!(lines.contains("hog (pid 2) ran, which is not of the program, with nice -5"), "{lines}");
    assert!(lines.contains("it has nice 19"), "{lines}");
}

#[test]
fn processes_that_were_there_before_are_known_by_their_parents() {
    let mut s = Schedule::new(2, 100.0);
    for (pid, tid, name) in [(3, 3, "child"), (3, 4, "worker"), (5, 5, "parent"), (6, 6, "other")] {
        let name = s.builder.string(name);
        s.builder.push(0, holdup_trace::NameEvent { pid, tid, name });
    }
    for (pid, parent) in [(3, 5), (5, 1), (6, 1)] {
        s.builder.push(0, holdup_trace::ParentEvent { pid, parent });
    }
    let trace = s.finish();
    let focus = holdup_analysis::focus::Focus::new(&trace, Some("parent"));
    let mut found: Vec<u32> = (1..trace.threads.tid.len())
        .filter(|&i| focus.contains(holdup_trace::ThreadIdx(i as u32)))
        .map(|i| trace.threads.tid[i])
        .collect();
    found.sort_unstable();
    assert_eq!(found, [3, 4, 5]);
}

#[test]
fn a_thread_that_runs_where_it_may_not_breaks_no_sum() {
    // Its mask was changed while it was ready, and the CPU on which it runs then is none of the new one's: others keep that busy.
    let mut s = Schedule::new(2, 100.0).thread(10, "a");
    let name = s.builder.string("hog");
    s.builder.push(0, holdup_trace::NameEvent { pid: 2, tid: 20, name });
    let s = placed(placed(s, 0.0, 10, "0", 0, "/"), 20.0, 10, "1", 0, "/");
    let s = s.switch(0.0, 1, 0, RUNS, -1, 20).switch(0.0, 0, 0, RUNS, -1, 10);
    // Ready from 10 on, with CPU 0 idle, where it goes on at 60.
    let s = s.switch(10.0, 0, 10, RUNS, -1, 0).switch(60.0, 0, 0, RUNS, -1, 10);
    let answer = ask(&s.switch(80.0, 0, 10, SwitchState::Dead, -1, 0).finish(), Some("a"));
    near(answer.cpu_seconds.sum() * 1e3, 200.0);
    for found in &answer.findings {
        assert!(found.waiters.total_s <= 0.05 && found.lasted_s <= 0.1, "{found:#?}");
    }
}

/// A writer on one CPU, and a reader on the other that is woken every 10, needs 1 to get to its CPU, and works for half of that. The writer
/// goes on, or sleeps when the reader has just come.
fn piped(goes_on: bool) -> Explanation {
    let mut s = Schedule::new(2, 100.0).thread(10, "writer").thread(11, "reader").in_focus();
    s = s.switch(0.0, 0, 0, RUNS, -1, 10).switch(0.0, 1, 11, SLEEPS, READ, 0);
    for turn in 0..9u32 {
        let t = 10.0 * f64::from(turn);
        s = s.by(t + 1.0, 0, 10, 11).switch(t + 2.0, 1, 0, RUNS, -1, 11).switch(t + 2.5, 1, 11, SLEEPS, READ, 0);
        if !goes_on {
            s = s.switch(t + 2.1, 0, 10, SLEEPS, SLEEP, 0).wakes(t + 9.0, 0, 0, 10, WakeContext::Timer, 0);
            s = s.switch(t + 9.0, 0, 0, RUNS, -1, 10);
        }
    }
    ask(&s.finish(), None)
}

#[test]
fn the_way_to_a_cpu_delays_nothing_where_the_writer_goes_on() {
    let has_latency = |answer: &Explanation| answer.findings.iter().any(|f| f.kind == FindingKind::WakeLatency);
    assert!(has_latency(&piped(false)));
    let answer = piped(true);
    assert!(!has_latency(&answer), "{:#?}", answer.findings);
    near(answer.cpu_seconds.sum() * 1e3, 200.0);
}
