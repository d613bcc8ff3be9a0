//! What stacks took: the callers and callees of one function, and lines for a flame graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdup_base::text::clean;
use holdup_trace::StackId;
use rustc_hash::FxHashMap;

use super::group::Stop;
use super::query::View;
use super::question::{Answer, Query};
use super::relation::{Column, Data, MISSING, Rows, Text, Unit};
use super::rows::TableKind;
use super::rows::frames::functions;
use super::{Error, Explorer, Result};
use crate::annotate::matching;

/// Where nobody called.
const OUTERMOST: &str = "[outermost]";

/// Rows of one process with one stack.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    rows: u64,
    /// Nanoseconds, where rows say how many.
    sum: u64,
}

impl Taken {
    fn add(&mut self, other: Taken) {
        self.rows += other.rows;
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// What rows took, by process and stack.
type Sums = FxHashMap<(Arc<str>, StackId), Taken>;

/// The column of a table that says what a row with a stack took.
fn weight(table: TableKind) -> Result<&'static str> {
    match table {
        TableKind::Cpu => Ok("weight"),
        TableKind::Waits => Ok("wait"),
        other => Err(Error::Question(format!(
            "table {} has no single stack for each row: ask cpu for what ran, or waits for where threads waited",
            other.name()
        ))),
    }
}

/// A row's part in the answer about a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Whole,
    Caller,
    Itself,
    Callee,
}

impl Side {
    const ALL: [Side; 4] = [Side::Whole, Side::Caller, Side::Itself, Side::Callee];

    const fn name(self) -> &'static str {
        match self {
            Side::Whole => "whole",
            Side::Caller => "caller",
            Side::Itself => "itself",
            Side::Callee => "callee",
        }
    }
}

impl Explorer<'_> {
    /// Who called `function`, and whom it called, with what the rows of `query` took there: WPA's butterfly. Of a stack in which the
    /// function occurs more than once, its outermost caller and its innermost callee count, so that the callers add up to the
    /// whole, and so do the callees with the function itself. Of several functions that match, the one that took most is shown.
    /// O(rows + different stacks × depth).
    ///
    /// # Errors
    /// If the table has no stacks, no function matches, or the query makes no sense.
    pub fn around(&self, query: &Query, function: &str, stop: &Stop) -> Result<Answer> {
        let (view, taken) = self.taken(query, stop)?;
        let mut stacks: FxHashMap<StackId, Taken> = FxHashMap::default();
        taken.into_iter().for_each(|((_, stack), t)| stacks.entry(stack).or_default().add(t));
        let stacks: Vec<(Vec<String>, Taken)> =
            stacks.into_iter().map(|(stack, taken)| (functions(self.trace, stack), taken)).collect();
        let name = self.chosen(function, &stacks)?;
        let mut found: BTreeMap<(Side, String), Taken> = BTreeMap::new();
        for (frames, taken) in &stacks {
            let Some(inner) = frames.iter().position(|f| *f == name) else { continue };
            let outer = frames.iter().rposition(|f| *f == name).unwrap_or(inner);
            let caller = frames.get(outer + 1).map_or(OUTERMOST, String::as_str);
            let below = match inner.checked_sub(1) {
                Some(at) => (Side::Callee, frames[at].clone()),
                None => (Side::Itself, name.clone()),
            };
            for key in [(Side::Whole, name.clone()), (Side::Caller, caller.to_owned()), below] {
                found.entry(key).or_default().add(*taken);
            }
        }
        let mut rows: Vec<((Side, String), Taken)> = found.into_iter().collect();
        rows.sort_by(|((a, f), t), ((b, g), u)| (a, u.sum, u.rows, f).cmp(&(b, t.sum, t.rows, g)));
        Ok(answer(&view, weight(query.table)?, query.top, &rows))
    }

    /// A line for each different stack, as flame graphs are made of: `process;outermost;…;innermost weight`. Weights are
    /// microseconds; rows where they say no length of time. O(rows + different stacks × depth).
    ///
    /// # Errors
    /// If the table has no stacks, or the query makes no sense.
    pub fn folded(&self, query: &Query, stop: &Stop) -> Result<(Vec<String>, Unit)> {
        let (_, taken) = self.taken(query, stop)?;
        let timed = taken.values().any(|t| t.sum > 0);
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for ((process, stack), taken) in taken {
            let mut path = vec![framed(&process)];
            path.extend(functions(self.trace, stack).iter().rev().map(|f| framed(f)));
            let weight = if timed { taken.sum.saturating_add(500) / 1000 } else { taken.rows };
            *lines.entry(path.join(";")).or_default() += weight;
        }
        let lines = lines.into_iter().filter(|(_, w)| *w > 0).map(|(path, w)| format!("{path} {w}")).collect();
        Ok((lines, if timed { Unit::Nanos } else { Unit::Count }))
    }

    /// What the rows of `query` took, by process and stack.
    fn taken(&self, query: &Query, stop: &Stop) -> Result<(View, Sums)> {
        let columns = ["process", "stack-id", weight(query.table)?];
        let columns = columns.map(str::to_owned).to_vec();
        let query = Query { by: Vec::new(), measures: Vec::new(), sort: Vec::new(), columns, ..query.clone() };
        let view = self.view(&query, stop)?;
        let mut taken = Sums::default();
        let [process, stack, weight] = [0, 1, 2].map(|i| &view.selection.relation.column(&query.columns[i]).data);
        let (Data::Text(process), Data::Numbers(stack), Data::Numbers(weight)) = (process, stack, weight) else {
            return Ok((view, taken));
        };
        let mut add = |row: usize| {
            let process = process.values[process.ids[row] as usize].clone();
            let sum = if weight[row] == MISSING { 0 } else { weight[row] };
            taken.entry((process, StackId(stack[row] as u32))).or_default().add(Taken { rows: 1, sum });
        };
        match view.rows() {
            Rows::All(n) => (0..n).for_each(&mut add),
            Rows::Some(rows) => rows.iter().for_each(|&row| add(row as usize)),
        }
        Ok((view, taken))
    }

    /// The name that is meant: of all that match, the one whose stacks took most.
    fn chosen(&self, wanted: &str, stacks: &[(Vec<String>, Taken)]) -> Result<String> {
        let mut sums: FxHashMap<&str, Taken> =
            matching(self.trace, wanted).into_iter().map(|id| (self.trace.text(id), Taken::default())).collect();
        for (frames, taken) in stacks {
            for (at, frame) in frames.iter().enumerate() {
                if let Some(sum) = sums.get_mut(frame.as_str())
                    && !frames[..at].contains(frame)
                {
                    sum.add(*taken);
                }
            }
        }
        let best = sums
            .into_iter()
            .filter(|(_, t)| t.rows > 0)
            .max_by_key(|(name, t)| (t.sum, t.rows, std::cmp::Reverse(*name)));
        best.map(|(name, _)| name.to_owned()).ok_or_else(|| {
            Error::Question(format!(
                "{wanted} is in none of the stacks that are asked about: `--by function` lists those that are"
            ))
        })
    }
}

/// A name as one frame of a line: without what ends a frame or a line, and without spaces at its ends.
fn framed(name: &str) -> String {
    let name = clean(name.trim()).replace(';', ":");
    if name.is_empty() { "?".to_owned() } else { name }
}

fn answer(view: &View, weight: &str, top: Option<usize>, rows: &[((Side, String), Taken)]) -> Answer {
    let whole = rows.first().map_or(Taken::default(), |(_, taken)| *taken);
    let shown = &rows[..rows.len().min(top.unwrap_or(usize::MAX))];
    let numbers = |get: &dyn Fn(&Taken) -> u64| Data::Numbers(shown.iter().map(|(_, t)| get(t)).collect());
    let share = |t: &Taken| match whole.sum {
        0 => t.rows as f64 / whole.rows as f64,
        sum => t.sum as f64 / sum as f64,
    };
    let sides = Text {
        ids: shown.iter().map(|((side, _), _)| *side as u32).collect(),
        values: Arc::new(Side::ALL.map(|s| s.name().into()).to_vec()),
    };
    let names = Text {
        ids: (0..shown.len() as u32).collect(),
        values: Arc::new(shown.iter().map(|((_, name), _)| name.as_str().into()).collect()),
    };
    let column = |name: &str, unit, doc, data| Column { name: name.to_owned(), unit, doc, data };
    let columns = vec![
        column(
            "side",
            Unit::Text,
            "The function as a whole, a caller, itself at the end of the stack, or a callee.",
            Data::Text(sides),
        ),
        column("function", Unit::Text, "Which function.", Data::Text(names)),
        column("count", Unit::Count, "How many rows.", numbers(&|t| t.rows)),
        column(&format!("sum:{weight}"), Unit::Nanos, "The sum.", numbers(&|t| t.sum)),
        column(
            "share",
            Unit::Share,
            "The share of the function's whole.",
            Data::Reals(shown.iter().map(|(_, t)| share(t)).collect()),
        ),
    ];
    let mut answer = view.answer(&["side".to_owned(), "function".to_owned()], columns, view.rows().len(), Vec::new());
    answer.total = rows.len();
    answer
}
