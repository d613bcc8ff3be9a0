//! Columnar tables whose columns are declared once, with type, unit and doc.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::arrow::{ArrowReader, RawBatch, guarded};
use crate::column::Column;
use crate::{Error, Result};

/// What a column means.
#[derive(Debug, Clone, Copy)]
pub struct ColumnDoc {
    /// Its name.
    pub name: &'static str,
    /// Its unit, or what it refers to.
    pub unit: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// A table: equally long columns, one row type.
pub trait Table: Default + Clone + Send + 'static {
    /// One row.
    type Row: Copy;
    /// The table's name, in files and on the command line.
    const NAME: &'static str;
    /// What the table is about.
    const DOC: &'static str;
    /// The columns in order.
    const COLUMNS: &'static [ColumnDoc];

    /// By column: whether its values name strings of the trace.
    const STRINGS: &'static [bool];

    /// Appends a row.
    fn push(&mut self, row: Self::Row);
    /// The row at `index`. Panics if out of range.
    fn row(&self, index: usize) -> Self::Row;
    /// How many rows.
    fn len(&self) -> usize;
    /// Takes all rows out, and keeps their room.
    fn clear(&mut self);
    /// Shows `to` the ids in its columns.
    #[doc(hidden)]
    fn refer(&mut self, to: &mut dyn crate::Refer);
    /// Makes room for as many more rows.
    fn reserve(&mut self, rows: usize);
    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The table as an Arrow batch.
    fn to_batch(&self) -> RecordBatch;
    /// Takes the rows of a batch as it is stored; columns are found by name, unknown ones ignored.
    #[doc(hidden)]
    fn fill(&mut self, file: &ArrowReader, raw: &mut RawBatch) -> Result<()>;
    /// The Arrow schema, with unit and doc as field metadata.
    fn schema() -> Arc<Schema>;

    /// Iterates over the rows.
    fn rows(&self) -> impl Iterator<Item = Self::Row> + '_ {
        (0..self.len()).map(|i| self.row(i))
    }
}

/// What a table means.
#[derive(Debug, Clone)]
pub struct TableDoc {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub doc: &'static str,
    /// Its columns in order.
    pub columns: &'static [ColumnDoc],
    /// The columns' Arrow types.
    pub types: Vec<String>,
}

impl TableDoc {
    /// That of `T`.
    pub fn of<T: Table>() -> Self {
        let types = T::schema().fields().iter().map(|f| f.data_type().to_string()).collect();
        TableDoc { name: T::NAME, doc: T::DOC.trim(), columns: T::COLUMNS, types }
    }
}

pub(crate) fn field(doc: &ColumnDoc, ty: DataType) -> Field {
    let metadata = [("unit", doc.unit), ("doc", doc.doc.trim())].map(|(k, v)| (k.to_owned(), v.to_owned()));
    Field::new(doc.name, ty, false).with_metadata(HashMap::from(metadata))
}

pub(crate) fn to_array<C: Column>(values: &[C]) -> ArrayRef {
    Arc::new(PrimitiveArray::<C::Arrow>::from_iter_values(values.iter().map(|v| v.store())))
}

pub(crate) fn fill_column<C: Column>(
    file: &ArrowReader,
    raw: &mut RawBatch,
    table: &str,
    name: &str,
    to: &mut Vec<C>,
    otherwise: Option<C>,
) -> Result<()> {
    let Some((index, found)) = file.field(name) else {
        let value = otherwise.ok_or_else(|| missing(table, name))?;
        to.resize(to.len() + raw.rows(), value);
        return Ok(());
    };
    if *found != C::Arrow::DATA_TYPE {
        return Err(other_type::<C>(table, name, found));
    }
    guarded(table, || raw.column(index, to))
}

fn missing(table: &str, name: &str) -> Error {
    Error::Input(format!("table {table} has no column {name}: written by another version?"))
}

fn other_type<C: Column>(table: &str, name: &str, found: &DataType) -> Error {
    Error::Input(format!("column {table}.{name} is of type {found}, expected {}", C::Arrow::DATA_TYPE))
}

/// What a column that came later than its table holds where a file lacks it.
macro_rules! otherwise {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use otherwise;

/// Declares a row struct, its columnar table and the [`Table`] implementation from one list of columns. One that came later than its table
/// says what it is in files without it, `or VALUE`; it is not the first, whose length tells of the rows.
macro_rules! table {
    ($(#[doc = $doc:literal])* $table:ident of $row:ident = $name:literal {
        $($(#[doc = $cdoc:literal])* $col:ident: $ty:ty, $unit:literal $(or $otherwise:expr)?;)+
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $row { $($(#[doc = $cdoc])* pub $col: $ty),+ }

        #[doc = concat!("Columns of [`", stringify!($row), "`].")]
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $table { $($(#[doc = $cdoc])* pub $col: Vec<$ty>),+ }

        impl $crate::Table for $table {
            type Row = $row;
            const NAME: &'static str = $name;
            const DOC: &'static str = concat!($($doc),*);
            const COLUMNS: &'static [$crate::ColumnDoc] = &[$($crate::ColumnDoc {
                name: stringify!($col), unit: $unit, doc: concat!($($cdoc),*),
            }),+];

            const STRINGS: &'static [bool] = &[$(<$ty as $crate::Column>::IS_STRING),+];

            fn push(&mut self, row: $row) { $(self.$col.push(row.$col);)+ }
            // Whoever looks at some columns of a row need not load the others.
            #[inline]
            fn row(&self, index: usize) -> $row { $row { $($col: self.$col[index]),+ } }
            fn clear(&mut self) { $(self.$col.clear();)+ }
            fn fill(&mut self, file: &$crate::arrow::ArrowReader, raw: &mut $crate::arrow::RawBatch) -> $crate::Result<()> {
                $($crate::table::fill_column(file, raw, $name, stringify!($col), &mut self.$col, $crate::table::otherwise!($($otherwise)?))?;)+
                Ok(())
            }
            fn refer(&mut self, to: &mut dyn $crate::Refer) {
                $(self.$col.iter_mut().for_each(|value| $crate::Column::refer(value, to));)+
            }
            fn reserve(&mut self, rows: usize) { $(self.$col.reserve_exact(rows);)+ }
            fn len(&self) -> usize { let lens = [$(self.$col.len()),+]; lens[0] }
            fn schema() -> std::sync::Arc<arrow_schema::Schema> {
                use arrow_array::types::ArrowPrimitiveType as _;
                let types = [$(<<$ty as $crate::Column>::Arrow>::DATA_TYPE),+];
                let fields = Self::COLUMNS.iter().zip(types).map(|(c, t)| $crate::table::field(c, t));
                std::sync::Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
            }
            fn to_batch(&self) -> arrow_array::RecordBatch {
                let columns = vec![$($crate::table::to_array(&self.$col)),+];
                arrow_array::RecordBatch::try_new(Self::schema(), columns).expect("columns are declared with the schema")
            }
        }
    };
}
pub(crate) use table;
