//! How long waits of one class usually take.

use holdup_trace::{StringId, Trace};
use rustc_hash::FxHashMap;

use super::SHORTEST_NS;
use crate::classify::WaitKind;
use crate::intervals::Wait;

/// Waits that are measured by each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Of one program, of one kind, ended by one process (0 for none).
    Waits {
        /// The waiting program's name.
        program: StringId,
        /// For what.
        kind: WaitKind,
        /// In which call.
        syscall: i16,
        /// Whose thread ended it.
        waker: u32,
    },
    /// All that a program waits, whatever for.
    Program(StringId),
    /// How long the threads of one process are away from where they await events.
    Busy(u32),
}

impl Class {
    pub(super) fn of_wait(trace: &Trace, wait: &Wait) -> Self {
        let pid = |of: holdup_trace::ThreadIdx| trace.threads.pid.get(of.index()).copied().unwrap_or(0);
        let program = trace.threads.process.get(wait.thread.index()).copied().unwrap_or_default();
        let waker = if wait.waker.is_real() { pid(wait.waker) } else { 0 };
        Class::Waits { program, kind: wait.kind, syscall: wait.syscall, waker }
    }

    /// A wider class, for where too few belong to this one.
    const fn wider(self) -> Option<Self> {
        match self {
            Class::Waits { program, .. } => Some(Class::Program(program)),
            Class::Program(_) | Class::Busy(_) => None,
        }
    }
}

/// Two for each power of two of nanoseconds, up to half an hour.
const BUCKETS: usize = 84;
/// Fewer waits than this have no usual length.
const FEWEST: u64 = 20;
/// An unusual one is longer than the middle one by this factor …
const TIMES: u64 = 10;
/// … and of so many not more than one is.
const ONE_IN: u64 = 20;

/// A histogram of lengths.
#[derive(Debug, Clone)]
pub(super) struct Lengths([u32; BUCKETS]);

impl Default for Lengths {
    fn default() -> Self {
        Lengths([0; BUCKETS])
    }
}

/// The bucket of a length: two for each power of two.
fn bucket(ns: u64) -> usize {
    let power = ns.max(1).ilog2();
    let half = if power == 0 { 0 } else { (ns >> (power - 1)) & 1 };
    (2 * power as usize + half as usize).min(BUCKETS - 1)
}

/// The least length in a bucket.
fn least(bucket: usize) -> u64 {
    let power = bucket / 2;
    (1 << power) + if bucket % 2 == 1 { (1 << power) / 2 } else { 0 }
}

impl Lengths {
    fn add(&mut self, ns: u64) {
        let count = &mut self.0[bucket(ns)];
        *count = count.saturating_add(1);
    }

    fn absorb(&mut self, other: &Lengths) {
        self.0.iter_mut().zip(&other.0).for_each(|(count, more)| *count = count.saturating_add(*more));
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|&n| u64::from(n)).sum()
    }

    /// The middle length, or somewhat more.
    fn middle(&self) -> u64 {
        let half = self.count().div_ceil(2);
        let mut below = 0;
        let at = self.0.iter().position(|&n| {
            below += u64::from(n);
            below >= half
        });
        at.map_or(0, |at| least(at + 1))
    }

    fn at_least(&self, ns: u64) -> u64 {
        self.0.iter().skip(bucket(ns)).map(|&n| u64::from(n)).sum()
    }

    /// Whether so long a wait is far from the usual, and rare; `None` where nothing is usual.
    fn is_unusual(&self, ns: u64) -> Option<bool> {
        let count = self.count();
        let far = SHORTEST_NS.max(TIMES * self.middle());
        (count >= FEWEST).then(|| ns >= far && ONE_IN * self.at_least(far) <= count)
    }
}

/// Histograms by class.
#[derive(Debug, Default)]
pub(super) struct Classes(FxHashMap<Class, Box<Lengths>>);

impl Classes {
    pub(super) fn add(&mut self, class: Class, ns: u64) {
        self.0.entry(class).or_default().add(ns);
        if let Some(wider) = class.wider() {
            self.0.entry(wider).or_default().add(ns);
        }
    }

    pub(super) fn absorb(&mut self, earlier: Classes) {
        earlier.0.into_iter().for_each(|(class, lengths)| self.0.entry(class).or_default().absorb(&lengths));
    }

    /// Whether so long a wait is unusual in its class, or where that is too small in the wider one.
    pub(super) fn is_unusual(&self, class: Class, ns: u64) -> bool {
        let of = |class| self.0.get(&class).and_then(|lengths| lengths.is_unusual(ns));
        of(class).or_else(|| class.wider().and_then(of)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_halves_of_powers() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(bucket), [0, 2, 3, 4, 4, 5, 5, 6]);
        assert!((0..BUCKETS).all(|b| bucket(least(b)) == b || b == 1));
    }

    #[test]
    fn unusual_is_long_and_rare() {
        let mut lengths = Lengths::default();
        (0..100).for_each(|_| lengths.add(50_000));
        assert_eq!(lengths.is_unusual(100_000_000), Some(true));
        assert_eq!(lengths.is_unusual(9_000_000), Some(false));
        // What happens as a rule is not unusual, however long.
        (0..10).for_each(|_| lengths.add(100_000_000));
        assert_eq!(lengths.is_unusual(100_000_000), Some(false));
        let mut slow = Lengths::default();
        (0..100).for_each(|_| slow.add(20_000_000));
        assert_eq!(slow.is_unusual(100_000_000), Some(false));
        assert_eq!(Lengths::default().is_unusual(100_000_000), None);
    }
}
