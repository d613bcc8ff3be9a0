//! What the tools are asked, and the schemas that say so to the client.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Which trace, and which part of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explain {
    /// The trace: its name in list_traces
    pub trace: String,
    /// Only this process (name or pid) and its children can be held up; without it, what was recorded
    pub focus: Option<String>,
    /// Only this part: [from, to] in seconds since the trace's start
    pub window: Option<[f64; 2]>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finding {
    /// The trace
    pub trace: String,
    /// Which: f1, f2, … of explain with the same focus and window
    pub id: String,
    /// As for explain
    pub focus: Option<String>,
    /// As for explain
    pub window: Option<[f64; 2]>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spans {
    /// The trace
    pub trace: String,
    /// Of this name, as spans without a name lists them
    pub name: Option<String>,
    /// Of these only those whose argument has this in it
    pub argument: Option<String>,
    /// Which share of them, the longest, is called slow: 0.01 if not given, at most 0.5
    pub slow: Option<f64>,
    /// Or one of them, by its number
    pub id: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The trace
    pub trace: String,
    /// A table (waits, cpu, switches, wakes, locks, processes, spans) or a question of table_columns
    pub table: String,
    /// Columns to group by
    #[serde(default)]
    pub by: Vec<String>,
    /// Measures of each group: count, sum:COL, mean:COL, max:COL, p99:COL, share:COL
    #[serde(default)]
    pub show: Vec<String>,
    /// Without by: columns of the rows
    #[serde(default)]
    pub columns: Vec<String>,
    /// Only rows that pass, such as: kind == lock and wait > 1ms
    pub filter: Option<String>,
    /// Columns or measures to sort by, in falling order with - before the name
    #[serde(default)]
    pub sort: Vec<String>,
    /// How many rows or groups; 20 if not given, at most 40
    pub top: Option<usize>,
    /// Only this process (name or pid) and its children
    pub focus: Option<String>,
    /// [from, to] in seconds; a wait counts if any part of it lies inside
    pub window: Option<[f64; 2]>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Columns {
    /// waits, cpu, switches, wakes, locks, processes or spans
    pub table: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chain {
    /// The trace
    pub trace: String,
    /// A wait by its number, which tables of waits show as id
    pub wait: Option<u64>,
    /// Or the wait that is open at this instant, in seconds
    pub at_s: Option<f64>,
    /// Whose, by name or tid; else the longest
    pub thread: Option<String>,
    /// Only this process (name or pid) and its children
    pub focus: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disasm {
    /// The trace
    pub trace: String,
    /// The function, whole or a part of its name
    pub function: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diff {
    /// Traces of runs before the change
    pub before: Vec<String>,
    /// Traces of runs after it
    pub after: Vec<String>,
    /// Only this process (name or pid) and its children
    pub focus: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// What the trace is to be called: letters, digits, - and _
    pub name: String,
    /// At most so long: 0.1 to 60
    pub seconds: f64,
    /// A command with its arguments, run without a shell
    pub command: Option<Vec<String>>,
    /// Or a running process, by number or name; with neither, the whole machine
    pub process: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// The schema of arguments, as the protocol has it.
pub(crate) fn schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = schemars::schema_for!(T).to_value();
    let fields = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    fields.into_iter().filter(|(name, _)| name != "$schema" && name != "title" && name != "description").collect()
}
