//! A table of the data set, as the engine sees it: rows of its files of the chosen days, one after another.
//!
//! Each trace has a file for each table, of a few rows and two thousand bytes. What a file costs counts, then, and not what is in it: the
//! engine's own tables of files spend five times as long on opening one as on its rows. Here each is read whole, by one request, decoded at
//! once, and rows of hundreds of files go on together.
//!
//! O(files) memory for their names; of their rows, for each CPU those of [`AT_ONCE`] files that take [`TOGETHER`] bytes at most, and of one more.

use std::fmt::{Debug, Formatter};
use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result as Engines};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use datafusion::parquet::file::metadata::ParquetStatisticsPolicy;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use holdup_export::dataset::schema::TableDoc;
use object_store::path::Path as Key;
use object_store::{GetResult, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::{Error, Place, Result};

/// By what the files of a table are partitioned, in this order. They are the last columns.
const PARTS: [&str; 2] = ["date", "host"];
/// So many files are asked for before the first of them has come.
const AHEAD: usize = 16;
/// Rows of so many files go on together,
const AT_ONCE: usize = 512;
/// or of as many as take this in memory, in bytes.
const TOGETHER: usize = 32 << 20;
/// A larger file holds no rows of one trace, in bytes.
const LARGEST: u64 = 32 << 20;
/// Rows that are decoded at once, at most.
const ROWS: usize = 1024;
/// Nor do its columns in memory, in bytes: a few bytes of a file may stand for any number of equal rows.
const DECODED: usize = 64 << 20;

/// A table's files.
#[derive(Clone)]
pub(crate) struct Files {
    store: Arc<dyn ObjectStore>,
    /// Of all columns.
    schema: SchemaRef,
    files: Arc<[File]>,
}

/// A file, with what its path tells.
#[derive(Debug)]
struct File {
    meta: ObjectMeta,
    date: String,
    host: String,
}

impl Files {
    /// Finds the files of these days, both among them; those of others are not even listed.
    pub(crate) async fn find(place: &Place, table: &TableDoc, since: &str, until: &str) -> Result<Files> {
        let of = |text| if text { DataType::Utf8 } else { DataType::Int64 };
        let own = table.columns.iter().map(|c| Field::new(c.name, of(c.is_text()), true));
        let parts = PARTS.map(|name| Field::new(name, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(own.chain(parts).collect::<Vec<_>>()));
        let below = place.key(table.name);
        let days = place.store.list_with_delimiter(Some(&below)).await?.common_prefixes;
        let days = days.into_iter().filter(|day| {
            let date = part(day, PARTS[0]);
            date.is_some_and(|date| (since..=until).contains(&date.as_str()))
        });
        let mut files = Vec::new();
        for day in days {
            let found: Vec<ObjectMeta> = place.store.list(Some(&day)).try_collect().await?;
            files.extend(found.into_iter().filter_map(File::of));
        }
        Ok(Files { store: place.store.clone(), schema, files: files.into() })
    }

    /// The files of the `at`-th of `of` parts, of about as many each.
    fn part(&self, at: usize, of: usize) -> std::ops::Range<usize> {
        let from = |at: usize| self.files.len() * at / of;
        from(at)..from(at + 1)
    }

    async fn read(self, at: usize) -> Engines<(usize, Bytes)> {
        let meta = &self.files[at].meta;
        if meta.size > LARGEST {
            return Err(no_rows(meta, &format!("rows of one trace take {} MB at most", LARGEST >> 20)));
        }
        Ok((at, bytes_of(self.store.get(&meta.location).await?).await?))
    }
}

impl File {
    fn of(meta: ObjectMeta) -> Option<File> {
        let [date, host] = PARTS.map(|name| part(&meta.location, name));
        let is_table = meta.location.extension() == Some("parquet");
        is_table.then_some(())?;
        Some(File { date: date?, host: host?, meta })
    }

    /// Its rows, in columns of `schema`. Those that older files lack are null there.
    fn rows(&self, bytes: Bytes, schema: &SchemaRef) -> Engines<Vec<RecordBatch>> {
        let skip = || ParquetStatisticsPolicy::SkipAll;
        let options = ArrowReaderOptions::new()
            .with_skip_arrow_metadata(true)
            .with_column_stats_policy(skip())
            .with_size_stats_policy(skip());
        let wrong = |e: &dyn std::fmt::Display| no_rows(&self.meta, e);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).map_err(|e| wrong(&e))?;
        let wanted = schema.fields().iter().map(|f| f.name().as_str());
        let mask = ProjectionMask::columns(reader.parquet_schema(), wanted);
        let read = reader.with_projection(mask).with_batch_size(ROWS).build().map_err(|e| wrong(&e))?;
        let (mut rows, mut size) = (Vec::new(), 0);
        for batch in read {
            let batch = batch.map_err(|e| wrong(&e))?;
            size += batch.get_array_memory_size();
            if size > DECODED {
                return Err(wrong(&format!("rows of one trace take {} MB in memory at most", DECODED >> 20)));
            }
            rows.push(self.columns(&batch, schema)?);
        }
        Ok(rows)
    }

    fn columns(&self, batch: &RecordBatch, schema: &SchemaRef) -> Engines<RecordBatch> {
        let rows = batch.num_rows();
        let all = |text: &str| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows))) as ArrayRef;
        let column = |field: &Arc<Field>| match field.name().as_str() {
            name if name == PARTS[0] => Ok(all(&self.date)),
            name if name == PARTS[1] => Ok(all(&self.host)),
            name => match batch.column_by_name(name) {
                Some(column) => cast(column, field.data_type()),
                None => Ok(new_null_array(field.data_type(), rows)),
            },
        };
        let columns = schema.fields().iter().map(column).collect::<std::result::Result<Vec<_>, _>>();
        let columns = columns.map_err(|e| no_rows(&self.meta, &e))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }
}

impl Debug for Files {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files of {}", self.files.len(), self.store)
    }
}

/// What a path says of a partition.
fn part(path: &Key, name: &str) -> Option<String> {
    let parts = path.as_ref().rsplit('/');
    parts.filter_map(|part| part.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

fn no_rows(file: &ObjectMeta, why: &dyn std::fmt::Display) -> DataFusionError {
    let what = format!("{}, of {} bytes, is no Parquet file that can be read: {why}", file.location, file.size);
    DataFusionError::External(Box::new(Error::Input(format!("{what}; remove it, and add its trace again"))))
}

/// All bytes of an answer. A file of this machine is read here: to hand that to a thread of its own costs more than the reading.
async fn bytes_of(answer: GetResult) -> Engines<Bytes> {
    let GetResult { payload: GetResultPayload::File(file, _), meta, .. } = answer else {
        return Ok(answer.bytes().await?);
    };
    let mut bytes = Vec::new();
    file.take(meta.size).read_to_end(&mut bytes).map_err(|e| no_rows(&meta, &e))?;
    Ok(bytes.into())
}

/// Some of the files, in the columns that are asked for.
#[derive(Debug)]
struct Part {
    files: Files,
    range: std::ops::Range<usize>,
    schema: SchemaRef,
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (files, schema) = (self.files.clone(), self.schema.clone());
        let reader = files.clone();
        let read = stream::iter(self.range.clone()).map(move |at| reader.clone().read(at)).buffered(AHEAD);
        let of_file = move |(at, bytes): (usize, Bytes)| {
            let rows = files.files[at].rows(bytes, &schema);
            stream::iter(match rows {
                Ok(rows) => rows.into_iter().map(Ok).collect(),
                Err(e) => vec![Err(e)],
            })
        };
        let rows = together(read.map_ok(of_file).try_flatten().boxed());
        let schema = self.schema.clone();
        let rows = rows.map(move |batches| Ok(concat_batches(&schema, &batches?)?));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}

/// Rows that go on together.
fn together(rows: BoxStream<'static, Engines<RecordBatch>>) -> impl Stream<Item = Engines<Vec<RecordBatch>>> + Send {
    stream::try_unfold(rows, |mut rows| async move {
        let (mut batches, mut size) = (Vec::new(), 0);
        while batches.len() < AT_ONCE && size < TOGETHER {
            let Some(batch) = rows.try_next().await? else { break };
            size += batch.get_array_memory_size();
            batches.push(batch);
        }
        Ok((!batches.is_empty()).then_some((batches, rows)))
    })
}

#[async_trait]
impl TableProvider for Files {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        wanted: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Engines<Arc<dyn ExecutionPlan>> {
        let schema = match wanted {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => self.schema.clone(),
        };
        let of = session.config().target_partitions();
        let part = |at| {
            Arc::new(Part { files: self.clone(), range: self.part(at, of), schema: schema.clone() })
                as Arc<dyn PartitionStream>
        };
        let parts = (0..of).map(part).collect();
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, [], false, limit)?))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, DictionaryArray, Int64Array};
    use datafusion::arrow::datatypes::Int32Type;
    use datafusion::parquet::arrow::ArrowWriter;
    use futures_util::FutureExt;

    use super::*;

    fn file(bytes: usize) -> File {
        let location = Key::from("set/finding/date=2026-11-05/host=web-1/a.parquet");
        let meta =
            ObjectMeta { location, last_modified: Default::default(), size: bytes as u64, e_tag: None, version: None };
        File::of(meta).expect("a table's file")
    }

    fn written(rows: &RecordBatch) -> Bytes {
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(rows).unwrap();
        writer.into_inner().unwrap().into()
    }

    #[test]
    fn what_an_older_file_lacks_is_null_and_what_it_has_besides_is_left_out() {
        let columns: [(&str, ArrayRef); 2] = [
            ("trace", Arc::new(StringArray::from(vec!["a", "b"]))),
            ("of_a_newer_one", Arc::new(Int64Array::from(vec![1, 2]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let bytes = written(&rows);
        let field = |name: &str, of| Field::new(name, of, true);
        let wanted = Arc::new(Schema::new(vec![
            field("host", DataType::Utf8),
            field("blame_ns", DataType::Int64),
            field("trace", DataType::Utf8),
        ]));
        let read = file(bytes.len()).rows(bytes, &wanted).unwrap();
        assert_eq!((read.len(), read[0].num_rows(), read[0].column(1).null_count()), (1, 2, 2));
        let text = |column: usize, row| read[0].column(column).as_string::<i32>().value(row).to_owned();
        assert_eq!([text(0, 0), text(0, 1), text(2, 0), text(2, 1)], ["web-1", "web-1", "a", "b"]);
    }

    #[test]
    fn a_few_bytes_that_stand_for_very_many_are_refused() {
        let long = "x".repeat(4096);
        let many: DictionaryArray<Int32Type> = std::iter::repeat_n(long.as_str(), 100_000).collect();
        let rows = RecordBatch::try_from_iter([("trace", Arc::new(many) as ArrayRef)]).unwrap();
        let bytes = written(&rows);
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        let wanted = Arc::new(Schema::new(vec![Field::new("trace", DataType::Utf8, true)]));
        let told = file(bytes.len()).rows(bytes, &wanted).unwrap_err().to_string();
        assert!(told.contains("in memory") && told.contains("a.parquet"), "{told}");
    }

    #[test]
    fn large_rows_do_not_wait_for_many_others() {
        let wide = StringArray::from(vec!["x".repeat(TOGETHER / 4)]);
        let rows = RecordBatch::try_from_iter([("trace", Arc::new(wide) as ArrayRef)]).unwrap();
        let all = stream::iter(vec![rows; 9]).map(Ok).boxed();
        let lengths = together(all).map_ok(|batches| batches.len()).try_collect::<Vec<_>>();
        assert_eq!(lengths.now_or_never().expect("nothing to wait for").unwrap(), [4, 4, 1]);
    }

    #[test]
    fn a_path_tells_the_day_and_the_host() {
        let found = file(1);
        assert_eq!((found.date.as_str(), found.host.as_str()), ("2026-11-05", "web-1"));
        let other = ObjectMeta { location: Key::from("set/finding/date=2026-11-05/a.parquet"), ..found.meta };
        assert!(File::of(other).is_none(), "of no host");
    }
}
