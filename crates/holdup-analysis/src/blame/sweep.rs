//! The sweep itself.

mod charge;
mod cpus;
mod judge;

use holdup_trace::tables::Sample;
use holdup_trace::{LockId, Result, StackId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::cells::{Cell, Cells, Key};
use super::forest::{Forest, Mark, NONE};
use crate::classify::Classifier;
use crate::focus::Focus;
use crate::intervals::{Extra, Intervals, State};

/// A part of the trace, in nanoseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// Where the CPU time went, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuSeconds {
    /// CPUs × duration.
    pub total: f64,
    /// Threads of the focus ran, spinning included.
    pub running: f64,
    /// Others ran.
    pub other: f64,
    /// Idle, and charged to what held threads up.
    pub held_up: f64,
    /// Idle although threads could run.
    pub runnable_idle: f64,
    /// Idle for want of work.
    pub no_work: f64,
    /// Not known.
    pub lost: f64,
    /// The part of `running` whose samples are in spin loops.
    pub spin: f64,
}

/// The result of the sweep.
#[derive(Debug, Default)]
pub struct Blame {
    /// The sum.
    pub cpu: CpuSeconds,
    /// The charges.
    pub cells: Vec<(Key, Cell)>,
    /// All samples of the window by thread and stack, in nanoseconds.
    pub profile: FxHashMap<(ThreadIdx, StackId), f64>,
    /// The focus's samples by how many of its threads were at work (ran, could run, or waited for a lock, a disk, a time or
    /// the world outside), thread and stack, in nanoseconds of CPU time and of elapsed time: those that run share it.
    pub at_work: FxHashMap<(usize, ThreadIdx, StackId), (f64, f64)>,
    /// How long so many threads of the focus ran or could run while so many waited for a lock, a disk or a time, in nanoseconds.
    pub waiting: FxHashMap<(usize, usize), f64>,
    /// Circles of parent pointers.
    pub cycles: u64,
    /// The window.
    pub window: (u64, u64),
}

impl Blame {
    /// Thread seconds by the terminal rule, summed over the cells that `wanted` picks.
    pub fn thread_ns(&self, mut wanted: impl FnMut(&Key) -> bool) -> u64 {
        self.cells.iter().filter(|(k, _)| wanted(k)).map(|(_, c)| c.thread_ns).sum()
    }
}

/// Sweeps `intervals` backwards over `window`.
pub fn sweep(
    trace: &Trace,
    intervals: &Intervals,
    focus: &Focus,
    classifier: &Classifier,
    window: Window,
) -> Result<Blame> {
    let mut samples: Vec<Sample> = Vec::with_capacity(trace.samples.rows().min(1 << 24) as usize);
    for sample in trace.samples.iter() {
        samples.push(sample?);
    }
    let mut sweep = Sweep::new(trace, intervals, focus, classifier, window);
    sweep.start();
    let (mut step, mut extra, mut sample) = (intervals.steps.len(), intervals.extras.len(), samples.len());
    loop {
        let step_t = step.checked_sub(1).map_or(0, |i| intervals.steps[i].t);
        let extra_t = extra.checked_sub(1).map_or(0, |i| intervals.extras[i].0);
        let sample_t = sample.checked_sub(1).map_or(0, |i| samples[i].t.nanos());
        // Going backwards a sample at a switch belongs to what ran before it: steps first.
        if step > 0 && step_t >= extra_t && step_t >= sample_t {
            step -= 1;
            let s = intervals.steps[step];
            sweep.advance(s.t);
            sweep.set_state(s.thread.0, s.before());
        } else if extra > 0 && extra_t >= sample_t {
            extra -= 1;
            sweep.advance(extra_t);
            sweep.extra(intervals.extras[extra].1);
        } else if sample > 0 {
            sample -= 1;
            sweep.advance(sample_t);
            sweep.sample(&samples[sample]);
        } else {
            break;
        }
    }
    Ok(sweep.finish())
}

struct Sweep<'a> {
    intervals: &'a Intervals,
    focus: &'a Focus,
    classifier: &'a Classifier<'a>,
    window: Window,
    period: f64,
    forest: Forest,
    cells: Cells,
    out: Blame,
    now: u64,
    total: Mark,
    cpu_run: Vec<u32>,
    cpu_lost: Vec<bool>,
    running_focus: usize,
    running_other: usize,
    lost: usize,
    held: usize,
    /// Of those, the ones that wait for a thread's work.
    held_by_work: usize,
    queued: usize,
    idle_by_design: usize,
    /// Threads of the focus that could run, whoever waits for them.
    runnable: usize,
    /// Threads of the focus that wait for input, room, a time or a signal, and hold nobody up.
    outside: usize,
    peak: usize,
    /// Who is known to own a lock now, and who waits for it.
    owner: FxHashMap<LockId, u32>,
    waiters: FxHashMap<LockId, Vec<u32>>,
    owned: Vec<bool>,
    scratch: Vec<u32>,
}

impl<'a> Sweep<'a> {
    fn new(
        trace: &'a Trace,
        intervals: &'a Intervals,
        focus: &'a Focus,
        classifier: &'a Classifier<'a>,
        window: Window,
    ) -> Self {
        let locks = trace.locks.kind.len();
        let mut owned = vec![false; locks];
        for span in &intervals.owners {
            owned[span.lock.index()] = true;
        }
        Sweep {
            intervals,
            focus,
            classifier,
            window,
            period: trace.meta.sample_period_ns as f64,
            forest: Forest::new(intervals.last.len()),
            cells: Cells::new((window.to - window.from) / 500),
            out: Blame { window: (window.from, window.to), ..Blame::default() },
            now: intervals.end.max(window.to),
            total: Mark::default(),
            cpu_run: vec![NONE; intervals.cpus],
            cpu_lost: intervals.lost_at_end.clone(),
            running_focus: 0,
            running_other: 0,
            lost: 0,
            held: 0,
            held_by_work: 0,
            queued: 0,
            idle_by_design: 0,
            runnable: 0,
            outside: 0,
            peak: intervals.peak_parallelism(),
            owner: FxHashMap::default(),
            waiters: FxHashMap::default(),
            owned,
            scratch: Vec::new(),
        }
    }

    fn start(&mut self) {
        for i in 1..self.intervals.last.len() {
            self.set_state(i as u32, self.intervals.last[i]);
        }
    }

    /// Integrates from `now` back to `t`.
    fn advance(&mut self, t: u64) {
        if t >= self.now {
            return;
        }
        let (from, to) = (t.max(self.window.from), self.now.min(self.window.to));
        self.now = t;
        self.total.t = self.window.to.saturating_sub(t.clamp(self.window.from, self.window.to));
        if from >= to {
            return;
        }
        let dt = (to - from) as f64;
        let waiting = self.held - self.held_by_work;
        if waiting > 0 {
            *self.out.waiting.entry((self.running_focus + self.runnable, waiting)).or_default() += dt;
        }
        let cpus = self.intervals.cpus;
        let idle = cpus.saturating_sub(self.running_focus + self.running_other + self.lost);
        let members = self.held + self.queued;
        let used = idle.min(members);
        let cpu = &mut self.out.cpu;
        cpu.total += cpus as f64 * dt;
        cpu.running += self.running_focus as f64 * dt;
        cpu.other += self.running_other as f64 * dt;
        cpu.lost += self.lost as f64 * dt;
        cpu.no_work += (idle - used) as f64 * dt;
        let mut foreign = idle + self.running_other;
        if members > 0 {
            let weight = used as f64 / members as f64 * dt;
            cpu.held_up += weight * self.held as f64;
            cpu.runnable_idle += weight * self.queued as f64;
            self.total.cpu += weight;
            let rank_used = foreign.min(members);
            self.total.rank += rank_used as f64 / members as f64 * dt;
            foreign -= rank_used;
        }
        if self.idle_by_design > 0 {
            let wanted = self.peak.saturating_sub(self.running_focus + members.min(self.peak));
            self.total.idle += wanted.min(foreign) as f64 / self.idle_by_design as f64 * dt;
        }
    }

    fn extra(&mut self, extra: Extra) {
        match extra {
            Extra::HandoffEnds(thread, wait) => self.set_state(thread.0, State::Woken(wait)),
            Extra::Born(thread) => self.set_state(thread.0, State::Gone),
            Extra::Lost(cpu, before) => self.set_lost(cpu, before),
            Extra::OwnerEnds(i) => {
                let span = self.intervals.owners[i as usize];
                self.owner.insert(span.lock, span.owner.0);
                self.relink_waiters(span.lock);
            }
            Extra::OwnerBegins(i) => {
                let span = self.intervals.owners[i as usize];
                if self.owner.get(&span.lock) == Some(&span.owner.0) {
                    self.owner.remove(&span.lock);
                    self.relink_waiters(span.lock);
                }
            }
        }
    }

    fn relink_waiters(&mut self, lock: LockId) {
        let waiters = self.waiters.remove(&lock).unwrap_or_default();
        for &waiter in &waiters {
            if let State::Waiting(w) = self.forest.at(waiter).state {
                self.change(waiter, |sweep| {
                    sweep.forest.unlink(waiter);
                    sweep.find_parent(waiter, w);
                });
            }
        }
        self.waiters.insert(lock, waiters);
    }

    /// Changes what a thread does before this instant, and with it what all behind it wait for.
    fn set_state(&mut self, i: u32, state: State) {
        let old = self.forest.at(i).state;
        if self.is_same_end(old) && self.is_same_end(state) && self.forest.at(i).first_child != NONE {
            // For those behind it nothing changes.
            self.charge(i);
            self.move_to(i, state);
            self.assign(&[i]);
            self.review_root(i);
            return;
        }
        self.change(i, |sweep| sweep.move_to(i, state));
    }

    fn move_to(&mut self, i: u32, state: State) {
        self.leave_state(i);
        self.forest.at_mut(i).state = state;
        self.enter_state(i, state);
    }

    /// Whether a chain that ends at a thread in this state ends at one that runs, or is about to.
    fn is_same_end(&self, state: State) -> bool {
        match state {
            State::Running(_) => true,
            State::Woken(w) => !self.is_handoff(w),
            _ => false,
        }
    }

    /// Runs `how`, which changes the state or the parent of `i`, between two charges of all behind it.
    fn change(&mut self, i: u32, how: impl FnOnce(&mut Self)) {
        let old_root = self.forest.root(i);
        if self.forest.at(i).first_child == NONE {
            self.charge(i);
            how(self);
            self.assign(&[i]);
        } else {
            let mut subtree = std::mem::take(&mut self.scratch);
            self.forest.subtree(i, &mut subtree);
            subtree.iter().for_each(|&n| self.charge(n));
            how(self);
            self.assign(&subtree);
            self.scratch = subtree;
        }
        // Without those behind it, a runnable thread is merely queued, and the other way round.
        let new_root = self.forest.root(i);
        self.review_root(old_root);
        if new_root != old_root {
            self.review_root(new_root);
        }
    }

    fn leave_state(&mut self, i: u32) {
        let old = self.forest.at(i).state;
        self.runnable -= usize::from(self.is_ready(i, old));
        match old {
            State::Running(cpu) => self.set_running(cpu, i, false),
            State::Waiting(w) => {
                self.forest.unlink(i);
                let lock = self.intervals.waits[w as usize].lock;
                if self.is_owned(lock)
                    && let Some(waiters) = self.waiters.get_mut(&lock)
                {
                    waiters.retain(|&n| n != i);
                }
            }
            _ => {}
        }
    }

    fn enter_state(&mut self, i: u32, state: State) {
        self.runnable += usize::from(self.is_ready(i, state));
        match state {
            State::Running(cpu) => self.set_running(cpu, i, true),
            State::Waiting(w) => {
                self.forest.at_mut(i).coming = w;
                let lock = self.intervals.waits[w as usize].lock;
                if self.is_owned(lock) {
                    self.waiters.entry(lock).or_default().push(i);
                }
                self.find_parent(i, w);
            }
            _ => {}
        }
    }

    fn is_owned(&self, lock: LockId) -> bool {
        lock != LockId::NONE && self.owned.get(lock.index()).copied().unwrap_or(false)
    }

    /// Whom does `i` wait for: the lock's owner while it is known, else whoever will end the wait.
    fn find_parent(&mut self, i: u32, w: u32) {
        let wait = &self.intervals.waits[w as usize];
        let owner = if self.is_owned(wait.lock) { self.owner.get(&wait.lock).copied() } else { None };
        if let Some(owner) = owner.filter(|&o| o != i)
            && self.forest.link(i, owner)
        {
            return;
        }
        let waker = wait.waker;
        let real = waker.is_real() && waker.index() < self.forest.nodes.len() && waker.0 != i;
        if real && !self.forest.link(i, waker.0) {
            self.out.cycles += 1;
        }
    }

    fn finish(mut self) -> Blame {
        self.advance(0);
        for i in 0..self.forest.nodes.len() {
            self.charge(i as u32);
        }
        self.cells.cells.iter_mut().for_each(Cell::flush_stacks);
        self.out.cells = self.cells.keys.into_iter().zip(self.cells.cells).collect();
        self.out.cpu.spin = self.out.cpu.spin.min(self.out.cpu.running);
        self.out
    }
}
