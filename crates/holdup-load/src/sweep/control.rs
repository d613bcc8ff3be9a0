//! What the machine itself gives several threads: work that shares nothing and touches no memory.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::{allowed_cpus, restrict_to};

/// Rounds, of which the quickest counts: a host or a neighbour that takes a CPU away only ever adds.
const ROUNDS: usize = 7;
/// Additions of each thread in a round: some 20 ms.
const STEPS: u64 = 8_000_000;

/// How many times as much CPU time arithmetic takes on `n` threads, each on a CPU of its own, as on one: about 1 where every
/// CPU is a core of its own, up to 2 where two are one core. `None` if `n` is more than there are CPUs. Takes a third of a second.
pub fn arithmetic(n: usize) -> Option<f64> {
    let cpus = allowed_cpus();
    if n > cpus.len() {
        return None;
    }
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (least, count) in least.iter_mut().zip([1, n]) {
            *least = least.min(together(&cpus[..count])?);
        }
    }
    Some(least[1] / least[0])
}

/// The mean CPU time of threads that calculate at the same time, in seconds.
fn together(cpus: &[usize]) -> Option<f64> {
    let barrier = &Barrier::new(cpus.len());
    let times: Option<Vec<f64>> = thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || one(cpu, barrier))).collect();
        threads.into_iter().map(|thread| thread.join().ok()?).collect()
    });
    let times = times?;
    Some(times.iter().sum::<f64>() / times.len() as f64)
}

fn one(cpu: usize, barrier: &Barrier) -> Option<f64> {
    let pinned = restrict_to(&[cpu]);
    barrier.wait();
    pinned.ok()?;
    let began = clock()?;
    black_box(calculate(black_box(STEPS)));
    Some((clock()? - began).as_secs_f64())
}

fn clock() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

/// Independent chains of multiplications, enough of them to keep a core's multiplier busy: a single chain would leave room for
/// a sibling.
fn calculate(steps: u64) -> u64 {
    let mut chains = [1_u64, 2, 3, 5, 7, 11];
    for step in 0..steps {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step;
        }
    }
    chains.iter().fold(0, |sum, chain| sum ^ chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_more_costs_the_same_or_more() {
        let all = allowed_cpus().len();
        let factor = arithmetic(all).expect("these CPUs can be used");
        // No limit above: the host may take CPUs away.
        assert!(factor > 0.5 && factor.is_finite(), "{factor}");
        assert_eq!(arithmetic(all + 1), None);
        assert_eq!(allowed_cpus().len(), all, "the calling thread keeps its CPUs");
    }
}
