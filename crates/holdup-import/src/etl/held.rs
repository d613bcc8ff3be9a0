//! Events that wait for their stacks. Windows walks a stack after the event that asked for it, and the part in user space when the thread
//! is about to return there: 99.9 % of them within a millisecond, the last ones a tenth of a second later. All that threads do is held,
//! whether it has stacks or not: events of one instant keep their order.

use std::collections::VecDeque;

use holdup_trace::{
    BlockedEvent, ChainId, Cpu, LockId, SampleEvent, SwitchEvent, SwitchState, TraceBuilder, WakeContext, WakeEvent,
};

use super::image::is_kernel;
use super::keys::MOST_FRAMES;

/// More than two rounds have; with a third one it stays below the length to which a queue grows next.
const MOST: usize = 170_000;
/// So many events are looked at for one stack or interrupt: more than all CPUs have in a tick, or while a DPC runs. Damage may claim more.
const NEAR: usize = 1024;

/// What waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// A sample at an instruction.
    Sample(u64),
    /// A thread is switched in for another one. Its stack says where it had blocked.
    Switch {
        prev: u32,
        state: SwitchState,
        io_wait: bool,
        /// The reason to wait.
        syscall: i16,
    },
    /// A thread becomes runnable.
    Wake {
        wakee: u32,
        context: WakeContext,
        /// Interrupt or DPC by the model's numbers.
        source: u16,
        /// Whether an interrupt or DPC is known that it came from, or it came from none.
        settled: bool,
    },
}

#[derive(Debug)]
struct Entry {
    ticks: u64,
    /// The same in nanoseconds.
    time: u64,
    cpu: u16,
    /// The thread whose stack it is; `None` if nobody knows who ran.
    tid: Option<u32>,
    /// Its process.
    pid: u32,
    what: What,
    kernel: Vec<u64>,
    user: Vec<u64>,
}

/// What became of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its event has it.
    Taken,
    /// Its event is none that is kept, or has left already.
    Homeless,
}

/// A stack, or a part of it.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// When its event was.
    pub ticks: u64,
    /// The CPU that logged it.
    pub cpu: u16,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Whether addresses have 64 bits.
    pub wide: bool,
}

/// Events in the order of time.
#[derive(Debug, Default)]
pub struct Held {
    /// Whether DPCs are in the log. Windows ends sleeps and time-outs before it runs DPCs, at the same level: a wake-up from that level
    /// but from no DPC is a timer's then.
    with_dpcs: bool,
    queue: VecDeque<Entry>,
}

impl Held {
    /// Of a log with or without DPCs.
    pub fn new(with_dpcs: bool) -> Self {
        Held { with_dpcs, ..Held::default() }
    }

    /// Holds an event of a thread; of one that nobody knows, `None`.
    #[inline]
    pub fn push(&mut self, (ticks, time): (u64, u64), cpu: u16, (pid, tid): (u32, Option<u32>), what: What) {
        let (kernel, user) = (Vec::new(), Vec::new());
        self.queue.push_back(Entry { ticks, time, cpu, tid, pid, what, kernel, user });
    }

    /// Gives a stack to the event that it is of: that with its time and thread.
    #[inline]
    pub fn stack(&mut self, walk: Walk, frames: impl Iterator<Item = u64>) -> Fate {
        let mut found: Option<(usize, (bool, bool, bool))> = None;
        let behind = self.behind(walk.ticks);
        for (at, entry) in self.queue.range(..behind).enumerate().rev().take(NEAR) {
            if entry.ticks != walk.ticks {
                break;
            }
            let is_its = entry.tid.map_or(entry.cpu == walk.cpu, |tid| tid == walk.tid);
            // Idle threads are on all CPUs. Of two events of a thread in one tick the first has its stack first; stacks at switches
            // are rarer than others.
            let is_bare = entry.kernel.is_empty() && entry.user.is_empty();
            let rank = (entry.cpu == walk.cpu, is_bare, !matches!(entry.what, What::Switch { .. }));
            if is_its && found.is_none_or(|(_, best)| rank >= best) {
                found = Some((at, rank));
            }
        }
        let Some(entry) = found.and_then(|(at, _)| self.queue.get_mut(at)) else { return Fate::Homeless };
        entry.pid = walk.pid;
        for frame in frames.filter(|&frame| frame != 0).take(MOST_FRAMES) {
            let part = if is_kernel(frame, walk.wide) { &mut entry.kernel } else { &mut entry.user };
            if part.len() < MOST_FRAMES {
                part.push(frame);
            }
        }
        Fate::Taken
    }

    /// How many entries are not later than `ticks`. Nearly always all but the last few.
    fn behind(&self, ticks: u64) -> usize {
        let near = self.queue.len().saturating_sub(64);
        match self.queue.get(near) {
            Some(entry) if entry.ticks <= ticks => {
                let later = self.queue.iter().rev().take_while(|entry| entry.ticks > ticks).count();
                self.queue.len() - later
            }
            _ => self.queue.partition_point(|entry| entry.ticks <= ticks),
        }
    }

    /// An interrupt or DPC ran on `cpu` from `ticks` until now: the wake-ups meanwhile that came from none so far are its own.
    pub fn interrupted(&mut self, cpu: u16, ticks: u64, by: (WakeContext, u16)) {
        let near = self.queue.iter_mut().rev().take(NEAR);
        for entry in near.take_while(|entry| entry.ticks >= ticks).filter(|e| e.cpu == cpu) {
            if let What::Wake { context, source, settled: settled @ false, .. } = &mut entry.what {
                ((*context, *source), *settled) = (by, true);
            }
        }
    }

    /// Hands on all events up to `time`, and more where the log's own order is wrong and so many wait that memory would grow with it.
    pub fn release(&mut self, time: u64, builder: &mut TraceBuilder) {
        while self.queue.len() > MOST || self.queue.front().is_some_and(|entry| entry.time <= time) {
            let Some(mut entry) = self.queue.pop_front() else { return };
            if let What::Wake { context, source, settled: false, .. } = &mut entry.what
                && self.with_dpcs
            {
                (*context, *source) = (WakeContext::Timer, 0);
            }
            hand_on(&entry, builder);
        }
    }
}

fn hand_on(entry: &Entry, builder: &mut TraceBuilder) {
    let mut kernel = &entry.kernel[..];
    let mut user = &entry.user[..];
    let cpu = Cpu(entry.cpu);
    let tid = entry.tid.unwrap_or(0);
    match entry.what {
        What::Sample(ip) => {
            let leaf = [ip];
            if kernel.is_empty() && user.is_empty() {
                *(if is_kernel(ip, true) { &mut kernel } else { &mut user }) = &leaf;
            }
            let chain = builder.chain(entry.pid, kernel, user);
            builder.push(entry.time, SampleEvent { cpu, tid, ip, bp: 0, chain });
        }
        What::Switch { prev, state, io_wait, syscall } => {
            let (lock, chain) = (LockId::NONE, ChainId::NONE);
            builder.push(entry.time, SwitchEvent { cpu, prev, next: tid, state, io_wait, syscall, lock, chain });
            if !kernel.is_empty() || !user.is_empty() {
                let chain = builder.chain(entry.pid, kernel, user);
                builder.push(entry.time, BlockedEvent { tid, chain, lock });
            }
        }
        What::Wake { wakee, context, source, .. } => {
            let chain = builder.chain(entry.pid, kernel, user);
            let (target, lock) = (Cpu::NONE, LockId::NONE);
            builder.push(entry.time, WakeEvent { cpu, waker: tid, wakee, context, source, target, lock, chain });
        }
    }
}
