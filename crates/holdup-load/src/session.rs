//! Statements on their way to the server: timeouts, retries, and counts of both. One session for each thread.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use crate::driver::{Args, Driver, DriverError, Reply, ServerInfo, Want};

mod counted;
mod notes;

use counted::{counted_rows, counts};
pub use notes::{Better, Notes, Values};

/// How patient a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Attempts after the first, for errors that may be over soon.
    pub retries: u32,
    /// The pause before the second attempt; it doubles with each further one.
    pub pause: Duration,
    /// The longest pause between two attempts.
    pub longest_pause: Duration,
    /// Also errors that trying again should not mend are tried again.
    pub after_all_errors: bool,
}

impl Patience {
    fn pause_before(&self, retry: u32) -> Duration {
        self.pause.saturating_mul(1_u32.checked_shl(retry).unwrap_or(u32::MAX)).min(self.longest_pause)
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            timeout: Duration::from_secs(5),
            retries: 3,
            pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(5),
            after_all_errors: false,
        }
    }
}

/// What calls that count sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Statements that were answered.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Rows that came back.
    pub rows: u64,
}

impl Traffic {
    /// Adds another session's.
    pub(crate) fn add(&mut self, other: Traffic) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.rows += other.rows;
    }
}

/// How many rows should come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// At least and at most.
    pub rows: RangeInclusive<u64>,
    /// What the script says to it.
    pub message: String,
}

impl Expected {
    fn check(&self, rows: u64) -> Result<(), DriverError> {
        if self.rows.contains(&rows) {
            return Ok(());
        }
        let (least, most) = (self.rows.start(), self.rows.end());
        let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let said = if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
        Err(DriverError::transient(format!("{rows} rows came, and {wanted} were expected{said}")))
    }
}

/// What the call that goes on just now is to the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    SetUp,
    WarmUp,
    Measured,
}

/// What a script may know of the run that it is a part of.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Which thread this is, from 0.
    pub worker: usize,
    /// How many there are.
    pub workers: usize,
    /// The functions that are called, with their weights.
    pub functions: Vec<(String, f64)>,
}

impl Default for About {
    fn default() -> Self {
        About { worker: 0, workers: 1, functions: Vec::new() }
    }
}

/// One thread's way to the server, or to none.
pub struct Session {
    driver: Option<Rc<dyn Driver>>,
    patience: Patience,
    about: About,
    part: Cell<Part>,
    /// Keys of statements that count rows.
    counting: RefCell<HashSet<String>>,
    notes: RefCell<Notes>,
    requests: Cell<u64>,
    retries: Cell<u64>,
    rows: Cell<u64>,
}

impl Session {
    /// A session over a driver; without one, statements are errors.
    pub fn new(driver: Option<Rc<dyn Driver>>, patience: Patience) -> Session {
        Session::of(driver, patience, About::default())
    }

    /// The same for a thread of a run.
    pub fn of(driver: Option<Rc<dyn Driver>>, patience: Patience, about: About) -> Session {
        let (counting, notes, requests, retries, rows) = Default::default();
        Session { driver, patience, about, part: Cell::new(Part::SetUp), counting, notes, requests, retries, rows }
    }

    /// The run that this is a part of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Sets a field of the report.
    ///
    /// # Errors
    /// It is too long or one too many, or a call of the run wants it: which of them would be the last to?
    pub fn set_field(&self, name: &str, text: &str) -> Result<(), DriverError> {
        match self.part.get() {
            Part::SetUp => self.notes.borrow_mut().set(name, text),
            Part::WarmUp | Part::Measured => Err(DriverError::fatal(
                "a field of the report is set in `prepare`, and not by each call: `record_metric` is for those",
            )),
        }
    }

    /// Says which values of a metric are better.
    ///
    /// # Errors
    /// The word is another than `higher` and `lower`, or a call of the run says it.
    pub fn declare(&self, name: &str, word: &str) -> Result<(), DriverError> {
        match self.part.get() {
            Part::SetUp => self.notes.borrow_mut().declare(name, word),
            Part::WarmUp | Part::Measured => Err(DriverError::fatal(
                "which values of a metric are better is said in `prepare`, and not by each call",
            )),
        }
    }

    /// Records a value of one of the script's metrics; those of the warm-up are left out.
    ///
    /// # Errors
    /// It is no number or one name too many, or no call of the run wants it.
    pub fn record(&self, name: &str, value: f64) -> Result<(), DriverError> {
        match self.part.get() {
            Part::Measured => self.notes.borrow_mut().record(name, value),
            Part::WarmUp => Ok(()),
            Part::SetUp => Err(DriverError::fatal(
                "a metric is recorded by calls that are measured, and not in `prepare`: `set_report_field` is for that",
            )),
        }
    }

    /// What the script said so far.
    pub fn notes(&self) -> Notes {
        self.notes.borrow().clone()
    }

    /// Runs a call whose statements are counted in [`Session::traffic`], or are not.
    ///
    /// Calls take turns on the thread, measured ones among the last of the warm-up: which one a statement belongs to is known
    /// only while it is polled.
    pub async fn counted<T>(&self, is_counted: bool, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        let part = if is_counted { Part::Measured } else { Part::WarmUp };
        poll_fn(|context| {
            self.part.set(part);
            call.as_mut().poll(context)
        })
        .await
    }

    /// What calls that count did so far: those of [`Session::counted`].
    pub fn traffic(&self) -> Traffic {
        Traffic { requests: self.requests.get(), retries: self.retries.get(), rows: self.rows.get() }
    }

    /// [`Driver::prepare`], with patience.
    ///
    /// # Errors
    /// The driver's, or that the time is over.
    pub async fn prepare(&self, key: &str, statement: &str) -> Result<(), DriverError> {
        let driver = self.driver()?;
        self.patiently(|| driver.prepare(key, statement)).await?;
        let mut counting = self.counting.borrow_mut();
        if counts(statement) {
            counting.insert(key.to_owned());
        } else {
            counting.remove(key);
        }
        Ok(())
    }

    /// [`Driver::execute`], with patience.
    ///
    /// # Errors
    /// The driver's, or that the time is over.
    pub async fn execute(&self, statement: &str, args: &Args, want: Want) -> Result<Reply, DriverError> {
        let driver = self.driver()?;
        self.patiently(|| driver.execute(statement, args, want)).await.inspect(|reply| self.count(reply))
    }

    /// [`Driver::execute_prepared`], with patience.
    ///
    /// # Errors
    /// The driver's, or that the time is over.
    pub async fn execute_prepared(&self, key: &str, args: &Args, want: Want) -> Result<Reply, DriverError> {
        let driver = self.driver()?;
        self.patiently(|| driver.execute_prepared(key, args, want)).await.inspect(|reply| self.count(reply))
    }

    /// [`Driver::batch_prepared`], with patience.
    ///
    /// # Errors
    /// The driver's, or that the time is over.
    pub async fn batch_prepared(&self, statements: &[(String, Args)]) -> Result<Reply, DriverError> {
        let driver = self.driver()?;
        self.patiently(|| driver.batch_prepared(statements)).await.inspect(|reply| self.count(reply))
    }

    /// [`Driver::server`]; none where there is no server.
    pub fn server(&self) -> Option<ServerInfo> {
        self.driver.as_ref()?.server()
    }

    /// [`Driver::datacenters`].
    ///
    /// # Errors
    /// The driver's.
    pub fn datacenters(&self) -> Result<Vec<String>, DriverError> {
        self.driver()?.datacenters()
    }

    /// [`Session::execute`], with as many rows as expected. Other numbers are tried again, as errors are that may be over soon: a
    /// replica may lag behind. In the end they are an error that is not. Of `SELECT COUNT(…)` it is the number that should be so.
    ///
    /// # Errors
    /// The driver's, that the time is over, or the number of rows.
    pub async fn execute_expecting(
        &self,
        statement: &str,
        args: &Args,
        expected: &Expected,
    ) -> Result<Reply, DriverError> {
        let driver = self.driver()?;
        let want = if counts(statement) { Want::Values } else { Want::Nothing };
        self.expecting(expected, || driver.execute(statement, args, want)).await
    }

    /// The same for [`Session::execute_prepared`].
    ///
    /// # Errors
    /// The same.
    pub async fn execute_prepared_expecting(
        &self,
        key: &str,
        args: &Args,
        expected: &Expected,
    ) -> Result<Reply, DriverError> {
        let driver = self.driver()?;
        let want = if self.counting.borrow().contains(key) { Want::Values } else { Want::Nothing };
        self.expecting(expected, || driver.execute_prepared(key, args, want)).await
    }

    async fn expecting<F>(&self, expected: &Expected, attempt: impl Fn() -> F) -> Result<Reply, DriverError>
    where
        F: Future<Output = Result<Reply, DriverError>>,
    {
        let is_wrong = Cell::new(false);
        let checked = || async {
            is_wrong.set(false);
            let reply = attempt().await?;
            expected.check(counted_rows(&reply).unwrap_or(reply.rows)).inspect_err(|_| is_wrong.set(true))?;
            Ok(reply)
        };
        let result = self.patiently(checked).await.inspect(|reply| self.count(reply));
        result.map_err(|error| DriverError { is_transient: error.is_transient && !is_wrong.get(), ..error })
    }

    fn driver(&self) -> Result<&Rc<dyn Driver>, DriverError> {
        self.driver.as_ref().ok_or_else(|| {
            DriverError::fatal("there is no server to send this to: name one, such as cql://127.0.0.1:9042")
        })
    }

    fn is_counted(&self) -> bool {
        self.part.get() == Part::Measured
    }

    fn count(&self, reply: &Reply) {
        if self.is_counted() {
            self.requests.set(self.requests.get() + 1);
            self.rows.set(self.rows.get() + reply.rows);
        }
    }

    async fn patiently<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, DriverError>
    where
        F: Future<Output = Result<T, DriverError>>,
    {
        let mut retry = 0;
        loop {
            let error = match tokio::time::timeout(self.patience.timeout, attempt()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => error,
                Err(_) => DriverError::transient(format!("no answer within {:?}", self.patience.timeout)),
            };
            let is_hopeless = !error.is_transient && !self.patience.after_all_errors;
            if is_hopeless || retry >= self.patience.retries {
                return Err(error);
            }
            tokio::time::sleep(self.patience.pause_before(retry)).await;
            retry += 1;
            self.retries.set(self.retries.get() + u64::from(self.is_counted()));
        }
    }
}
