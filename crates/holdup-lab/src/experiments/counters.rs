//! One count that all threads add to: who is exact, and what splitting it brings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdup_sync::{Padded, PerCpuCounter, StripedCounter};

use super::atomics::{plain_add, shared_core};
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::affinity;
use crate::harness::case::Case;
use crate::knobs::{CPUS, ROUND_US, ROUNDS, THREADS};
use crate::locks::{Lock, Std, Tas, Ttas};
use crate::result::{Outcome, Series, Verdict};

/// The ladder of the fifth story.
pub const EXPERIMENT: Experiment = Experiment {
    name: "counters",
    about: "a counter shared, partitioned, padded, per CPU; unsafe, interlocked and locked; with lost updates",
    axis: "threads",
    knobs: &[THREADS, CPUS, ROUNDS, ROUND_US],
    run,
};

/// Bytes of a cache line.
const LINE: usize = 64;

/// One cell of a counter.
trait Cell: Default + Send + Sync + 'static {
    fn add(&self, who: usize);
    fn value(&self) -> u64;
}

#[derive(Default)]
struct Unsafe(AtomicU64);

impl Cell for Unsafe {
    #[inline]
    fn add(&self, _who: usize) {
        plain_add(&self.0);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Interlocked(AtomicU64);

impl Cell for Interlocked {
    #[inline]
    fn add(&self, _who: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Locked<L> {
    lock: L,
    count: AtomicU64,
}

impl<L: Lock + Default> Cell for Locked<L> {
    #[inline]
    fn add(&self, who: usize) {
        self.lock.with(who, || plain_add(&self.count));
    }

    fn value(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

fn run(session: &mut Session) -> Result<Found> {
    let mut cases = Vec::new();
    cases.extend(layouts::<Unsafe>(session, "unsafe"));
    cases.extend(layouts::<Interlocked>(session, "interlocked"));
    cases.extend(layouts::<Locked<Ttas>>(session, "TTAS"));
    cases.extend(layouts::<Locked<Tas>>(session, "spinlock"));
    cases.extend(layouts::<Locked<Std>>(session, "lock"));
    cases.extend(per_cpu(session));
    let ladder = session.measure(cases);
    let mut series = ladder.time_per_op();
    let lost = ladder.series("% lost", ", lost updates", |m, x| m.lost_point(x).filter(|p| p.high > 0.0));
    series.extend(lost);
    let most = session.values.counts("threads").into_iter().max().unwrap_or(1);
    let verdict = verdict(&series, most);
    let mut notes = ladder.notes();
    notes.extend(shared_core(&series, "interlocked, partitioned"));
    Ok(Found { series, notes, verdict })
}

/// Shared, partitioned and partitioned without padding.
fn layouts<C: Cell>(session: &Session, how: &str) -> Vec<Case> {
    let shared = session.for_threads(|threads| {
        let cell = Arc::new(Padded::new(C::default()));
        let read = Arc::clone(&cell);
        let case = Case::new(format!("{how}, shared"), threads, move |who, n| (0..n).for_each(|_| cell.add(who)));
        case.counting(move || read.value())
    });
    let padded = session.for_threads(|threads| {
        let cells: Arc<Vec<Padded<C>>> = Arc::new((0..threads).map(|_| Padded::default()).collect());
        partitioned(format!("{how}, partitioned"), threads, 0, cells)
    });
    let packed = session.for_threads(|threads| {
        let cells: Arc<Vec<C>> = Arc::new((0..threads + LINE).map(|_| C::default()).collect());
        // From the start of a cache line on: neighbours on two lines would not disturb each other.
        let start = cells.iter().position(|c| (&raw const *c as usize).is_multiple_of(LINE)).unwrap_or(0);
        partitioned(format!("{how}, partitioned without padding"), threads, start, cells)
    });
    [shared, padded, packed].concat()
}

trait AsCell: Send + Sync + 'static {
    type Cell: Cell;
    fn cell(&self) -> &Self::Cell;
}

impl<C: Cell> AsCell for Padded<C> {
    type Cell = C;
    fn cell(&self) -> &C {
        &self.0
    }
}

impl<C: Cell> AsCell for C {
    type Cell = C;
    fn cell(&self) -> &C {
        self
    }
}

fn partitioned<P: AsCell>(name: String, threads: usize, start: usize, cells: Arc<Vec<P>>) -> Case {
    let read = Arc::clone(&cells);
    let case = Case::new(name, threads, move |who, n| {
        let cell = cells[start + who].cell();
        (0..n).for_each(|_| cell.add(who));
    });
    case.counting(move || read.iter().map(|c| c.cell().value()).sum())
}

/// A cell for each CPU, by three ways to learn the CPU's number, and the published fallback without one.
fn per_cpu(session: &Session) -> Vec<Case> {
    let cells = || -> Arc<Vec<Padded<Interlocked>>> {
        Arc::new((0..holdup_sync::possible_cpus()).map(|_| Padded::default()).collect())
    };
    let asked = session.for_threads(|threads| {
        let (cells, read) = both(cells());
        let add = move |who, n| (0..n).for_each(|_| cells[affinity::current_cpu()].add(who));
        Case::new("per CPU, asked each time", threads, add).counting(move || read.iter().map(|c| c.value()).sum())
    });
    let cached = session.for_threads(|threads| {
        let (cells, read) = both(cells());
        let add = move |who, n| {
            let cell = &cells[affinity::current_cpu()];
            (0..n).for_each(|_| cell.add(who));
        };
        Case::new("per CPU, cached by the thread", threads, add).counting(move || read.iter().map(|c| c.value()).sum())
    });
    let rseq = session.for_threads(|threads| {
        let (counter, read) = both(Arc::new(PerCpuCounter::new()));
        let add = move |_, n| (0..n).for_each(|_| counter.add(1));
        Case::new("per CPU, rseq", threads, add).counting(move || read.sum())
    });
    let striped = session.for_threads(|threads| {
        let (counter, read) = both(Arc::new(StripedCounter::new()));
        let add = move |_, n| (0..n).for_each(|_| counter.add(1));
        Case::new("striped", threads, add).counting(move || read.sum())
    });
    [asked, cached, rseq, striped].concat()
}

fn both<T>(value: Arc<T>) -> (Arc<T>, Arc<T>) {
    (Arc::clone(&value), value)
}

fn verdict(series: &[Series], most: usize) -> Verdict {
    let at = |name: &str| Outcome::median_in(series, name, most as f64);
    let advice = "split the counter: holdup_sync::PerCpuCounter where it is hot, StripedCounter where there are many \
                  of them; a partition without padding still shares its cache lines";
    let figures = (at("interlocked, shared"), at("interlocked, partitioned"), at("per CPU, rseq"));
    let (Some(shared), Some(split), Some(rseq)) = figures else { return Verdict::without_clean_rounds() };
    let lost = at("unsafe, shared, lost updates").unwrap_or(0.0);
    Verdict {
        reproduced: most > 1 && shared > 2.0 * split,
        because: format!(
            "with {most} threads an update takes {shared:.1} ns on a shared interlocked counter, {split:.1} ns on \
             partitions of it, {rseq:.1} ns by restartable section; the racy shared counter lost {lost:.0} % of its updates"
        ),
        advice: advice.to_owned(),
    }
}
