//! From a question to its answer.

use std::sync::{Arc, OnceLock};

use holdup_trace::Timestamp;

use super::cube::Cube;
use super::filter::Filter;
use super::group::{Keys, Stop, rows_of};
use super::measure::{self, Measure};
use super::narrow::Narrow;
use super::order::{compare, cut, key, ordered};
use super::question::{Answer, Process, Query};
use super::relation::{Column, Data, Relation, Rows};
use super::rows::TableKind;
use super::selection::Selection;
use super::shared::Of;
use super::{Error, Explorer, Result, Scope, names};
use crate::focus::Focus;

/// The columns that a question needs, with the rows that pass its filter.
pub struct View {
    pub(super) selection: Selection,
    focus: String,
    /// The columns by which it may be grouped, or values of which may be picked.
    by: Vec<String>,
    measures: Vec<Measure>,
    /// `None` where there are no sums to go by.
    cube: OnceLock<Option<Cube>>,
}

impl View {
    /// The table.
    pub fn table(&self) -> TableKind {
        self.selection.table
    }

    /// Bytes that it takes, but for its columns.
    pub fn bytes(&self) -> usize {
        self.selection.bytes() + self.cube.get().and_then(Option::as_ref).map_or(0, Cube::bytes)
    }

    /// The rows that passed the filter.
    pub fn rows(&self) -> Rows<'_> {
        self.selection.rows()
    }

    /// Its columns, which other views may have, too.
    pub fn columns(&self) -> &[Arc<Column>] {
        self.selection.relation.columns()
    }

    /// Groups `rows` by the columns `by`, which must be among those that the view was made for. One level of a tree:
    /// the next is a call with the rows of one group ([`View::rows_of`]) and another column.
    pub fn group(&self, by: &[String], rows: Rows, measures: &[Measure], stop: &Stop) -> Result<Answer> {
        let keys = self.keys(by, rows, stop)?;
        let (groups, measured) =
            measure::compute(&self.selection.relation, &keys, rows, measures, self.table().weight(), stop)?;
        let first = keys.first_rows(rows, groups.len());
        let first: Vec<u32> = groups.iter().map(|&g| first[g as usize]).collect();
        let mut columns: Vec<Column> = by.iter().map(|b| pick(self.selection.relation.column(b), &first)).collect();
        columns.extend(measured);
        Ok(self.answer(by, columns, rows.len(), groups))
    }

    /// The rows of `group`, as [`Answer::groups`] has it, among `rows`.
    pub fn rows_of(&self, by: &[String], rows: Rows, group: u32, stop: &Stop) -> Result<Vec<u32>> {
        rows_of(&self.keys(by, rows, stop)?, group, rows, stop)
    }

    /// Answers `query` for some of the rows; of the query its groups, measures or columns, order and number count, all of which
    /// must be among those that the view was made for, as must the columns of `narrow`. O(rows) for the first question; where it sums, the next
    /// ones cost O(groups).
    ///
    /// # Errors
    /// If it makes no sense, or was stopped.
    pub fn answer_of(&self, narrow: &Narrow, query: &Query, stop: &Stop) -> Result<Answer> {
        let query = &with_defaults(query)?;
        let measures = measures(query)?;
        let fits = |cube: &&Cube| {
            let here = |column: &String| self.by.contains(column);
            !query.by.is_empty() && query.by.iter().chain(narrow.columns()).all(here) && cube.has(&measures)
        };
        if let Some(cube) = self.cube().filter(fits) {
            let found = cube.group(&self.selection, &query.by, &measures, narrow, stop)?;
            let own = query.by.iter().map(|b| pick(self.selection.relation.column(b), &found.first));
            let columns = own.chain(found.measured).collect();
            let answer = self.answer(&query.by, columns, found.matched, found.groups);
            return ordered(answer, query);
        }
        let chosen = self.selection.narrowed(narrow);
        self.answer_rows(chosen.as_deref().map_or(self.rows(), Rows::Some), query, stop)
    }

    /// The same by going through `of`.
    fn answer_rows(&self, of: Rows, query: &Query, stop: &Stop) -> Result<Answer> {
        if query.by.is_empty() {
            return rows(self, of, query, stop);
        }
        ordered(self.group(&query.by, of, &measures(query)?, stop)?, query)
    }

    /// Makes the sums now that the first question would make. O(rows).
    pub fn prepare(&self) {
        self.cube();
    }

    /// Its rows in sums, where these are possible.
    fn cube(&self) -> Option<&Cube> {
        // What cannot be grouped is told by whoever goes by the rows.
        self.cube.get_or_init(|| Cube::new(&self.selection, &self.by, &self.measures).ok().flatten()).as_ref()
    }

    fn keys(&self, by: &[String], rows: Rows, stop: &Stop) -> Result<Keys<'_>> {
        let columns: Vec<&Column> = by.iter().map(|b| self.selection.relation.column(b)).collect();
        Keys::of(&columns, rows, stop)
    }

    pub(super) fn answer(&self, by: &[String], columns: Vec<Column>, matched: usize, groups: Vec<u32>) -> Answer {
        let total = columns.first().map_or(0, |c| c.data.len());
        let (table, by, focus) = (self.table(), by.to_vec(), self.focus.clone());
        Answer { table, by, columns, total, matched, groups, focus }
    }
}

fn pick(column: &Column, rows: &[u32]) -> Column {
    Column { name: column.name.clone(), unit: column.unit, doc: column.doc, data: column.data.gather(rows) }
}

impl Explorer<'_> {
    /// Reads the columns that `query` names, by any of their names, and keeps the rows that pass its filter.
    pub fn view(&self, query: &Query, stop: &Stop) -> Result<View> {
        let filters: Result<Vec<Filter>> = query.filters.iter().map(|f| Filter::parse(query.table, f)).collect();
        let filter = filters?.into_iter().reduce(Filter::and);
        let mut needed: Vec<String> = Vec::new();
        let mut need = |name: String| {
            if !needed.contains(&name) {
                needed.push(name);
            }
        };
        for name in query.by.iter().chain(&query.columns) {
            need(names::resolve(query.table, name)?);
        }
        for measure in measures(query)? {
            measure.column().into_iter().for_each(|c| need(c.to_owned()));
        }
        // What is sorted by may be a measure: only what is a column is needed.
        for key in query.sort.iter().filter(|_| query.by.is_empty()) {
            need(names::resolve(query.table, key.trim_start_matches('-'))?);
        }
        filter.iter().flat_map(Filter::columns).for_each(|c| need(c.to_owned()));
        query.table.weight().into_iter().for_each(|weight| need(weight.to_owned()));
        let scope = self.scope(query)?;
        let relation = self.columns(query.table, &needed, &scope)?;
        let chosen = filter.map(|f| f.choose(&relation, stop)).transpose()?;
        let focus = scope.focus.map_or(String::new(), |f| f.name().to_owned());
        let by = query.by.iter().map(|by| names::resolve(query.table, by)).collect::<Result<_>>()?;
        let (measures, cube) = (measures(query)?, OnceLock::new());
        let selection = Selection { table: query.table, relation, chosen };
        Ok(View { selection, focus, by, measures, cube })
    }

    /// Answers `query`. O(rows) for each column that it names, and for each level of its groups.
    pub fn run(&self, query: &Query, stop: &Stop) -> Result<Answer> {
        let query = &with_defaults(query)?;
        let view = self.view(query, stop)?;
        view.answer_rows(view.rows(), query, stop)
    }

    /// A view for many questions: [`View::answer_of`] may group by what `query` groups by, and pick times, and values of `picked`.
    ///
    /// # Errors
    /// If the question makes no sense, or the trace cannot be read.
    pub fn view_to_narrow(&self, query: &Query, picked: &[&str], stop: &Stop) -> Result<View> {
        let mut query = query.clone();
        query.columns.extend(query.table.span().iter().chain(picked).map(|&column| column.to_owned()));
        let mut view = self.view(&query, stop)?;
        for column in picked {
            view.by.push(names::resolve(query.table, column)?);
        }
        Ok(view)
    }

    /// The columns `names` of all rows in `scope`. O(rows) for those that no view has.
    fn columns(&self, table: TableKind, names: &[String], scope: &Scope) -> Result<Relation> {
        // A table without columns still has rows.
        if scope.window.is_some() || names.is_empty() {
            return table.fill(self, names, scope);
        }
        let of = Of { table: table.name(), focus: scope.focus.as_ref().map_or(String::new(), |f| f.name().to_owned()) };
        let mut found = self.shared.find(&of, names);
        if found.iter().any(Option::is_none) {
            let _first = self.shared.fill();
            found = self.shared.find(&of, names);
            let missing = names.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(name, _)| name.clone());
            let missing: Vec<String> = missing.collect();
            if !missing.is_empty() {
                let filled = table.fill(self, &missing, scope)?;
                self.shared.add(&of, &filled);
                let places = found.iter_mut().filter(|found| found.is_none());
                places.zip(filled.columns()).for_each(|(place, new)| *place = Some((new.clone(), filled.len())));
            }
        }
        let rows = found.iter().flatten().map(|(_, rows)| *rows).next().unwrap_or(0);
        Ok(Relation::new(found.into_iter().flatten().map(|(column, _)| column).collect(), rows))
    }

    fn scope(&self, query: &Query) -> Result<Scope> {
        let end = self.trace.meta.duration_ns;
        let ns = |s: f64| Timestamp::from_seconds(s).nanos();
        let window = query.window.map(|(from, to)| (ns(from), ns(to)));
        if let (Some((from, to)), Some((asked_from, asked_to))) = (window, query.window)
            && (from >= to || from > end)
        {
            let length = self.trace.meta.duration().seconds();
            return Err(Error::Trace(holdup_trace::Error::Input(format!(
                "nothing lies between {asked_from} s and {asked_to} s; the trace is {length:.3} s long"
            ))));
        }
        let focus = match &query.process {
            Process::All => None,
            Process::Recorded => Some(Focus::new(self.trace, None)).filter(|f| !f.is_everything()),
            Process::Named(name) => Some(
                Focus::find(self.trace, Some(name)).map_err(|what| Error::Trace(holdup_trace::Error::Input(what)))?,
            ),
        };
        Ok(Scope { window, focus })
    }
}

/// The question with its columns by their own names, and with the defaults for what it leaves open.
fn with_defaults(query: &Query) -> Result<Query> {
    let mut query = query.clone();
    let table = query.table;
    let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    if query.by.is_empty() && query.columns.is_empty() {
        query.columns = owned(table.default_columns());
    }
    if !query.by.is_empty() && query.measures.is_empty() {
        query.measures = owned(table.default_measures());
    }
    for name in query.by.iter_mut().chain(&mut query.columns) {
        *name = names::resolve(table, name)?;
    }
    let unique = |names: &mut Vec<String>| {
        let mut seen = Vec::new();
        names.retain(|n| {
            !seen.contains(n) && {
                seen.push(n.clone());
                true
            }
        });
    };
    unique(&mut query.by);
    unique(&mut query.columns);
    Ok(query)
}

fn measures(query: &Query) -> Result<Vec<Measure>> {
    let mut measures: Vec<Measure> = Vec::new();
    for text in query.measures.iter().filter(|_| !query.by.is_empty()) {
        let measure = Measure::parse(query.table, text)?;
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    Ok(measures)
}

/// The rows themselves.
fn rows(view: &View, all: Rows, query: &Query, stop: &Stop) -> Result<Answer> {
    stop.check()?;
    let mut answer = view.answer(&[], Vec::new(), all.len(), Vec::new());
    answer.total = all.len();
    let keys: Vec<(String, bool)> = query.sort.iter().map(|s| key(s)).collect();
    let mut order = if keys.is_empty() { all.first(query.top.unwrap_or(usize::MAX)) } else { all.to_vec() };
    if !keys.is_empty() {
        let mut ranks = Vec::new();
        for (name, falling) in &keys {
            let name = names::resolve(view.table(), name)?;
            ranks.push((view.selection.relation.column(&name).data.ranks(), *falling));
        }
        cut(&mut order, query.top, |a, b| compare(&ranks, a, b));
    }
    order.truncate(query.top.unwrap_or(usize::MAX));
    answer.columns = query.columns.iter().map(|c| pick(view.selection.relation.column(c), &order)).collect();
    Ok(answer)
}

/// Whether a column of texts has nothing but empty ones.
impl Column {
    /// Whether it says nothing at all: only empty texts or unknown numbers.
    pub fn is_blank(&self) -> bool {
        match &self.data {
            Data::Text(t) => t.ids.iter().all(|&id| t.values[id as usize].is_empty()),
            Data::Numbers(n) => n.iter().all(|&v| v == super::MISSING),
            Data::Reals(r) => r.iter().all(|v| v.is_nan()),
        }
    }
}
