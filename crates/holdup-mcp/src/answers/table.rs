//! Tables: rows, groups, and what their columns mean.

use holdup_analysis::explore::relation::{Column, Data, MISSING, Unit};
use holdup_analysis::explore::{Explorer, PRESETS, Preset, Process, Query, Stop, TableKind};
use holdup_base::near;
use serde_json::{Map, Value, json};

use super::explain::ordered;
use crate::arguments;
use crate::desk::Desk;
use crate::shape::Answer;

/// Rows of a table if nobody says how many, and at most.
const ROWS: usize = 20;
const MOST_ROWS: usize = 40;

pub(crate) fn table(desk: &Desk, asked: &arguments::Table) -> Result<Value, String> {
    let mut query = query(&asked.table)?;
    if !asked.by.is_empty() {
        query.by.clone_from(&asked.by);
    }
    if !asked.columns.is_empty() {
        query.by.clear();
        query.columns.clone_from(&asked.columns);
    }
    if !asked.show.is_empty() {
        query.measures.clone_from(&asked.show);
    }
    if !asked.sort.is_empty() {
        query.sort.clone_from(&asked.sort);
    }
    query.filters.extend(asked.filter.clone());
    query.window = ordered(asked.window)?;
    query.top = Some(asked.top.unwrap_or(ROWS).min(MOST_ROWS));
    if let Some(focus) = &asked.focus {
        query.process = Process::Named(focus.clone());
    }
    let trace = desk.trace(&asked.trace)?;
    let answer = Explorer::new(&trace)
        .with_disassembler(desk.workplace.disassembler())
        .run(&query, &Stop::default())
        .map_err(|e| e.to_string())?;
    let columns: Vec<Value> = answer.columns.iter().map(|c| json!({"name": c.name, "unit": c.unit.name()})).collect();
    let rows: Vec<Value> = (0..answer.len()).map(|row| answer.columns.iter().map(|c| cell(c, row)).collect()).collect();
    let further = answer.total.saturating_sub(rows.len());
    let shaped = Answer::new().with("columns", columns).with("rows", rows).with("further_rows", further);
    Ok(shaped.with("rows_behind", answer.matched).finish())
}

fn query(name: &str) -> Result<Query, String> {
    let table = TableKind::ALL.into_iter().find(|t| t.name() == name);
    match (table, Preset::find(name)) {
        (Some(table), _) => Ok(Query::new(table)),
        (None, Some(preset)) => Ok(preset.query()),
        (None, None) => Err(no_table(name)),
    }
}

fn no_table(asked: &str) -> String {
    let names = || TableKind::ALL.map(TableKind::name).into_iter().chain(PRESETS.iter().map(|p| p.name));
    let hint = near::hint(asked, names());
    format!("there is no table {asked:?}{hint}; there are {}", names().collect::<Vec<_>>().join(", "))
}

fn cell(column: &Column, row: usize) -> Value {
    match &column.data {
        Data::Text(text) => json!(text.get(row)),
        Data::Numbers(numbers) => match (numbers[row], column.unit) {
            (MISSING, _) => Value::Null,
            (address, Unit::Address) => json!(format!("{address:#x}")),
            (number, _) => json!(number),
        },
        Data::Reals(reals) => json!(reals[row]),
    }
}

pub(crate) fn columns(asked: &arguments::Columns) -> Result<Value, String> {
    let Some(table) = TableKind::ALL.into_iter().find(|t| t.name() == asked.table) else {
        return Err(no_table(&asked.table));
    };
    let columns: Map<String, Value> = table
        .columns()
        .iter()
        .map(|column| (column.name.to_owned(), json!(format!("{} ({})", column.doc, column.unit.name()))))
        .collect();
    let presets = PRESETS.iter().filter(|preset| preset.table == table);
    let questions: Map<String, Value> = presets.map(|p| (p.name.to_owned(), json!(p.doc))).collect();
    Ok(Answer::new().with("columns", columns).with("questions", questions).finish())
}
