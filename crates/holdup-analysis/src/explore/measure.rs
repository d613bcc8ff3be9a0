//! What is computed of each group: counts, sums, means, maxima, percentiles, shares, how many different values.

use super::group::{self, Cell, Keys, Spread, Stop, WeightedSpread};
use super::names;
use super::relation::{Column, Data, MISSING, Relation, Rows, Unit};
use super::rows::TableKind;
use super::{Error, Result};

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Of {
    Count,
    Sum,
    Mean,
    Max,
    Percentile(f64),
    Share,
    Distinct,
}

/// One measure, such as `count`, `sum:wait` or `p99:ready`.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    of: Of,
    column: Option<String>,
    name: String,
}

impl Measure {
    /// From its name. Percentiles are `p50:COLUMN`, `p99.9:COLUMN` and so on; `share` alone is that of the rows.
    pub fn parse(table: TableKind, text: &str) -> Result<Self> {
        // Windows Performance Analyzer's names for the number of rows.
        if ["count", "countwaits", "waits", "rows"].contains(&names::plain(text).as_str()) {
            return Ok(Measure { of: Of::Count, column: None, name: "count".to_owned() });
        }
        let (of, column) = text.split_once(':').map_or((text, None), |(of, column)| (of, Some(column)));
        let (of, word) = match (of.trim().to_lowercase().as_str(), column) {
            ("share", None) => return Ok(Measure { of: Of::Share, column: None, name: "share".to_owned() }),
            ("sum", Some(_)) => (Of::Sum, "sum".to_owned()),
            ("mean" | "avg", Some(_)) => (Of::Mean, "mean".to_owned()),
            ("max", Some(_)) => (Of::Max, "max".to_owned()),
            ("share", Some(_)) => (Of::Share, "share".to_owned()),
            ("distinct" | "different" | "unique", Some(_)) => (Of::Distinct, "distinct".to_owned()),
            ("median", Some(_)) => (Of::Percentile(50.0), "p50".to_owned()),
            (p, Some(_)) => match p.strip_prefix('p').and_then(|n| n.parse().ok()) {
                Some(n) if (0.0..=100.0).contains(&n) => (Of::Percentile(n), format!("p{n}")),
                _ => return Err(no_measure(text)),
            },
            _ => return Err(no_measure(text)),
        };
        let asked = column.unwrap_or_default();
        let (column, info) = names::find(table, asked).ok_or_else(|| Error::Question(names::unknown(table, asked)))?;
        let needs_sum = matches!(of, Of::Sum | Of::Mean | Of::Share);
        let needs_number = of != Of::Distinct;
        if needs_number && info.unit == Unit::Text || needs_sum && !info.unit.adds_up() {
            let which = columns_that(table, |u| u.adds_up());
            let what = info.unit.name();
            return Err(Error::Question(format!(
                "{word}:{column}: {column} is not a quantity ({what}); those of table {} are {which}",
                table.name()
            )));
        }
        Ok(Measure { of, name: format!("{word}:{column}"), column: Some(column) })
    }

    /// Its name, as the answer has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column that it needs.
    pub fn column(&self) -> Option<&str> {
        self.column.as_deref()
    }

    /// The column whose numbers are added up for it.
    fn tallied(&self) -> Option<&str> {
        self.column().filter(|_| self.of != Of::Distinct)
    }

    /// Whether that of several groups follows from sums, counts and maxima of each.
    pub(super) fn is_sum(&self) -> bool {
        !matches!(self.of, Of::Percentile(_) | Of::Distinct)
    }

    fn unit(&self, relation: &Relation) -> Unit {
        match (&self.column, self.of) {
            (_, Of::Share) => Unit::Share,
            (_, Of::Distinct) => Unit::Count,
            (Some(column), _) => relation.column(column).unit,
            (None, _) => Unit::Count,
        }
    }

    fn titled(&self, relation: &Relation, data: Data) -> Column {
        Column { name: self.name.clone(), unit: self.unit(relation), doc: self.doc(), data }
    }

    fn doc(&self) -> &'static str {
        match (self.of, &self.column) {
            (Of::Count, _) => "How many rows.",
            (Of::Sum, _) => "The sum.",
            (Of::Mean, _) => "The mean of the known values.",
            (Of::Max, _) => "The greatest value.",
            (Of::Percentile(_), _) => "The value that this percentage of the rows does not exceed.",
            (Of::Distinct, _) => "How many different values are known.",
            (Of::Share, None) => "This group's share of the rows.",
            (Of::Share, Some(_)) => "This group's share of the sum.",
        }
    }
}

fn no_measure(text: &str) -> Error {
    Error::Question(format!(
        "{text} is not a measure: use count, share, or sum:COLUMN, mean:COLUMN, max:COLUMN, p99:COLUMN, share:COLUMN, \
         distinct:COLUMN"
    ))
}

fn columns_that(table: TableKind, is: impl Fn(Unit) -> bool) -> String {
    let names: Vec<&str> = table.columns().iter().filter(|c| is(c.unit)).map(|c| c.name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The values of groups for percentiles.
enum Values {
    Once(Spread),
    Often(WeightedSpread),
}

impl Values {
    fn percentile(&mut self, group: usize, percent: f64) -> u64 {
        match self {
            Values::Once(spread) => spread.percentile(group, percent),
            Values::Often(spread) => spread.percentile(group, percent),
        }
    }
}

/// The measures of the groups of `rows` that have any: which groups, and one column for each measure. A row counts as often as the column
/// `weight` says, if there is one.
pub(super) fn compute(
    relation: &Relation,
    keys: &Keys,
    rows: Rows,
    measures: &[Measure],
    weight: Option<&str>,
    stop: &Stop,
) -> Result<(Vec<u32>, Vec<Column>)> {
    let weights = weight.map(|weight| numbers(relation, weight));
    let tally = |column: Option<&str>| {
        let values = column.map(|c| numbers(relation, c));
        match weights {
            Some(weights) => group::tally_weighted(keys, values, weights, rows, stop),
            None => group::tally(keys, values, rows, stop),
        }
    };
    let mut tallies: Vec<Tally> = Vec::new();
    for measure in measures {
        let column = measure.tallied();
        if tallies.iter().all(|(c, _)| *c != column) {
            tallies.push((column, tally(column)?));
        }
    }
    if tallies.is_empty() {
        tallies.push((None, tally(None)?));
    }
    let groups = present(&tallies);
    let mut columns = Vec::new();
    let mut spread: Option<(&str, Values)> = None;
    for measure in measures {
        let cells = &tallies.iter().find(|(c, _)| *c == measure.tallied()).expect("each was tallied").1;
        if let (Of::Percentile(_), Some(column)) = (measure.of, measure.column())
            && spread.as_ref().is_none_or(|(of, _)| *of != column)
        {
            let values = numbers(relation, column);
            let new = match weights {
                Some(weights) => Values::Often(WeightedSpread::new(keys, values, weights, rows, stop)?),
                None => Values::Once(Spread::new(keys, cells, values, rows, stop)?),
            };
            spread = Some((column, new));
        }
        let data = match (measure.of, measure.column()) {
            (Of::Distinct, Some(column)) => {
                let counts = group::distinct(keys, relation.column(column), rows, stop)?;
                Data::Numbers(groups.iter().map(|&g| counts[g as usize]).collect())
            }
            _ => values(measure, cells, &groups, spread.as_mut().map(|(_, s)| s)),
        };
        columns.push(measure.titled(relation, data));
    }
    Ok((groups, columns))
}

/// What a column came to by group; without one, how many rows there are.
pub(super) type Tally<'n> = (Option<&'n str>, Vec<Cell>);

/// The groups that have rows.
fn present(tallies: &[Tally]) -> Vec<u32> {
    let cells = tallies.first().map_or(&[][..], |(_, cells)| cells);
    (0..cells.len() as u32).filter(|&group| cells[group as usize].rows > 0).collect()
}

/// The same as [`compute`] from what the columns came to, for measures of which all [are sums](Measure::is_sum).
pub(super) fn of_sums(relation: &Relation, measures: &[Measure], tallies: &[Tally]) -> (Vec<u32>, Vec<Column>) {
    let groups = present(tallies);
    let column = |measure: &Measure| {
        let (_, cells) = tallies.iter().find(|(c, _)| *c == measure.column()).expect("each was tallied");
        measure.titled(relation, values(measure, cells, &groups, None))
    };
    let columns = measures.iter().map(column).collect();
    (groups, columns)
}

pub(super) fn numbers<'a>(relation: &'a Relation, column: &str) -> &'a [u64] {
    match &relation.column(column).data {
        Data::Numbers(values) => values,
        // `Measure::parse` lets only numbers through.
        _ => &[],
    }
}

fn values(measure: &Measure, cells: &[Cell], groups: &[u32], spread: Option<&mut Values>) -> Data {
    let known = |c: &Cell, value: u64| if c.known == 0 { MISSING } else { value };
    let each = |f: &dyn Fn(&Cell) -> u64| Data::Numbers(groups.iter().map(|&g| f(&cells[g as usize])).collect());
    let ratios = |f: &dyn Fn(&Cell) -> f64| Data::Reals(groups.iter().map(|&g| f(&cells[g as usize])).collect());
    match (measure.of, spread) {
        (Of::Sum, _) => each(&|c| known(c, c.sum)),
        (Of::Max, _) => each(&|c| known(c, c.max)),
        (Of::Mean, _) => ratios(&|c| c.sum as f64 / c.known as f64),
        (Of::Share, _) if measure.column.is_some() => {
            let whole: f64 = cells.iter().map(|c| c.sum as f64).sum();
            ratios(&|c| c.sum as f64 / whole)
        }
        (Of::Share, _) => {
            let whole: f64 = cells.iter().map(|c| c.rows as f64).sum();
            ratios(&|c| c.rows as f64 / whole)
        }
        (Of::Percentile(p), Some(spread)) => {
            Data::Numbers(groups.iter().map(|&g| spread.percentile(g as usize, p)).collect())
        }
        (Of::Count | Of::Percentile(_) | Of::Distinct, _) => each(&|c| c.rows),
    }
}
