//! The documents that `--json` prints, and their JSON Schemas: derived from the types that are printed, so that the one
//! cannot change without the other.
//!
//! Objects may have further fields: later versions add some, and take none away within a version of a document.

mod by_hand;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod live;
pub mod scaling;
pub mod workload;

use holdup_analysis::Explanation;
use holdup_analysis::annotate::Annotated;
use holdup_analysis::chain::Chain;
use holdup_analysis::diff::Diff;
use holdup_analysis::spans::{SingleSpan, SpanReport};
use holdup_analysis::threads::ThreadList;
use holdup_lab::compare::Comparison as LabComparison;
use holdup_lab::{check, report as lab, reproduce};
use holdup_load::report;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use live::Live;
use scaling::Answer as Scale;
use workload::Workload;

/// A document.
pub struct Document {
    /// How `holdup schema` calls it.
    pub name: &'static str,
    /// What its field `schema` says; of those that have none, what it would say.
    pub id: &'static str,
    /// What prints it.
    pub of: &'static str,
    make: fn(SchemaGenerator) -> Schema,
}

impl Document {
    /// The JSON Schema, draft 2020-12.
    pub fn schema(&self) -> Schema {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut schema = (self.make)(settings.into_generator());
        schema.insert("title".into(), json!(self.id));
        schema.insert("description".into(), json!(format!("What `{}` prints.", self.of)));
        if let Some(field) = schema.pointer_mut("/properties/schema").and_then(Value::as_object_mut) {
            field.insert("const".into(), json!(self.id));
        }
        schema
    }
}

fn of<T: JsonSchema>(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<T>()
}

/// All documents.
pub const DOCUMENTS: &[Document] = &[
    Document { name: "explain", id: "holdup.explain/1", of: "holdup explain TRACE --json", make: of::<Explanation> },
    Document {
        name: "spans",
        id: "holdup.spans/1",
        of: "holdup explain TRACE --spans NAME --json",
        make: of::<SpanReport>,
    },
    Document { name: "span", id: "holdup.span/1", of: "holdup chain TRACE --span ID --json", make: of::<SingleSpan> },
    Document { name: "info", id: "holdup.info/1", of: "holdup info TRACE --json", make: by_hand::info },
    Document { name: "tables", id: "holdup.schema/1", of: "holdup info --schema --json", make: by_hand::tables },
    Document { name: "table", id: "holdup.table/1", of: "holdup table TRACE TABLE --json", make: by_hand::table },
    Document { name: "threads", id: "holdup.threads/1", of: "holdup threads TRACE --json", make: of::<ThreadList> },
    Document { name: "threads-live", id: "holdup.threads/1", of: "holdup threads PID --json", make: of::<Live> },
    Document {
        name: "export",
        id: holdup_export::json::SCHEMA,
        of: "holdup export TRACE --format json -o FILE",
        make: of::<holdup_export::json::Document>,
    },
    Document { name: "chain", id: "holdup.chain/1", of: "holdup chain TRACE --json", make: of::<Chain> },
    Document {
        name: "disasm",
        id: "holdup.disasm/1",
        of: "holdup disasm TRACE FUNCTION --json",
        make: of::<Annotated>,
    },
    Document { name: "diff", id: "holdup.diff/1", of: "holdup diff BEFORE --vs AFTER --json", make: of::<Diff> },
    Document { name: "check", id: check::SCHEMA, of: "holdup check --json", make: of::<check::Report> },
    Document { name: "lab", id: lab::SCHEMA, of: "holdup lab run --json", make: of::<lab::Report> },
    Document { name: "lab-list", id: "holdup.lab-list/1", of: "holdup lab list --json", make: by_hand::lab_list },
    Document {
        name: "lab-compare",
        id: "holdup.lab-compare/1",
        of: "holdup lab compare A B --json",
        make: of::<LabComparison>,
    },
    Document {
        name: "lab-reproduce",
        id: reproduce::SCHEMA,
        of: "holdup lab reproduce TRACE --json",
        make: of::<reproduce::Report>,
    },
    #[cfg(feature = "fleet")]
    Document {
        name: "fleet-report",
        id: "holdup.fleet-report/1",
        of: "holdup fleet report DATASET --json",
        make: of::<fleet::FleetReport>,
    },
    #[cfg(feature = "fleet")]
    Document {
        name: "fleet-diff",
        id: "holdup.fleet-diff/1",
        of: "holdup fleet diff DATASET --json",
        make: of::<fleet::FleetDiff>,
    },
    #[cfg(feature = "fleet")]
    Document {
        name: "fleet-example",
        id: "holdup.fleet-example/1",
        of: "holdup fleet example DATASET --json",
        make: of::<fleet::FleetExample>,
    },
    Document { name: "scale", id: "holdup.scale/1", of: "holdup scale --json -- CMD", make: of::<Scale> },
    Document { name: "load", id: report::SCHEMA, of: "holdup load run --json", make: of::<report::Report> },
    Document {
        name: "load-list",
        id: "holdup.load-list/1",
        of: "holdup load list FOLDER --json",
        make: by_hand::load_list,
    },
    Document {
        name: "load-workload",
        id: "holdup.load-workload/1",
        of: "holdup load list SCRIPT --json",
        make: of::<Workload>,
    },
    Document {
        name: "load-compare",
        id: "holdup.load-compare/1",
        of: "holdup load compare A B --json",
        make: of::<report::Comparison>,
    },
];
