//! One count, or the record of an operation, that all threads add to: who is exact, and what splitting it brings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdup_sync::{Padded, PerCpuCounter, StripedCounter};

mod statistics;

use super::atomics::{plain_add, shared_core};
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::affinity;
use crate::harness::case::{Case, Work};
use crate::harness::cycles::core_ghz;
use crate::knobs::{CPUS, ROUND_US, ROUNDS, THREADS};
use crate::locks::{Lock, Std, Tas, Ttas};
use crate::result::{Outcome, Point, Series, Verdict};

/// The ladder of the fifth story.
pub const EXPERIMENT: Experiment = Experiment {
    name: "counters",
    about: "a counter and a record, shared, partitioned, padded, per CPU; unsafe, interlocked and locked; with lost updates",
    axis: "threads",
    knobs: &[THREADS, CPUS, ROUNDS, ROUND_US],
    run,
};

/// Bytes of a cache line.
const LINE: usize = 64;

/// One cell of a counter.
trait Cell: Default + Send + Sync + 'static {
    fn add(&self, who: usize, value: u64);
    fn count(&self) -> u64;
}

/// What a cell holds, changed as a program with one thread does it.
trait Data: Default + Send + Sync + 'static {
    fn update(&self, value: u64);
    fn read(&self) -> u64;
}

#[derive(Default)]
struct Number(AtomicU64);

impl Data for Number {
    #[inline]
    fn update(&self, _value: u64) {
        plain_add(&self.0);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The story's record: 32 bytes.
struct Record {
    count: AtomicU64,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for Record {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Record { count: zero(), sum: zero(), min: AtomicU64::new(u64::MAX), max: zero() }
    }
}

impl Data for Record {
    #[inline]
    fn update(&self, value: u64) {
        plain_add(&self.count);
        self.sum.store(self.sum.load(Ordering::Relaxed) + value, Ordering::Relaxed);
        if value < self.min.load(Ordering::Relaxed) {
            rare();
            self.min.store(value, Ordering::Relaxed);
        }
        if value > self.max.load(Ordering::Relaxed) {
            rare();
            self.max.store(value, Ordering::Relaxed);
        }
    }

    fn read(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// The compiler puts what calls this out of the way: a branch that is taken each time takes a cycle.
#[cold]
fn rare() {}

#[derive(Default)]
struct Unsafe<D>(D);

impl<D: Data> Cell for Unsafe<D> {
    #[inline]
    fn add(&self, _who: usize, value: u64) {
        self.0.update(value);
    }

    fn count(&self) -> u64 {
        self.0.read()
    }
}

#[derive(Default)]
struct Interlocked(AtomicU64);

impl Cell for Interlocked {
    #[inline]
    fn add(&self, _who: usize, _value: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct InterlockedRecord(Record);

impl Cell for InterlockedRecord {
    #[inline]
    fn add(&self, _who: usize, value: u64) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.sum.fetch_add(value, Ordering::Relaxed);
        self.0.min.fetch_min(value, Ordering::Relaxed);
        self.0.max.fetch_max(value, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.read()
    }
}

#[derive(Default)]
struct Locked<L, D> {
    lock: L,
    data: D,
}

impl<L: Lock + Default, D: Data> Cell for Locked<L, D> {
    #[inline]
    fn add(&self, who: usize, value: u64) {
        self.lock.with(who, || self.data.update(value));
    }

    fn count(&self) -> u64 {
        self.data.read()
    }
}

/// The one loop of all layouts. Not inlined, and told an address: what differs between two layouts is then where the memory
/// lies, and not how the instructions name it, which some processors reward ([`renamed`]).
#[inline(never)]
fn add_all<C: Cell>(cell: &C, who: usize, n: u64) {
    (0..n).for_each(|i| cell.add(who, value(i)));
}

/// The value of an operation: something that changes.
fn value(i: u64) -> u64 {
    (i & 127) + 1
}

fn run(session: &mut Session) -> Result<Found> {
    let mut cases = Vec::new();
    cases.extend(layouts::<Unsafe<Number>>(session, "unsafe"));
    cases.extend(layouts::<Interlocked>(session, "interlocked"));
    cases.extend(layouts::<Locked<Ttas, Number>>(session, "TTAS"));
    cases.extend(layouts::<Locked<Tas, Number>>(session, "spinlock"));
    cases.extend(layouts::<Locked<Std, Number>>(session, "lock"));
    cases.extend(layouts::<Unsafe<Record>>(session, "record, unsafe"));
    cases.extend(layouts::<InterlockedRecord>(session, "record, interlocked"));
    cases.extend(layouts::<Locked<Std, Record>>(session, "record, lock"));
    cases.extend(per_cpu(session));
    cases.extend(statistics::cases(session));
    let ladder = session.measure(cases);
    let mut series = ladder.time_per_op();
    let lost = ladder.series("% lost", ", lost updates", |m, x| m.lost_point(x).filter(|p| p.high > 0.0));
    let most = session.values.counts("threads").into_iter().max().unwrap_or(1);
    let verdict = verdict(&series, &lost, most);
    let ghz = core_ghz();
    let mut notes = ladder.notes();
    notes.extend(shared_core(&series, "interlocked, partitioned"));
    notes.extend(ghz.and_then(|ghz| renamed(&series, ghz)));
    let cycles = ghz.map_or(Vec::new(), |ghz| in_cycles(&series, ghz));
    series.extend(lost);
    series.extend(ladder.series("ops/ms", ", operations", |m, x| m.point_of(x, ops_per_ms).as_ref().map(bare)));
    series.extend(cycles);
    Ok(Found { series, notes, verdict })
}

/// Operations of all threads together in a millisecond.
fn ops_per_ms(round: &[Work]) -> f64 {
    round.iter().map(|w| w.ops as f64 / (w.elapsed as f64 / 1e6)).sum()
}

/// A point without what its time has beside it already.
fn bare(point: &Point) -> Point {
    Point { costs: None, waits: None, ..point.clone() }
}

/// The same times in cycles of the core.
fn in_cycles(series: &[Series], ghz: f64) -> Vec<Series> {
    let cycles = |p: &Point| Point { median: p.median * ghz, low: p.low * ghz, high: p.high * ghz, ..bare(p) };
    let of = |s: &Series| Series {
        name: format!("{}, cycles", s.name),
        unit: "cycles".to_owned(),
        points: s.points.iter().map(cycles).collect(),
        axis: s.axis.clone(),
    };
    series.iter().map(of).collect()
}

/// An add to memory needs what the add before it has stored: four or five cycles by way of the store buffer. Less than this
/// many, and the processor has kept the word in a register of its own.
const RENAMED_CYCLES: f64 = 2.5;

/// Says so where the processor renames memory: a plain add is then as cheap as on a register.
fn renamed(series: &[Series], ghz: f64) -> Option<String> {
    let ns = Outcome::median_in(series, "unsafe, partitioned", 1.0)?;
    let cycles = ns * ghz;
    (cycles < RENAMED_CYCLES).then(|| {
        format!(
            "this processor renames memory: a plain add of one thread takes {cycles:.1} cycles ({ns:.2} ns at {ghz:.2} GHz), as it \
             keeps a word that it has just stored in a register; others take 4 to 6. It does so for a word that is named \
             by a register and a constant alone, and stops beside another thread's writes"
        )
    })
}

/// Shared, partitioned and partitioned without padding.
fn layouts<C: Cell>(session: &Session, how: &str) -> Vec<Case> {
    let shared = session.for_threads(|threads| {
        let cell = Arc::new(Padded::new(C::default()));
        let read = Arc::clone(&cell);
        let case = Case::new(format!("{how}, shared"), threads, move |who, n| add_all(&**cell, who, n));
        case.counting(move || read.count())
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
        add_all(cells[start + who].cell(), who, n);
    });
    case.counting(move || read.iter().map(|c| c.cell().count()).sum())
}

/// A cell for each CPU, by three ways to learn the CPU's number, and the published fallback without one.
fn per_cpu(session: &Session) -> Vec<Case> {
    let cells = || -> Arc<Vec<Padded<Interlocked>>> {
        Arc::new((0..holdup_sync::possible_cpus()).map(|_| Padded::default()).collect())
    };
    let asked = session.for_threads(|threads| {
        let (cells, read) = both(cells());
        let add = move |who, n| (0..n).for_each(|i| cells[affinity::current_cpu()].add(who, value(i)));
        Case::new("per CPU, asked each time", threads, add).counting(move || read.iter().map(|c| c.count()).sum())
    });
    let cached = session.for_threads(|threads| {
        let (cells, read) = both(cells());
        let add = move |who, n| add_all(&*cells[affinity::current_cpu()], who, n);
        Case::new("per CPU, cached by the thread", threads, add).counting(move || read.iter().map(|c| c.count()).sum())
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
    [asked, cached, statistics::moved(session), rseq, striped].concat()
}

fn both<T>(value: Arc<T>) -> (Arc<T>, Arc<T>) {
    (Arc::clone(&value), value)
}

fn verdict(series: &[Series], lost: &[Series], most: usize) -> Verdict {
    let at = |name: &str| Outcome::median_in(series, name, most as f64);
    let advice = "split the counter: holdup_sync::PerCpuCounter where it is hot, StripedCounter where there are many \
                  of them; a partition without padding still shares its cache lines";
    let figures = (at("interlocked, shared"), at("interlocked, partitioned"), at("per CPU, rseq"));
    let (Some(shared), Some(split), Some(rseq)) = figures else { return Verdict::without_clean_rounds() };
    let lost_of = |name: &str| Outcome::median_in(lost, name, most as f64).unwrap_or(0.0);
    let (lost, moved) =
        (lost_of("unsafe, shared, lost updates"), lost_of("per CPU, cached number, moved, lost updates"));
    Verdict {
        reproduced: most > 1 && shared > 2.0 * split,
        because: format!(
            "with {most} threads an update takes {shared:.1} ns on a shared interlocked counter, {split:.1} ns on \
             partitions of it, {rseq:.1} ns by restartable section; the racy shared counter lost {lost:.0} % of its updates, and plain adds to the cell of a CPU whose number was cached \
             before the thread moved {moved:.2} %"
        ),
        advice: advice.to_owned(),
    }
}
