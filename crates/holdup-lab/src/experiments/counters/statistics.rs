//! Records of operations as holdup-sync keeps them, what reading them costs, and a CPU's number that has become wrong.

use std::sync::Arc;

use holdup_sync::{OpStats, Padded, ThreadStats, Totals};

use super::{AsCell, Cell, Number, Unsafe, add_all, both, value};
use crate::experiment::Session;
use crate::harness::affinity;
use crate::harness::case::Case;

/// Operations of the tables, and the one that is added to.
const OPERATIONS: usize = 4;
const OPERATION: usize = 1;

/// What both kinds of table can do.
trait Table: Send + Sync + 'static {
    const NAME: &'static str;
    fn empty() -> Self;
    fn add(&self, value: u64);
    fn report(&self) -> Vec<Totals>;
    fn clear(&self);
}

macro_rules! table {
    ($table:ident) => {
        impl Table for $table {
            const NAME: &'static str = stringify!($table);

            fn empty() -> Self {
                $table::new(OPERATIONS)
            }

            #[inline]
            fn add(&self, value: u64) {
                $table::add(self, OPERATION, value);
            }

            fn report(&self) -> Vec<Totals> {
                $table::report(self)
            }

            fn clear(&self) {
                $table::clear(self);
            }
        }
    };
}

table!(OpStats);
table!(ThreadStats);

/// Adding to the tables, reading and clearing them.
pub(super) fn cases(session: &Session) -> Vec<Case> {
    [of::<OpStats>(session), of::<ThreadStats>(session)].concat()
}

fn of<T: Table>(session: &Session) -> Vec<Case> {
    let adding = session.for_threads(|threads| {
        let (table, read) = both(Arc::new(T::empty()));
        let add = move |_, n| (0..n).for_each(|i| table.add(value(i)));
        Case::new(format!("{}, add", T::NAME), threads, add).counting(move || read.report()[OPERATION].count)
    });
    let reporting = session
        .for_threads(|threads| read_beside::<T>("report", threads, |table| _ = std::hint::black_box(table.report())));
    let clearing = session.for_threads(|threads| read_beside::<T>("clear", threads, T::clear));
    [adding, reporting, clearing].concat()
}

/// One thread reads again and again, the others add meanwhile.
fn read_beside<T: Table>(what: &str, threads: usize, read: fn(&T)) -> Case {
    let table = T::empty();
    let body = move |who, n| {
        (0..n).for_each(|i| match who {
            0 => read(&table),
            _ => (0..ADDS).for_each(|_| table.add(value(i))),
        });
    };
    let mut case = Case::new(format!("{}, {what} beside threads that add", T::NAME), threads, body);
    case.company = threads - 1;
    case
}

/// Additions beside one read: a batch of all workers has as many operations, and the clock is read between batches.
const ADDS: u64 = 100;

/// Additions before a thread is moved, and again before it asks where it is.
const STAY: u64 = 20_000;

/// Plain adds to the cell of the CPU that the thread was on when it asked: after it has moved, two threads write one cell.
pub(super) fn moved(session: &Session) -> Vec<Case> {
    let cpus = session.values.cpus();
    if cpus.len() < 2 {
        return Vec::new();
    }
    session.for_threads(|threads| {
        let cells: Vec<Padded<Unsafe<Number>>> = (0..holdup_sync::possible_cpus()).map(|_| Padded::default()).collect();
        let (cells, read) = both(Arc::new(cells));
        let cpus = cpus.clone();
        let body = move |who, n| {
            for _ in 0..n {
                let here = affinity::current_cpu();
                let cell = cells[here].cell();
                add_all(cell, who, STAY);
                let next = cpus.iter().position(|cpu| *cpu == here).map_or(0, |at| (at + 1) % cpus.len());
                // Where the kernel refuses, the thread stays, and nothing is lost.
                let _ = affinity::pin(&cpus[next..=next]);
                add_all(cell, who, STAY);
            }
        };
        let mut case = Case::new("per CPU, cached number, moved", threads, body).each(2 * STAY);
        (case.apart, case.moving) = (true, true);
        case.counting(move || read.iter().map(|cell| cell.count()).sum())
    })
}
