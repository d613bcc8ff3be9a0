//! Columns that several views have: a question pays only for those that no view in memory has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::relation::{Column, Relation};
use super::rows::TableKind;
use super::{Explorer, Result, Scope};

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

/// A table, and the process tree that it is about; empty for all.
#[derive(Clone, PartialEq, Eq)]
struct Of(TableKind, String);

/// A column and how many rows it has, if it is in memory.
type Found = Option<(Arc<Column>, usize)>;

impl Shared {
    fn find(&self, of: &Of, names: &[String]) -> Vec<Found> {
        let mut columns = lock(&self.columns);
        columns.retain(|place| place.column.strong_count() > 0);
        let find = |name: &String| {
            let place = columns.iter().find(|p| p.of == *of && p.name == *name)?;
            Some((place.column.upgrade()?, place.rows))
        };
        names.iter().map(find).collect()
    }

    fn add(&self, of: &Of, filled: &Relation) {
        let place = |column: &Arc<Column>| {
            let (name, rows) = (column.name.clone(), filled.len());
            Place { of: of.clone(), name, column: Arc::downgrade(column), rows }
        };
        lock(&self.columns).extend(filled.columns().iter().map(place));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Explorer<'_> {
    /// The columns `names` of all rows in `scope`. O(rows) for those that no view has.
    pub(super) fn columns(&self, table: TableKind, names: &[String], scope: &Scope) -> Result<Relation> {
        // A table without columns still has rows.
        if scope.window.is_some() || names.is_empty() {
            return table.fill(self, names, scope);
        }
        let of = Of(table, scope.focus.as_ref().map_or(String::new(), |f| f.name().to_owned()));
        let mut found = self.shared.find(&of, names);
        if found.iter().any(Option::is_none) {
            let _first = lock(&self.shared.filling);
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
}
