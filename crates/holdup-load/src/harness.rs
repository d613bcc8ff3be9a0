//! Runs a workload on threads that share nothing.
//!
//! Each thread has its own runtime, connections, compiled script, schedule and histograms. Thread `t` of `T` runs the cycles
//! `t`, `t + T`, `t + 2T`, …, so that not even the number of the next cycle is shared. What threads do share is one flag that
//! asks them to stop, which is only read, and a channel that takes one message a second from each.
//!
//! ```text
//!   collector ◀── slice, slice, … ── thread 0: runtime ─ session ─ script ─ slots 0..concurrency
//!   (caller)  ◀── slice, slice, … ── thread 1: …
//! ```
//!
//! In an **open loop** (`rate`) cycle `i` is due at `start + i / rate`, whatever became of the cycles before it, and its
//! *response time* runs from there. A server that freezes for a second is charged with every call that was due in that
//! second; measuring from the actual start would leave them out ("coordinated omission", Tene). The *service time* runs from
//! the actual start and is there too. In a **closed loop** a slot makes its next call when the last has ended: both are the same.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::driver::{ConnectOptions, ServerInfo};
use crate::script::{ParamInfo, ScriptError, Source};
use crate::session::Patience;

mod collector;
mod marks;
mod memory;
mod mix;
mod once;
mod pace;
mod pacer;
mod recorder;
mod schedule;
mod series;
mod slice;
mod slot;
mod usage;
mod watch;

pub use collector::{Cut, Live, Outcome};
pub use marks::Marks;
pub use mix::Mix;
pub use once::{Called, describe, run_once};
pub use pace::Wave;
pub use series::SliceSum;
pub use slice::{ErrorKind, new_histogram};
pub use usage::Usage;

use collector::Collector;
use pace::Pace;
use slot::Worker;
use watch::Watch;

/// How long something goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Until this time has passed.
    Time(Duration),
    /// Until this many cycles are done.
    Cycles(u64),
}

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The script.
    pub source: Source,
    /// The server; none for a script that computes only.
    pub connect: Option<ConnectOptions>,
    /// Timeouts and retries of statements.
    pub patience: Patience,
    /// Which functions to call, and how often.
    pub mix: Mix,
    /// Where calls are marked, if a recorder is to know them.
    pub marks: Option<Arc<Marks>>,
    /// Threads.
    pub threads: usize,
    /// Calls that a thread may have under way.
    pub concurrency: usize,
    /// Calls due in a second, of all threads; none for a closed loop.
    pub rate: Option<f64>,
    /// How it swings; steady without.
    pub wave: Option<Wave>,
    /// How long to measure.
    pub length: Length,
    /// How long to run before that.
    pub warm_up: Length,
    /// The numbers that scripts see: cycles begin with the first, and begin again from it before the second. Not empty.
    pub cycles: Range<u64>,
    /// The time slice of the series. At least a millisecond.
    pub slice: Duration,
    /// Keep thread `t` on the `t`-th CPU that the program may use.
    pub pin: bool,
    /// Stop when nothing but errors has come for this long.
    pub give_up: Duration,
}

/// Why nothing could be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script is wrong, or its `prepare` failed.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The server can't be reached, or refuses.
    #[error("{0}")]
    Connect(String),
    /// The machine refuses a thread, a timer or a CPU.
    #[error("{0}")]
    System(String),
    /// Somebody asked for the end before anything was measured.
    #[error("interrupted before the first call")]
    Interrupted,
}

/// How threads are asked to stop. Only read while a run goes on.
#[derive(Debug, Default)]
struct Stop {
    /// The run is over, but for calls under way.
    is_over: AtomicBool,
    /// Those are not waited for.
    at_once: AtomicBool,
}

impl Stop {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn end_at_once(&self) {
        self.at_once.store(true, Ordering::Relaxed);
        self.end();
    }
}

/// What a thread says to the collector.
enum Message {
    /// Connected, compiled and prepared; waits for the start.
    Ready { params: Vec<ParamInfo>, load_count: Option<u64>, server: Option<ServerInfo> },
    /// A time slice is over.
    Slice(Box<slice::Slice>),
    /// An error that ends the run.
    Fatal(ScriptError),
    /// The thread has ended.
    Done(Box<slice::ThreadEnd>),
    /// The thread could not begin.
    Failed(RunError),
}

/// Runs a plan. `live` is called a few times a second with what was measured so far. Once `asked` is set the run ends within about
/// a second, whatever the script does; a thread that does not end by then is left behind, until the program ends.
///
/// The length of a plan for `load` may be [`Length::Cycles`] of [`u64::MAX`]: then the script's own `load_count` is taken.
///
/// # Errors
/// Nothing could be run, or the script takes too much memory: then the program should end, because it still does. What else goes
/// wrong later is in the [`Outcome`], beside what was measured until then.
pub fn run(plan: &Plan, asked: &AtomicBool, live: &mut dyn FnMut(&Live)) -> Result<Outcome, RunError> {
    let shared = Arc::new(plan.clone());
    let stop = Arc::new(Stop::default());
    let (sender, messages) = mpsc::channel();
    let mut watch = Watch::new(&plan.source);
    let mut starts: Vec<oneshot::Sender<Start>> = Vec::new();
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for index in 0..plan.threads {
        let (start, started) = oneshot::channel();
        let worker = Worker::new(Arc::clone(&shared), index, Arc::clone(&stop), sender.clone());
        let thread = watch.spawn(&format!("load-{index}"), move |beat| worker.run(beat, started));
        threads.push(thread.map_err(|e| RunError::System(format!("thread {index} could not be started: {e}")))?);
        starts.push(start);
    }
    drop(sender);
    let mut collector = Collector::new(plan, &messages, &stop, asked, watch);
    let load_count = collector.until_ready()?;
    let start = Start { at: Instant::now() + Duration::from_millis(1), length: plan.length_with(load_count)? };
    for thread in starts {
        // A thread that is gone has said why.
        let _ = thread.send(start);
    }
    let (outcome, have_all_ended) = collector.until_done(start, live)?;
    stop.end();
    if have_all_ended {
        for thread in threads {
            // What it panicked with was caught, and told.
            let _ = thread.join();
        }
    }
    Ok(outcome)
}

impl Plan {
    /// When calls are due; none in a closed loop.
    fn pace(&self) -> Option<Pace> {
        self.rate.map(|rate| Pace::new(rate, self.wave, self.warm_up))
    }

    fn length_with(&self, load_count: Option<u64>) -> Result<Length, RunError> {
        match (self.length, load_count) {
            (Length::Cycles(u64::MAX), Some(count)) => Ok(Length::Cycles(count)),
            (Length::Cycles(u64::MAX), None) => Err(RunError::Script(ScriptError::new(
                None,
                "the script does not say how much to load: set ctx.load_cycle_count in `prepare`",
            ))),
            (length, _) => Ok(length),
        }
    }
}

/// When to start, and for how long.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: Instant,
    length: Length,
}
