//! How long named runtimes spin before they sleep.
//!
//! The figures are those of their sources: constants of the spin loops with default settings, when the lock stays taken
//! all the time. Adaptive ones are at their maximum.

use crate::pause::Pause;

/// What a spin loop counts.
#[derive(Debug, Clone, Copy)]
pub enum Budget {
    /// Pauses, by the number of CPUs: what it takes depends on the processor.
    Pauses(fn(u64) -> u64),
    /// Iterations of a calibrated unit: what it takes does not depend on the processor.
    Iterations(u32),
}

/// The spinning of one runtime.
#[derive(Debug)]
pub struct Policy {
    /// The runtime, with versions.
    pub name: &'static str,
    /// What it counts.
    pub budget: Budget,
}

/// The policies known here.
pub const POLICIES: &[Policy] = &[
    Policy { name: ".NET Framework ≤ 4.7, .NET Core ≤ 2.0", budget: Budget::Pauses(old_dotnet_pauses) },
    Policy { name: ".NET Framework 4.8, .NET Core ≥ 2.1", budget: Budget::Iterations(DOTNET_ITERATIONS) },
    Policy { name: "libgomp barrier (300,000 turns)", budget: Budget::Pauses(|_| 300_000) },
    Policy { name: "InnoDB (30 × 6 × 50 at most)", budget: Budget::Pauses(|_| 9_000) },
    Policy { name: "HotSpot monitor (5,000 at most)", budget: Budget::Pauses(|_| 5_000) },
    Policy { name: "folly MicroSpinLock (4,000)", budget: Budget::Pauses(|_| 4_000) },
    Policy { name: "LiTL spin-then-park (2,700)", budget: Budget::Pauses(|_| 2_700) },
    Policy { name: "PostgreSQL s_lock (1,000 at most)", budget: Budget::Pauses(|_| 1_000) },
    Policy { name: "Go mutex (4 × 30)", budget: Budget::Pauses(|cpus| if cpus > 1 { 120 } else { 0 }) },
    Policy { name: "glibc adaptive mutex (100 at most)", budget: Budget::Pauses(|_| 100) },
    Policy { name: "Rust std Mutex (100)", budget: Budget::Pauses(|_| 100) },
    Policy { name: "parking_lot (2 + 4 + 8)", budget: Budget::Pauses(|_| 14) },
];

/// .NET's calibrated unit, in nanoseconds (YieldProcessorNormalization).
const UNIT_NS: f64 = 37.0;
/// The longest that it spins between two looks at the lock, in nanoseconds.
const MAX_BLIND_NS: f64 = 272.0;
/// Spins of .NET's monitor before it sleeps, since 2.1.
const DOTNET_ITERATIONS: u32 = 30;
/// Repetitions of .NET's back-off before 2.1.
const OLD_REPETITIONS: u64 = 10;
/// Pauses of its first round, growing threefold while below 20,000 for each CPU.
const OLD_FIRST: u64 = 50;

impl Policy {
    /// Nanoseconds of spinning with this many CPUs, where a pause takes `pause_ns`.
    pub fn spin_ns(&self, cpus: u64, pause_ns: f64) -> f64 {
        match self.budget {
            Budget::Pauses(count) => count(cpus) as f64 * pause_ns,
            Budget::Iterations(n) => (0..n).map(|i| units(i, pause_ns) * unit_pauses(pause_ns) as f64 * pause_ns).sum(),
        }
    }

    /// Spins that long.
    pub fn spin(&self, cpus: u64, pause: Pause, pause_ns: f64) {
        match self.budget {
            Budget::Pauses(count) => pause.spin(count(cpus)),
            Budget::Iterations(_) => _ = Backoff::Present.wait_until(pause, pause_ns, || false),
        }
    }
}

/// The two back-offs of .NET, whose change cured the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// Rounds of pauses, by the number of CPUs.
    Old {
        /// CPUs of the machine that it would run on.
        cpus: u64,
    },
    /// Rounds of at most 272 ns, by a measured pause.
    Present,
}

impl Backoff {
    /// Spins until `ready`, looking only between rounds. False if it has spun enough: the caller should sleep.
    pub fn wait_until(self, pause: Pause, pause_ns: f64, mut ready: impl FnMut() -> bool) -> bool {
        match self {
            Backoff::Old { cpus } => (0..OLD_REPETITIONS).any(|_| {
                let seen = old_rounds(cpus).any(|pauses| {
                    let seen = ready();
                    if !seen {
                        pause.spin(pauses);
                    }
                    seen
                });
                if !seen {
                    std::thread::yield_now();
                }
                seen
            }),
            Backoff::Present => (0..DOTNET_ITERATIONS).any(|i| {
                let seen = ready();
                if !seen {
                    pause.spin(units(i, pause_ns) as u64 * unit_pauses(pause_ns));
                }
                seen
            }),
        }
    }
}

/// Rounds of one repetition of the old back-off, in pauses.
pub fn old_rounds(cpus: u64) -> impl Iterator<Item = u64> {
    let first = std::iter::once(OLD_FIRST);
    let more = std::iter::successors(Some(OLD_FIRST * 3), |d| Some(d * 3)).take_while(move |d| *d < 20_000 * cpus);
    first.chain(more)
}

fn old_dotnet_pauses(cpus: u64) -> u64 {
    if cpus > 1 { OLD_REPETITIONS * old_rounds(cpus).sum::<u64>() } else { 0 }
}

/// Pauses of one calibrated unit.
fn unit_pauses(pause_ns: f64) -> u64 {
    (UNIT_NS / pause_ns).round().max(1.0) as u64
}

/// Units of iteration `i`: doubled each time, up to 272 ns.
fn units(i: u32, pause_ns: f64) -> f64 {
    let most = (MAX_BLIND_NS / (unit_pauses(pause_ns) as f64 * pause_ns)).floor().max(1.0);
    f64::from(1u32 << i.min(20)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_back_off_issues_the_published_number_of_pauses() {
        assert_eq!(old_dotnet_pauses(24), 4_920_500);
        assert_eq!(old_dotnet_pauses(48), 4_920_500);
        let old = &POLICIES[0];
        assert!((old.spin_ns(24, 43.0) / 1e6 - 211.6).abs() < 0.1, "milliseconds at 43 ns");
    }

    #[test]
    fn the_present_back_off_takes_as_long_everywhere() {
        let present = &POLICIES[1];
        let (fast, slow) = (present.spin_ns(24, 4.4), present.spin_ns(24, 43.0));
        assert!((fast / slow - 1.0).abs() < 0.1, "{fast} {slow}");
    }

    #[test]
    fn waiting_ends_when_ready_or_spent() {
        let mut looks = 0;
        let third = || {
            looks += 1;
            looks == 3
        };
        assert!(Backoff::Present.wait_until(Pause::REAL, 4.4, third));
        assert!(Backoff::Old { cpus: 2 }.wait_until(Pause::REAL, 4.4, || true));
        assert!(!Backoff::Present.wait_until(Pause::REAL, 4.4, || false));
    }
}
