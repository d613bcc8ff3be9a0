//! An Arrow IPC file: texts as dictionaries, units and docs as metadata of the fields.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use holdup_analysis::explore::Answer;
use holdup_analysis::explore::relation::{Column, Data, MISSING};

/// Rows in one batch.
const BATCH: usize = 1 << 16;

/// Writes the answer.
pub fn write(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    try_write(answer, out).map_err(|e| match e {
        ArrowError::IoError(_, e) => e,
        e => io::Error::other(e.to_string()),
    })
}

fn try_write(answer: &Answer, out: &mut impl Write) -> Result<(), ArrowError> {
    let schema = Arc::new(Schema::new(answer.columns.iter().map(field).collect::<Vec<_>>()));
    let texts: Vec<Option<ArrayRef>> = answer.columns.iter().map(dictionary).collect();
    let mut writer = FileWriter::try_new(out, &schema)?;
    for start in (0..answer.len()).step_by(BATCH) {
        let rows = start..answer.len().min(start + BATCH);
        let arrays = answer.columns.iter().zip(&texts).map(|(c, t)| array(c, t.as_ref(), rows.clone()));
        writer.write(&RecordBatch::try_new(schema.clone(), arrays.collect::<Result<_, _>>()?)?)?;
    }
    writer.finish()
}

fn field(column: &Column) -> Field {
    let (ty, nullable) = match column.data {
        Data::Text(_) => (DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8)), false),
        Data::Numbers(_) => (DataType::UInt64, true),
        Data::Reals(_) => (DataType::Float64, true),
    };
    let metadata = [("unit", column.unit.name()), ("doc", column.doc)].map(|(k, v)| (k.to_owned(), v.to_owned()));
    Field::new(&column.name, ty, nullable).with_metadata(HashMap::from(metadata))
}

/// The texts of a column, once for all batches.
fn dictionary(column: &Column) -> Option<ArrayRef> {
    let Data::Text(text) = &column.data else { return None };
    Some(Arc::new(StringArray::from_iter_values(text.values.iter().map(|v| &**v))))
}

fn array(column: &Column, texts: Option<&ArrayRef>, rows: std::ops::Range<usize>) -> Result<ArrayRef, ArrowError> {
    Ok(match (&column.data, texts) {
        (Data::Text(text), Some(values)) => {
            let keys = UInt32Array::from_iter_values(text.ids[rows].iter().copied());
            Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, values.clone())?)
        }
        (Data::Numbers(numbers), _) => {
            Arc::new(UInt64Array::from_iter(numbers[rows].iter().map(|&n| (n != MISSING).then_some(n))))
        }
        (Data::Reals(reals), _) => {
            Arc::new(Float64Array::from_iter(reals[rows].iter().map(|&r| (!r.is_nan()).then_some(r))))
        }
        (Data::Text(_), None) => unreachable!("every column of texts has its dictionary"),
    })
}
