//! How often CPUs are sampled: as often as a third of the budget allows, by what a sample takes here.
//!
//! In a guest the timer's interrupt goes through the host, and costs several times what it does on the machine itself.

use std::time::Duration;

use holdup_base::stats::median;
use holdup_trace::Nanos;

use crate::clock;
use crate::options::FREQ;
use crate::perf::Event;

/// What an interruption takes where it cannot be measured.
const USUAL: Nanos = Nanos(3_000);
/// What the program at a sample takes, and whoever writes its stack: by pgbench, whose stacks are seldom the same.
const PROGRAM: Nanos = Nanos(10_000);
/// How much of the budget samples may cost.
const SHARE: f64 = 1.0 / 3.0;
/// With fewer samples a second, seconds say nothing of where time goes.
const LEAST: f64 = 49.0;

/// How long this thread is sampled, how often, and what is too short to be a sample.
const LENGTH: Duration = Duration::from_millis(4);
const OFTEN: u32 = 8_000;
const NOISE: u64 = 700;
/// Gaps that tell something together: timers of others are among them.
const ENOUGH: usize = 12;

/// What a sample takes from whoever runs, beside the program at it: the median of the gaps that this thread sees, which does
/// nothing but look at the clock while it is sampled.
pub(crate) fn interruption(cycles: bool) -> Nanos {
    let Some(_event) = clock::cpu().and_then(|cpu| Event::sampling(cpu, OFTEN, cycles).ok()) else { return USUAL };
    let gaps = gaps(LENGTH);
    if gaps.len() < ENOUGH {
        return USUAL;
    }
    Nanos(median(gaps.into_iter().map(|gap| gap as f64)) as u64)
}

fn gaps(length: Duration) -> Vec<u64> {
    let begin = clock::now();
    let (mut last, mut gaps) = (begin, Vec::new());
    while u128::from(last - begin) < length.as_nanos() {
        let now = clock::now();
        if now - last > NOISE {
            gaps.push(now - last);
        }
        last = now;
    }
    gaps
}

/// Samples per second and CPU that a `budget` affords, a share of the machine, if each takes an `interruption`.
pub(crate) fn frequency(budget: f64, interruption: Nanos) -> u32 {
    let each = (interruption + PROGRAM).seconds();
    (budget * SHARE / each).clamp(LEAST, f64::from(FREQ)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_samples_are_few() {
        assert_eq!(frequency(0.03, Nanos(0)), FREQ);
        assert_eq!(frequency(0.03, Nanos(10_000)), 500);
        assert_eq!(frequency(0.01, Nanos(10_000)), 167);
        assert_eq!(frequency(0.001, Nanos(10_000)), 49, "some are always taken");
        assert_eq!(frequency(1.0, Nanos(20_000)), FREQ, "and never more than usual");
    }

    #[test]
    fn an_interruption_takes_some_time() {
        let took = interruption(false);
        assert!(took > Nanos(100) && took < Nanos(3_000_000), "{took:?}");
    }
}
