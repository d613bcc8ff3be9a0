//! The tables of a data set, and columns of rows that fill them.
//!
//! Two types are enough, and every engine has them: texts, and whole numbers with a sign. Times are nanoseconds and no fractions, so
//! that sums over a fleet are the same in whatever order they are added.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::parquet::write_file;
use crate::{Error, Result};

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnDoc {
    /// Its name.
    pub name: &'static str,
    /// What its values are: `string`, or the unit of whole numbers.
    pub unit: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableDoc {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Its columns; `date` and `host`, by which it is partitioned, stand in the paths.
    pub columns: &'static [ColumnDoc],
}

const fn column(name: &'static str, unit: &'static str, doc: &'static str) -> ColumnDoc {
    ColumnDoc { name, unit, doc }
}

/// By what rows are joined.
const TRACE: ColumnDoc = column("trace", "string", "The trace's id: the same for the same recording, whoever adds it.");
const PROCESS: ColumnDoc = column("process", "string", "The process, by name.");

/// Traces, with the account of each. Written last: rows of other tables count only where their trace has one here.
pub const TRACES: TableDoc = TableDoc {
    name: "trace",
    doc: "Traces, with the account of each; rows of other tables count only where their trace is here.",
    columns: &[
        TRACE,
        column(
            "started_ns",
            "ns",
            "When it began, since 1970 in UTC; when its file was last changed if it does not tell.",
        ),
        column("duration_ns", "ns", "How long it is."),
        column("cpus", "number", "CPUs that could run threads."),
        column("format", "string", "Where its events came from: holdup, perf.data, …"),
        column("focus", "string", "The process tree in focus; empty for the whole machine."),
        column("label", "string", "What whoever added it says of it: a release, a test."),
        column("source", "string", "The file from which it was added."),
        column("recording", "string", "Where in the data set the whole recording lies; empty if it does not."),
        column("kernel", "string", "Kernel release."),
        column("architecture", "string", "x86_64, aarch64, …"),
        column("cpu_model", "string", "CPU model."),
        column("total_ns", "ns", "CPU time in all: the sum of the next seven."),
        column("busy_ns", "ns", "Work."),
        column("spin_ns", "ns", "Waiting in loops."),
        column("other_ns", "ns", "Other programs than those in focus."),
        column("held_up_ns", "ns", "Idle CPUs while threads were held up."),
        column("runnable_idle_ns", "ns", "Idle CPUs while threads were ready."),
        column("no_work_ns", "ns", "Idle CPUs with nothing to do."),
        column("lost_ns", "ns", "Not known."),
        column("lost_events", "number", "Events that the recording lost."),
    ],
};

/// What held each up.
pub const FINDINGS: TableDoc = TableDoc {
    name: "finding",
    doc: "What held each trace up, as `holdup explain --top` ranks it, with work alone and idleness by design.",
    columns: &[
        TRACE,
        column("rank", "number", "1 for the first."),
        column("kind", "string", "What kind of reason: lock-held, convoy, disk, …"),
        column("is_cause", "number", "1 if time was lost to it; 0 for work alone and idleness by design."),
        column("confidence", "string", "high, medium or low."),
        column("process", "string", "The culprit's process, by name."),
        column("thread", "string", "Its thread."),
        column("function", "string", "Its function."),
        column("module", "string", "The file that holds that function."),
        column("build_id", "string", "That file's build id; empty if unknown."),
        column("line", "string", "The source line."),
        column("lock_kind", "string", "The kind of lock; empty if it is about none."),
        column("lock_name", "string", "The lock's name, if it has one."),
        column("wait_function", "string", "The function in which threads waited for it."),
        column("blame_ns", "ns", "CPU time charged to it."),
        column("waited_ns", "ns", "How long threads waited for it, all together."),
        column("waits", "number", "How often."),
        column("waiters", "number", "How many threads."),
        column("longest_ns", "ns", "The longest wait."),
        column(
            "gain_permille",
            "number",
            "The speed-up that is possible at most, in thousandths; 0 where no bound can be given.",
        ),
        column("title", "string", "The sentence."),
        column("advice", "string", "What to do."),
    ],
};

/// Where threads waited.
pub const WAIT_SITES: TableDoc = TableDoc {
    name: "wait_site",
    doc: "Where threads waited, for each trace those with the longest waits; the last row adds up the others.",
    columns: &[
        TRACE,
        PROCESS,
        column("kind", "string", "For what, in kind: lock, disk, outside, …"),
        column("function", "string", "The innermost function of the application where threads waited."),
        column("blocked", "string", "The innermost function at all."),
        column("waited_ns", "ns", "How long, all together."),
        column("waits", "number", "How often."),
        column("longest_ns", "ns", "The longest wait."),
    ],
};

/// For which locks.
pub const LOCKS: TableDoc = TableDoc {
    name: "lock",
    doc: "Contended acquisitions of locks, by where they were taken; the last row adds up the others.",
    columns: &[
        TRACE,
        PROCESS,
        column("kind", "string", "What kind of lock."),
        column("function", "string", "The function that waited for it."),
        column("released_in", "string", "The function that let go of it."),
        column("waited_ns", "ns", "How long threads waited for it, all together."),
        column("waits", "number", "How often."),
        column("longest_ns", "ns", "The longest wait."),
    ],
};

/// What ran.
pub const FUNCTIONS: TableDoc = TableDoc {
    name: "function",
    doc: "What ran, by samples; the last row adds up the others.",
    columns: &[
        TRACE,
        PROCESS,
        column("module", "string", "The file that holds the code; [kernel] for the kernel."),
        column("function", "string", "The innermost function."),
        column("cpu_ns", "ns", "CPU time for which its samples stand."),
        column("samples", "number", "How many."),
    ],
};

/// Stacks by blame.
pub const STACKS: TableDoc = TableDoc {
    name: "stack",
    doc: "What idle CPUs are charged to, by stack; the last row adds up the others.",
    columns: &[
        TRACE,
        column(
            "stack",
            "string",
            "Process, thread, what one waits for, and functions from the outermost to the innermost, with ; between.",
        ),
        column("blame_ns", "ns", "CPU time charged to it."),
    ],
};

/// Which code ran.
pub const BUILDS: TableDoc = TableDoc {
    name: "build",
    doc: "Files that held code.",
    columns: &[
        TRACE,
        column("module", "string", "The file."),
        column("build_id", "string", "Its build id in hexadecimal; empty if unknown."),
    ],
};

/// All tables; the first is written last.
pub const TABLES: [&TableDoc; 7] = [&TRACES, &FINDINGS, &WAIT_SITES, &LOCKS, &FUNCTIONS, &STACKS, &BUILDS];

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// In a column of texts.
    Text(String),
    /// In any other.
    Number(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Seconds as whole nanoseconds.
pub fn nanos(seconds: f64) -> Value {
    Value::Number((seconds * 1e9).round() as i64)
}

/// Rows of a table.
pub struct Rows {
    table: &'static TableDoc,
    columns: Vec<Vec<Value>>,
}

impl Rows {
    /// None yet.
    pub fn new(table: &'static TableDoc) -> Self {
        Rows { table, columns: vec![Vec::new(); table.columns.len()] }
    }

    /// The table's name.
    pub fn name(&self) -> &'static str {
        self.table.name
    }

    /// Appends one, with a value for each column.
    pub fn push<const N: usize>(&mut self, row: [Value; N]) {
        self.push_all(row.into());
    }

    /// The same of a row that is known when it is made.
    pub fn push_all(&mut self, row: Vec<Value>) {
        assert_eq!(row.len(), self.columns.len(), "a row of {}", self.table.name);
        self.columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }

    /// As a Parquet file. O(rows).
    ///
    /// # Errors
    /// If a text is longer than a page can be.
    pub fn to_parquet(&self) -> Result<Vec<u8>> {
        let fields = self.table.columns.iter().map(field).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new(fields));
        let columns = self.table.columns.iter().zip(&self.columns).map(|(doc, values)| array(doc, values));
        let batch = RecordBatch::try_new(schema.clone(), columns.collect())
            .map_err(|e| Error::from(holdup_trace::Error::Bug(format!("table {}: {e}", self.table.name))))?;
        let mut bytes = Vec::new();
        // Of many small files, what columns mean would be half: docs/fleet.md says it once.
        write_file(&schema, &[], &mut std::iter::once(Ok(batch)), &mut bytes)?;
        Ok(bytes)
    }
}

impl ColumnDoc {
    /// Whether its values are texts.
    pub fn is_text(&self) -> bool {
        self.unit == "string"
    }
}

fn field(column: &ColumnDoc) -> Field {
    let of = if column.is_text() { DataType::Utf8 } else { DataType::Int64 };
    Field::new(column.name, of, false)
}

fn array(column: &ColumnDoc, values: &[Value]) -> ArrayRef {
    if column.is_text() {
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
        };
        return Arc::new(StringArray::from_iter_values(values.iter().map(text)));
    }
    let number = |value: &Value| match value {
        Value::Number(number) => *number,
        Value::Text(_) => 0,
    };
    Arc::new(Int64Array::from_iter_values(values.iter().map(number)))
}
