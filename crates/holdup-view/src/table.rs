//! Tables: the questions of `holdup table`, and their levels one by one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdup_analysis::explore::relation::{Column, Data, MISSING, Unit};
use holdup_analysis::explore::{
    Answer as Found, Explorer, Narrow, Preset, Process, Query, TableKind, View, Wanted, resolve,
};
use rustc_hash::FxHashSet;
use serde::Serialize;
use serde_json::Value;

use crate::request::{Selection, TableOf};
use crate::study::Study;
use crate::{Answer, Cancel, Error, Result};

/// Bytes of columns and sums that are kept for the next question.
const KEPT_BYTES: usize = 512 << 20;
/// Rows of an answer if nobody says how many, and at most.
const MOST_ROWS: usize = 50_000;

/// The columns of questions that were asked before, the latest last.
#[derive(Default)]
pub(crate) struct Views {
    kept: Mutex<Vec<(String, Arc<View>)>>,
}

/// The question about all rows, of which others are about some: without time, path and order.
struct Base {
    query: Query,
    /// Columns of which values are picked.
    picked: Vec<&'static str>,
}

impl Base {
    fn new(asked: &Query, selection: &Selection) -> Self {
        let mut query = Query { sort: Vec::new(), top: None, window: None, ..asked.clone() };
        let sorted = asked.sort.iter().filter(|_| asked.by.is_empty()).map(|s| s.trim_start_matches('-').to_owned());
        query.columns.extend(sorted);
        Base { query, picked: selected(asked, selection).iter().map(|(column, _)| *column).collect() }
    }

    fn key(&self) -> String {
        format!("{:?} {:?}", self.query, self.picked)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    table: &'static str,
    focus: &'a str,
    by: &'a [String],
    columns: Vec<Head<'a>>,
    rows: Vec<Vec<Value>>,
    total_rows: usize,
    matched_rows: usize,
}

#[derive(Serialize)]
struct Head<'a> {
    name: &'a str,
    unit: &'static str,
    doc: &'static str,
}

#[derive(Serialize)]
struct Text {
    csv: String,
}

impl Views {
    /// The view of a question; made if it is not kept. O(rows of the table).
    fn get(&self, explorer: &Explorer, base: &Base, cancel: &Cancel) -> Result<Arc<View>> {
        let key = base.key();
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let view = Arc::new(explorer.view_to_narrow(&base.query, &base.picked, cancel.stop())?);
        view.prepare();
        // Somebody may have asked the same meanwhile.
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let mut kept = self.kept();
        kept.push((key, view.clone()));
        while kept.len() > 1 && bytes(&kept) > KEPT_BYTES {
            kept.remove(0);
        }
        Ok(view)
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(String, Arc<View>)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view that is kept, which is the latest then.
    fn known(&self, key: &str) -> Option<Arc<View>> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(k, _)| *k == key)?;
        let found = kept.remove(at);
        kept.push(found.clone());
        Some(found.1)
    }

    /// Whether a question is answered from what is kept; one that makes no sense is answered at once, too.
    pub(crate) fn has(&self, asked: &TableOf) -> bool {
        question(asked).map_or(true, |query| self.known(&Base::new(&query, &asked.selection).key()).is_some())
    }

    /// Makes the views of the first questions. O(rows of the table).
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn prepare(&self, explorer: &Explorer) -> Result<()> {
        let (table, by) = FIRST;
        let asked = TableOf { by: by.map(str::to_owned).to_vec(), ..TableOf::all(table.name()) };
        // A finding picks the waits in the function in which its waiters waited.
        let picked = Selection { function: Some(String::new()), ..Selection::default() };
        for selection in [&picked, &asked.selection] {
            self.get(explorer, &Base::new(&question(&asked)?, selection), &Cancel::default())?;
        }
        Ok(())
    }
}

/// The columns by which the page groups at first, of the table that it shows first.
const FIRST: (TableKind, [&str; 3]) = (TableKind::Waits, ["process", "thread", "kind"]);

/// Bytes of views, columns that several of them have counted once.
fn bytes(views: &[(String, Arc<View>)]) -> usize {
    let mut seen = FxHashSet::default();
    let columns = views.iter().flat_map(|(_, view)| view.columns()).filter(|column| seen.insert(Arc::as_ptr(column)));
    let columns: usize = columns.map(|column| column.data.bytes()).sum();
    columns + views.iter().map(|(_, view)| view.bytes()).sum::<usize>()
}

/// Answers `table`.
///
/// # Errors
/// If the question makes no sense, if a table is damaged, or if nobody wants to know any more.
pub(crate) fn answer(
    study: &Study,
    explorer: &Explorer,
    views: &Views,
    asked: &TableOf,
    cancel: &Cancel,
) -> Result<Answer> {
    let all = question(asked)?;
    let level = all.by.get(asked.path.len()).map(|by| vec![by.clone()]);
    let query = match level {
        Some(by) if !asked.path.is_empty() || asked.tree => Query { by, ..all.clone() },
        Some(_) => all.clone(),
        None if all.by.is_empty() => all.clone(),
        None => return Err(Error::Question("the path is longer than the groups".into())),
    };
    let wanted = selected(&all, &asked.selection);
    let view = views.get(explorer, &Base::new(&all, &asked.selection), cancel)?;
    let path = all.by.iter().map(String::as_str).zip(asked.path.iter().map(value_of));
    let value = |(column, value): (&str, Wanted)| Ok((resolve(all.table, column)?, value));
    let narrow = Narrow {
        window: asked
            .window
            .map(|window| window.within(study.timeline.end))
            .transpose()?
            .filter(|w| *w != (0, study.timeline.end)),
        values: path.chain(wanted).map(value).collect::<Result<_>>()?,
    };
    let found = view.answer_of(&narrow, &query, cancel.stop())?;
    Ok(if asked.csv { Answer::document(&Text { csv: csv(&found) }) } else { document(&found) })
}

/// The question that is asked, without time and path.
fn question(asked: &TableOf) -> Result<Query> {
    let table = TableKind::ALL.into_iter().find(|t| t.name() == asked.table);
    let mut query = match (table, Preset::find(&asked.table)) {
        (Some(table), _) => Query::new(table),
        (None, Some(preset)) => preset.query(),
        (None, None) => return Err(Error::Question(format!("there is no table {}", asked.table))),
    };
    if !asked.by.is_empty() {
        query.by.clone_from(&asked.by);
        query.columns.clear();
    }
    if !asked.show.is_empty() {
        let to = if query.by.is_empty() { &mut query.columns } else { &mut query.measures };
        to.clone_from(&asked.show);
    }
    if query.by.is_empty() && query.columns.is_empty() {
        query.columns = query.table.default_columns().iter().map(|&c| c.to_owned()).collect();
    }
    if !query.by.is_empty() && query.measures.is_empty() {
        query.measures = query.table.default_measures().iter().map(|&m| m.to_owned()).collect();
    }
    if !asked.sort.is_empty() {
        query.sort.clone_from(&asked.sort);
    }
    query.filters.extend(asked.filters.iter().filter(|f| !f.trim().is_empty()).cloned());
    query.top = Some(asked.top.unwrap_or(MOST_ROWS).min(MOST_ROWS));
    query.process = if asked.focus { Process::Recorded } else { query.process };
    Ok(query)
}

/// What a selection means to a table, as far as it has such a column.
fn selected(query: &Query, selection: &Selection) -> Vec<(&'static str, Wanted)> {
    let function = match query.table {
        TableKind::Wakes | TableKind::Locks | TableKind::Processes => None,
        _ => selection.function.as_ref(),
    };
    let lock = match query.table {
        TableKind::Waits | TableKind::Locks => selection.lock.as_ref(),
        _ => None,
    };
    let pairs = [
        ("process", selection.process.as_ref()),
        ("thread", selection.thread.as_ref()),
        ("function", function),
        ("lock", lock),
    ];
    let given = |(column, value): (&'static str, Option<&String>)| Some((column, Wanted::Text(value?.clone())));
    pairs.into_iter().filter_map(given).collect()
}

fn value_of(cell: &Value) -> Wanted {
    match cell {
        Value::String(text) => Wanted::Text(text.clone()),
        Value::Number(n) => n.as_u64().map_or(Wanted::Missing, Wanted::Number),
        _ => Wanted::Missing,
    }
}

fn document(found: &Found) -> Answer {
    let row = |row| found.columns.iter().map(|c| cell(c, row)).collect();
    Answer::document(&Document {
        schema: "holdup.table/1",
        table: found.table.name(),
        focus: &found.focus,
        by: &found.by,
        columns: found.columns.iter().map(|c| Head { name: &c.name, unit: c.unit.name(), doc: c.doc }).collect(),
        rows: (0..found.len()).map(row).collect(),
        total_rows: found.total,
        matched_rows: found.matched,
    })
}

fn cell(column: &Column, row: usize) -> Value {
    match &column.data {
        Data::Text(text) => Value::from(text.get(row)),
        Data::Numbers(numbers) => match (numbers[row], column.unit) {
            (MISSING, _) => Value::Null,
            (n, Unit::Address) => Value::from(format!("{n:#x}")),
            (n, _) => Value::from(n),
        },
        Data::Reals(reals) => Value::from(reals[row]),
    }
}

/// By RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe before it.
fn csv(found: &Found) -> String {
    let quoted = |text: &str| {
        let text = holdup_base::text::clean(text);
        let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.into_owned() };
        if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    let names: Vec<String> = found.columns.iter().map(|c| quoted(&c.name)).collect();
    let mut out = names.join(",") + "\n";
    for row in 0..found.len() {
        let cells = found.columns.iter().map(|c| match cell(c, row) {
            Value::String(text) => quoted(&text),
            Value::Null => String::new(),
            number => number.to_string(),
        });
        out.push_str(&cells.collect::<Vec<_>>().join(","));
        out.push('\n');
    }
    out
}
