//! Random schedules, possible ones and garbage: the sum holds, no figure is greater than time allows, and damage is refused.

mod common;

use std::collections::BTreeMap;

use common::*;
use holdup_analysis::blame::{Key, Span, Study, Window, blame};
use holdup_analysis::classify::{Classifier, WaitKind};
use holdup_analysis::focus::Focus;
use holdup_analysis::intervals::{Timeline, build};
use holdup_analysis::replay::{AT_ONCE, Length, Lengths, Taken, bound, replay};
use holdup_analysis::spins::SpinSites;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    Cpu, Event, ExecEvent, ExitEvent, LockId, LossKind, LostEvent, Nanos, SwitchState, Table, Trace, WakeContext, file,
};

const SLEEPS: SwitchState = SwitchState::Sleeping;
const RUNS: SwitchState = SwitchState::Runnable;

/// xorshift64
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n.max(1)
    }
}

/// A schedule that is possible, or (`garbage`) one of random threads, states and CPUs.
fn random_schedule(random: &mut Random, garbage: bool) -> Trace {
    schedule_of_instants(random, garbage, 0.0)
}

/// The same, where time passes in steps of `step` milliseconds only, if that is not 0.
fn schedule_of_instants(random: &mut Random, garbage: bool, step: f64) -> Trace {
    let (cpus, threads) = (2 + random.below(3) as u16, 2 + random.below(7) as u32);
    let mut s = Schedule::new(cpus, 600.0);
    for tid in 10..10 + threads {
        s = s.thread(tid, if tid % 3 == 0 { "kworker/0:1" } else { "thread" });
    }
    let mut on_cpu = vec![0; cpus.into()];
    let mut ready: Vec<u32> = (10..10 + threads).collect();
    let mut asleep: Vec<u32> = Vec::new();
    for i in 0..500u64 {
        let t = i as f64 + random.below(1000) as f64 / 1001.0;
        let t = if step > 0.0 { (t / step).floor() * step } else { t };
        let cpu = random.below(cpus.into()) as u16;
        let any = |random: &mut Random| if random.below(8) == 0 { 0 } else { 8 + random.below(12) as u32 };
        let syscall = [-1, FUTEX, SLEEP, READ, 61][random.below(5) as usize];
        let state = [RUNS, SLEEPS, SLEEPS, SwitchState::Uninterruptible][random.below(4) as usize];
        let context = [WakeContext::Task, WakeContext::Task, WakeContext::Timer, WakeContext::SoftIrq];
        let context = context[random.below(4) as usize];
        if garbage && random.below(3) == 0 {
            let (a, b) = (any(random), any(random));
            let code = SwitchState::from_code(random.below(256) as u8);
            let far = random.below(9) as u16;
            let what = s.builder.string("records");
            let span = Nanos(random.below(1 << 24));
            s = match random.below(6) {
                0 => s.switch(t, cpu, a, code, syscall, b),
                1 => s.wakes(t, cpu, a, b, context, 0),
                2 => s.futex(t, a, b),
                more => {
                    let events: [Event; 3] = [
                        LostEvent { kind: LossKind::Events, cpu: Cpu(far), span, count: 1, what }.into(),
                        ExitEvent { tid: a }.into(),
                        ExecEvent { pid: b }.into(),
                    ];
                    s.builder.push(ns(t), events[more as usize - 3]);
                    s
                }
            };
            continue;
        }
        let here = usize::from(cpu);
        if random.below(2) == 0 {
            let next = if ready.is_empty() { 0 } else { ready.swap_remove(random.below(ready.len() as u64) as usize) };
            let prev = std::mem::replace(&mut on_cpu[here], next);
            match (prev, state) {
                (0, _) => {}
                (_, SwitchState::Runnable) => ready.push(prev),
                _ => asleep.push(prev),
            }
            if prev != 0 && state != RUNS && random.below(3) == 0 {
                s = s.futex(t, prev, if random.below(2) == 0 { 0 } else { any(random) });
            }
            s = s.switch(t, cpu, prev, state, syscall, next);
        } else if !asleep.is_empty() {
            let wakee = asleep.swap_remove(random.below(asleep.len() as u64) as usize);
            ready.push(wakee);
            s = s.wakes(t, cpu, on_cpu[here], wakee, context, 3);
        }
    }
    s.finish()
}

fn check(trace: &Trace, what: &str) {
    let answer = explain(trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let cpu = answer.cpu_seconds;
    assert!((cpu.sum() - cpu.total).abs() <= 1e-3 * cpu.total, "{what}: {cpu:?}");
    assert_eq!(answer.health.impossible, 0, "{what}");
    figures_are_possible(&answer, what);
}

/// No length of time in a sentence is longer than all threads, or all CPUs, could spend in the trace.
fn figures_are_possible(answer: &holdup_analysis::Explanation, what: &str) {
    // The largest schedule has as many.
    const THREADS: f64 = 41.0;
    let most = answer.trace.duration_s * THREADS.max(answer.trace.cpus as f64) * 1.01;
    for finding in &answer.findings {
        for sentence in finding.evidence.iter().map(String::as_str).chain([finding.title.as_str()]) {
            let words: Vec<&str> = sentence.split_whitespace().collect();
            for pair in words.windows(2) {
                let unit = match pair[1].trim_end_matches([',', ';', '.', ':', ')']) {
                    "s" => 1.0,
                    "ms" => 1e-3,
                    _ => continue,
                };
                let figure: f64 = pair[0].parse().unwrap_or(0.0) * unit;
                assert!(figure <= most, "{what}: {sentence}");
                if sentence.starts_with("meanwhile") {
                    assert!(figure <= answer.trace.duration_s * 1.01, "{what}: {sentence}");
                }
            }
        }
    }
}

/// Several threads that wait for one CPU wait for it once: what ran there meanwhile ran no longer than the trace is.
#[test]
fn what_ran_instead_ran_no_longer_than_there_was() {
    let mut s = Schedule::new(2, 100.0).thread(9, "hog").runs(9, 1, 0.0, 100.0, -1);
    for tid in 20..40 {
        // Owners, ready on the hog's CPU from the start, each with a waiter.
        s = s.thread(tid, "owner").thread(tid + 100, "waiter");
        s = s.by(0.1, 1, 9, tid);
        s = s.runs(tid + 100, 0, f64::from(tid - 20), f64::from(tid - 20) + 0.9, FUTEX).futex(
            f64::from(tid - 20) + 0.8,
            tid + 100,
            tid,
        );
    }
    check(&s.finish(), "twenty owners behind one hog");
}

/// A wait that is longer than the window counts as long as the window.
#[test]
fn a_window_cuts_what_is_counted() {
    let s = Schedule::new(2, 100.0).thread(10, "owner").thread(11, "waiter").runs(10, 0, 0.0, 90.0, FUTEX);
    let s = s.runs(11, 1, 0.0, 5.0, FUTEX).futex(4.9, 11, 10).by(89.0, 0, 10, 11);
    let trace = s.switch(89.1, 1, 0, RUNS, -1, 11).finish();
    let options = Options { window: Some((0.020, 0.030)), ..Options::default() };
    let answer = explain(&trace, "x", &options, &NoDisassembler).unwrap();
    let first = &answer.findings[0];
    assert!(first.waiters.max_s <= 0.0101 && first.lasted_s <= 0.0101, "{first:?}");
    assert_eq!((answer.health.impossible, answer.trace.start_s), (0, 0.020));
}

#[test]
fn the_sum_holds_on_random_schedules() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..150 {
        check(&random_schedule(&mut random, false), &format!("schedule {round}"));
    }
}

#[test]
fn the_sum_holds_on_garbage() {
    let mut random = Random(0xd1b5_4a32_d192_ed03);
    for round in 0..150 {
        check(&random_schedule(&mut random, true), &format!("garbage {round}"));
    }
}

/// Overwrites some cells of the tables that the analysis reads.
fn damage(trace: &mut Trace, random: &mut Random) {
    macro_rules! hit {
        ($table:expr, $($column:ident = $value:expr),+) => {{
            let mut rows = $table.load().unwrap();
            for _ in 0..1 + random.below(4) {
                let n = rows.len() as u64;
                if n > 0 {
                    match random.below(64) { $(_ if random.below(3) == 0 => {
                        let at = random.below(n) as usize;
                        rows.$column[at] = $value;
                    })+ _ => {} }
                }
            }
            $table = rows.into();
        }};
    }
    let big = [1u64 << 40, u64::MAX, 0, 1, 77][random.below(5) as usize];
    let id = [u32::MAX, u32::MAX - 1, 1 << 20, 5, 0][random.below(5) as usize];
    let thread = holdup_trace::ThreadIdx(id);
    let (t, cpu) = (holdup_trace::Timestamp::from_nanos_since_start(big), Cpu(id as u16));
    hit!(trace.events.switches, t = t, prev = thread, next = thread, cpu = cpu, lock = LockId(id));
    hit!(trace.events.wakes, t = t, wakee = thread, waker = thread, cpu = cpu, lock = LockId(id));
    hit!(trace.events.futexes, lock = LockId(id), owner = thread, t = t, thread = thread);
    hit!(trace.events.losses, from = t, to = t, cpu = cpu);
    if random.below(4) == 0 {
        trace.meta.cpus = id as u16;
    }
    if random.below(4) == 0 {
        trace.meta.duration_ns = big;
    }
    if random.below(8) == 0 {
        let n = trace.threads.len();
        trace.threads.parent[n - 1] = thread;
        trace.threads.start[n - 1] = t;
        trace.threads.end[n / 2] = t;
    }
}

#[test]
fn damaged_files_that_open_are_explained_or_refused() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("rules-{}.holdup", std::process::id()));
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut panics = Vec::new();
    for round in 0..300 {
        let mut trace = random_schedule(&mut random, round % 2 == 0);
        damage(&mut trace, &mut random);
        file::write(&trace, &path).unwrap();
        let trace = file::read(&path).unwrap();
        let run = || explain(&trace, "x", &Options::default(), &NoDisassembler).map(drop);
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            panics.push(round);
        }
    }
    let _ = std::fs::remove_file(&path);
    assert!(panics.is_empty(), "{} of 300 panicked: {panics:?}", panics.len());
}

/// What a trace comes to by the end of chains, in milliseconds and waits, followed in parts of so many events.
fn in_parts(trace: &Trace, events: usize) -> (Vec<String>, Vec<String>) {
    let focus = Focus::new(trace, None);
    let classifier = Classifier::new(trace);
    let timeline = Timeline::with_parts(trace, &focus, &classifier, events).unwrap();
    let window = Window { from: 0, to: trace.meta.duration_ns };
    let spins = SpinSites::new(trace, &classifier, &NoDisassembler);
    let study = Study { trace, timeline: &timeline, focus: &focus, classifier: &classifier, spins: &spins, window };
    let mut begun = 0;
    let blame = blame(&study, |chunk| chunk.waits_begun().len(), |n| begun += n).unwrap();
    let mut sums: BTreeMap<String, (u64, f64, f64)> = BTreeMap::new();
    for (key, cell) in &blame.cells {
        // Timers and interrupts end waits for locks here: who holds one is then a guess, and may be another one.
        let end = if key.kind == WaitKind::Lock { String::new() } else { format!("{:?} ", key.terminal) };
        let sum = sums.entry(format!("{end}{:?} {:?}", key.kind, key.lock)).or_default();
        *sum = (sum.0 + cell.thread_ns, sum.1 + cell.cpu_ns, sum.2 + cell.rank_ns);
    }
    let ms = |ns: f64| ns / MS as f64;
    let cpu = &blame.cpu;
    let mut of_cpus = vec![format!("{begun} waits, {:?} {:?}", timeline.ran, timeline.parallelism)];
    let sums_of_cpus = [cpu.total, cpu.running, cpu.other, cpu.lost];
    of_cpus.push(sums_of_cpus.map(|ns| format!("{:.3}", ms(ns))).join(" "));
    let held = [cpu.held_up, cpu.runnable_idle, cpu.no_work].map(|ns| format!("{:.2}", ms(ns)));
    let cells = sums.into_iter().filter(|(_, s)| s.0 > 1000);
    let lines = cells.map(|(key, s)| format!("{key}: {:.2} {:.2} {:.2}", ms(s.0 as f64), ms(s.1), ms(s.2)));
    (of_cpus, lines.chain(held).collect())
}

/// Where a trace is cut to bound memory changes nothing: states, owners, waits that go on, losses.
#[test]
fn parts_do_not_change_the_answer() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut sound, mut same) = (0, 0);
    for round in 0..100 {
        let garbage = round % 2 == 1;
        let trace = random_schedule(&mut random, garbage);
        let whole = in_parts(&trace, usize::MAX / 2);
        for events in [40, 7, 1] {
            let parts = in_parts(&trace, events);
            // What contradicts itself is mended by what comes next, which a part does not know.
            let wanted = if garbage { 1 } else { 2 };
            assert_eq!(parts.0[..wanted], whole.0[..wanted], "round {round}, parts of {events} events");
            // In parts of a few events everybody's wait crosses a border, also those in circles, which are cut somewhere.
            if !garbage && events == 40 {
                sound += 1;
                same += i32::from(parts.1 == whole.1);
            }
        }
    }
    // In the others a timer ended a wait for a lock, or who woke a reader stops behind a border: who it was, and how soon, is a guess there.
    assert!(sound == 50 && same >= 42, "{same} of {sound} are the same by the ends of chains");
}

/// Where no time passes between many events, as in a log whose clock went back, parts are cut within an instant: no time gets lost.
#[test]
fn crowded_instants_are_cut_too() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for round in 0..20 {
        let trace = schedule_of_instants(&mut random, round % 2 == 1, 100.0);
        let (focus, classifier) = (Focus::new(&trace, None), Classifier::new(&trace));
        let timeline = Timeline::with_parts(&trace, &focus, &classifier, 7).unwrap();
        assert!(timeline.len() >= 10, "{} parts of 500 events at 6 instants", timeline.len());
        let (whole, parts) = (in_parts(&trace, usize::MAX / 2), in_parts(&trace, 7));
        assert_eq!(parts.0[..1], whole.0[..1], "round {round}");
    }
}

/// Whichever parts are looked at, a wait has the number that it has in the whole trace, and is the same.
#[test]
fn waits_keep_their_numbers() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..20 {
        let trace = random_schedule(&mut random, false);
        let (focus, classifier) = (Focus::new(&trace, None), Classifier::new(&trace));
        let whole = build(&trace, &focus, &classifier).unwrap();
        let timeline = Timeline::with_parts(&trace, &focus, &classifier, 20).unwrap();
        let (parts, waits) = (timeline.len(), whole.waits.len());
        assert!(parts > 5 && waits > 50 && timeline.first_wait(parts) == waits as u64, "round {round}: {parts} parts");
        for range in (0..parts).flat_map(|first| [first..parts, first..first + 1, first..parts.min(first + 3)]) {
            let some = timeline.range(range.clone()).unwrap();
            for (i, wait) in some.waits.iter().enumerate() {
                let Some(number) = some.number(i) else {
                    assert!(wait.start < some.from || wait.start == some.from && i < some.carried, "round {round}");
                    continue;
                };
                let same = &whole.waits[number as usize];
                assert_eq!(
                    (wait.thread, wait.start, wait.woken),
                    (same.thread, same.start, same.woken),
                    "round {round}"
                );
                assert_eq!(some.index(number), Some(i));
                assert!(timeline.part_of_wait(number).is_some_and(|part| range.contains(&part)));
            }
        }
        assert_eq!(timeline.part_of_wait(waits as u64), None);
        assert_eq!((timeline.up_to(3, 40), timeline.up_to(3, 20 * parts)), (2..4, 0..parts));
    }
}

/// How long a trace is without each thing that one waited for, and without all up to each, followed in parts of so many events.
fn lengths(trace: &Trace, events: usize) -> Lengths {
    let focus = Focus::new(trace, None);
    let classifier = Classifier::new(trace);
    let timeline = Timeline::with_parts(trace, &focus, &classifier, events).unwrap();
    let window = Window { from: 0, to: trace.meta.duration_ns };
    // What is taken out is the same, however the trace is cut.
    let whole = Timeline::new(trace, &focus, &classifier).unwrap();
    let spins = SpinSites::new(trace, &classifier, &NoDisassembler);
    let study = Study { trace, timeline: &whole, focus: &focus, classifier: &classifier, spins: &spins, window };
    let blame = blame(&study, |_| (), |()| ()).unwrap();
    let mut cells: Vec<_> = blame.spans.iter().filter(|(key, _)| key.terminal.holds_up()).collect();
    cells.sort_by_key(|(key, _)| **key);
    let of = |cells: &[(&Key, &Vec<Span>)]| {
        let mut taken = Taken::default();
        cells.iter().for_each(|(key, spans)| taken.add(key, spans));
        taken
    };
    let cells = &cells[..cells.len().min(AT_ONCE / 2)];
    let one = (0..cells.len()).map(|n| of(&cells[n..=n]));
    let taken: Vec<Taken> = one.chain((0..cells.len()).map(|n| of(&cells[..=n]))).collect();
    replay(&Study { timeline: &timeline, ..study }, &blame, &taken).unwrap()
}

/// Taking something out makes no run longer, taking more out makes it no longer than taking out less, and none is longer than it was.
#[test]
fn a_run_is_no_longer_without_something() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut shorter, mut bounds) = (0, 0);
    for round in 0..80 {
        let found = lengths(&random_schedule(&mut random, round % 4 == 3), usize::MAX / 2);
        let all = found.unchanged;
        assert!(all.path <= found.duration && all.work <= found.duration * found.cpus as u64, "round {round}: {all:?}");
        let is_within = |less: Length, more: Length| less.path <= more.path && less.work <= more.work;
        let cells = found.without.len() / 2;
        for n in 0..cells {
            let (one, many) = (found.without[n], found.without[cells + n]);
            let before = if n == 0 { None } else { found.without[cells + n - 1] };
            for more in [Some(all), one, before].into_iter().flatten() {
                assert!(many.is_none_or(|many| is_within(many, more)), "round {round}: {many:?} of {more:?}");
            }
            shorter += usize::from(one.is_some_and(|one| one.path < all.path));
            let bound = bound(&found, n);
            assert!(bound.is_none_or(|b| (1.0..=10.0).contains(&b)), "round {round}: {bound:?}");
            bounds += usize::from(bound.is_some());
        }
    }
    assert!(shorter > 30 && bounds > 30, "{shorter} made the path shorter, {bounds} have a bound");
}

/// Nor where it is cut.
#[test]
fn parts_do_not_change_how_long_a_run_is() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..60 {
        let trace = random_schedule(&mut random, false);
        let whole = lengths(&trace, usize::MAX / 2);
        for events in [40, 7] {
            assert_eq!(lengths(&trace, events), whole, "round {round}, parts of {events} events");
        }
    }
}
