//! Recording for tests.

#![allow(dead_code, missing_docs)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use holdup_base::Claim;
use holdup_record::{Options, Outcome, Status, record};
use holdup_testing::{Need, has};
use holdup_trace::{Destination, Error, Trace, TraceBuilder, Unwinder};

/// One recording at a time: they catch the process's signals.
static ONE: Mutex<()> = Mutex::new(());

/// Whether recording is possible here; says so if not.
#[track_caller]
pub fn may_record() -> Option<MutexGuard<'static, ()>> {
    has(Need::Recording).then(|| ONE.lock().unwrap_or_else(|e| e.into_inner()))
}

pub fn claim(path: &Path) -> Result<Claim, Error> {
    Claim::take(path).map(|(spool, _)| spool).map_err(|e| Error::Input(e.to_string()))
}

pub fn run(options: &Options, path: &Path) -> Result<Outcome, Error> {
    record(options, claim(path)?, &mut |_| {}, &AtomicBool::new(false)).map(|(outcome, _)| outcome)
}

/// Records until `enough`, which is asked some ten times a second. The limit of two minutes ends a test that would hang.
pub fn run_until(options: &Options, path: &Path, enough: &mut dyn FnMut(&Status) -> bool) -> Result<Outcome, Error> {
    let stop = AtomicBool::new(false);
    let options = Options { duration: Some(Duration::from_secs(120)), ..options.clone() };
    let mut on_status = |status: &Status| stop.store(enough(status), Ordering::Relaxed);
    record(&options, claim(path)?, &mut on_status, &stop).map(|(outcome, _)| outcome)
}

pub fn open(path: &Path, unwinder: Option<Box<dyn Unwinder>>) -> Trace {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
    if let Some(unwinder) = unwinder {
        builder.set_unwinder(unwinder);
    }
    holdup_spool::read(path, &mut builder).expect("spool");
    builder.finish(None).expect("trace")
}
