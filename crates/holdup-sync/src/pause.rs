//! How long the processor's pause takes: measured, never inferred.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A unit of waiting, in nanoseconds: the pauses that come closest to it.
pub const UNIT_NS: f64 = 37.0;
/// The longest time between two looks at the condition, in nanoseconds.
pub const MAX_BLIND_NS: f64 = 272.0;

const KEPT: usize = 8;
const MEASURED: Duration = Duration::from_micros(1);
const REMEASURED: Duration = Duration::from_secs(4);

/// What a pause costs, from the last eight measurements.
///
/// The pause of a processor takes from 4 to 60 ns, depending on its generation and, under a hypervisor, not on what it
/// says it is. A spin loop that counts pauses therefore waits ten times too long or too short somewhere.
///
/// The method is that of .NET's `YieldProcessorNormalization`: pauses for about 1 µs, eight times, of which the *least*
/// counts, as preemption and interrupts only ever add. One more measurement every 4 s replaces the oldest, so that the
/// number follows the clock frequency and a migration to another host.
///
/// Pause and clock are the caller's, so that tests and laboratories can put slower ones in their place.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Nanoseconds per pause.
    ring: [f64; KEPT],
    next: usize,
}

impl Calibration {
    /// Measures eight times, about 8 µs in all with a pause of the processor.
    ///
    /// `now` is a time since any fixed moment.
    pub fn measure(mut pause: impl FnMut(), mut now: impl FnMut() -> Duration) -> Self {
        let ring = std::array::from_fn(|_| once(&mut pause, &mut now));
        Calibration { ring, next: 0 }
    }

    /// Measures once more, and forgets the oldest measurement.
    pub fn remeasure(&mut self, mut pause: impl FnMut(), mut now: impl FnMut() -> Duration) {
        self.ring[self.next] = once(&mut pause, &mut now);
        self.next = (self.next + 1) % KEPT;
    }

    /// Nanoseconds that one pause takes: the least of the measurements kept.
    pub fn pause_ns(&self) -> f64 {
        self.ring.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Pauses that come closest to 37 ns; at least 1, which is longer where a single pause is.
    pub fn pauses_per_unit(&self) -> u32 {
        (UNIT_NS / self.pause_ns()).round().max(1.0) as u32
    }

    /// Nanoseconds that a unit of [`pauses_per_unit`](Self::pauses_per_unit) takes.
    pub fn unit_ns(&self) -> f64 {
        self.pause_ns() * f64::from(self.pauses_per_unit())
    }

    /// Units between two looks at a condition: 272 ns at most, but at least 1.
    pub fn max_units(&self) -> u32 {
        (MAX_BLIND_NS / self.unit_ns()).floor().max(1.0) as u32
    }
}

/// One measurement: rounds of pauses, each twice as long, until one takes 1 µs. Only that one counts, so that reading the
/// clock is a few percent of it.
fn once(pause: &mut impl FnMut(), now: &mut impl FnMut() -> Duration) -> f64 {
    let mut pauses = 8u32;
    loop {
        let start = now();
        (0..pauses).for_each(|_| pause());
        let elapsed = now().saturating_sub(start);
        // A clock that stands still must not hold us here.
        if elapsed >= MEASURED || pauses >= 1 << 16 {
            return (elapsed.as_nanos() as f64 / f64::from(pauses)).max(0.01);
        }
        pauses *= 2;
    }
}

/// The calibration of the processor's own pause, for all spinning threads of this process.
struct Shared {
    calibration: Mutex<Calibration>,
    origin: Instant,
    /// Nanoseconds after `origin` when the next measurement is due.
    due: AtomicU64,
    /// `pauses_per_unit` above and `max_units` below 2³².
    limits: AtomicU64,
}

impl Shared {
    fn get() -> &'static Shared {
        static SHARED: OnceLock<Shared> = OnceLock::new();
        SHARED.get_or_init(|| {
            let origin = Instant::now();
            let calibration = Calibration::measure(core::hint::spin_loop, || origin.elapsed());
            let (due, limits) = (AtomicU64::new(due(origin)), AtomicU64::new(pack(&calibration)));
            Shared { calibration: Mutex::new(calibration), origin, due, limits }
        })
    }

    /// Measures once more if that is due and no other thread is at it.
    fn refresh(&self) {
        if self.origin.elapsed().as_nanos() < u128::from(self.due.load(Relaxed)) {
            return;
        }
        if let Ok(mut calibration) = self.calibration.try_lock() {
            calibration.remeasure(core::hint::spin_loop, || self.origin.elapsed());
            self.limits.store(pack(&calibration), Relaxed);
            self.due.store(due(self.origin), Relaxed);
        }
    }
}

fn due(origin: Instant) -> u64 {
    u64::try_from((origin.elapsed() + REMEASURED).as_nanos()).unwrap_or(u64::MAX)
}

fn pack(calibration: &Calibration) -> u64 {
    u64::from(calibration.pauses_per_unit()) << 32 | u64::from(calibration.max_units())
}

/// Pauses per unit and the most units between two looks, for the processor's own pause.
pub(crate) fn limits() -> (u32, u32) {
    let shared = Shared::get();
    shared.refresh();
    let limits = shared.limits.load(Relaxed);
    ((limits >> 32) as u32, limits as u32)
}

impl Calibration {
    /// The calibration of the processor's own pause that [`SpinWait`](crate::SpinWait) goes by.
    ///
    /// The first call measures, for about 20 µs; a call 4 s or more after the last measurement measures once, for 2 µs.
    pub fn current() -> Self {
        let shared = Shared::get();
        shared.refresh();
        shared.calibration.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A pause of a given length on a clock of its own.
    fn simulated(pause_ns: f64) -> Calibration {
        let clock = Cell::new(0.0);
        Calibration::measure(|| clock.set(clock.get() + pause_ns), || Duration::from_nanos(clock.get() as u64))
    }

    #[test]
    fn the_unit_is_37_ns_whatever_a_pause_takes() {
        for pause_ns in [2.0, 4.4, 9.0, 14.0, 43.0, 44.0] {
            let calibration = simulated(pause_ns);
            let unit = f64::from(calibration.pauses_per_unit()) * pause_ns;
            assert!((27.75..=46.25).contains(&unit), "a pause of {pause_ns} ns makes a unit of {unit} ns");
            let blind = f64::from(calibration.max_units()) * unit;
            assert!((200.0..=274.0).contains(&blind), "a pause of {pause_ns} ns looks every {blind} ns");
        }
    }

    #[test]
    fn a_pause_beyond_the_unit_is_the_unit() {
        let calibration = simulated(400.0);
        assert_eq!((calibration.pauses_per_unit(), calibration.max_units()), (1, 1));
    }

    #[test]
    fn preemption_does_not_count_and_a_new_frequency_does() {
        let (clock, pause_ns, calls) = (Cell::new(0.0), Cell::new(5.0), Cell::new(0));
        let pause = || {
            calls.set(calls.get() + 1);
            let preempted = if calls.get() == 1200 { 3e6 } else { 0.0 };
            clock.set(clock.get() + pause_ns.get() + preempted);
        };
        let now = || Duration::from_nanos(clock.get() as u64);
        let mut calibration = Calibration::measure(pause, now);
        assert!((4.9..5.1).contains(&calibration.pause_ns()), "{}", calibration.pause_ns());
        pause_ns.set(20.0);
        (0..7).for_each(|_| calibration.remeasure(pause, now));
        assert!(calibration.pause_ns() < 6.0, "one old measurement is left");
        calibration.remeasure(pause, now);
        assert!((19.0..21.0).contains(&calibration.pause_ns()), "{}", calibration.pause_ns());
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million pauses: minutes there, and no unsafe code")]
    fn a_clock_that_stands_still_ends() {
        let calibration = Calibration::measure(|| (), || Duration::ZERO);
        assert!(calibration.pauses_per_unit() > 1);
    }
}
