//! The tools: what each is asked, and what it answers.
//!
//! To add one: its arguments, a function from them to an [`Answer`](crate::shape::Answer), and a line in [`ALL`].

use holdup_base::near;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::answers::{code, explain, folder, spans, table};
use crate::arguments::{self, Nothing, schema};
use crate::desk::Desk;
use crate::recording;

/// A tool.
pub(crate) struct Known {
    pub name: &'static str,
    pub doc: &'static str,
    pub arguments: fn() -> Map<String, Value>,
    pub answer: fn(&Desk, Value) -> Result<Value, String>,
    /// Whether it records, which has to be allowed.
    pub records: bool,
}

const fn reads(
    name: &'static str,
    doc: &'static str,
    arguments: fn() -> Map<String, Value>,
    answer: fn(&Desk, Value) -> Result<Value, String>,
) -> Known {
    Known { name, doc, arguments, answer, records: false }
}

/// All tools.
pub(crate) const ALL: &[Known] = &[
    reads("list_traces", "The traces that can be asked about, the newest first", schema::<Nothing>, |desk, asked| {
        folder::list_traces(desk, &parse(asked)?)
    }),
    reads(
        "explain",
        "What held the cores up: where the CPU time went, the causes in the order of their cost with culprit, confidence and advice, and \
         what the trace cannot tell",
        schema::<arguments::Explain>,
        |desk, asked| explain::explain(desk, &parse(asked)?),
    ),
    reads(
        "finding",
        "One cause whole: evidence, doubts, stacks of waiters and of the release, hot instructions",
        schema::<arguments::Finding>,
        |desk, asked| explain::finding(desk, &parse(asked)?),
    ),
    reads(
        "stalls",
        "Short stretches in which unusually many threads waited unusually long, each with its cause",
        schema::<arguments::Explain>,
        |desk, asked| explain::stalls(desk, &parse(asked)?),
    ),
    reads(
        "spans",
        "Units of work such as requests: without name which there are, how many and how long; with name why the slow ones are slow, beside \
         the typical ones; with id one of them piece by piece",
        schema::<arguments::Spans>,
        |desk, asked| spans::spans(desk, &parse(asked)?),
    ),
    reads(
        "chain",
        "Follows one wait to its cause: who ended it, what that one waited for before, and so on; the parts add up to the whole wait",
        schema::<arguments::Chain>,
        |desk, asked| code::follow(desk, &parse(asked)?),
    ),
    reads(
        "disasm",
        "A function's hottest instructions and short loops, with the share of its samples at each",
        schema::<arguments::Disasm>,
        |desk, asked| code::disasm(desk, &parse(asked)?),
    ),
    reads(
        "table",
        "Rows or groups of a table: waits, cpu (samples), switches, wakes, locks, processes, spans, or a question by name (see table_columns)",
        schema::<arguments::Table>,
        |desk, asked| table::table(desk, &parse(asked)?),
    ),
    reads(
        "table_columns",
        "What the columns of a table mean, in which unit, and which questions there are",
        schema::<arguments::Columns>,
        |_, asked| table::columns(&parse(asked)?),
    ),
    reads(
        "diff",
        "Compares runs before with runs after a change: what got slower, causes told from symptoms",
        schema::<arguments::Diff>,
        |desk, asked| explain::compare(desk, &parse(asked)?),
    ),
    Known {
        name: "record",
        doc: "Records a command, a process or the machine into a new trace",
        arguments: schema::<arguments::Record>,
        answer: |desk, asked| recording::record(desk, &parse(asked)?),
        records: true,
    },
];

/// What to say to somebody who asks for another.
pub(crate) fn unknown(name: &str) -> String {
    let names = || ALL.iter().map(|known| known.name);
    let hint = near::hint(name, names());
    format!("there is no tool {name:?}{hint}; there are {}", names().collect::<Vec<_>>().join(", "))
}

fn parse<T: DeserializeOwned>(asked: Value) -> Result<T, String> {
    serde_json::from_value(asked).map_err(|e| format!("arguments: {e}"))
}
