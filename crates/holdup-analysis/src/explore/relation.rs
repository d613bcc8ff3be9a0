//! A table in memory by columns, of which only those that a question needs are there.

use std::sync::Arc;

/// Stands for a number that is not known: counted nowhere, equal to nothing.
pub const MISSING: u64 = u64::MAX;

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Words.
    Text,
    /// An instant, in nanoseconds since the trace's start.
    Instant,
    /// A length of time in nanoseconds.
    Nanos,
    /// How many.
    Count,
    /// An address.
    Address,
    /// A number that names something, such as a tid.
    Id,
    /// A part of the whole, from 0 to 1.
    Share,
}

impl Unit {
    /// The unit's name in JSON, CSV and Arrow.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Text => "text",
            Unit::Instant => "ns since start",
            Unit::Nanos => "ns",
            Unit::Count => "count",
            Unit::Address => "address",
            Unit::Id => "number",
            Unit::Share => "share",
        }
    }

    /// Whether sums and means of such numbers mean anything.
    pub const fn adds_up(self) -> bool {
        matches!(self, Unit::Nanos | Unit::Count)
    }
}

/// Texts as ids into a dictionary.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// One id for each row.
    pub ids: Vec<u32>,
    /// The texts by id, each once.
    pub values: Arc<Vec<Arc<str>>>,
}

impl Text {
    /// The text in `row`.
    pub fn get(&self, row: usize) -> &str {
        &self.values[self.ids[row] as usize]
    }
}

/// The values of a column.
#[derive(Debug, Clone)]
pub enum Data {
    /// Texts.
    Text(Text),
    /// Whole numbers; [`MISSING`] where unknown.
    Numbers(Vec<u64>),
    /// Other numbers; not a number where unknown.
    Reals(Vec<f64>),
}

impl Data {
    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Data::Text(t) => t.ids.len(),
            Data::Numbers(n) => n.len(),
            Data::Reals(r) => r.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the values take, texts by their ids.
    pub fn bytes(&self) -> usize {
        let each = if matches!(self, Data::Text(_)) { size_of::<u32>() } else { size_of::<u64>() };
        each * self.len()
    }

    /// The values of `rows`, in that order.
    pub fn gather(&self, rows: &[u32]) -> Data {
        fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&r| values[r as usize]).collect()
        }
        match self {
            Data::Text(t) => Data::Text(Text { ids: pick(&t.ids, rows), values: t.values.clone() }),
            Data::Numbers(n) => Data::Numbers(pick(n, rows)),
            Data::Reals(r) => Data::Reals(pick(r, rows)),
        }
    }

    /// For each row a number that sorts as its value does; the unknown come first. O(n log n) for other than whole
    /// numbers.
    pub fn ranks(&self) -> Vec<u64> {
        match self {
            Data::Numbers(n) => n.iter().map(|v| v.wrapping_add(1)).collect(),
            Data::Reals(r) => {
                let order = |v: f64| if v.is_nan() { f64::NEG_INFINITY } else { v };
                let mut sorted: Vec<f64> = r.iter().map(|&v| order(v)).collect();
                sorted.sort_by(f64::total_cmp);
                r.iter().map(|&v| sorted.partition_point(|s| s.total_cmp(&order(v)).is_lt()) as u64).collect()
            }
            Data::Text(t) => {
                let mut order: Vec<u32> = (0..t.values.len() as u32).collect();
                order.sort_by(|&a, &b| t.values[a as usize].cmp(&t.values[b as usize]));
                let mut rank = vec![0; order.len()];
                order.iter().enumerate().for_each(|(at, &id)| rank[id as usize] = at as u64);
                t.ids.iter().map(|&id| rank[id as usize]).collect()
            }
        }
    }
}

/// A named column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name, as asked for.
    pub name: String,
    /// What its values are.
    pub unit: Unit,
    /// One sentence.
    pub doc: &'static str,
    /// The values.
    pub data: Data,
}

/// Equally long columns, which several relations may share.
#[derive(Debug, Clone, Default)]
pub struct Relation {
    columns: Vec<Arc<Column>>,
    rows: usize,
}

impl Relation {
    /// From columns of `rows` values each. Panics if one is longer or shorter.
    pub fn new(columns: Vec<Arc<Column>>, rows: usize) -> Self {
        assert!(columns.iter().all(|c| c.data.len() == rows), "columns are equally long");
        Relation { columns, rows }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The columns.
    pub fn columns(&self) -> &[Arc<Column>] {
        &self.columns
    }

    /// The column of that exact name. Panics if it was not asked for.
    pub fn column(&self, name: &str) -> &Column {
        self.columns.iter().find(|c| c.name == name).expect("only columns that were asked for are looked up")
    }
}

/// Some rows of a relation.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// The first so many: all of them.
    All(usize),
    /// These.
    Some(&'a [u32]),
}

impl Rows<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Rows::All(n) => *n,
            Rows::Some(rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `n` as a list.
    pub fn first(&self, n: usize) -> Vec<u32> {
        match self {
            Rows::All(all) => (0..n.min(*all) as u32).collect(),
            Rows::Some(rows) => rows.iter().take(n).copied().collect(),
        }
    }

    /// The rows as a list.
    pub fn to_vec(&self) -> Vec<u32> {
        match self {
            Rows::All(n) => (0..*n as u32).collect(),
            Rows::Some(rows) => rows.to_vec(),
        }
    }
}
