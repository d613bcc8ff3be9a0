//! From CPU to CPU: a cache line, and a sleeping thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use holdup_sync::Padded;

use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::case::{self, Work};
use crate::harness::pool::{Job, Pool};
use crate::harness::rounds::Measured;
use crate::harness::{clock, stats};
use crate::knobs::{CPUS, Kind, Knob, ROUNDS};
use crate::locks::backoff::Futex;
use crate::result::{Series, Verdict};

/// Matrices of hand-over times between CPUs.
pub const EXPERIMENT: Experiment = Experiment {
    name: "handoff",
    about: "time to hand a cache line, and a wake-up, from each CPU to each other",
    axis: TO_CPU,
    knobs: &[MOST_CPUS, CPUS, ROUNDS],
    run,
};

/// The axis of a matrix: from the CPU of a series to that of a place.
pub const TO_CPU: &str = "to CPU";

const MOST_CPUS: Knob = Knob {
    name: "most_cpus",
    about: "of how many CPUs, evenly chosen, the matrices are made",
    kind: Kind::Number { min: 1.0, max: 256.0 },
    quick: "4",
    full: "16",
};

/// Hand-overs of a line in a round; a round takes about a tenth of a millisecond.
const LINE_TURNS: u64 = 1000;
/// Wake-ups in a round.
const WAKE_TURNS: u64 = 20;
/// Whoever was woken works for so many nanoseconds before it wakes the other one, which is asleep by then: two that only took turns
/// would each come to wait when its turn has come already, and never sleep.
const WORK_NS: u64 = 20_000;

/// What is handed over.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Line,
    Wake,
}

fn run(session: &mut Session) -> Result<Found> {
    let cpus = chosen(session.values.cpus(), session.values.count("most_cpus"));
    let rounds = session.values.count("rounds");
    let pairs: Vec<(usize, usize)> = cpus.iter().flat_map(|&a| cpus.iter().map(move |&b| (a, b))).collect();
    let (mut lines, mut wakes) = (Vec::new(), Vec::new());
    for (i, &(from, to)) in pairs.iter().enumerate() {
        if from != to {
            lines.push((from, to, measure(What::Line, from, to, rounds)));
        }
        wakes.push((from, to, measure(What::Wake, from, to, rounds)));
        (session.tick)(i as f64 / pairs.len() as f64);
    }
    let verdict = verdict(&lines, &wakes);
    let mut series = matrix("cache line", &cpus, &lines);
    series.extend(matrix("wake-up", &cpus, &wakes));
    let notes = vec![
        "a line's round trip is halved; a wake-up is of a thread that sleeps, timed until it runs; that of a CPU to itself is a \
         switch of threads"
            .to_owned(),
    ];
    Ok(Found { series, notes, verdict })
}

fn chosen(cpus: Vec<usize>, most: usize) -> Vec<usize> {
    let step = cpus.len().div_ceil(most).max(1);
    cpus.into_iter().step_by(step).collect()
}

fn measure(what: What, from: usize, to: usize, rounds: usize) -> Measured {
    let cpus = if from == to { vec![from] } else { vec![from, to] };
    let mut pool: Pool<Work> = Pool::new(cpus);
    // The first warms caches and threads up.
    let all: Vec<Vec<Work>> = (0..=rounds).map(|_| pool.round(2, exchange(what))).collect();
    // On one CPU the two take turns by design.
    Measured::from_rounds(all[1..].to_vec(), from == to)
}

/// The two workers take turns; each turn is one operation of one of them.
fn exchange(what: What) -> Job<Work> {
    let turn: Arc<Padded<AtomicU64>> = Arc::default();
    let awake: Arc<Padded<Baton>> = Arc::default();
    let turns = if what == What::Line { LINE_TURNS } else { WAKE_TURNS };
    Arc::new(move |who, line| {
        case::run_once(line, |work| {
            for mine in (who as u64..2 * turns).step_by(2) {
                match what {
                    What::Line => await_line(&turn, mine),
                    What::Wake => work.waits.extend(await_wake(&awake, mine as u32)),
                }
            }
            work.ops = turns;
        })
    })
}

fn await_line(turn: &AtomicU64, mine: u64) {
    while turn.load(Ordering::Acquire) != mine {
        std::hint::spin_loop();
    }
    turn.store(mine + 1, Ordering::Release);
}

/// Whose turn it is, and since when.
struct Baton {
    turn: Futex,
    since: AtomicU64,
}

impl Default for Baton {
    fn default() -> Self {
        Baton { turn: Futex(AtomicU32::new(0)), since: AtomicU64::new(0) }
    }
}

/// How long it took from the other's wake-up until this thread ran; `None` in the first turn of all.
fn await_wake(baton: &Baton, mine: u32) -> Option<u64> {
    loop {
        match baton.turn.0.load(Ordering::Acquire) {
            now if now == mine => break,
            now => baton.turn.wait(now),
        }
    }
    let begin = clock::now_ns();
    let took = (mine > 0).then(|| begin.saturating_sub(baton.since.load(Ordering::Relaxed)));
    while clock::now_ns() < begin + WORK_NS {
        std::hint::spin_loop();
    }
    baton.since.store(clock::now_ns(), Ordering::Relaxed);
    baton.turn.0.store(mine + 1, Ordering::Release);
    baton.turn.wake(1);
    took
}

fn matrix(what: &str, cpus: &[usize], measured: &[(usize, usize, Measured)]) -> Vec<Series> {
    let row = |&from: &usize| {
        let to = measured.iter().filter(|m| m.0 == from);
        let points = to.filter_map(|(_, to, m)| m.point_of(*to as f64, hand_over_ns)).collect();
        Series { name: format!("{what} from CPU {from}"), unit: "ns".to_owned(), axis: None, points }
    };
    cpus.iter().map(row).filter(|s| !s.points.is_empty()).collect()
}

/// The median of the hand-overs that were timed one by one, else half a round trip: each worker's operation is a whole one.
fn hand_over_ns(round: &[Work]) -> f64 {
    if round.iter().any(|w| !w.waits.is_empty()) {
        return stats::median(round.iter().flat_map(|w| &w.waits).map(|&ns| ns as f64));
    }
    let slowest = round.iter().map(|w| w.elapsed).max().unwrap_or(0);
    let ops: u64 = round.iter().map(|w| w.ops).sum();
    slowest as f64 / ops.max(1) as f64
}

fn verdict(lines: &[(usize, usize, Measured)], wakes: &[(usize, usize, Measured)]) -> Verdict {
    let median = |m: &Measured| m.point_of(0.0, hand_over_ns).map(|p| p.median);
    let range = |values: Vec<f64>| {
        let (low, high) = values.iter().fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
        (!values.is_empty()).then_some((low, high))
    };
    let line = range(lines.iter().filter_map(|(_, _, m)| median(m)).collect());
    let across = range(wakes.iter().filter(|(a, b, _)| a != b).filter_map(|(_, _, m)| median(m)).collect());
    let (Some((near, far)), Some((_, wake))) = (line, across) else {
        let because = "a hand-over needs two CPUs and a clean round".to_owned();
        return Verdict { reproduced: false, because, advice: "allow the experiment two CPUs (--cpus)".to_owned() };
    };
    Verdict {
        reproduced: wake > 5.0 * far,
        because: format!(
            "a cache line takes {near:.0} to {far:.0} ns from one CPU to another, a wake-up up to {:.1} µs: as long as {:.0} \
             hand-overs of a line",
            wake / 1e3,
            wake / far
        ),
        advice:
            "spin about as long as a wake-up takes before sleeping, and keep what hands over often on neighbouring CPUs"
                .to_owned(),
    }
}
