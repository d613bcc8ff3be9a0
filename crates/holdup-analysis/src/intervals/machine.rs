//! The rules from events to states: one pass forward.

mod inferred;

use holdup_trace::tables::{Futex, KernelLock, Sample, Switch, Wait as WaitRow, Wake};
use holdup_trace::{Cpu, LockId, StackId, SwitchState, Syscall, ThreadIdx, Trace, WakeContext};
use rustc_hash::{FxHashMap, FxHashSet};

use super::carriers::Carriers;
use super::losses::Loss;
use super::now::{CpuNow, Early, Recent, ThreadNow};
use super::output::Output;
use super::owners::Owners;
use super::place::Place;
use super::prepare::REWAIT_NS;
use super::state::State;
use super::streams::Follower;
use super::tally::Tally;
use super::wait::Wait;
use super::{HANDOFF_NS, RACE_NS};
use crate::classify::WaitKind;

/// Follows the events from one instant on.
pub(super) struct Machine<'a> {
    pub(super) trace: &'a Trace,
    pub(super) losses: &'a [Loss],
    pub(super) threads: Vec<ThreadNow>,
    pub(super) early: FxHashMap<ThreadIdx, Early>,
    /// By thread: when it began to wait for a futex, and for which; empty before the first does.
    futexes: Vec<(u64, LockId)>,
    /// The system call asked for last, and whether it gives way to others.
    call: (i16, bool),
    pub(super) cpus: Vec<CpuNow>,
    pub(super) owners: Owners,
    pub(super) out: Output,
    pub(super) tally: Option<Tally<'a>>,
    /// Timed-out waits of an earlier part.
    pub(super) recent: FxHashMap<ThreadIdx, Recent>,
    /// Waits begun here that may go on with one of `recent`: thread and index.
    pub(super) followers: Vec<(ThreadIdx, u32, Recent)>,
    /// Who woke whom, and when, out of a wait that had begun before the trace; kept where the whole trace is followed.
    pub(super) censored: Vec<(ThreadIdx, ThreadIdx, u64)>,
    /// Threads that came to each CPU since its last loss; kept only where there are losses.
    came: Vec<FxHashSet<ThreadIdx>>,
    carriers: Carriers,
}

impl<'a> Machine<'a> {
    /// Before the first event.
    pub(super) fn new(trace: &'a Trace, losses: &'a [Loss], out: Output) -> Self {
        let fresh = |start: &holdup_trace::Timestamp| {
            let state = if start.nanos() > 0 { State::Gone } else { State::Unknown };
            ThreadNow { state, since: 0, cpu: Cpu::NONE, waits: [0; 2], woke: false }
        };
        let cpus = usize::from(trace.meta.cpus);
        Machine {
            trace,
            losses,
            threads: trace.threads.start.iter().map(fresh).collect(),
            early: FxHashMap::default(),
            futexes: Vec::new(),
            call: (-1, false),
            cpus: vec![CpuNow { running: ThreadIdx::NONE, since: 0 }; cpus],
            owners: Owners::default(),
            out,
            tally: None,
            recent: FxHashMap::default(),
            followers: Vec::new(),
            censored: Vec::new(),
            came: if losses.is_empty() { Vec::new() } else { vec![FxHashSet::default(); cpus] },
            carriers: Carriers::of(trace),
        }
    }

    /// Tells which threads were last seen on which CPU, for losses to come.
    pub(super) fn restore_came(&mut self) {
        for (i, now) in self.threads.iter().enumerate() {
            if let Some(came) = self.came.get_mut(now.cpu.index()) {
                came.insert(ThreadIdx(i as u32));
            }
        }
    }

    fn known(&self, thread: ThreadIdx) -> bool {
        thread.is_real() && thread.index() < self.threads.len()
    }

    /// Ends the thread's state at `t` and begins `next`.
    #[inline]
    fn enter(&mut self, thread: ThreadIdx, t: u64, next: State) {
        let now = &mut self.threads[thread.index()];
        let ThreadNow { state: before, since, .. } = *now;
        now.begin(next, t);
        self.out.step(t, thread, before, next);
        self.tally.iter_mut().for_each(|tally| tally.change(thread, before, since, next, t));
    }

    /// `prev` leaves its CPU.
    fn leave(&mut self, row: &Switch) {
        let (t, thread) = (row.t.nanos(), row.prev);
        match row.state {
            SwitchState::Runnable if self.only_looks(row) => self.enter(thread, t, State::Yields(row.cpu)),
            SwitchState::Runnable => self.enter(thread, t, State::Runnable(row.cpu)),
            SwitchState::Dead => self.enter(thread, t, State::Gone),
            _ => self.begin_wait(row),
        }
    }

    /// Whether a thread that gives way has only just come, so that it looked at something and did no work.
    fn only_looks(&mut self, row: &Switch) -> bool {
        let now = &self.threads[row.prev.index()];
        let ran = row.t.nanos().saturating_sub(now.since);
        row.syscall >= 0 && matches!(now.state, State::Running(_)) && ran < REWAIT_NS && self.gives_way(row.syscall)
    }

    /// Whether a system call does nothing else.
    fn gives_way(&mut self, number: i16) -> bool {
        if self.call.0 != number {
            self.call = (number, Syscall::from_number(&self.trace.meta.host.arch, number) == Syscall::Yield);
        }
        self.call.1
    }

    pub(super) fn begin_wait(&mut self, row: &Switch) {
        let (t, thread) = (row.t.nanos(), row.prev);
        let ran_since = self.threads[thread.index()].since;
        // Whether the early wake ended this wait shows when the thread runs again without another one (rule 2).
        let mut early = if self.early.is_empty() { None } else { self.early.get(&thread).copied() };
        if early.is_some_and(|e| e.t < ran_since || t.saturating_sub(e.t) > RACE_NS) {
            self.early.remove(&thread);
            early = None;
        }
        let futex = self.futexes.get_mut(thread.index()).map(std::mem::take);
        let futex = futex.filter(|f| f.0 == t).map_or(LockId::NONE, |f| f.1);
        let lock = if row.lock == LockId::NONE { futex } else { row.lock };
        let end = self.out.end;
        let i = self.out.waits.len() as u32;
        let now = &mut self.threads[thread.index()];
        now.waits = [i + 1, now.waits[0]];
        let after_wake = std::mem::take(&mut now.woke);
        self.out.waits.push(Wait {
            thread,
            start: t,
            last_start: t,
            woken: end,
            resumed: end,
            waker: early.map_or(ThreadIdx::NONE, |e| e.waker),
            context: early.map_or(WakeContext::Unknown, |e| e.context),
            source: early.map_or(0, |e| e.source),
            syscall: row.syscall,
            cpu: Cpu::NONE,
            lock,
            stack: row.stack,
            waker_stack: early.map_or(StackId::NONE, |e| e.stack),
            kind: WaitKind::Unknown,
            open: true,
            io_wait: row.io_wait,
            idle_state: row.state == SwitchState::Idle,
            place: Place::Home,
            verdict: None,
            exempt: false,
            goes_on: 0,
            is_fresh: after_wake,
        });
        if !self.recent.is_empty() {
            self.follow_recent(thread, t, i);
        }
        self.enter(thread, t, State::Waiting(i));
    }

    /// Whether the new wait `i` may go on with one of an earlier part that timed out.
    fn follow_recent(&mut self, thread: ThreadIdx, t: u64, i: u32) {
        if let Some(recent) = self.recent.remove(&thread)
            && t.saturating_sub(recent.resumed) < REWAIT_NS
        {
            self.followers.push((thread, i, recent));
        }
    }

    /// `next` comes onto a CPU.
    fn arrive(&mut self, thread: ThreadIdx, cpu: Cpu, t: u64) {
        let now = self.threads[thread.index()];
        match now.state {
            State::Running(other) if other != cpu => {
                self.count(|h| h.unmatched += 1);
                self.cpus[other.index()] = CpuNow { running: ThreadIdx::NONE, since: t };
                self.enter(thread, t, State::Unknown);
            }
            State::Running(_) => return,
            State::Waiting(i) => {
                let raced = !self.early.is_empty() && self.early.remove(&thread).is_some();
                // Else nobody was seen to wake it.
                self.count(|h| h.unknown_wakers += u64::from(!raced));
                let wait = &mut self.out.waits[i as usize];
                (wait.woken, wait.open) = (if raced { wait.start } else { t }, false);
                let woken = wait.woken;
                self.enter(thread, woken, State::Woken(i));
            }
            // Who is only inferred to run, from before it was seen to begin, begins to run.
            State::Gone => {
                let start = self.trace.threads.start[thread.index()].nanos();
                if start < t {
                    self.out.insert(start, thread, State::Gone, State::Runnable(cpu));
                    self.threads[thread.index()].begin(State::Runnable(cpu), start);
                }
            }
            _ => {}
        }
        self.resume(thread, cpu, t);
    }

    /// From runnable to running.
    #[inline]
    fn resume(&mut self, thread: ThreadIdx, cpu: Cpu, t: u64) {
        match self.threads[thread.index()].state {
            State::Woken(i) => {
                let wait = &mut self.out.waits[i as usize];
                (wait.resumed, wait.cpu) = (t, cpu);
                let over = wait.woken.saturating_add(HANDOFF_NS);
                if t > over {
                    self.out.insert(over, thread, State::Woken(i), State::Runnable(cpu));
                    self.threads[thread.index()].state = State::Runnable(cpu);
                }
            }
            // A runnable thread's CPU is known only now, to earlier parts of the trace as well.
            State::Runnable(before) | State::Yields(before) => {
                let ready = match self.threads[thread.index()].state {
                    State::Yields(_) => State::Yields(cpu),
                    _ => State::Runnable(cpu),
                };
                let now = &mut self.threads[thread.index()];
                now.state = ready;
                if now.since < self.out.from && before != cpu {
                    self.out.insert(now.since, thread, ready, ready);
                }
            }
            _ => {}
        }
        self.enter(thread, t, State::Running(cpu));
        self.threads[thread.index()].cpu = cpu;
        if let Some(came) = self.came.get_mut(cpu.index()) {
            came.insert(thread);
        }
    }

    /// The trace says that `thread` runs on `cpu` at `t`. If its switch-in is missing, infers it (rule 11), not
    /// earlier than there is evidence for.
    #[inline]
    fn ensure_running(&mut self, cpu: Cpu, thread: ThreadIdx, t: u64, slack: u64) {
        let Some(&now) = self.cpus.get(cpu.index()) else { return };
        if now.running != thread && thread != ThreadIdx::NONE {
            self.infer(now, cpu, thread, t, slack);
        }
    }

    fn count(&mut self, what: impl FnOnce(&mut super::Health)) {
        if let Some(tally) = &mut self.tally {
            what(&mut tally.health);
        }
    }
}

impl Follower for Machine<'_> {
    #[inline]
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

    #[inline]
    fn wake(&mut self, row: &Wake) {
        let t = row.t.nanos();
        self.ensure_running(row.cpu, row.waker, t, 0);
        if !self.known(row.wakee) || row.wakee == row.waker && row.context == WakeContext::Task {
            return;
        }
        let (waker, context) = match row.context {
            WakeContext::Task if !row.waker.is_real() => (ThreadIdx::NONE, WakeContext::Unknown),
            WakeContext::Task => match self.carriers.context(row.waker) {
                Some(context) => (ThreadIdx::NONE, context),
                None => (row.waker, WakeContext::Task),
            },
            other => (ThreadIdx::NONE, other),
        };
        if self.known(waker) {
            self.threads[waker.index()].woke = true;
        }
        match self.threads[row.wakee.index()].state {
            State::Running(_) => {
                let early = Early { t, waker, context, source: row.source, stack: row.stack };
                self.early.insert(row.wakee, early);
            }
            State::Waiting(i) => {
                let wait = &mut self.out.waits[i as usize];
                (wait.open, wait.woken, wait.waker, wait.context) = (false, t, waker, context);
                (wait.source, wait.waker_stack) = (row.source, row.stack);
                let released = wait.lock;
                self.owners.release(released, waker, t);
                self.enter(row.wakee, t, State::Woken(i));
            }
            State::Unknown => {
                self.count(|h| h.censored += 1);
                if self.tally.is_some() && self.known(waker) {
                    self.censored.push((row.wakee, waker, t));
                }
                self.enter(row.wakee, t, State::Runnable(row.target));
            }
            _ => {}
        }
    }

    fn futex(&mut self, row: &Futex) {
        if self.known(row.thread) {
            self.futexes.resize(self.threads.len(), Default::default());
            self.futexes[row.thread.index()] = (row.t.nanos(), row.lock);
        }
        if row.owner.is_real() && row.owner != row.thread {
            self.owners.observe(row.lock, row.owner, row.t.nanos());
        }
    }

    fn kernel_lock(&mut self, row: &KernelLock) {
        if row.begin && row.owner.is_real() {
            self.owners.observe(row.lock, row.owner, row.t.nanos());
        }
    }

    fn sample(&mut self, row: &Sample) {
        let slack = self.trace.meta.sample_period_ns / 2;
        self.ensure_running(row.cpu, row.thread, row.t.nanos(), slack);
        self.tally.iter_mut().for_each(|tally| tally.sample(row));
        if self.out.keeps() {
            self.out.samples.push(*row);
        }
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
        let loss = self.losses[index];
        let Some(&now) = self.cpus.get(loss.cpu.index()) else { return };
        let mut there: Vec<ThreadIdx> = std::mem::take(&mut self.came[loss.cpu.index()]).into_iter().collect();
        there.extend(self.known(now.running).then_some(now.running));
        there.sort_unstable();
        there.dedup();
        for thread in there {
            let ThreadNow { state, since, cpu, .. } = self.threads[thread.index()];
            let lost = cpu == loss.cpu && !matches!(state, State::Gone | State::Unknown);
            if lost || now.running == thread {
                self.enter(thread, loss.from.max(since), State::Unknown);
            }
        }
        self.cpus[loss.cpu.index()] = CpuNow { running: ThreadIdx::NONE, since: loss.to };
    }
}
