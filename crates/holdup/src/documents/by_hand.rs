//! Schemas of documents that are printed from no type of their own.

use holdup_trace::{Host, Loss, RecorderCost};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// An object with these fields, all of which are there.
fn object(fields: &Value) -> Schema {
    let required: Vec<&String> = fields.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json_schema!({ "type": "object", "required": required, "properties": fields })
}

/// An object that is a document of its own.
fn document(mut generator: SchemaGenerator, fields: impl FnOnce(&mut SchemaGenerator) -> Value) -> Schema {
    let mut schema = object(&fields(&mut generator));
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".into(), json!(definitions));
    }
    schema
}

fn list<T: JsonSchema>(generator: &mut SchemaGenerator, about: &str) -> Value {
    json!({ "type": "array", "items": generator.subschema_for::<T>(), "description": about })
}

fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

fn whole(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

fn number(about: &str) -> Value {
    json!({ "type": "number", "description": about })
}

fn texts(about: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": about })
}

fn counts(about: &str) -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 }, "description": about })
}

fn or_null(mut schema: Value) -> Value {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    schema
}

/// `holdup.info/1`.
pub fn info(generator: SchemaGenerator) -> Schema {
    document(generator, |generator| {
        json!({
            "schema": text("The name of the document."),
            "format": text("The format of the trace: holdup, perf.data."),
            "start_ns": whole("When it begins, by the clock of its machine."),
            "duration_s": number("Its length."),
            "cpus": whole("CPUs of the machine."),
            "host": generator.subschema_for::<Host>(),
            "events": counts("Rows of each table."),
            "native_events": counts("The source's own records, used or not."),
            "threads": whole("Threads."),
            "processes": whole("Processes."),
            "command": texts("The command that was recorded; empty if none was."),
            "exit_code": or_null(json!({ "type": "integer", "description": "Its exit code." })),
            "hooks": texts("By what the recorder saw events."),
            "recorder_cpu_s": number("CPU seconds that recording used: the recorder itself, and its programs in the kernel."),
            "recorder": generator.subschema_for::<RecorderCost>(),
            "stolen_cpu_s": or_null(number("CPU seconds that the host took from this virtual machine.")),
            "min_wait_ns": whole("Waits of at least this length have stacks."),
            "sample_period_ns": whole("Time between two samples of a CPU; 0 without."),
            "user_stacks": object(&json!({
                "taken": whole("Stacks of user space."),
                "complete": whole("Those that reach the first function."),
            })),
            "holds_stack_memory": { "type": "boolean", "description": "Whether it is a spool, which holds copies of stack memory." },
            "kernel_addresses_hidden": { "type": "boolean", "description": "Whether kernel addresses were replaced: its owner may not see them." },
            "notes": texts("What the reader should know."),
            "losses": list::<Loss>(generator, "What is missing."),
        })
    })
}

/// `holdup.schema/1`.
pub fn tables(generator: SchemaGenerator) -> Schema {
    let column = object(&json!({
        "name": text("The column."),
        "type": text("Its Arrow type."),
        "unit": text("Its unit; empty if it has none."),
        "doc": text("What it says."),
    }));
    let table = object(&json!({
        "name": text("The table."),
        "doc": text("What its rows are."),
        "columns": { "type": "array", "items": column },
    }));
    document(generator, |_| {
        json!({
            "schema": text("The name of the document."),
            "tables": { "type": "array", "items": table, "description": "The tables of a .holdup file." },
        })
    })
}

/// `holdup.table/1`.
pub fn table(generator: SchemaGenerator) -> Schema {
    let column =
        object(&json!({ "name": text("The column or measure."), "unit": text("Its unit; empty if it has none.") }));
    let cell = json!({ "type": ["string", "number", "null"] });
    document(generator, |_| {
        json!({
            "schema": text("The name of the document."),
            "table": text("The table that was asked."),
            "focus": text("Whose rows these are; empty for everyone's."),
            "by": texts("The columns that the rows are grouped by; empty if they are not."),
            "columns": { "type": "array", "items": column },
            "rows": {
                "type": "array",
                "items": { "type": "array", "items": cell },
                "description": "Each row has a value for each column, in their order; times in nanoseconds; null for unknown.",
            },
            "total_rows": whole("Rows or groups that there are; --top leaves some out."),
            "matched_rows": whole("Rows of the table that passed the filters."),
        })
    })
}

/// `holdup.lab-list/1`.
pub fn lab_list(generator: SchemaGenerator) -> Schema {
    let knob = object(&json!({
        "name": text("The knob."),
        "about": text("What it sets."),
        "values": text("What it can be."),
        "quick": text("What it is with --quick."),
        "full": text("What it is else."),
    }));
    let experiment = object(&json!({
        "name": text("The experiment."),
        "about": text("What it shows."),
        "axis": text("What its points lie on."),
        "knobs": { "type": "array", "items": knob },
    }));
    document(generator, |_| {
        json!({
            "schema": text("The name of the document."),
            "experiments": { "type": "array", "items": experiment },
        })
    })
}

/// The reports of a folder.
pub fn load_list(_: SchemaGenerator) -> Schema {
    let report = object(&json!({
        "path": text("The file."),
        "workload": text("The script."),
        "function": text("The functions that were called, with weights."),
        "rate": or_null(number("Calls due a second; null in a closed loop.")),
        "tags": texts("Words of the user's."),
        "throughput": number("Calls a second."),
        "p99_ms": number("The 99th percentile of response times."),
        "errors": whole("Calls that failed."),
        "finished_unix_s": whole("Seconds since 1970 at its end."),
    }));
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "array",
        "items": report,
    })
}
