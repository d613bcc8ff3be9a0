//! Which rows: `kind == lock and (wait > 1ms or function =~ "^alloc")`.
//!
//! ```text
//!   expression = term { ("or" | "||") term }          term  = factor { ("and" | "&&") factor }
//!   factor     = ("not" | "!") factor | "(" expression ")" | column test
//!   test       = ("==" | "=" | "!=" | "=~" | "!~" | "<" | "<=" | ">" | ">=") value | "in" value ".." value
//! ```
//!
//! Columns go by any of their names, in quotes if they have spaces. Texts are compared by `==` and `!=`, or matched by a
//! regular expression. Times have units (`20us`, `1.5ms`), and mean seconds without one; both ends of `in A..B` are
//! inside. A number that is not known passes no comparison.

mod lex;
mod parse;

use regex::Regex;

use super::group::Stop;
use super::relation::{Data, MISSING, Relation};
use super::rows::TableKind;
use super::{Error, Result};

/// A parsed expression.
#[derive(Debug)]
pub struct Filter {
    root: Node,
    columns: Vec<String>,
}

#[derive(Debug)]
enum Node {
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Test { column: String, test: Test, wanted: bool },
}

#[derive(Debug)]
enum Test {
    Equals(String),
    Matches(Regex),
    Within(u64, u64),
}

impl Filter {
    /// Parses `text` as an expression about `table`. An error says at which character.
    pub fn parse(table: TableKind, text: &str) -> Result<Self> {
        let mut columns = Vec::new();
        let root = parse::parse(table, text, &mut columns)
            .map_err(|(at, what)| Error::Question(format!("filter {text:?}: at character {}: {what}", at + 1)))?;
        Ok(Filter { root, columns })
    }

    /// Those that pass both.
    pub fn and(mut self, other: Filter) -> Self {
        self.columns.extend(other.columns);
        Filter { root: Node::And(Box::new(self.root), Box::new(other.root)), columns: self.columns }
    }

    /// The columns that it needs, by their own names.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// The rows that pass. O(rows) for each comparison; texts are compared once for each that there is.
    pub fn choose(&self, relation: &Relation, stop: &Stop) -> Result<Vec<u32>> {
        let passes = self.root.passes(relation, stop)?;
        Ok((0_u32..).zip(passes).filter(|(_, p)| *p).map(|(row, _)| row).collect())
    }
}

impl Node {
    /// For each row whether it passes.
    fn passes(&self, relation: &Relation, stop: &Stop) -> Result<Vec<bool>> {
        stop.check()?;
        let both = |a: &Node, b: &Node, merge: fn(bool, bool) -> bool| -> Result<Vec<bool>> {
            let mut passes = a.passes(relation, stop)?;
            passes.iter_mut().zip(b.passes(relation, stop)?).for_each(|(p, q)| *p = merge(*p, q));
            Ok(passes)
        };
        match self {
            Node::And(a, b) => both(a, b, |p, q| p && q),
            Node::Or(a, b) => both(a, b, |p, q| p || q),
            Node::Not(inner) => {
                let mut passes = inner.passes(relation, stop)?;
                passes.iter_mut().for_each(|p| *p = !*p);
                Ok(passes)
            }
            Node::Test { column, test, wanted } => Ok(test.passes(&relation.column(column).data, *wanted)),
        }
    }
}

impl Test {
    fn passes(&self, data: &Data, wanted: bool) -> Vec<bool> {
        match (self, data) {
            (Test::Within(from, to), Data::Numbers(values)) => {
                values.iter().map(|v| *v != MISSING && (from <= v && v <= to) == wanted).collect()
            }
            (_, Data::Text(text)) => {
                let passing: Vec<bool> = text.values.iter().map(|v| self.is(v) == wanted).collect();
                text.ids.iter().map(|&id| passing[id as usize]).collect()
            }
            // The parser lets no other pair through.
            (_, data) => vec![false; data.len()],
        }
    }

    fn is(&self, text: &str) -> bool {
        match self {
            Test::Equals(wanted) => wanted == text,
            Test::Matches(regex) => regex.is_match(text),
            Test::Within(..) => false,
        }
    }
}
