//! The tables: which columns each has, and how a row fills them.
//!
//! Each column is declared once, with unit, doc and the names that Windows Performance Analyzer has for it; help,
//! tooltips and Arrow metadata come from there. Texts are looked up once for each thread, stack or lock, not for each
//! row.

mod cpu;
mod fill;
pub(super) mod frames;
mod instructions;
mod locks;
mod processes;
mod spans;
mod switches;
mod waits;
mod wakes;

use holdup_trace::tables::Thread;
use holdup_trace::{Cpu, LockId, StackId, StringId, ThreadIdx, WakeContext};

use super::relation::{Relation, Unit};
use super::{Explorer, Result, Scope};
use frames::Part;

/// A table to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// From leaving a CPU to running again: one row for each wait.
    Waits,
    /// CPU samples.
    Cpu,
    /// One row for each switch-in of a thread other than idle.
    Switches,
    /// One row for each wake-up.
    Wakes,
    /// Contended acquisitions of locks.
    Locks,
    /// Processes.
    Processes,
    /// Units of work.
    Spans,
}

/// What a column means.
#[derive(Debug, Clone, Copy)]
pub struct ColumnInfo {
    /// Its name; one that ends in `:N` stands for many.
    pub name: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Names that Windows Performance Analyzer has for it.
    pub wpa: &'static [&'static str],
    /// One sentence.
    pub doc: &'static str,
}

/// How a row fills a column.
enum Get<R: 'static> {
    Number(fn(&R) -> u64),
    Word(fn(&R) -> &'static str),
    Text(fn(&R) -> StringId),
    /// A number of the thread's own.
    ThreadNumber(fn(&R) -> ThreadIdx, fn(&Thread) -> u32),
    Process(fn(&R) -> Actor),
    Thread(fn(&R) -> Actor),
    Stack(fn(&R) -> StackId, Part),
    /// The part's number is in the column's name.
    StackAt(fn(&R) -> StackId, fn(usize) -> Part),
    /// The text of the instruction in which the stack ends.
    Instruction(fn(&R) -> StackId),
    Lock(fn(&R) -> LockId),
    Call(fn(&R) -> i16),
}

/// A thread, or the context in which something else acted.
#[derive(Debug, Clone, Copy)]
struct Actor(ThreadIdx, WakeContext);

impl From<ThreadIdx> for Actor {
    fn from(thread: ThreadIdx) -> Self {
        Actor(thread, WakeContext::Task)
    }
}

struct Def<R: 'static> {
    info: ColumnInfo,
    get: Get<R>,
}

const fn def<R: 'static>(
    name: &'static str,
    unit: Unit,
    wpa: &'static [&'static str],
    doc: &'static str,
    get: Get<R>,
) -> Def<R> {
    Def { info: ColumnInfo { name, unit, wpa, doc }, get }
}

/// Where a table's rows come from.
trait Provider {
    type Row: 'static;
    const COLUMNS: &'static [Def<Self::Row>];
    /// The thread that a focus is about.
    fn thread(row: &Self::Row) -> ThreadIdx;
    /// From when to when, in nanoseconds.
    fn span(row: &Self::Row) -> (u64, u64);
    /// Calls `each` with all rows in time order.
    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&Self::Row) -> Result<()>) -> Result<()>;
}

/// The CPU's number, if it is known.
fn cpu(cpu: Cpu) -> u64 {
    if cpu == Cpu::NONE { super::MISSING } else { u64::from(cpu.0) }
}

/// A length of time, where both ends are known.
fn between(from: Option<u64>, to: u64) -> u64 {
    from.map_or(super::MISSING, |from| to.saturating_sub(from))
}

/// Calls the same generic function for whichever table.
macro_rules! for_table {
    ($table:expr, $p:ident => $call:expr) => {
        match $table {
            TableKind::Waits => {
                type $p = waits::Waits;
                $call
            }
            TableKind::Cpu => {
                type $p = cpu::Cpu;
                $call
            }
            TableKind::Switches => {
                type $p = switches::Switches;
                $call
            }
            TableKind::Wakes => {
                type $p = wakes::Wakes;
                $call
            }
            TableKind::Locks => {
                type $p = locks::Locks;
                $call
            }
            TableKind::Processes => {
                type $p = processes::Processes;
                $call
            }
            TableKind::Spans => {
                type $p = spans::Spans;
                $call
            }
        }
    };
}

impl TableKind {
    /// All tables.
    pub const ALL: [TableKind; 7] = [
        TableKind::Waits,
        TableKind::Cpu,
        TableKind::Switches,
        TableKind::Wakes,
        TableKind::Locks,
        TableKind::Processes,
        TableKind::Spans,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            TableKind::Waits => "waits",
            TableKind::Cpu => "cpu",
            TableKind::Switches => "switches",
            TableKind::Wakes => "wakes",
            TableKind::Locks => "locks",
            TableKind::Processes => "processes",
            TableKind::Spans => "spans",
        }
    }

    /// What its rows are, in a few words.
    pub const fn doc(self) -> &'static str {
        match self {
            TableKind::Waits => "one row for each wait: from leaving a CPU to running again",
            TableKind::Cpu => "one row for each CPU sample",
            TableKind::Switches => "one row for each switch-in of a thread other than idle",
            TableKind::Wakes => "one row for each wake-up",
            TableKind::Locks => "one row for each contended acquisition of a lock",
            TableKind::Processes => "one row for each process",
            TableKind::Spans => "one row for each unit of work, such as a request",
        }
    }

    /// The columns that it can have.
    pub fn columns(self) -> Vec<ColumnInfo> {
        fn infos<P: Provider>() -> Vec<ColumnInfo> {
            P::COLUMNS.iter().map(|d| d.info).collect()
        }
        for_table!(self, P => infos::<P>())
    }

    /// The columns shown if none are asked for.
    pub const fn default_columns(self) -> &'static [&'static str] {
        match self {
            TableKind::Waits => {
                &["id", "start", "wait", "ready", "process", "thread", "kind", "function", "waker-thread"]
            }
            TableKind::Cpu => &["t", "cpu", "process", "thread", "module", "function", "source", "address"],
            TableKind::Switches => {
                &["t", "cpu", "process", "thread", "time-since-last", "ready", "on-cpu", "waker-thread", "wait-reason"]
            }
            TableKind::Wakes => {
                &["t", "cpu", "context", "waker-process", "waker-thread", "process", "thread", "target"]
            }
            TableKind::Locks => {
                &["start", "lock", "process", "thread", "wait", "hand-off", "hold", "owner", "waker-function"]
            }
            TableKind::Processes => {
                &["start", "end", "lifetime", "process", "pid", "parent", "threads", "on-cpu", "ended"]
            }
            TableKind::Spans => {
                &["id", "start", "length", "name", "argument", "process", "thread", "ran", "ready", "waited", "outcome"]
            }
        }
    }

    /// The measures of a group if none are asked for.
    pub const fn default_measures(self) -> &'static [&'static str] {
        match self {
            TableKind::Waits => &["sum:wait", "count", "mean:wait", "max:wait", "share:wait"],
            TableKind::Cpu => &["count", "sum:weight", "share"],
            TableKind::Switches => &["sum:on-cpu", "count", "sum:time-since-last", "sum:ready", "max:ready"],
            TableKind::Wakes => &["count", "share"],
            TableKind::Processes => &["count", "sum:lifetime", "max:lifetime", "sum:on-cpu", "sum:threads"],
            TableKind::Spans => {
                &["count", "sum:length", "p50:length", "p90:length", "p99:length", "max:length", "sum:waited"]
            }
            TableKind::Locks => &["sum:wait", "count", "p50:wait", "p99:wait", "p50:hold", "p99:hold", "p50:hand-off"],
        }
    }

    /// The column that says how often a row counts in a group, if it is not once.
    pub(super) const fn weight(self) -> Option<&'static str> {
        match self {
            TableKind::Spans => Some("weight"),
            _ => None,
        }
    }

    /// Fills the columns `names`, which must be names as [`TableKind::columns`] has them, with the rows in `scope`.
    pub(super) fn fill(self, explorer: &Explorer, names: &[String], scope: &Scope) -> Result<Relation> {
        for_table!(self, P => fill::fill::<P>(explorer, names, scope))
    }
}
