//! Questions that are asked often, by name.

use super::question::{Process, Query};
use super::rows::TableKind;

/// A question with a name.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it answers.
    pub doc: &'static str,
    /// The table.
    pub table: TableKind,
    /// Groups; none for the rows themselves.
    pub by: &'static [&'static str],
    /// Measures, or columns of the rows.
    pub show: &'static [&'static str],
    /// Which rows, if not all.
    pub filter: Option<&'static str>,
    /// By what the rows are sorted.
    pub sort: &'static [&'static str],
}

const fn preset(
    name: &'static str,
    doc: &'static str,
    table: TableKind,
    by: &'static [&'static str],
    show: &'static [&'static str],
) -> Preset {
    Preset { name, doc, table, by, show, filter: None, sort: &[] }
}

/// Waits of threads that are not idle kernel threads.
const AT_WORK: Option<&str> = Some("kind != kernel-idle");

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        filter: AT_WORK,
        ..preset(
            "who-waits-longest",
            "threads by the time that they waited, and for what",
            TableKind::Waits,
            &["process", "thread", "kind", "function"],
            &["sum:wait", "count", "mean:wait", "max:wait", "share:wait"],
        )
    },
    Preset {
        filter: AT_WORK,
        ..preset(
            "where-threads-block",
            "functions by the time that threads waited in them",
            TableKind::Waits,
            &["process", "function", "blocked"],
            &["sum:wait", "count", "distinct:tid", "mean:wait", "max:wait", "share:wait"],
        )
    },
    Preset {
        filter: Some("not open == yes and kind != kernel-idle"),
        ..preset(
            "who-wakes-whom",
            "pairs of threads by the waits that the first ended for the second",
            TableKind::Waits,
            &["waker-process", "waker-thread", "process", "thread"],
            &["sum:wait", "count", "mean:wait", "max:wait"],
        )
    },
    Preset {
        filter: Some("not waker-stack == \"\""),
        ..preset(
            "readying-stacks",
            "where the wakers were, by the wait that they ended",
            TableKind::Waits,
            &["waker-process", "waker-thread", "waker-stack"],
            &["sum:wait", "count", "max:wait"],
        )
    },
    Preset {
        filter: AT_WORK,
        sort: &["-wait"],
        ..preset(
            "longest-waits",
            "single waits, the longest first",
            TableKind::Waits,
            &[],
            &["id", "start", "wait", "process", "thread", "kind", "function", "waker-thread", "waker-function"],
        )
    },
    preset(
        "switches-in-order",
        "who came onto which CPU when, readied by whom, after how long",
        TableKind::Switches,
        &[],
        &[
            "t",
            "cpu",
            "process",
            "thread",
            "tid",
            "waker-process",
            "waker-thread",
            "waker-tid",
            "time-since-last",
            "ready",
        ],
    ),
    preset(
        "busiest-threads",
        "threads by CPU time",
        TableKind::Switches,
        &["process", "thread", "tid"],
        &["sum:on-cpu", "share:on-cpu", "count", "mean:on-cpu", "max:on-cpu"],
    ),
    preset(
        "slow-to-run",
        "threads by the time that they could run and did not",
        TableKind::Switches,
        &["process", "thread"],
        &["sum:ready", "count", "mean:ready", "p99:ready", "max:ready"],
    ),
    preset(
        "hot-functions",
        "functions by CPU samples",
        TableKind::Cpu,
        &["process", "module", "function"],
        &["count", "sum:weight", "share"],
    ),
    preset(
        "hot-addresses",
        "instructions by CPU samples",
        TableKind::Cpu,
        &["module", "function", "address", "source"],
        &["count", "share"],
    ),
    preset(
        "hot-instructions",
        "the same with the text of the instruction",
        TableKind::Cpu,
        &["module", "function", "address", "instruction"],
        &["count", "share"],
    ),
    Preset {
        filter: Some("module == \"[kernel]\""),
        ..preset(
            "hot-kernel",
            "instructions of the kernel by CPU samples, with their text",
            TableKind::Cpu,
            &["function", "address", "instruction"],
            &["count", "distinct:tid", "share"],
        )
    },
    preset(
        "hot-locks",
        "locks by the time that threads waited for them",
        TableKind::Locks,
        &["process", "lock"],
        &["sum:wait", "count", "distinct:tid", "p50:wait", "p99:wait", "p50:hold", "p99:hold", "p50:hand-off"],
    ),
    preset(
        "lock-owners",
        "who let go of the locks for which others waited, and where",
        TableKind::Locks,
        &["lock", "waker-process", "waker-thread", "waker-function"],
        &["sum:wait", "count", "distinct:tid", "max:wait", "p50:hold", "max:hold"],
    ),
    Preset {
        sort: &["end"],
        ..preset(
            "process-lifetimes",
            "from when to when each process was there, by their ends",
            TableKind::Processes,
            &[],
            &["start", "end", "lifetime", "process", "pid", "parent", "threads", "on-cpu", "ended"],
        )
    },
    preset(
        "spans-by-name",
        "kinds of work: how many, how long, waiting for what",
        TableKind::Spans,
        &["process", "name"],
        &[
            "count",
            "sum:length",
            "p50:length",
            "p90:length",
            "p99:length",
            "max:length",
            "sum:ran",
            "sum:ready",
            "sum:waited-lock",
            "sum:waited-disk",
            "sum:waited-sleep",
            "sum:waited-input",
        ],
    ),
    Preset {
        sort: &["-length"],
        ..preset(
            "slowest-spans",
            "single units of work, the longest first",
            TableKind::Spans,
            &[],
            &["id", "start", "length", "name", "argument", "process", "thread", "ran", "ready", "waited"],
        )
    },
];

impl Preset {
    /// The preset of that name.
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|p| p.name == name)
    }

    /// As a question about the recorded program.
    pub fn query(&self) -> Query {
        let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let (measures, columns) =
            if self.by.is_empty() { (Vec::new(), owned(self.show)) } else { (owned(self.show), Vec::new()) };
        Query {
            by: owned(self.by),
            measures,
            columns,
            filters: self.filter.map(str::to_owned).into_iter().collect(),
            sort: owned(self.sort),
            process: Process::Recorded,
            ..Query::new(self.table)
        }
    }
}
