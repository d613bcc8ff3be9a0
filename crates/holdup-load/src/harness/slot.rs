//! One thread of a run: its set-up, and the slots in which its calls go on.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet, yield_now};
use tokio::time::timeout;

use super::pacer::Pacer;
use super::recorder::Recorder;
use super::schedule::Schedule;
use super::slice::{ThreadEnd, nanos, new_histogram};
use super::usage::Usage;
use super::watch::{Beat, caught};
use super::{Length, Marks, Message, Plan, RunError, Start, Stop, once};
use crate::script::{Caller, Script, ScriptError};
use crate::session::{About, Session};

/// How often a thread looks at the stop flag and at its slices, whatever its calls do.
const TICK: Duration = Duration::from_millis(20);

/// A slot that has not waited for this long lets the others have a go: a script that only computes never waits.
const TURN_OF_A_SLOT: Duration = Duration::from_micros(100);

/// How long calls under way may still take when somebody asked for the end.
const HASTE: Duration = Duration::from_millis(500);

/// What it takes to run one thread.
pub(super) struct Worker {
    plan: Arc<Plan>,
    index: usize,
    stop: Arc<Stop>,
    sender: Sender<Message>,
}

impl Worker {
    pub(super) fn new(plan: Arc<Plan>, index: usize, stop: Arc<Stop>, sender: Sender<Message>) -> Worker {
        Worker { plan, index, stop, sender }
    }

    /// Runs the thread to its end, and tells the collector what came of it.
    pub(super) fn run(self, beat: &Arc<Beat>, started: oneshot::Receiver<Start>) {
        let sender = self.sender.clone();
        let message = match caught(|| self.try_run(beat, started)) {
            Ok(Some(end)) => Message::Done(Box::new(end)),
            // The collector gave up before the start, and knows why.
            Ok(None) => return,
            Err(error) => Message::Failed(error),
        };
        let _ = sender.send(message);
    }

    fn about(&self) -> About {
        About { worker: self.index, workers: self.plan.threads, functions: self.plan.mix.weighted() }
    }

    fn try_run(self, beat: &Arc<Beat>, started: oneshot::Receiver<Start>) -> Result<Option<ThreadEnd>, RunError> {
        if self.plan.pin {
            pin(self.index)?;
        }
        let runtime = once::runtime()?;
        LocalSet::new().block_on(&runtime, async {
            once::keep_beating(beat);
            let (session, script) =
                once::set_up(&self.plan.source, self.plan.connect.as_ref(), self.plan.patience, self.about(), beat)
                    .await?;
            for function in ["prepare", "prepare_worker"] {
                once::call_if_there(&*script, function, beat).await?;
            }
            let callers = (0..self.plan.concurrency).map(|_| callers(&*script, &self.plan));
            let callers = callers.collect::<Result<Vec<_>, _>>()?;
            let (params, load_count) = (script.params().to_vec(), script.load_count());
            let ready = Message::Ready { params, load_count, server: session.server() };
            beat.doing(format!("`{}`", self.plan.mix.describe()));
            let _ = self.sender.send(ready);
            let Ok(start) = started.await else { return Ok(None) };
            let thread = Rc::new(Thread::new(&self, start, session)?);
            thread.run(callers).await.map(Some)
        })
    }
}

/// One caller for each function of the mix.
fn callers(script: &dyn Script, plan: &Plan) -> Result<Vec<Box<dyn Caller>>, ScriptError> {
    plan.mix.names().iter().map(|name| script.caller(name)).collect()
}

/// Keeps the calling thread on one of the CPUs that the program may use.
fn pin(index: usize) -> Result<(), RunError> {
    let whole = |e| RunError::System(format!("thread {index} could not be pinned: {e}"));
    let allowed = sched_getaffinity(Pid::from_raw(0)).map_err(whole)?;
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect();
    let mut one = CpuSet::new();
    one.set(cpus[index % cpus.len().max(1)]).map_err(whole)?;
    sched_setaffinity(Pid::from_raw(0), &one).map_err(whole)
}

/// What the slots of one thread share. It never leaves the thread.
struct Thread {
    schedule: Schedule,
    recorder: RefCell<Recorder>,
    pacer: Option<Pacer>,
    stop: Arc<Stop>,
    sender: Sender<Message>,
    session: Rc<Session>,
    mix: super::Mix,
    marks: Option<Arc<Marks>>,
    cycles: Range<u64>,
    /// How long calls may still take when the time is over.
    grace: Duration,
    at_begin: Cell<Option<Usage>>,
    /// Counted calls that have ended.
    ended: Cell<u64>,
}

type Callers = Vec<Box<dyn Caller>>;

impl Thread {
    fn new(worker: &Worker, start: Start, session: Rc<Session>) -> Result<Thread, RunError> {
        let plan = &worker.plan;
        let pacer = match plan.rate {
            Some(_) => Some(Pacer::new().map_err(|e| RunError::System(format!("there is no timer: {e}")))?),
            None => None,
        };
        let places = (worker.index as u64, plan.threads as u64);
        Ok(Thread {
            schedule: Schedule::new(places, plan.pace(), (plan.warm_up, start.length), start.at),
            recorder: RefCell::new(Recorder::new(
                worker.sender.clone(),
                plan.rate.is_some(),
                plan.slice,
                plan.mix.names().len(),
            )),
            pacer,
            stop: Arc::clone(&worker.stop),
            sender: worker.sender.clone(),
            session,
            mix: plan.mix.clone(),
            marks: plan.marks.clone(),
            cycles: plan.cycles.clone(),
            grace: plan.patience.timeout + Duration::from_secs(1),
            at_begin: Cell::new(None),
            ended: Cell::new(0),
        })
    }

    async fn run(self: Rc<Self>, callers: Vec<Callers>) -> Result<ThreadEnd, RunError> {
        let pacer = Rc::clone(&self);
        let pacer = self.pacer.is_some().then(|| tokio::task::spawn_local(async move { pacer.pace().await }));
        let mut slots = JoinSet::new();
        for callers in callers {
            slots.spawn_local(Rc::clone(&self).slot(callers));
        }
        let mut over_since = None;
        loop {
            match timeout(TICK, slots.join_next()).await {
                Ok(None) => break,
                Ok(Some(Err(e))) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
                Ok(Some(_)) | Err(_) => {}
            }
            if pacer.as_ref().is_some_and(tokio::task::JoinHandle::is_finished) {
                return Err(RunError::System("the timer for the rate failed".to_owned()));
            }
            let now = Instant::now();
            if self.tick(now) {
                let grace = if self.stop.at_once.load(Ordering::Relaxed) { HASTE } else { self.grace };
                if now >= *over_since.get_or_insert(now) + grace {
                    break;
                }
            }
        }
        if let Some(pacer) = pacer {
            pacer.abort();
        }
        Ok(self.end(Instant::now()))
    }

    async fn pace(&self) {
        if let Some(pacer) = &self.pacer {
            // An error ends this task, which the thread sees.
            let _ = pacer.serve().await;
        }
    }

    /// Looks after slices and the stop flag; whether the run is over, but for calls under way.
    fn tick(&self, now: Instant) -> bool {
        self.begin_if_due(now);
        self.recorder.borrow_mut().roll(now);
        let is_over = self.is_stopped() || self.schedule.end().is_some_and(|end| now >= end);
        if let Some(pacer) = self.pacer.as_ref().filter(|_| is_over) {
            pacer.wake_all();
        }
        is_over
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_over()
    }

    /// When the measured time begins, notes what the thread had used until then.
    fn begin_if_due(&self, now: Instant) {
        if self.at_begin.get().is_none() && self.schedule.counted_since().is_some_and(|since| now >= since) {
            self.at_begin.set(Some(Usage::of_this_thread()));
            if let Some(since) = self.schedule.counted_since() {
                self.recorder.borrow_mut().begin(since, self.schedule.end());
            }
        }
    }

    /// One call after another, until it is over.
    async fn slot(self: Rc<Self>, mut callers: Callers) {
        let mut now = Instant::now();
        let mut yielded = now;
        while !self.is_stopped() {
            let Some(turn) = self.schedule.take(now) else { break };
            if let Some(pacer) = self.pacer.as_ref().filter(|_| turn.due > now) {
                pacer.until(turn.due).await;
                if self.is_stopped() {
                    self.ended.set(self.ended.get() + u64::from(turn.is_counted));
                    break;
                }
                now = Instant::now();
                self.recorder.borrow_mut().began_late(now.saturating_duration_since(turn.due));
            }
            if turn.is_counted && self.at_begin.get().is_none() {
                self.begin_if_due(now);
            }
            let began = now;
            let cycle = self.number(turn.cycle);
            let function = self.mix.pick(cycle);
            let marks = self.marks.as_ref().filter(|_| turn.is_counted);
            marks.inspect(|marks| marks.begin(function, turn.cycle));
            let call = callers[function].call(cycle.cast_signed());
            let result = self.session.counted(turn.is_counted, call).await;
            marks.inspect(|marks| marks.end(function, turn.cycle));
            now = Instant::now();
            if turn.is_counted {
                self.ended.set(self.ended.get() + 1);
            }
            match result {
                Ok(()) if turn.is_counted => self.recorder.borrow_mut().done(turn, function, began, now),
                Ok(()) => {}
                Err(error) => self.failed(turn.is_counted, now, *error),
            }
            if now - yielded >= TURN_OF_A_SLOT {
                yield_now().await;
                now = Instant::now();
                yielded = now;
            }
        }
    }

    /// The number that the script sees. The schedule goes by the plain one.
    #[inline]
    fn number(&self, cycle: u64) -> u64 {
        let length = self.cycles.end - self.cycles.start;
        // Most runs never begin again: a comparison is cheaper than a division.
        self.cycles.start + if cycle < length { cycle } else { cycle % length }
    }

    /// A call failed: an error that may be over soon is counted, another one ends the run.
    #[cold]
    fn failed(&self, is_counted: bool, now: Instant, error: ScriptError) {
        if is_counted {
            self.recorder.borrow_mut().failed(now, error.to_string());
        }
        if !error.is_transient {
            self.stop.end();
            let _ = self.sender.send(Message::Fatal(error));
        }
    }

    fn end(&self, now: Instant) -> ThreadEnd {
        let mut recorder = self.recorder.borrow_mut();
        recorder.finish();
        let usage = self.at_begin.get().unwrap_or_default();
        let mut unserved = new_histogram();
        let end = self.schedule.end().map_or(now, |end| end.min(now));
        for (due, count) in self.schedule.unserved(now) {
            unserved.saturating_record_n(nanos(due, end), count);
        }
        ThreadEnd {
            usage: Usage::of_this_thread().since(usage),
            traffic: self.session.traffic(),
            counted_since: self.schedule.counted_since(),
            ended: now,
            unfinished: self.schedule.taken() - self.ended.get(),
            unserved,
            left_behind: self.schedule.left_behind(),
            late: recorder.late(),
            functions: recorder.take_functions(),
            notes: self.session.notes(),
            server: self.session.server(),
        }
    }
}

impl Plan {
    /// A plan's defaults for a script: one thread, a closed loop of a minute, a second of warm-up.
    pub fn new(source: crate::script::Source) -> Plan {
        Plan {
            source,
            connect: None,
            patience: crate::session::Patience::default(),
            mix: super::Mix::single("run"),
            marks: None,
            threads: 1,
            concurrency: 1,
            rate: None,
            wave: None,
            length: Length::Time(Duration::from_secs(60)),
            warm_up: Length::Time(Duration::from_secs(1)),
            cycles: 0..i64::MAX as u64,
            slice: Duration::from_secs(1),
            pin: false,
            give_up: Duration::from_secs(10),
        }
    }
}
