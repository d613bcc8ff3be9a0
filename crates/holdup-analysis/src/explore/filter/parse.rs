//! Expressions by recursive descent.

use holdup_base::numbers;
use regex::Regex;

use super::lex::{Token, Wrong, tokens};
use super::{Node, Test};
use crate::explore::names;
use crate::explore::relation::{MISSING, Unit};
use crate::explore::rows::{ColumnInfo, TableKind};

/// The deepest nesting, so that no expression can exhaust the stack.
const DEEPEST: usize = 100;

struct Parser<'a> {
    table: TableKind,
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// Where the text ends.
    end: usize,
    depth: usize,
    columns: &'a mut Vec<String>,
}

/// Parses `text`; the names of the columns in it are added to `columns`.
pub(super) fn parse(table: TableKind, text: &str, columns: &mut Vec<String>) -> Result<Node, Wrong> {
    let (tokens, end) = (tokens(text)?, text.chars().count());
    let mut parser = Parser { table, tokens, next: 0, end, depth: 0, columns };
    let root = parser.expression()?;
    match parser.peek() {
        None => Ok(root),
        Some(_) => Err(parser.wrong("expected `and`, `or` or the end here")),
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, t)| t)
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let is = self.peek() == Some(wanted);
        self.next += usize::from(is);
        is
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn wrong(&self, what: impl Into<String>) -> Wrong {
        (self.at(), what.into())
    }

    fn expression(&mut self) -> Result<Node, Wrong> {
        let mut node = self.term()?;
        while self.take(&Token::Or) {
            node = Node::Or(Box::new(node), Box::new(self.term()?));
        }
        Ok(node)
    }

    fn term(&mut self) -> Result<Node, Wrong> {
        let mut node = self.factor()?;
        while self.take(&Token::And) {
            node = Node::And(Box::new(node), Box::new(self.factor()?));
        }
        Ok(node)
    }

    fn factor(&mut self) -> Result<Node, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(format!("more than {DEEPEST} levels of parentheses and `not`")));
        }
        let node = if self.take(&Token::Not) {
            Node::Not(Box::new(self.factor()?))
        } else if self.take(&Token::Open) {
            let inner = self.expression()?;
            if !self.take(&Token::Close) {
                return Err(self.wrong("expected `)` here"));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, Wrong> {
        let start = self.at();
        let Some(Token::Word(asked)) = self.peek().cloned() else {
            return Err(self.wrong("expected a column, `not` or `(` here"));
        };
        let found = names::find(self.table, &asked);
        let (column, info) = found.ok_or_else(|| (start, names::unknown(self.table, &asked)))?;
        self.next += 1;
        if !self.columns.contains(&column) {
            self.columns.push(column.clone());
        }
        let (test, wanted) = match self.peek().cloned() {
            Some(Token::In) => (self.range(&info)?, true),
            Some(Token::Sign(sign)) => {
                let at = self.at();
                self.next += 1;
                self.test(&info, sign, at)?
            }
            _ => return Err(self.wrong(format!("expected a comparison of {asked} here, such as == or in A..B"))),
        };
        Ok(Node::Test { column, test, wanted })
    }

    fn test(&mut self, info: &ColumnInfo, sign: &str, at: usize) -> Result<(Test, bool), Wrong> {
        let value_at = self.at();
        let value = self.word()?;
        let wanted = !sign.starts_with('!');
        if sign.ends_with('~') {
            if info.unit != Unit::Text {
                return Err((at, format!("{} is a number: compare it with == != < <= > >= or in A..B", info.name)));
            }
            let regex = Regex::new(&value).map_err(|e| {
                let why = e.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                (value_at, format!("{value:?} is no regular expression: {why}"))
            })?;
            return Ok((Test::Matches(regex), wanted));
        }
        if info.unit == Unit::Text {
            if matches!(sign, "==" | "!=") {
                return Ok((Test::Equals(value), wanted));
            }
            return Err((at, format!("{} is text: compare it with == != =~ or !~", info.name)));
        }
        let n = number(info, &value).map_err(|what| (value_at, what))?;
        // Nothing is below zero, and an empty range is one whose end comes first.
        let range = match sign {
            "<" if n == 0 => (1, 0),
            "<" => (0, n - 1),
            "<=" => (0, n),
            ">" => (n.saturating_add(1), MISSING),
            ">=" => (n, MISSING),
            _ => (n, n),
        };
        Ok((Test::Within(range.0, range.1), wanted))
    }

    /// `in A..B`, with or without spaces around the dots.
    fn range(&mut self, info: &ColumnInfo) -> Result<Test, Wrong> {
        if info.unit == Unit::Text {
            return Err(self.wrong(format!("{} is text: compare it with == != =~ or !~", info.name)));
        }
        self.next += 1;
        let at = self.at();
        let mut text = self.word()?;
        while !text.contains("..") || text.ends_with("..") {
            match self.peek() {
                Some(Token::Word(more)) => text.push_str(more),
                _ => break,
            }
            self.next += 1;
        }
        let (from, to) = text.split_once("..").ok_or((at, format!("{text} is no range; write A..B")))?;
        let end = |text: &str, open: u64| match text {
            "" => Ok(open),
            text => number(info, text).map_err(|what| (at, what)),
        };
        Ok(Test::Within(end(from, 0)?, end(to, MISSING)?))
    }

    fn word(&mut self) -> Result<String, Wrong> {
        let Some(Token::Word(word)) = self.peek().cloned() else {
            return Err(self.wrong("expected a value here; put texts with spaces or signs in quotes"));
        };
        self.next += 1;
        Ok(word)
    }
}

/// A number in the column's unit: times in nanoseconds.
fn number(info: &ColumnInfo, text: &str) -> Result<u64, String> {
    if matches!(info.unit, Unit::Instant | Unit::Nanos) {
        return time(info, text);
    }
    let hexadecimal = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    hexadecimal.unwrap_or_else(|| text.parse()).map_err(|_| format!("{text:?} is no number, and {} is one", info.name))
}

fn time(info: &ColumnInfo, text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is no time, and {} is one; write 20us, 1.5ms or 2s", info.name);
    let (digits, unit) = numbers::split_unit(text);
    let scale = numbers::nanos_of(unit).ok_or_else(bad)?;
    digits.parse::<f64>().map(|n| (n * scale).round() as u64).map_err(|_| bad())
}
