//! Columns of a table, and some of its rows.

use super::relation::{Relation, Rows};
use super::rows::TableKind;

/// The columns that a question needs, with the rows that pass its filter.
pub(super) struct Selection {
    pub(super) table: TableKind,
    pub(super) relation: Relation,
    /// `None` for all rows.
    pub(super) chosen: Option<Vec<u32>>,
}

impl Selection {
    /// The rows that passed the filter.
    pub(super) fn rows(&self) -> Rows<'_> {
        self.chosen.as_deref().map_or(Rows::All(self.relation.len()), Rows::Some)
    }

    /// Bytes that it takes, but for its columns.
    pub(super) fn bytes(&self) -> usize {
        self.chosen.as_ref().map_or(0, |rows| 4 * rows.len())
    }
}
