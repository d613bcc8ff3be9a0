//! Statistics of operations, one table for each CPU.

use crate::{Padded, PerCpu, Totals};

/// Number, sum, least and greatest of a value (a time, a size) for each of a fixed set of operations.
///
/// Each CPU has a table under a lock of its own, so that threads on different CPUs share no line, and the four numbers of
/// an operation always belong together.
///
/// *Cost:* [`add`](Self::add) an uncontended lock, O(1); [`report`](Self::report) and [`clear`](Self::clear) O(operations ×
/// possible CPUs). *Memory:* for each possible CPU 32 bytes for each operation, in steps of 128.
///
/// *When not:* where only the number is wanted ([`PerCpuCounter`](crate::PerCpuCounter) is several times faster), or where
/// the threads are few and live long ([`ThreadStats`](crate::ThreadStats) needs no locked instruction).
///
/// ```
/// use holdup_sync::OpStats;
///
/// const READ: usize = 0;
/// let stats = OpStats::new(2);
/// stats.add(READ, 120);
/// stats.add(READ, 80);
/// let read = stats.report()[READ];
/// assert_eq!((read.count, read.sum, read.min, read.max), (2, 200, 80, 120));
/// ```
#[derive(Debug)]
pub struct OpStats {
    operations: usize,
    tables: PerCpu<Table>,
}

/// One CPU's totals, four to a pair of cache lines: tables of two CPUs share none, wherever they are allocated.
#[derive(Debug)]
struct Table(Box<[Padded<[Totals; 4]>]>);

impl Table {
    fn empty(operations: usize) -> Self {
        Table(vec![Padded([Totals::EMPTY; 4]); operations.div_ceil(4)].into())
    }

    fn merge_into(&self, all: &mut [Totals]) {
        all.iter_mut().zip(self.0.iter().flat_map(|four| &four.0)).for_each(|(all, one)| all.merge(one));
    }
}

impl OpStats {
    /// Empty tables for operations 0 to `operations` − 1.
    pub fn new(operations: usize) -> Self {
        OpStats { operations, tables: PerCpu::new(|| Table::empty(operations)) }
    }

    /// Adds a value to an operation.
    ///
    /// # Panics
    /// If there is no such operation.
    pub fn add(&self, operation: usize, value: u64) {
        assert!(operation < self.operations, "operation {operation} of {}: numbers begin at 0", self.operations);
        self.tables.with(|table| table.0[operation / 4].0[operation % 4].record(value));
    }

    /// The totals of all CPUs, by operation. Exact about every [`add`](Self::add) that happened before.
    pub fn report(&self) -> Vec<Totals> {
        self.tables.merged(vec![Totals::EMPTY; self.operations], |mut all, table| {
            table.merge_into(&mut all);
            all
        })
    }

    /// The totals of each CPU, by its number and then by operation: who does how much of what.
    ///
    /// About right: a thread that finds its CPU's table held adds to another CPU's.
    pub fn report_by_cpu(&self) -> Vec<Box<[Totals]>> {
        self.tables.merged(Vec::new(), |mut all, table| {
            let mut totals = vec![Totals::EMPTY; self.operations];
            table.merge_into(&mut totals);
            all.push(totals.into());
            all
        })
    }

    /// Forgets everything and returns it. Each [`add`](Self::add) is in the result of exactly one `clear`.
    pub fn clear(&self) -> Vec<Totals> {
        self.tables.merged(vec![Totals::EMPTY; self.operations], |mut all, table| {
            table.merge_into(&mut all);
            table.0.fill(Padded([Totals::EMPTY; 4]));
            all
        })
    }
}

/// Adds a table to another of the same length.
pub(crate) fn merge_into(all: &mut [Totals], table: &[Totals]) {
    all.iter_mut().zip(table).for_each(|(all, one)| all.merge(one));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_report() {
        let stats = OpStats::new(3);
        let (threads, adds) = if cfg!(miri) { (2, 20) } else { (6, 5000) };
        let mut cleared = vec![Totals::EMPTY; 3];
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let stats = &stats;
                scope.spawn(move || (0..adds).for_each(|i| stats.add((thread % 2) as usize, i + 10)));
            }
            (0..20).for_each(|_| merge_into(&mut cleared, &stats.clear()));
        });
        let by_cpu = stats.report_by_cpu();
        assert_eq!(by_cpu.len(), crate::possible_cpus());
        let mut again = vec![Totals::EMPTY; 3];
        by_cpu.iter().for_each(|table| merge_into(&mut again, table));
        assert_eq!(again, stats.report());
        merge_into(&mut cleared, &again);
        let all = Totals {
            count: threads / 2 * adds,
            sum: threads / 2 * (0..adds).map(|i| i + 10).sum::<u64>(),
            min: 10,
            max: adds + 9,
        };
        assert_eq!(cleared, [all, all, Totals::EMPTY]);
    }

    #[test]
    fn tables_of_two_cpus_share_no_pair_of_lines() {
        for operations in [1, 4, 5] {
            let mut tables = OpStats::new(operations).tables.into_values().collect::<Vec<_>>();
            tables.push(Table::empty(operations));
            let mut lines: Vec<usize> = (tables.iter())
                .flat_map(|table| table.0.iter())
                .flat_map(|four| [&four.0[0], &four.0[3]].map(|totals| (&raw const *totals as usize + 31) / 128))
                .collect();
            let blocks = tables.len() * operations.div_ceil(4);
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), blocks, "each block lies on lines of its own, whole");
        }
    }

    #[test]
    #[should_panic(expected = "operation 2 of 2: numbers begin at 0")]
    fn an_operation_that_does_not_exist() {
        OpStats::new(2).add(2, 1);
    }
}
