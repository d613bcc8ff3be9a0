//! The embedded engine: DataFusion over the tables of a data set.

use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::TryStreamExt;
use holdup_export::dataset::ABOUT;
use holdup_export::dataset::schema::{TABLES, TableDoc};
use object_store::ObjectStoreExt;
use tokio::runtime::Runtime;

use crate::files::Files;
use crate::question::VIEWS;
use crate::{Error, Place, Question, Result, Rows};

/// What is kept of the views by [`Engine::keep`]: of findings, all but the long texts and what no question to many traces asks for.
const KEPT: [(&str, &str); 2] = [
    ("trace", "SELECT * FROM trace"),
    (
        "finding",
        "SELECT date, host, trace, process, function, kind, lock_kind, lock_name, wait_function, module, build_id, is_cause, \
         blame_ns, waited_ns, waits, longest_ns FROM finding WHERE is_cause = 1",
    ),
];

/// Which traces count: those that began on these days, in UTC; both are among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The first day, as `2026-11-25`.
    pub since: String,
    /// The last.
    pub until: String,
    /// From when on is *after*, for what changed.
    pub cut: String,
}

impl Default for Chosen {
    fn default() -> Self {
        Chosen { since: "0000-00-00".to_owned(), until: "9999-99-99".to_owned(), cut: "9999-99-99".to_owned() }
    }
}

/// Whose example is wanted; what is empty is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The process.
    pub process: String,
    /// The function, of the culprit or of those that waited.
    pub function: String,
    /// The kind of finding.
    pub kind: String,
}

/// Most memory for what is kept, and as much for what the engine has at hand meanwhile, in bytes.
const MOST: usize = 4 << 30;

/// A data set that can be asked.
pub struct Engine {
    place: Place,
    session: SessionContext,
    runtime: Runtime,
}

impl Engine {
    /// Opens a data set: reads which files there are when it is asked, and nothing before.
    ///
    /// # Errors
    /// If nothing there says that it is a data set.
    pub fn open(place: Place) -> Result<Engine> {
        let runtime = Runtime::new()?;
        let config = SessionConfig::new().with_information_schema(false);
        let bounded = RuntimeEnvBuilder::new().with_memory_limit(MOST, 1.0).build_arc()?;
        let session = SessionContext::new_with_config_rt(config, bounded);
        let engine = Engine { place, session, runtime };
        engine.is_dataset()?;
        Ok(engine)
    }

    /// What the user calls it.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    fn is_dataset(&self) -> Result<()> {
        let about = self.place.key(ABOUT.0);
        let found = self.runtime.block_on(async { self.place.store.get(&about).await?.bytes().await });
        let told = found.map_err(|e| match e {
            object_store::Error::NotFound { .. } => {
                let what = format!("{} is no data set: there is no {}", self.place.name, ABOUT.0);
                Error::Input(format!("{what}; `holdup export --format parquet --dataset` makes one"))
            }
            e => e.into(),
        })?;
        if told == ABOUT.1.as_bytes() {
            return Ok(());
        }
        let what = format!("{}/{} is not {}", self.place.name, ABOUT.0, ABOUT.1.trim());
        Err(Error::Input(format!("{what}: a newer holdup made it, or it is damaged")))
    }

    /// Makes a table of the files of the chosen days.
    async fn register(&self, table: &TableDoc, chosen: &Chosen) -> Result<()> {
        let files = Files::find(&self.place, table, &chosen.since, &chosen.until).await?;
        self.replace(&format!("all_{}", table.name), Arc::new(files))
    }

    /// Chooses the days. Whatever is asked next is about these.
    ///
    /// # Errors
    /// If the engine can't.
    pub fn choose(&self, chosen: &Chosen) -> Result<()> {
        self.cut(chosen)?;
        self.runtime.block_on(async {
            // The others are for other engines: to list their files would take as long again.
            for table in TABLES.iter().filter(|table| VIEWS.iter().any(|(name, _)| *name == table.name)) {
                self.register(table, chosen).await?;
            }
            Ok::<(), Error>(())
        })?;
        VIEWS.iter().try_for_each(|(name, sql)| self.view(name, sql))
    }

    fn view(&self, name: &str, sql: &str) -> Result<()> {
        let view = self.runtime.block_on(self.session.sql(sql))?.into_view();
        self.replace(name, view)
    }

    /// Keeps traces and causes of the chosen days in memory, some 300 bytes for each, for many questions at once: most of the time of one
    /// goes into opening files. [`Question::Example`] can't be asked any more.
    ///
    /// # Errors
    /// As [`ask`](Engine::ask).
    pub fn keep(&self) -> Result<()> {
        for (name, sql) in KEPT {
            let batches = self.collect(sql)?;
            let schema = self.runtime.block_on(self.session.sql(sql))?.schema().inner().clone();
            // Each file is a batch of a few rows, whose columns cost more than what is in them.
            let whole = concat_batches(&schema, &batches).map_err(arrow)?;
            self.replace(name, Arc::new(MemTable::try_new(schema, vec![vec![whole]])?))?;
        }
        // Views hold on to the tables that they were made of.
        let (name, sql) = VIEWS[2];
        self.view(name, sql)
    }

    /// Chooses another day from which on is *after*, of what is kept.
    pub(crate) fn cut(&self, chosen: &Chosen) -> Result<()> {
        self.one_row("chosen", &[("since", &chosen.since), ("until", &chosen.until), ("cut", &chosen.cut)])
    }

    /// Says of what examples are wanted.
    ///
    /// # Errors
    /// If the engine can't.
    pub fn want(&self, wanted: &Wanted) -> Result<()> {
        let columns = [("process", &wanted.process), ("function", &wanted.function), ("kind", &wanted.kind)];
        self.one_row("wanted", &columns.map(|(name, value)| (name, value.as_str())))
    }

    fn one_row(&self, name: &str, columns: &[(&str, &str)]) -> Result<()> {
        let fields = columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, false)).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new(fields));
        let values = columns.iter().map(|(_, value)| Arc::new(StringArray::from(vec![*value])) as _).collect();
        let batch = RecordBatch::try_new(schema.clone(), values).map_err(arrow)?;
        self.replace(name, Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
    }

    fn replace(&self, name: &str, table: Arc<dyn datafusion::catalog::TableProvider>) -> Result<()> {
        self.session.deregister_table(name)?;
        self.session.register_table(name, table)?;
        Ok(())
    }

    /// The rows that answer `question`, about the chosen days.
    ///
    /// # Errors
    /// A file is damaged, the store doesn't answer.
    pub fn ask(&self, question: Question) -> Result<Rows> {
        self.run(question.sql())
    }

    /// The first and the last day of the chosen ones on which there are traces, and how many; `None` if there is none.
    ///
    /// # Errors
    /// As [`ask`](Engine::ask).
    pub fn days(&self) -> Result<Option<(String, String, i64, i64)>> {
        let sql = "SELECT MIN(date), MAX(date), COUNT(DISTINCT host), COUNT(DISTINCT trace) FROM trace";
        let found = self.run(sql)?;
        let row = found.rows.first().filter(|row| row[3].number() > 0);
        Ok(row.map(|r| (r[0].text().to_owned(), r[1].text().to_owned(), r[2].number(), r[3].number())))
    }

    fn run(&self, sql: &str) -> Result<Rows> {
        Rows::of(&self.collect(sql)?)
    }

    fn collect(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let answered =
            self.runtime.block_on(async { up_to(MOST, self.session.sql(sql).await?.execute_stream().await?).await });
        answered.map_err(|e| match e.find_root() {
            // Of a file: a sentence already.
            DataFusionError::External(ours) if ours.is::<Error>() => Error::Input(ours.to_string()),
            DataFusionError::ResourcesExhausted(_) => Error::Input(format!(
                "{}: what was asked of these days takes more than {} GB of memory: ask of fewer days (--since, --until), or on a cluster",
                self.place.name,
                MOST >> 30
            )),
            _ => e.into(),
        })
    }
}

/// All of `rows`, if they take no more than `most` bytes.
async fn up_to(
    most: usize,
    mut rows: SendableRecordBatchStream,
) -> std::result::Result<Vec<RecordBatch>, DataFusionError> {
    let (mut batches, mut size) = (Vec::new(), 0);
    while let Some(batch) = rows.try_next().await? {
        // Of their own: several batches may be parts of one.
        for column in batch.columns() {
            size += column.to_data().get_slice_memory_size().map_err(arrow)?;
        }
        if size > most {
            return Err(DataFusionError::ResourcesExhausted(format!("{size} bytes of rows")));
        }
        batches.push(batch);
    }
    Ok(batches)
}

fn arrow(error: ArrowError) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(error), None)
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures_util::{FutureExt, stream};

    use super::*;

    #[test]
    fn parts_of_one_batch_count_once_and_too_many_rows_are_refused() {
        let column = Arc::new(StringArray::from(vec!["x".repeat(1000); 64])) as Arc<dyn Array>;
        let whole = RecordBatch::try_from_iter([("trace", column)]).unwrap();
        let rows = || -> SendableRecordBatchStream {
            let parts: Vec<_> = (0..64).map(|at| Ok(whole.slice(at, 1))).collect();
            Box::pin(RecordBatchStreamAdapter::new(whole.schema(), stream::iter(parts)))
        };
        let read = |most| up_to(most, rows()).now_or_never().expect("nothing to wait for");
        assert_eq!(read(70_000).unwrap().len(), 64);
        assert!(matches!(read(50_000), Err(DataFusionError::ResourcesExhausted(_))));
    }
}
