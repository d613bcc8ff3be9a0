//! Puts the slices of all threads together, and decides when a run is given up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::series::{SliceSum, counts, series};
use super::slice::{ErrorKind, Slice, ThreadEnd, functions, late, notes};
use super::watch::{self, Watch};
use super::{Length, Message, Plan, RunError, Start, Stop, Usage, new_histogram};
use crate::driver::ServerInfo;
use crate::script::{ParamInfo, ScriptError};
use crate::session::{Notes, Traffic};

/// How often somebody who watches hears of the run.
const LIVE_EVERY: Duration = Duration::from_millis(200);

/// How long threads are waited for that were asked to end at once.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(1);

/// A longer series is folded: two slices become one. It bounds the memory of a run of days.
const MOST_SLICES: usize = 1024;

/// What somebody who watches sees of a run.
pub struct Live<'a> {
    collector: &'a Collector<'a>,
    start: Start,
    /// Since the start, the warm-up included.
    pub elapsed: Duration,
    /// How long the run will take, if it goes by time; warm-up included.
    pub of: Option<Duration>,
    /// How many cycles there are, if it goes by cycles.
    pub cycles: Option<u64>,
    /// Measured calls that succeeded.
    pub done: u64,
    /// Measured calls that failed.
    pub errors: u64,
    /// Calls a second in the last whole slice.
    pub rate: Option<f64>,
    /// Response times of the last whole slice, in nanoseconds: median, 99th percentile, maximum.
    pub response: Option<(u64, u64, u64)>,
}

impl Live<'_> {
    /// What was measured so far, as if the run had been cut here. It lacks what threads tell only at their end: their CPU time,
    /// their statements, and the calls that are under way or that nothing served. O(slices × values).
    pub fn outcome(&self) -> Outcome {
        self.collector.outcome(self.start)
    }
}

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Somebody asked for it.
    Asked,
    /// An error that trying again can't mend.
    Error(ScriptError),
    /// Nothing but errors came for as long as was allowed: the last of them.
    OnlyErrors(String),
    /// It had not ended when this was written down.
    Running,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The measured time.
    pub elapsed: Duration,
    /// The width of a slice.
    pub slice: Duration,
    /// The series; slices in which nothing ended are there too.
    pub slices: Vec<SliceSum>,
    /// Calls that succeeded and ended within the measured time.
    pub done_in_time: u64,
    /// Calls that succeeded.
    pub done: u64,
    /// Calls that failed.
    pub errors: u64,
    /// The most frequent failures.
    pub kinds: Vec<ErrorKind>,
    /// Calls that were due and that nothing served, with how long they had waited; in an open loop.
    pub unserved: u64,
    /// Calls that were due in the warm-up and not begun when it was over; in an open loop.
    pub left_behind: u64,
    /// Calls that were still under way when the run was over.
    pub unfinished: u64,
    /// From the time that a call was due to its end, in nanoseconds. Calls that nothing served are in it with what they had
    /// waited when the time was over.
    pub response: Histogram<u64>,
    /// From the actual start of a call to its end, in nanoseconds.
    pub service: Histogram<u64>,
    /// The same of each function of a mix, in its order; none without a mix, and none before the run has ended.
    pub functions: Vec<Histogram<u64>>,
    /// What all threads used of the machine in the measured time.
    pub usage: Usage,
    /// The CPU time of the busiest thread, as a share of the measured time.
    pub busiest: f64,
    /// How late the generator itself began calls: on average, and at most.
    pub late: Option<(Duration, Duration)>,
    /// Statements of the calls that count.
    pub traffic: Traffic,
    /// What the script said of the run; nothing before it has ended.
    pub notes: Notes,
    /// The script's parameters.
    pub params: Vec<ParamInfo>,
    /// What the server said of itself.
    pub server: Option<ServerInfo>,
    /// Why the run ended early, if it did.
    pub cut: Option<Cut>,
}

pub(super) struct Collector<'a> {
    plan: &'a Plan,
    messages: &'a Receiver<Message>,
    stop: &'a Stop,
    asked: &'a AtomicBool,
    watch: Watch,
    /// When threads that have not ended are left behind.
    leave_at: Option<Instant>,
    params: Vec<ParamInfo>,
    server: Option<ServerInfo>,
    slices: BTreeMap<u64, SliceSum>,
    /// How many of the threads' slices one of ours is wide.
    width: u64,
    done: u64,
    done_in_time: u64,
    errors: u64,
    kinds: BTreeMap<String, u64>,
    response: Histogram<u64>,
    service: Histogram<u64>,
    ends: Vec<ThreadEnd>,
    cut: Option<Cut>,
    /// When a call last succeeded, and the errors since.
    last_success: Instant,
    errors_since: u64,
    last_error: String,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        messages: &'a Receiver<Message>,
        stop: &'a Stop,
        asked: &'a AtomicBool,
        watch: Watch,
    ) -> Collector<'a> {
        Collector {
            plan,
            messages,
            stop,
            asked,
            watch,
            leave_at: None,
            params: Vec::new(),
            server: None,
            slices: BTreeMap::new(),
            width: 1,
            done: 0,
            done_in_time: 0,
            errors: 0,
            kinds: BTreeMap::new(),
            response: new_histogram(),
            service: new_histogram(),
            ends: Vec::new(),
            cut: None,
            last_success: Instant::now(),
            errors_since: 0,
            last_error: String::new(),
        }
    }

    /// Waits until all threads can start; what the script says there is to load.
    pub(super) fn until_ready(&mut self) -> Result<Option<u64>, RunError> {
        let mut load = None;
        let mut ready = 0;
        while ready < self.plan.threads {
            match self.messages.recv_timeout(watch::EVERY) {
                Ok(Message::Ready { params, load_count, server }) => {
                    self.params = params;
                    self.server = server;
                    load = load_count;
                    ready += 1;
                }
                Ok(Message::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {
                    self.watch.check_memory()?;
                    self.watch.check_time()?;
                    if self.asked.load(Ordering::Relaxed) {
                        return Err(RunError::Interrupted);
                    }
                }
                Ok(_) | Err(_) => return Err(RunError::System("a thread ended before it began".to_owned())),
            }
        }
        Ok(load)
    }

    /// Waits until all threads have ended, or are left behind; whether all have.
    pub(super) fn until_done(mut self, start: Start, live: &mut dyn FnMut(&Live)) -> Result<(Outcome, bool), RunError> {
        let mut look_at = Instant::now();
        let mut live_at = look_at + LIVE_EVERY;
        self.last_success = start.at;
        while self.ends.len() < self.plan.threads {
            match self.messages.recv_timeout(look_at.saturating_duration_since(Instant::now())) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = Instant::now();
            if now >= look_at {
                look_at = now + watch::EVERY;
                self.watch.check_memory()?;
                if self.should_leave(now) {
                    break;
                }
            }
            if now >= live_at {
                live_at = now + LIVE_EVERY;
                self.give_up_if_hopeless();
                live(&self.live(start));
            }
        }
        match &self.cut {
            // The script is of no use: there is nothing to report.
            Some(Cut::Error(error)) if error.is_limit && self.done == 0 => Err(RunError::Script(error.clone())),
            _ => Ok((self.outcome(start), self.ends.len() >= self.plan.threads)),
        }
    }

    /// Whether threads are left behind now: they were asked to end, or one of them no longer listens, and their time is over.
    fn should_leave(&mut self, now: Instant) -> bool {
        if let Err(error) = self.watch.check_time() {
            self.cut_at_once(Cut::Error(error), now);
        } else if self.asked.load(Ordering::Relaxed) {
            self.cut_at_once(Cut::Asked, now);
        }
        self.leave_at.is_some_and(|at| now >= at)
    }

    fn cut_at_once(&mut self, cut: Cut, now: Instant) {
        self.cut.get_or_insert(cut);
        self.stop.end_at_once();
        self.leave_at.get_or_insert(now + LEFT_BEHIND_AFTER);
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Slice(slice) => self.slice(&slice),
            Message::Fatal(error) => self.cut(Cut::Error(error)),
            Message::Failed(error) => self.cut(Cut::Error(ScriptError::new(None, error))),
            Message::Done(end) => self.ends.push(*end),
            Message::Ready { .. } => {}
        }
    }

    /// Ends the run early. The first reason is the one that is told.
    fn cut(&mut self, cut: Cut) {
        self.cut.get_or_insert(cut);
        self.stop.end();
    }

    fn slice(&mut self, slice: &Slice) {
        self.done += slice.done;
        self.errors += slice.errors;
        for (message, count) in &slice.kinds {
            *self.kinds.entry(message.clone()).or_default() += count;
            self.last_error.clone_from(message);
        }
        if slice.done > 0 {
            self.last_success = Instant::now();
            self.errors_since = 0;
        } else {
            self.errors_since += slice.errors;
        }
        let response = slice.response.as_ref().unwrap_or(&slice.service);
        // All histograms have the same bounds.
        let _ = self.response.add(response);
        let _ = self.service.add(&slice.service);
        if slice.index != Slice::TAIL {
            self.done_in_time += slice.done;
            let sum = self.slices.entry(slice.index / self.width).or_default();
            sum.add(slice.done, slice.errors, counts(response));
            if self.slices.len() > MOST_SLICES {
                self.fold();
            }
        }
    }

    fn fold(&mut self) {
        self.width *= 2;
        for (index, slice) in std::mem::take(&mut self.slices) {
            self.slices.entry(index / 2).or_default().add(slice.done, slice.errors, slice.counts);
        }
    }

    fn give_up_if_hopeless(&mut self) {
        if self.errors_since > 0 && self.last_success.elapsed() > self.plan.give_up {
            self.cut(Cut::OnlyErrors(self.last_error.clone()));
        }
    }

    fn live(&self, start: Start) -> Live<'_> {
        // The last slice may still lack a thread; the one before it is whole.
        let last = self.slices.values().rev().nth(1).or_else(|| self.slices.values().next_back());
        let seconds = self.plan.slice.as_secs_f64() * self.width as f64;
        let warm_up = match self.plan.warm_up {
            Length::Time(time) => time,
            Length::Cycles(_) => Duration::ZERO,
        };
        let (of, cycles) = match start.length {
            Length::Time(time) => (Some(warm_up + time), None),
            Length::Cycles(cycles) => (None, Some(cycles)),
        };
        Live {
            collector: self,
            start,
            elapsed: start.at.elapsed(),
            of,
            cycles,
            done: self.done,
            errors: self.errors,
            rate: last.map(|slice| slice.done as f64 / seconds),
            response: last
                .filter(|slice| slice.done > 0)
                .map(|slice| (slice.quantile(0.5), slice.quantile(0.99), slice.quantile(1.0))),
        }
    }

    /// What was measured: all of it, or the whole slices so far if threads still run.
    fn outcome(&self, start: Start) -> Outcome {
        let slice = self.plan.slice.saturating_mul(u32::try_from(self.width).unwrap_or(u32::MAX));
        let is_running = self.ends.len() < self.plan.threads;
        let elapsed = if is_running { self.whole_slices(slice) } else { self.measured_time(start) };
        let slices = series(&self.slices, elapsed, slice);
        let (mut usage, mut traffic) = (Usage::default(), Traffic::default());
        let (mut unserved, mut unfinished) = (0, 0);
        let mut response = self.response.clone();
        for end in &self.ends {
            usage.add(end.usage);
            traffic.add(end.traffic);
            unfinished += end.unfinished;
            unserved += end.unserved.len();
            let _ = response.add(&end.unserved);
        }
        let busiest = self.ends.iter().map(|end| end.usage.cpu().as_secs_f64()).fold(0.0, f64::max);
        Outcome {
            elapsed,
            slice,
            done_in_time: if is_running { slices.iter().map(|slice| slice.done).sum() } else { self.done_in_time },
            slices,
            done: self.done,
            errors: self.errors,
            kinds: most_frequent(&self.kinds),
            unserved,
            left_behind: self.ends.iter().map(|end| end.left_behind).sum(),
            unfinished,
            late: late(&self.ends),
            response,
            service: self.service.clone(),
            functions: functions(&self.ends),
            usage,
            busiest: if elapsed.is_zero() { 0.0 } else { busiest / elapsed.as_secs_f64() },
            traffic,
            notes: notes(&self.ends),
            params: self.params.clone(),
            // One that speaks HTTP says it with its first answer.
            server: self.server.clone().or_else(|| self.ends.iter().find_map(|end| end.server.clone())),
            cut: self.cut.clone().or(is_running.then_some(Cut::Running)),
        }
    }

    /// From the first thread's first counted cycle to the last thread's end.
    fn measured_time(&self, start: Start) -> Duration {
        let since = self.ends.iter().filter_map(|end| end.counted_since).min();
        let ended = self.ends.iter().map(|end| end.ended).max().unwrap_or(start.at);
        let elapsed = since.map_or(Duration::ZERO, |since| ended.saturating_duration_since(since));
        match start.length {
            Length::Time(time) => elapsed.min(time),
            Length::Cycles(_) => elapsed,
        }
    }

    /// The time of the slices that no thread still adds to: all before the last.
    fn whole_slices(&self, slice: Duration) -> Duration {
        let last = self.slices.keys().next_back().copied().unwrap_or(0);
        slice.saturating_mul(u32::try_from(last).unwrap_or(u32::MAX))
    }
}

fn most_frequent(kinds: &BTreeMap<String, u64>) -> Vec<ErrorKind> {
    let mut all: Vec<ErrorKind> =
        kinds.iter().map(|(message, count)| ErrorKind { message: message.clone(), count: *count }).collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.message.cmp(&b.message)));
    all.truncate(10);
    all
}
