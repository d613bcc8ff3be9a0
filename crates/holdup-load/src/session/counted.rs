//! `SELECT COUNT(…)`: its answer is one row, and what a script wants to know is the number in it.

use crate::driver::{Reply, Value};

/// Whether a statement counts rows.
pub(super) fn counts(statement: &str) -> bool {
    let behind_select = behind(statement.trim_start(), "select").filter(|text| text.starts_with(char::is_whitespace));
    let behind_count = behind_select.and_then(|text| behind(text.trim_start(), "count"));
    behind_count.is_some_and(|text| text.trim_start().starts_with('('))
}

/// What follows a word, in any case.
fn behind<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// The number in the first column of the one row.
pub(super) fn counted_rows(reply: &Reply) -> Option<u64> {
    let Some(Value::List(rows)) = &reply.values else { return None };
    let [Value::Map(columns)] = rows.as_slice() else { return None };
    match columns.first()? {
        (_, Value::Int(count)) => u64::try_from(*count).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_counts_begins_so() {
        for statement in ["SELECT COUNT(*) FROM t", "  select\tcount (1) from t WHERE a = ?"] {
            assert!(counts(statement), "{statement}");
        }
        for statement in
            ["SELECT * FROM t", "selectcount(*)", "SELECT counts FROM t", "SELECT a, COUNT(*)", "", "séléct"]
        {
            assert!(!counts(statement), "{statement}");
        }
    }

    #[test]
    fn the_number_of_the_one_row_counts() {
        let reply = |rows: Vec<Value>| Reply { rows: rows.len() as u64, values: Some(Value::List(rows)) };
        let row = |number| Value::Map(vec![(Value::Text("count".into()), number)]);
        assert_eq!(counted_rows(&reply(vec![row(Value::Int(17))])), Some(17));
        assert_eq!(counted_rows(&reply(vec![row(Value::Null)])), None);
        assert_eq!(counted_rows(&reply(vec![row(Value::Int(1)), row(Value::Int(2))])), None);
        assert_eq!(counted_rows(&Reply::default()), None);
    }
}
