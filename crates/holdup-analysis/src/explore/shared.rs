//! Columns that several views have: a question pays only for those that no view in memory has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::relation::{Column, Relation};

/// The columns of all views that live.
#[derive(Default)]
pub(super) struct Shared {
    columns: Mutex<Vec<Place>>,
    /// Whoever fills columns lets the others wait: they may want the same.
    filling: Mutex<()>,
}

/// Where a column is, and whose.
struct Place {
    of: Of,
    name: String,
    column: Weak<Column>,
    rows: usize,
}

/// Whose columns.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Of {
    /// The table's name.
    pub(super) table: &'static str,
    /// The process tree that it is about; empty for all.
    pub(super) focus: String,
}

/// A column and how many rows it has, if it is in memory.
pub(super) type Found = Option<(Arc<Column>, usize)>;

impl Shared {
    /// Those of the columns `names` that are in memory.
    pub(super) fn find(&self, of: &Of, names: &[String]) -> Vec<Found> {
        let mut columns = lock(&self.columns);
        columns.retain(|place| place.column.strong_count() > 0);
        let find = |name: &String| {
            let place = columns.iter().find(|p| p.of == *of && p.name == *name)?;
            Some((place.column.upgrade()?, place.rows))
        };
        names.iter().map(find).collect()
    }

    /// Notes the columns of `filled`.
    pub(super) fn add(&self, of: &Of, filled: &Relation) {
        let place = |column: &Arc<Column>| {
            let (name, rows) = (column.name.clone(), filled.len());
            Place { of: of.clone(), name, column: Arc::downgrade(column), rows }
        };
        lock(&self.columns).extend(filled.columns().iter().map(place));
    }

    /// One at a time fills columns.
    pub(super) fn fill(&self) -> MutexGuard<'_, ()> {
        lock(&self.filling)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
