//! One pass forward through all events.

use holdup_trace::tables::{Futex, Sample, Switch, Wait as WaitRow, Wake};
use holdup_trace::{Cpu, LockId, LossKind, Result, StackId, SwitchState, Table as _, ThreadIdx, Trace, WakeContext};

use super::owners::Owners;
use super::streams::{Row, Streams, spans_of_loss};
use super::{Extra, HANDOFF_NS, Intervals, RACE_NS, State, Step, Wait, finish};
use crate::classify::{Classifier, WaitKind};
use crate::focus::Focus;

/// Builds the intervals of `trace`. O(events log runs).
pub fn build(trace: &Trace, focus: &Focus, classifier: &Classifier) -> Result<Intervals> {
    let mut pass = Forward::new(trace, focus);
    let mut streams = Streams::new(trace)?;
    while let Some(event) = streams.next()? {
        match event {
            Row::Loss(i) => pass.loss(i),
            Row::Futex(row) => pass.futex(&row),
            Row::Owner(lock, owner, t) => pass.owners.observe(lock, owner, t),
            Row::Switch(row) => pass.switch(&row),
            Row::Wake(row) => pass.wake(&row),
            Row::Sample(row) => pass.sample(&row),
            Row::Wait(row) => pass.wait(&row),
        }
    }
    let (mut intervals, owners) = pass.finish();
    finish::complete(&mut intervals, owners, trace, classifier);
    Ok(intervals)
}

#[derive(Clone, Copy)]
struct ThreadNow {
    state: State,
    since: u64,
    cpu: Cpu,
    /// The last wait and the one before, as index + 1.
    waits: [u32; 2],
    /// A wake that came while the thread still ran.
    early: Option<Early>,
    futex: Option<(u64, LockId)>,
    switched_in: u64,
}

#[derive(Clone, Copy)]
struct Early {
    t: u64,
    waker: ThreadIdx,
    context: WakeContext,
    source: u16,
    stack: StackId,
}

#[derive(Clone, Copy)]
struct CpuNow {
    running: ThreadIdx,
    since: u64,
}

struct Forward<'a> {
    trace: &'a Trace,
    focus: &'a Focus,
    threads: Vec<ThreadNow>,
    cpus: Vec<CpuNow>,
    out: Intervals,
    owners: Owners,
    losses: Vec<(Cpu, u64, u64)>,
    sample_slack: u64,
    unsorted: bool,
    running_focus: usize,
    parallel_since: u64,
}

impl<'a> Forward<'a> {
    fn new(trace: &'a Trace, focus: &'a Focus) -> Self {
        let fresh = |i: usize| {
            let start = trace.threads.start[i].nanos();
            let state = if start > 0 { State::Gone } else { State::Unknown };
            ThreadNow { state, since: 0, cpu: Cpu::NONE, waits: [0; 2], early: None, futex: None, switched_in: 0 }
        };
        let cpus = usize::from(trace.meta.cpus);
        let rows = trace.switches.rows() as usize;
        let out = Intervals {
            cpus,
            end: trace.meta.duration_ns,
            parallelism: vec![0; cpus + 1],
            ran: vec![0; trace.threads.len()],
            steps: Vec::with_capacity(rows * 2),
            waits: Vec::with_capacity(rows / 2),
            ..Intervals::default()
        };
        Forward {
            trace,
            focus,
            threads: (0..trace.threads.len()).map(fresh).collect(),
            cpus: vec![CpuNow { running: ThreadIdx::NONE, since: 0 }; cpus],
            out,
            owners: Owners::default(),
            losses: spans_of_loss(trace).unwrap_or_default(),
            sample_slack: trace.meta.sample_period_ns / 2,
            unsorted: false,
            running_focus: 0,
            parallel_since: 0,
        }
    }

    fn known(&self, thread: ThreadIdx) -> bool {
        thread.is_real() && thread.index() < self.threads.len()
    }

    /// Ends the thread's state at `t` and begins `next`.
    fn enter(&mut self, thread: ThreadIdx, t: u64, next: State) {
        let now = self.threads[thread.index()];
        self.unsorted |= self.out.steps.last().is_some_and(|s| s.t > t);
        self.out.steps.push(Step::new(t, thread, now.state));
        if let State::Running(_) = now.state {
            self.out.ran[thread.index()] += t.saturating_sub(now.since);
            self.count_running(thread, t, false);
        }
        if let State::Running(_) = next {
            self.count_running(thread, t, true);
        }
        let now = &mut self.threads[thread.index()];
        (now.state, now.since) = (next, t);
    }

    fn count_running(&mut self, thread: ThreadIdx, t: u64, starts: bool) {
        if !self.focus.contains(thread) {
            return;
        }
        let last = self.out.parallelism.len() - 1;
        self.out.parallelism[self.running_focus.min(last)] += t.saturating_sub(self.parallel_since);
        self.parallel_since = self.parallel_since.max(t);
        self.running_focus = if starts { self.running_focus + 1 } else { self.running_focus.saturating_sub(1) };
    }

    fn switch(&mut self, row: &Switch) {
        let (t, cpu) = (row.t.nanos(), row.cpu);
        if cpu.index() >= self.cpus.len() {
            return;
        }
        self.ensure_running(cpu, row.prev, t, 0);
        if self.known(row.prev) {
            self.leave(row);
        }
        self.cpus[cpu.index()] = CpuNow { running: row.next, since: t };
        if self.known(row.next) {
            self.arrive(row.next, cpu, t);
        }
    }

    /// `prev` leaves its CPU.
    fn leave(&mut self, row: &Switch) {
        let (t, thread) = (row.t.nanos(), row.prev);
        match row.state {
            SwitchState::Runnable => self.enter(thread, t, State::Runnable(row.cpu)),
            SwitchState::Dead => self.enter(thread, t, State::Gone),
            _ => self.begin_wait(row),
        }
    }

    fn begin_wait(&mut self, row: &Switch) {
        let (t, thread) = (row.t.nanos(), row.prev);
        let now = &mut self.threads[thread.index()];
        let early = now.early.take().filter(|e| e.t >= now.switched_in && t.saturating_sub(e.t) <= RACE_NS);
        let futex = now.futex.take().filter(|f| f.0 == t).map_or(LockId::NONE, |f| f.1);
        let i = self.out.waits.len() as u32;
        now.waits = [i + 1, now.waits[0]];
        self.out.waits.push(Wait {
            thread,
            start: t,
            woken: self.out.end,
            resumed: self.out.end,
            waker: early.map_or(ThreadIdx::NONE, |e| e.waker),
            context: early.map_or(WakeContext::Unknown, |e| e.context),
            source: early.map_or(0, |e| e.source),
            syscall: row.syscall,
            lock: if row.lock == LockId::NONE { futex } else { row.lock },
            stack: row.stack,
            waker_stack: early.map_or(StackId::NONE, |e| e.stack),
            kind: WaitKind::Unknown,
            open: true,
            io_wait: row.io_wait,
            idle_state: row.state == SwitchState::Idle,
            exempt: false,
            goes_on: 0,
        });
        // Whether the early wake ended this wait shows when the thread runs again without another one (rule 2).
        self.threads[thread.index()].early = early;
        self.enter(thread, t, State::Waiting(i));
    }

    /// `next` comes onto a CPU.
    fn arrive(&mut self, thread: ThreadIdx, cpu: Cpu, t: u64) {
        let now = self.threads[thread.index()];
        match now.state {
            State::Running(other) if other != cpu => {
                self.out.health.unmatched += 1;
                self.cpus[other.index()] = CpuNow { running: ThreadIdx::NONE, since: t };
                self.enter(thread, t, State::Unknown);
            }
            State::Running(_) => return,
            State::Waiting(i) => {
                let raced = self.threads[thread.index()].early.take().is_some();
                // Else nobody was seen to wake it.
                self.out.health.unknown_wakers += u64::from(!raced);
                let wait = &mut self.out.waits[i as usize];
                (wait.woken, wait.open) = (if raced { wait.start } else { t }, false);
                let woken = wait.woken;
                self.enter(thread, woken, State::Woken(i));
            }
            State::Gone => {
                let start = self.trace.threads.start[thread.index()].nanos().min(t);
                self.out.extras.push((start, Extra::Born(thread)));
                let now = &mut self.threads[thread.index()];
                (now.state, now.since) = (State::Runnable(cpu), start);
            }
            _ => {}
        }
        self.resume(thread, cpu, t);
    }

    /// From runnable to running.
    fn resume(&mut self, thread: ThreadIdx, cpu: Cpu, t: u64) {
        let now = self.threads[thread.index()];
        match now.state {
            State::Woken(i) => {
                let wait = &mut self.out.waits[i as usize];
                wait.resumed = t;
                if t.saturating_sub(wait.woken) > HANDOFF_NS {
                    self.out.extras.push((wait.woken.saturating_add(HANDOFF_NS), Extra::HandoffEnds(thread, i)));
                    self.threads[thread.index()].state = State::Runnable(cpu);
                }
            }
            // A runnable thread's CPU is known only now.
            State::Runnable(_) => self.threads[thread.index()].state = State::Runnable(cpu),
            _ => {}
        }
        self.enter(thread, t, State::Running(cpu));
        let now = &mut self.threads[thread.index()];
        (now.cpu, now.switched_in) = (cpu, t);
    }

    /// The trace says that `thread` runs on `cpu` at `t`. If its switch-in is missing, infers it (rule 11), not
    /// earlier than there is evidence for.
    fn ensure_running(&mut self, cpu: Cpu, thread: ThreadIdx, t: u64, slack: u64) {
        let Some(&now) = self.cpus.get(cpu.index()) else { return };
        if now.running == thread || thread == ThreadIdx::NONE {
            return;
        }
        let since = match self.known(thread).then(|| self.threads[thread.index()].state) {
            // The first event of a CPU: whoever leaves it had run there from the start.
            _ if now.running == ThreadIdx::NONE && now.since == 0 => 0,
            Some(State::Woken(i)) => self.out.waits[i as usize].woken,
            Some(State::Runnable(_)) => self.threads[thread.index()].since,
            _ => t.saturating_sub(slack),
        };
        let since = since.max(now.since);
        let first = now.running == ThreadIdx::NONE;
        self.out.health.inferred += u64::from(!first);
        if self.known(now.running) {
            self.out.health.unmatched += 1;
            self.enter(now.running, since, State::Unknown);
        }
        self.cpus[cpu.index()] = CpuNow { running: thread, since };
        if self.known(thread) {
            self.arrive(thread, cpu, since.max(self.threads[thread.index()].since));
        }
    }

    fn wake(&mut self, row: &Wake) {
        let t = row.t.nanos();
        self.ensure_running(row.cpu, row.waker, t, 0);
        if !self.known(row.wakee) || row.wakee == row.waker && row.context == WakeContext::Task {
            return;
        }
        let by_task = row.context == WakeContext::Task && row.waker.is_real();
        let waker = if by_task { row.waker } else { ThreadIdx::NONE };
        let context = if row.context == WakeContext::Task && !by_task { WakeContext::Unknown } else { row.context };
        let early = Early { t, waker, context, source: row.source, stack: row.stack };
        match self.threads[row.wakee.index()].state {
            State::Running(_) => self.threads[row.wakee.index()].early = Some(early),
            State::Waiting(i) => {
                let wait = &mut self.out.waits[i as usize];
                wait.open = false;
                (wait.woken, wait.waker, wait.context) = (t, waker, context);
                (wait.source, wait.waker_stack) = (row.source, row.stack);
                let released = wait.lock;
                self.owners.release(released, waker, t);
                self.enter(row.wakee, t, State::Woken(i));
            }
            State::Unknown => {
                self.out.health.censored += 1;
                self.enter(row.wakee, t, State::Runnable(row.target));
            }
            _ => {}
        }
    }

    fn futex(&mut self, row: &Futex) {
        if self.known(row.thread) {
            self.threads[row.thread.index()].futex = Some((row.t.nanos(), row.lock));
        }
        if row.owner.is_real() && row.owner != row.thread {
            self.owners.observe(row.lock, row.owner, row.t.nanos());
        }
    }

    fn sample(&mut self, row: &Sample) {
        self.ensure_running(row.cpu, row.thread, row.t.nanos(), self.sample_slack);
    }

    /// The details of a wait that has just ended, or is open at the end.
    fn wait(&mut self, row: &WaitRow) {
        if !self.known(row.thread) {
            return;
        }
        for i in self.threads[row.thread.index()].waits {
            let Some(wait) = i.checked_sub(1).and_then(|i| self.out.waits.get_mut(i as usize)) else { continue };
            if wait.start == row.start.nanos() {
                wait.stack = row.stack;
                wait.lock = if row.lock == LockId::NONE { wait.lock } else { row.lock };
                if wait.waker_stack == StackId::NONE {
                    wait.waker_stack = row.waker_stack;
                }
            }
        }
    }

    fn loss(&mut self, index: usize) {
        let (cpu, from, to) = self.losses[index];
        let Some(&now) = self.cpus.get(cpu.index()) else { return };
        self.out.extras.push((from, Extra::Lost(cpu, false)));
        self.out.extras.push((to, Extra::Lost(cpu, true)));
        for i in 1..self.threads.len() {
            let thread = ThreadIdx(i as u32);
            let there = self.threads[i].cpu == cpu && !matches!(self.threads[i].state, State::Gone | State::Unknown);
            if there || now.running == thread {
                self.enter(thread, from.max(self.threads[i].since), State::Unknown);
            }
        }
        self.cpus[cpu.index()] = CpuNow { running: ThreadIdx::NONE, since: to };
    }

    fn finish(mut self) -> (Intervals, Owners) {
        let end = self.out.end;
        for i in 1..self.threads.len() {
            if let State::Running(_) = self.threads[i].state {
                self.out.ran[i] += end.saturating_sub(self.threads[i].since);
            }
        }
        for now in &self.threads {
            // A wait that nobody ended after all.
            if let (State::Waiting(i), Some(_)) = (now.state, now.early) {
                let wait = &mut self.out.waits[i as usize];
                (wait.waker, wait.context, wait.waker_stack) = (ThreadIdx::NONE, WakeContext::Unknown, StackId::NONE);
            }
        }
        let last = self.out.parallelism.len() - 1;
        self.out.parallelism[self.running_focus.min(last)] += end.saturating_sub(self.parallel_since);
        self.out.last = self.threads.iter().map(|t| t.state).collect();
        self.out.lost_at_end = vec![false; self.out.cpus];
        if self.unsorted {
            self.out.steps.sort_by_key(|s| s.t);
        }
        for loss in self.trace.losses.iter().flatten() {
            match loss.kind {
                LossKind::Events | LossKind::Unknown => self.out.health.lost_events += loss.count,
                LossKind::Stacks => self.out.health.lost_stacks += loss.count,
                LossKind::Mappings => self.out.health.lost_mappings += loss.count,
                LossKind::LimitedStacks => {}
            }
        }
        (self.out, self.owners)
    }
}
