//! The machine: CPUs that share one run queue, and threads that run on them, wait, and are woken.
//!
//! Time goes from one [`Due`] to the next. Whatever happens is written down as the events that a recorder would have
//! seen, in time order.

mod common;
mod own;
mod record;
mod seen;
mod timers;

use std::collections::VecDeque;

use holdup_trace::{BlockedEvent, ExitEvent, FutexEvent, WakeEvent};
use holdup_trace::{Cpu, Event, LockId, SwitchState, TraceBuilder, WakeContext};

use crate::cast::{Cast, Next, Program, Site, Who};
use crate::random::Random;
use crate::spec::Spec;
use own::Common;
use record::Record;
use timers::{Due, Timers};

/// The clock's reading when the trace begins, in nanoseconds.
const START: u64 = 1_000_000_000_000;
/// Waits shorter than this have no stack, in nanoseconds.
const MIN_WAIT: u64 = 50_000;
/// How long a thread runs before another has its turn, in nanoseconds.
const SLICE: u64 = 4_000_000;
/// Nobody runs.
const NOBODY: Who = Who::MAX;
/// Softirq vectors and an interrupt line, as Linux numbers them.
const NET_RX: u16 = 3;
const DISK_LINE: u16 = 29;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Blocked,
    Ready,
    Running,
    Gone,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    tid: u32,
    /// Whether it is the machine's own: [`common`].
    common: bool,
    state: State,
    /// Whether its wait was long enough for a stack.
    long: bool,
    /// Whether a request of it is at the disk.
    io: bool,
    cpu: u16,
    /// Where it runs, or waits.
    site: u16,
    /// Nanoseconds that it still has to run before it is asked again.
    left: u64,
    /// When others have their turn, while it runs.
    turn_ends: u64,
    /// Since when it runs, or waits; 0 if that was before the trace.
    since: u64,
    /// In which context an interrupt will wake it.
    context: WakeContext,
    sector: u64,
}

/// The machine, and what happens on it.
pub(crate) struct Machine {
    /// The seed's numbers.
    pub(crate) random: Random,
    /// Who holds the planted lock.
    pub(crate) holder: Option<Who>,
    /// The planted lock.
    pub(crate) lock: LockId,
    /// Words on which threads wait for each other, one for each pool.
    pub(crate) words: Vec<LockId>,
    now: u64,
    busy_ns: u64,
    threads: Vec<Thread>,
    /// Who runs on each CPU.
    running: Vec<Who>,
    /// A bit for each CPU that is idle and nobody is on the way to.
    idle: Vec<u64>,
    ready: VecDeque<Who>,
    timers: Timers,
    sites: Vec<Site>,
    record: Record,
    common: Common,
    /// Nanoseconds between samples, all CPUs together; 0 for none.
    tick: u64,
    next_tick: u64,
    /// Events at which the next loss begins, and between two losses.
    losses: (u64, u64),
}

impl Machine {
    /// A machine on which the threads of `cast` sleep. `period` is that of sampling on each CPU; 0 for none.
    pub(crate) fn new(spec: &Spec, cast: &Cast, period: u64, builder: &mut TraceBuilder) -> Self {
        let cpus = usize::from(spec.cpus);
        let between = spec.events / (u64::from(spec.losses) + 1);
        let mut machine = Machine {
            random: Random::new(spec.seed),
            holder: None,
            lock: LockId::NONE,
            words: Vec::new(),
            now: START,
            busy_ns: 0,
            threads: Vec::with_capacity(spec.threads as usize + 16),
            running: vec![NOBODY; cpus],
            idle: vec![0; cpus.div_ceil(64)],
            ready: VecDeque::new(),
            timers: Timers::default(),
            sites: Vec::new(),
            record: Record::new(cpus, spec.events),
            common: Common::default(),
            tick: period / u64::from(spec.cpus),
            next_tick: 0,
            losses: (if spec.losses == 0 { u64::MAX } else { between }, between),
        };
        (0..cpus).for_each(|cpu| machine.idle[cpu / 64] |= 1 << (cpu % 64));
        machine.populate(cast, builder);
        if machine.tick > 0 {
            machine.timers.set(START + machine.tick, Due::Tick);
        }
        machine
    }

    /// Lets `program` run until there are `enough` events, or all. Whether there are more to come.
    pub(crate) fn run(&mut self, program: &mut dyn Program<Self>, enough: usize) -> bool {
        while self.record.is_open() && self.record.events.len() < enough {
            let Some((t, due)) = self.timers.next() else { break };
            self.now = t;
            self.record.now = t;
            match due {
                Due::Burst(cpu) => self.burst_ends(program, cpu),
                Due::Arrival(cpu, who) => self.arrives_at_idle(program, cpu, who),
                Due::Interrupt(who) => self.interrupt(who),
                Due::Alarm(what) => program.alarm(self, what),
                Due::Tick => self.sample(),
                Due::LossEnds(cpu) => self.loss_ends(cpu),
            }
            if self.record.made >= self.losses.0 {
                self.losses.0 += self.losses.1;
                self.loss_begins();
            }
        }
        let more = self.record.is_open();
        if !more {
            self.end();
        }
        more
    }

    /// What happened since it was last emptied.
    pub(crate) fn events(&mut self) -> &mut Vec<(u64, Event)> {
        &mut self.record.events
    }

    /// Switches and wake-ups so far.
    pub(crate) fn made(&self) -> u64 {
        self.record.made
    }

    /// How long threads have run, all together, in nanoseconds.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// The clock, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// How many CPUs there are.
    pub(crate) fn cpus(&self) -> u32 {
        self.running.len() as u32
    }

    /// How many threads there are from the beginning, those of [`common`] included.
    pub(crate) fn threads(&self) -> Who {
        self.threads.len() as Who
    }

    /// The thread's tid.
    pub(crate) fn tid(&self, who: Who) -> u32 {
        self.threads[who as usize].tid
    }

    /// Rings in `ns` nanoseconds.
    pub(crate) fn alarm(&mut self, ns: u64, what: u32) {
        self.timers.set(self.now + ns, Due::Alarm(what));
    }

    /// `waker`, which runs, wakes `wakee` from `site`.
    pub(crate) fn wake(&mut self, waker: Who, wakee: Who, site: usize) {
        let (cpu, waker) = (self.threads[waker as usize].cpu, self.threads[waker as usize].tid);
        self.wake_in(cpu, waker, wakee, WakeContext::Task, 0, Some(site));
    }

    /// A packet comes now for `wakee`, which waits for it.
    pub(crate) fn packet(&mut self, wakee: Who) {
        self.threads[wakee as usize].context = WakeContext::SoftIrq;
        self.interrupt(wakee);
    }

    /// A timer wakes `who`, which waits, or is about to, in `ns` nanoseconds.
    pub(crate) fn timer(&mut self, who: Who, ns: u64) {
        self.threads[who as usize].context = WakeContext::Timer;
        self.timers.set(self.now + ns, Due::Interrupt(who));
    }

    /// The disk needs `ns` nanoseconds for a request of `who`, which is about to wait for it.
    pub(crate) fn disk(&mut self, who: Who, ns: u64) {
        self.threads[who as usize].context = WakeContext::HardIrq;
        self.timers.set(self.now + ns, Due::Interrupt(who));
    }

    fn interrupt(&mut self, who: Who) {
        let Thread { context, cpu: last, .. } = self.threads[who as usize];
        let (cpu, source) = match context {
            WakeContext::SoftIrq => ((who % self.cpus()) as u16, NET_RX),
            WakeContext::HardIrq => ((who % self.cpus()) as u16, DISK_LINE),
            _ => (last, 0),
        };
        if std::mem::take(&mut self.threads[who as usize].io) {
            self.block_io(cpu, who, false);
        }
        let met = self.running[usize::from(cpu)];
        let waker = if met == NOBODY { 0 } else { self.threads[met as usize].tid };
        self.wake_in(cpu, waker, who, context, source, None);
    }

    fn wake_in(&mut self, cpu: u16, waker: u32, wakee: Who, context: WakeContext, source: u16, from: Option<usize>) {
        let thread = &mut self.threads[wakee as usize];
        debug_assert_eq!(thread.state, State::Blocked, "only who waits is woken");
        thread.long = thread.since > 0 && self.now - thread.since >= MIN_WAIT;
        let (tid, long) = (thread.tid, thread.long);
        let chain = from.filter(|_| long).map_or(holdup_trace::ChainId::NONE, |site| self.sites[site].chains[0].0);
        let (lock, target) = (LockId::NONE, Cpu::NONE);
        let event = Event::Wake(WakeEvent { cpu: Cpu(cpu), waker, wakee: tid, context, source, target, lock, chain });
        self.record.push(cpu, event);
        self.make_ready(wakee);
    }

    /// Sends `who` to an idle CPU, its last one if that is idle; else it queues.
    fn make_ready(&mut self, who: Who) {
        let thread = &mut self.threads[who as usize];
        thread.state = State::Ready;
        let (word, bit) = (usize::from(thread.cpu / 64), thread.cpu % 64);
        let words = self.idle.len();
        let found = match self.idle[word] >> bit & 1 {
            1 => Some((word, u32::from(bit))),
            _ => (0..words)
                .map(|i| (word + i) % words)
                .find(|&w| self.idle[w] != 0)
                .map(|w| (w, self.idle[w].trailing_zeros())),
        };
        let Some((word, bit)) = found else {
            self.ready.push_back(who);
            return;
        };
        self.idle[word] &= !(1 << bit);
        let latency = self.random.within(1500, 4000);
        self.timers.set(self.now + latency, Due::Arrival((word * 64) as u16 + bit as u16, who));
    }

    fn arrives_at_idle(&mut self, program: &mut dyn Program<Self>, cpu: u16, who: Who) {
        let next = self.threads[who as usize].tid;
        self.record.switch(cpu, 0, next, SwitchState::Runnable, -1, LockId::NONE);
        self.arrive(cpu, who);
        self.turn(program, cpu);
    }

    /// `who` was just switched in.
    fn arrive(&mut self, cpu: u16, who: Who) {
        self.running[usize::from(cpu)] = who;
        let thread = &mut self.threads[who as usize];
        (thread.state, thread.cpu, thread.since) = (State::Running, cpu, self.now);
        thread.turn_ends = self.now + SLICE;
        if std::mem::take(&mut thread.long) {
            let (tid, chain) = (thread.tid, self.sites[usize::from(thread.site)].chains[0].0);
            self.record.push(cpu, Event::Blocked(BlockedEvent { tid, chain, lock: LockId::NONE }));
        }
    }

    /// The stretch that was planned for `cpu` is over: the thread is done with it, or another has its turn.
    fn burst_ends(&mut self, program: &mut dyn Program<Self>, cpu: u16) {
        let who = self.running[usize::from(cpu)];
        let thread = &mut self.threads[who as usize];
        thread.left = thread.left.saturating_sub(self.now - thread.since);
        self.busy_ns += self.now - thread.since;
        thread.since = self.now;
        if self.now >= thread.turn_ends {
            thread.turn_ends = self.now + SLICE;
            if !self.ready.is_empty() {
                thread.state = State::Ready;
                self.ready.push_back(who);
                self.leave(cpu, SwitchState::Runnable, -1, LockId::NONE);
            }
        }
        self.turn(program, cpu);
    }

    /// Asks who runs on `cpu` what it does next, until somebody runs there or nobody is left.
    fn turn(&mut self, program: &mut dyn Program<Self>, cpu: u16) {
        loop {
            let who = self.running[usize::from(cpu)];
            if who == NOBODY {
                return;
            }
            let thread = self.threads[who as usize];
            if thread.left > 0 {
                let until = thread.turn_ends.max(self.now + 1).min(self.now + thread.left);
                self.timers.set(until, Due::Burst(cpu));
                return;
            }
            let next = if thread.common { self.common_step(who) } else { program.step(self, who) };
            match next {
                Next::Run(ns, site) => {
                    let thread = &mut self.threads[who as usize];
                    (thread.left, thread.site) = (ns.max(1), site as u16);
                }
                Next::Block(site, lock) => self.block(cpu, who, site, lock),
                Next::Exit => {
                    self.threads[who as usize].state = State::Gone;
                    self.record.push(cpu, Event::Exit(ExitEvent { tid: thread.tid }));
                    self.leave(cpu, SwitchState::Dead, 60, LockId::NONE);
                }
            }
        }
    }

    fn block(&mut self, cpu: u16, who: Who, site: usize, lock: LockId) {
        let place = self.sites[site].place;
        let owner = self.holder.filter(|_| lock == self.lock).map_or(0, |h| self.threads[h as usize].tid);
        let thread = &mut self.threads[who as usize];
        (thread.state, thread.since, thread.site) = (State::Blocked, self.now, site as u16);
        let tid = thread.tid;
        if place.is_disk() {
            thread.io = true;
            thread.sector = 2048 + self.random.below(1 << 28) * 8;
            self.block_io(cpu, who, true);
        }
        if place.syscall == crate::cast::calls::FUTEX && lock != LockId::NONE {
            self.record.push(cpu, Event::Futex(FutexEvent { tid, lock, owner, operation: 0, timed: false }));
        }
        self.leave(cpu, place.state(), place.syscall, lock);
    }

    /// Who runs on `cpu` leaves it to the next in the queue, or to nobody.
    fn leave(&mut self, cpu: u16, state: SwitchState, syscall: i16, lock: LockId) {
        let prev = self.threads[self.running[usize::from(cpu)] as usize].tid;
        let next = self.ready.pop_front();
        let tid = next.map_or(0, |next| self.threads[next as usize].tid);
        self.record.switch(cpu, prev, tid, state, syscall, lock);
        match next {
            Some(next) => self.arrive(cpu, next),
            None => {
                self.running[usize::from(cpu)] = NOBODY;
                self.idle[usize::from(cpu / 64)] |= 1 << (cpu % 64);
            }
        }
    }
}
