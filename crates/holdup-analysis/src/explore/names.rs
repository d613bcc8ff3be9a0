//! Finds columns by name: our own, Windows Performance Analyzer's, and with a hint if there is none.

use holdup_base::near;

use super::rows::{ColumnInfo, TableKind};
use super::{Error, Result};

/// The column's own name in `table`, from any of its names. Case, spaces and punctuation do not matter.
pub fn resolve(table: TableKind, asked: &str) -> Result<String> {
    find(table, asked).map(|(name, _)| name).ok_or_else(|| Error::Question(unknown(table, asked)))
}

/// The column's own name, and what it means.
pub(super) fn find(table: TableKind, asked: &str) -> Option<(String, ColumnInfo)> {
    let wanted = plain(asked);
    let columns = table.columns();
    let by_name = columns.iter().find(|c| plain(c.name) == wanted && !is_numbered(c));
    let by_synonym = || columns.iter().find(|c| c.wpa.iter().any(|w| plain(w) == wanted));
    if let Some(c) = by_name.or_else(by_synonym) {
        return Some((c.name.to_owned(), *c));
    }
    let (stem, number) = asked.trim().rsplit_once(':')?;
    let number: usize = number.trim().parse().ok().filter(|&n| n > 0)?;
    let c = columns.iter().find(|c| is_numbered(c) && plain(&c.name[..c.name.len() - 2]) == plain(stem))?;
    Some((format!("{}{number}", c.name.trim_end_matches('N')), *c))
}

/// Whether the column is one of many, such as `depth:N`.
fn is_numbered(column: &ColumnInfo) -> bool {
    column.name.ends_with(":N")
}

/// Lower case, letters and digits only.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The sentence about a column that is not there.
pub(super) fn unknown(table: TableKind, asked: &str) -> String {
    let columns = table.columns();
    let hint = near::hint(asked, columns.iter().map(|c| c.name));
    let all: Vec<&str> = columns.iter().map(|c| c.name).collect();
    format!("table {} has no column {asked}{hint}; it has {}", table.name(), all.join(", "))
}
