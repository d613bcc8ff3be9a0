//! What the page says of tables and ready-made questions.

use holdup_analysis::explore::{ColumnInfo, PRESETS, Preset, TableKind};
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct TableDocument {
    name: &'static str,
    doc: &'static str,
    columns: Vec<ColumnDocument>,
    default_columns: &'static [&'static str],
    default_measures: &'static [&'static str],
}

#[derive(Serialize)]
struct ColumnDocument {
    name: &'static str,
    unit: &'static str,
    doc: &'static str,
    wpa: &'static [&'static str],
    /// Whether sums and means of it mean anything.
    adds_up: bool,
}

#[derive(Serialize)]
pub(crate) struct PresetDocument {
    name: &'static str,
    doc: &'static str,
    table: &'static str,
    by: &'static [&'static str],
    show: &'static [&'static str],
    filter: Option<&'static str>,
    sort: &'static [&'static str],
}

/// All tables.
pub(crate) fn tables() -> Vec<TableDocument> {
    let column = |c: ColumnInfo| {
        let ColumnInfo { name, unit, wpa, doc } = c;
        ColumnDocument { name, unit: unit.name(), doc, wpa, adds_up: unit.adds_up() }
    };
    let table = |t: TableKind| TableDocument {
        name: t.name(),
        doc: t.doc(),
        columns: t.columns().into_iter().map(column).collect(),
        default_columns: t.default_columns(),
        default_measures: t.default_measures(),
    };
    TableKind::ALL.into_iter().map(table).collect()
}

/// All ready-made questions.
pub(crate) fn presets() -> Vec<PresetDocument> {
    let preset = |p: &Preset| {
        let Preset { name, doc, table, by, show, filter, sort } = *p;
        PresetDocument { name, doc, table: table.name(), by, show, filter, sort }
    };
    PRESETS.iter().map(preset).collect()
}
