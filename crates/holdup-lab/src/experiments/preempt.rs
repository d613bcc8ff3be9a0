//! Queueing locks when there are more threads than CPUs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use holdup_base::numbers::duration;
use holdup_sync::{Gate, Padded};

use super::atomics::plain_add;
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::case::{self, Work};
use crate::harness::clock;
use crate::harness::pool::{Job, Pool};
use crate::harness::rounds::Measured;
use crate::knobs::{self, CPUS, Knob};
use crate::locks::{Lock, Std, Ticket, Ttas};
use crate::result::{Point, Series, Verdict};

/// The collapse of first-come-first-served spinning.
pub const EXPERIMENT: Experiment = Experiment {
    name: "preempt",
    about: "first-come-first-served spinning collapses with more threads than CPUs; a gate cures it",
    axis: "threads",
    knobs: &[PER_CPU, CPUS, PREEMPT_ROUNDS, ROUND_MS],
    run,
};

const PER_CPU: Knob = Knob {
    name: "per_cpu",
    about: "threads for each CPU",
    kind: knobs::Kind::Counts { min: 1.0, max: 16.0 },
    quick: "1,2,3",
    full: "1,2,3,4",
};
const PREEMPT_ROUNDS: Knob = Knob {
    name: "rounds",
    about: "rounds for each case",
    kind: knobs::Kind::Number { min: 1.0, max: 1000.0 },
    quick: "6",
    full: "30",
};
const ROUND_MS: Knob = Knob {
    name: "round_ms",
    about: "length of a round in milliseconds; a lock that collapses is left at its end",
    kind: knobs::Kind::Number { min: 1.0, max: 10_000.0 },
    quick: "25",
    full: "100",
};

/// A name, and what makes a new lock of the kind with its user.
type Kind = (&'static str, Box<dyn Fn() -> Contender>);

/// Takes the lock again and again until the time is over; counts into the work.
type Contender = Arc<dyn Fn(usize, Round, &mut Work) + Send + Sync>;

/// When acquisitions begin to count, and when they end.
#[derive(Clone, Copy)]
struct Round {
    counted_from: u64,
    end: u64,
}

impl Round {
    /// As how many an acquisition counts that begins now: as none at first; `None` when the round is over.
    fn counts(self) -> Option<u64> {
        let now = clock::now_ns();
        (now < self.end).then(|| u64::from(now >= self.counted_from))
    }
}

/// The first half of a round counts nothing: until the first threads lose their CPUs they queue as if there were no others, which on
/// many CPUs is more acquisitions than all that follow.
const UNCOUNTED: u64 = 2;

fn run(session: &mut Session) -> Result<Found> {
    let cpus = session.values.cpus();
    let mut pool: Pool<Work> = Pool::new(cpus.clone());
    let length = (session.values.number("round_ms") * 1e6) as u64;
    let (rounds, per_cpu) = (session.values.count("rounds"), session.values.counts("per_cpu"));
    let kinds = contenders(cpus.len());
    let mut measured: Vec<Vec<Vec<Vec<Work>>>> = vec![vec![Vec::new(); per_cpu.len()]; kinds.len()];
    for turn in 0..rounds {
        for (kind, of_kind) in kinds.iter().zip(&mut measured) {
            for (times, rounds) in per_cpu.iter().zip(of_kind) {
                rounds.push(pool.round(times * cpus.len(), contend((kind.1)(), length)));
            }
        }
        (session.tick)((turn + 1) as f64 / rounds as f64);
    }
    let mut series: Vec<Series> = Vec::new();
    for ((name, _), of_kind) in kinds.iter().zip(measured) {
        let points = per_cpu.iter().zip(of_kind).filter_map(|(times, rounds)| {
            let between = |round: &[Work]| ns_between(round, length);
            Measured::from_rounds(rounds, *times > 1).point_of((times * cpus.len()) as f64, between)
        });
        series.push(Series {
            name: (*name).to_owned(),
            unit: "ns/acq".to_owned(),
            axis: None,
            points: points.collect(),
        });
    }
    let verdict = verdict(&series);
    Ok(Found { series, notes: Vec::new(), verdict })
}

/// Elapsed time for each acquisition by anyone in the part of a round of `length` that counts; a round without any counts as one.
fn ns_between(round: &[Work], length: u64) -> f64 {
    let elapsed = round.iter().map(|w| w.elapsed).max().unwrap_or(0);
    elapsed.saturating_sub(length / UNCOUNTED) as f64 / round.iter().map(|w| w.ops).sum::<u64>().max(1) as f64
}

fn contend(contender: Contender, length: u64) -> Job<Work> {
    Arc::new(move |who, line| {
        let begin = clock::now_ns();
        let round = Round { counted_from: begin + length / UNCOUNTED, end: begin + length };
        case::run_once(line, |work| contender(who, round, work))
    })
}

/// Locks by name; each round gets a new one, as a ticket that was left blocks its lock for ever.
fn contenders(cpus: usize) -> Vec<Kind> {
    vec![
        ("ticket", Box::new(|| ticket(None))),
        ("ticket behind a gate for one", Box::new(|| ticket(Some(1)))),
        ("ticket behind a gate for all CPUs", Box::new(move || ticket(Some(cpus)))),
        ("TTAS", Box::new(plain::<Ttas>)),
        ("std", Box::new(plain::<Std>)),
    ]
}

fn ticket(admitted: Option<usize>) -> Contender {
    let lock = Padded::new(Ticket::default());
    let count = Padded::new(AtomicU64::new(0));
    let gate = admitted.map(|n| Gate::new(n as u32));
    Arc::new(move |_, round, work| {
        while let Some(counts) = round.counts() {
            let _permit = gate.as_ref().map(Gate::enter);
            if lock.with_until(|| clock::now_ns() >= round.end, || plain_add(&count)).is_some() {
                work.ops += counts;
            }
        }
    })
}

fn plain<L: Lock + Default>() -> Contender {
    let lock = Padded::new(L::default());
    let count = Padded::new(AtomicU64::new(0));
    Arc::new(move |who, round, work| {
        while let Some(counts) = round.counts() {
            lock.with(who, || plain_add(&count));
            work.ops += counts;
        }
    })
}

/// So many times as long as the others take at the same number of threads is a collapse.
const COLLAPSE: f64 = 10.0;

fn verdict(series: &[Series]) -> Verdict {
    let Some(points) = series.first().map(|s| &s.points).filter(|p| p.len() > 1) else {
        return Verdict::without_clean_rounds();
    };
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let at = |name: &str| series.iter().find(|s| s.name == name)?.points.iter().find(|p| p.x == last.x);
    let of = |name: &str| at(name).map_or(0.0, |p| p.median);
    let time = |ns: f64| duration(ns / 1e9);
    let (gated, std) = (of("ticket behind a gate for one"), of("std"));
    // Beside the cure and a lock that sleeps, at as many threads: with a thread for each CPU it may be slow already.
    let others = ["ticket behind a gate for one", "std"].into_iter().filter_map(at);
    let collapsed = |other: &Point| last.median > COLLAPSE * other.median && last.low > other.high;
    Verdict {
        reproduced: others.into_iter().any(collapsed),
        because: format!(
            "a ticket lock takes {} from one acquisition to the next with {} threads and {} with {}, as the next in line is one \
             that does not run; there it takes {} behind a gate for one, and std takes {}",
            time(first.median),
            first.x,
            time(last.median),
            last.x,
            time(gated),
            time(std)
        ),
        advice: "never use a first-come-first-served spinlock in user space; let all but one or two threads sleep \
                 (holdup_sync::Gate)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_is_told_beside_what_does_not_collapse() {
        let series = |name: &str, medians: [f64; 2]| Series {
            name: name.to_owned(),
            unit: String::new(),
            axis: None,
            points: [2.0, 6.0].into_iter().zip(medians).map(|(x, m)| Point::of(x, [m])).collect(),
        };
        // Slow with two threads already, when the host runs one of the two CPUs at a time.
        assert!(verdict(&[series("ticket", [1200.0, 8397.0]), series("std", [150.0, 176.0])]).reproduced);
        assert!(!verdict(&[series("ticket", [100.0, 900.0]), series("std", [150.0, 176.0])]).reproduced);
    }
}
