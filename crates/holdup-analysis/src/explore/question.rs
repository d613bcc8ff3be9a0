//! Questions and answers, as data.

use super::relation::Column;
use super::rows::TableKind;

/// Whose rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Process {
    /// Everyone's.
    #[default]
    All,
    /// Those of the command or process that was recorded, with its children; everyone's if the machine was.
    Recorded,
    /// Those of all processes of that name or number, with their children.
    Named(String),
}

/// A question.
#[derive(Debug, Clone)]
pub struct Query {
    /// The table.
    pub table: TableKind,
    /// Columns to group by; none for the rows themselves.
    pub by: Vec<String>,
    /// Measures of each group; the table's default if there are none.
    pub measures: Vec<String>,
    /// Columns of the rows if they are not grouped; the table's default if there are none.
    pub columns: Vec<String>,
    /// Which rows: those that pass all of these expressions; see [`super::filter`].
    pub filters: Vec<String>,
    /// Columns or measures to sort by, in falling order with `-` before the name. Without any: groups by their first
    /// measure in falling order, rows by time.
    pub sort: Vec<String>,
    /// At most this many rows or groups.
    pub top: Option<usize>,
    /// Only this part, in seconds since the trace's start. A wait counts if any part of it lies inside.
    pub window: Option<(f64, f64)>,
    /// Whose rows.
    pub process: Process,
}

impl Query {
    /// All rows of a table.
    pub fn new(table: TableKind) -> Self {
        Query {
            table,
            by: Vec::new(),
            measures: Vec::new(),
            columns: Vec::new(),
            filters: Vec::new(),
            sort: Vec::new(),
            top: None,
            window: None,
            process: Process::All,
        }
    }
}

/// An answer: equally long columns, sorted and cut.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The table.
    pub table: TableKind,
    /// The columns by which rows were grouped; they come first.
    pub by: Vec<String>,
    /// The columns.
    pub columns: Vec<Column>,
    /// How many rows or groups there were before the cut.
    pub total: usize,
    /// How many rows of the table are behind the answer.
    pub matched: usize,
    /// The groups' numbers, for [`super::View::rows_of`]; empty for rows.
    pub groups: Vec<u32>,
    /// The process tree that the rows are restricted to; empty for all.
    pub focus: String,
}

impl Answer {
    /// How many rows it shows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |c| c.data.len())
    }

    /// Whether it shows none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn gather(&mut self, order: &[u32]) {
        self.columns.iter_mut().for_each(|c| c.data = c.data.gather(order));
        if !self.groups.is_empty() {
            self.groups = order.iter().map(|&i| self.groups[i as usize]).collect();
        }
    }
}
