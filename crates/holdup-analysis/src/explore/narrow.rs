//! Fewer rows of a view: those of a time, those with a value.

use super::TableKind;
use super::relation::{Data, MISSING, Relation, Rows};
use super::selection::Selection;

/// A value to look for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// This text.
    Text(String),
    /// This number.
    Number(u64),
    /// None that is known.
    Missing,
}

/// Some of a view's rows.
#[derive(Debug, Clone, Default)]
pub struct Narrow {
    /// Those of which any part lies between these instants, in nanoseconds since the trace's start.
    pub window: Option<(u64, u64)>,
    /// Those with these values, by their columns' own names.
    pub values: Vec<(String, Wanted)>,
}

impl TableKind {
    /// The columns that say from when to when a row is.
    pub const fn span(self) -> [&'static str; 2] {
        match self {
            TableKind::Waits | TableKind::Locks | TableKind::Processes | TableKind::Spans => ["start", "end"],
            TableKind::Cpu | TableKind::Switches | TableKind::Wakes => ["t", "t"],
        }
    }
}

impl Selection {
    /// Those of `rows` of which any part lies between `from` and `to`, in nanoseconds since the trace's start. The view must
    /// have the columns of [`TableKind::span`]. O(rows).
    fn within(&self, rows: Rows, from: u64, to: u64) -> Vec<u32> {
        let [begin, end] = self.table.span().map(|name| match &self.relation.column(name).data {
            Data::Numbers(numbers) => numbers.as_slice(),
            Data::Text(_) | Data::Reals(_) => &[],
        });
        let inside = |row: u32| begin[row as usize] < to && end[row as usize] >= from;
        some(rows, inside)
    }

    /// Those rows that are in `narrow`, of which the view must have the columns; `None` for all. O(rows) for each restriction.
    pub(super) fn narrowed(&self, narrow: &Narrow) -> Option<Vec<u32>> {
        let inside = narrow.window.map(|(from, to)| self.within(self.rows(), from, to));
        narrow.values.iter().fold(inside, |rows, (column, wanted)| {
            let rows = rows.as_deref().map_or(self.rows(), Rows::Some);
            Some(matching(&self.relation, column, rows, wanted))
        })
    }
}

/// Those of `rows` that have this value in a column. O(rows).
pub(super) fn matching(relation: &Relation, column: &str, rows: Rows, wanted: &Wanted) -> Vec<u32> {
    match (&relation.column(column).data, wanted) {
        (Data::Text(text), Wanted::Text(wanted)) => match text.values.iter().position(|v| **v == **wanted) {
            Some(id) => some(rows, |row| text.ids[row as usize] == id as u32),
            None => Vec::new(),
        },
        // Addresses are written as texts.
        (Data::Numbers(numbers), Wanted::Text(text)) => {
            match text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
                Some(n) => some(rows, |row| numbers[row as usize] == n),
                None => Vec::new(),
            }
        }
        (Data::Numbers(numbers), Wanted::Number(n)) => some(rows, |row| numbers[row as usize] == *n),
        (Data::Numbers(numbers), Wanted::Missing) => some(rows, |row| numbers[row as usize] == MISSING),
        (Data::Reals(reals), Wanted::Missing) => some(rows, |row| reals[row as usize].is_nan()),
        _ => Vec::new(),
    }
}

fn some(rows: Rows, keep: impl Fn(u32) -> bool) -> Vec<u32> {
    match rows {
        Rows::All(n) => (0..n as u32).filter(|&row| keep(row)).collect(),
        Rows::Some(rows) => rows.iter().copied().filter(|&row| keep(row)).collect(),
    }
}
