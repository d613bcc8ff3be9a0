//! Turns the kernel's records into events.

use rustc_hash::FxHashMap;

use crate::linux::{self, FUTEX_PRIVATE};
use crate::records::{Record, TID_MASK, bit, kind};
use crate::spans::{Parts, Probes};
use holdup_trace::{
    BlockIoEvent, BlockedEvent, ChainId, Cpu, ExitEvent, ForkEvent, FutexEvent, KernelLockEvent, LockId, LockKey,
    LockKind, NameEvent, SampleEvent, StandingEvent, SwitchEvent, TraceBuilder, WakeContext, WakeEvent,
};

/// Prefix records of a CPU that wait for the record they belong to.
#[derive(Debug, Default, Clone, Copy)]
struct Prefix {
    futex: Option<Record>,
    wake_key: Option<Record>,
    wake_stack: u64,
    /// The first half of a sample or a name.
    half: Option<Record>,
    span: Option<Parts>,
}

/// Converts records to events, CPU by CPU within a round.
#[derive(Debug, Default)]
pub(crate) struct Converter {
    prefixes: FxHashMap<u16, Prefix>,
    /// Which process each thread belongs to.
    pids: FxHashMap<u32, u32>,
    /// When each thread began that was seen to, in nanoseconds.
    forks: FxHashMap<u32, u64>,
    /// Threads of containers by their process and the number that they have for themselves.
    inner: FxHashMap<(u32, u32), u32>,
    /// What records of spans mean.
    pub probes: Probes,
    counts: [u64; KINDS],
    futexes: u64,
    /// The latest time seen.
    pub last: u64,
}

/// Kinds that are counted: a power of two.
const KINDS: usize = 32;

/// Names under which records are counted; an empty one is a part of another record.
const NATIVE: [&str; 19] = [
    "",
    "sched_switch",
    "sched_waking",
    "futex_wait",
    "futex_wake",
    "waker_stack",
    "blocked_stack",
    "sample",
    "",
    "contention",
    "block_rq",
    "sched_process_fork",
    "task_rename",
    "sched_process_exit",
    "sched_switch_missed",
    "",
    "span",
    "span",
    "standing_wait",
];

const fn tid(word: u64, shift: u32) -> u32 {
    (word >> shift) as u32 & TID_MASK
}

impl Converter {
    /// Notes which process a thread belongs to.
    pub(crate) fn learn(&mut self, tid: u32, pid: u32) {
        self.pids.insert(tid, pid);
    }

    /// Notes the number that a thread of a container has for itself: in its locks stands that one.
    pub(crate) fn learn_inner(&mut self, tid: u32, pid: u32, inner: u32) {
        self.inner.insert((pid, inner), tid);
    }

    /// When what /proc says of a thread as of `t` is so: after it began, which may have been while /proc was read.
    pub(crate) fn when(&self, tid: u32, t: u64) -> u64 {
        self.forks.get(&tid).map_or(t, |&fork| t.max(fork + 1))
    }

    /// Learns the new threads of a block before any block of the round is converted.
    pub(crate) fn learn_forks(&mut self, records: &[u8]) {
        for r in Record::all(records) {
            match r.kind {
                kind::FORK => {
                    self.learn(r.b as u32, (r.b >> bit::PROCESS) as u32);
                    self.forks.insert(r.b as u32, r.t);
                }
                kind::INNER => self.learn_inner(r.a as u32, (r.a >> bit::PROCESS) as u32, r.b as u32),
                _ => {}
            }
        }
    }

    /// Pushes the events of a block.
    pub(crate) fn convert(&mut self, builder: &mut TraceBuilder, cpu: u16, records: &[u8]) {
        let mut prefix = self.prefixes.remove(&cpu).unwrap_or_default();
        for record in Record::all(records) {
            self.counts[usize::from(record.kind) % KINDS] += 1;
            self.last = self.last.max(record.t);
            self.record(builder, Cpu(cpu), record, &mut prefix);
        }
        self.prefixes.insert(cpu, prefix);
    }

    fn record(&mut self, builder: &mut TraceBuilder, cpu: Cpu, r: Record, prefix: &mut Prefix) {
        match r.kind {
            kind::FUTEX => prefix.futex = Some(r),
            kind::WAKE_KEY => prefix.wake_key = Some(r),
            kind::WAKE_STACK => prefix.wake_stack = r.b,
            kind::SAMPLE | kind::NAME => prefix.half = Some(r),
            kind::SPAN | kind::SPAN_WHOLE => self.span(builder, Parts::new(r), prefix),
            kind::MORE if prefix.span.is_some() => {
                if let Some(mut parts) = prefix.span.take() {
                    parts.add(r);
                    self.span(builder, parts, prefix);
                }
            }
            kind::MORE => {
                if let Some(first) = prefix.half.take() {
                    second_half(builder, cpu, first, r);
                }
            }
            kind::SWITCH => self.switch(builder, cpu, r, prefix.futex.take()),
            kind::MISSED_SWITCH => self.switch(builder, cpu, r, None),
            kind::WAKE => {
                let (key, stack) = (prefix.wake_key.take(), std::mem::take(&mut prefix.wake_stack));
                let (lock, chain) = (released_lock(builder, key), builder.raw_chain(stack));
                builder.push(r.t, wake(lock, chain, cpu, r));
            }
            kind::BLOCKED => {
                let chain = builder.raw_chain(r.b);
                builder.push(r.t, BlockedEvent { tid: r.a as u32, chain, lock: LockId::NONE });
            }
            kind::STANDING => self.standing(builder, r, prefix.futex.take()),
            kind::LOCK => {
                let kind = LockKind::from_code((r.b >> bit::LOCK_KIND) as u8);
                let lock = builder.lock(LockKey { kind, pid: 0, address: r.a });
                let (begin, owner) = (r.b >> bit::BEGIN & 1 == 1, tid(r.b, bit::SECOND));
                builder.push(r.t, KernelLockEvent { cpu, tid: tid(r.b, 0), lock, begin, owner });
            }
            kind::BLOCK_IO => builder.push(r.t, block_io(r)),
            kind::FORK => {
                let (parent, parent_pid) = (r.a as u32, (r.a >> bit::PROCESS) as u32);
                let (tid, pid) = (r.b as u32, (r.b >> bit::PROCESS) as u32);
                builder.push(r.t, ForkEvent { parent_pid, parent, pid, tid });
            }
            // Of whoever ended before switches were recorded there is nothing else to tell.
            kind::EXIT if self.pids.contains_key(&(r.a as u32)) => builder.push(r.t, ExitEvent { tid: r.a as u32 }),
            _ => {}
        }
    }

    /// Pushes the span when all its parts are there.
    fn span(&mut self, builder: &mut TraceBuilder, parts: Parts, prefix: &mut Prefix) {
        if parts.are_complete() {
            self.probes.push(builder, &parts);
        } else {
            prefix.span = Some(parts);
        }
    }

    fn switch(&mut self, builder: &mut TraceBuilder, cpu: Cpu, r: Record, futex: Option<Record>) {
        let prev = tid(r.a, 0);
        let futex = futex.and_then(|f| self.futex(builder, &r, f, prev, tid(r.b, bit::PID)));
        let lock = futex.map_or(LockId::NONE, |futex| futex.lock);
        if let Some(futex) = futex {
            builder.push(r.t, futex);
        }
        builder.push(
            r.t,
            SwitchEvent {
                cpu,
                prev,
                next: tid(r.a, bit::SECOND),
                state: linux::task_state(r.b as u16),
                io_wait: r.b >> bit::IO_WAIT & 1 == 1,
                syscall: (r.a >> bit::CALL) as i16,
                lock,
                chain: ChainId::NONE,
            },
        );
    }

    /// What `tid` waits for, if its wait is for a futex.
    fn futex(&mut self, builder: &mut TraceBuilder, r: &Record, f: Record, tid: u32, pid: u32) -> Option<FutexEvent> {
        let operation = (f.a >> bit::OPERATION) as u8;
        if f.t != r.t || !linux::is_futex_wait(operation) {
            return None;
        }
        let (private, timed) = (f.a >> bit::PRIVATE & 1 == 1, f.a >> bit::TIMED & 1 == 1);
        let lock = builder.lock(futex_key(f.a & 0xffff_ffff_ffff, pid, private));
        let (word, owner) = (f.b as u32, (f.b >> bit::OWNER) as u32);
        let owner = if may_be_mutex(operation, word) { self.plausible_owner(owner, tid, pid) } else { 0 };
        self.futexes += 1;
        Some(FutexEvent { tid, lock, owner, operation, timed })
    }

    fn standing(&mut self, builder: &mut TraceBuilder, r: Record, futex: Option<Record>) {
        let tid = tid(r.a, 0);
        let futex = futex.and_then(|f| self.futex(builder, &r, f, tid, self::tid(r.a, bit::SECOND)));
        let (lock, owner) = futex.map_or((LockId::NONE, 0), |futex| (futex.lock, futex.owner));
        let (syscall, chain) = ((r.a >> bit::CALL) as i16, builder.raw_chain(r.b));
        builder.push(r.t, StandingEvent { tid, syscall, lock, owner, chain });
    }

    /// What lies behind a futex word is an owner only if it is another thread of the process.
    fn plausible_owner(&self, owner: u32, waiter: u32, pid: u32) -> u32 {
        let owner = self.inner.get(&(pid, owner)).copied().unwrap_or(owner);
        let same_process = self.pids.get(&owner) == Some(&pid);
        if same_process && owner != waiter && owner != 0 { owner } else { 0 }
    }

    /// Tells the builder how many records of each kind there were.
    pub(crate) fn count(&self, builder: &mut TraceBuilder) {
        for (name, &n) in NATIVE.iter().zip(&self.counts).filter(|(name, n)| !name.is_empty() && **n > 0) {
            builder.count_native(name, n);
        }
    }
}

fn second_half(builder: &mut TraceBuilder, cpu: Cpu, first: Record, second: Record) {
    if first.kind == kind::SAMPLE {
        let chain = builder.raw_chain(first.b);
        builder.push(first.t, SampleEvent { cpu, tid: first.a as u32, ip: second.a, bp: second.b, chain });
        return;
    }
    let name = builder.string(&crate::happening::name(first.b, second.a));
    builder.push(first.t, NameEvent { pid: (first.a >> bit::PROCESS) as u32, tid: first.a as u32, name });
}

fn released_lock(builder: &mut TraceBuilder, key: Option<Record>) -> LockId {
    key.map_or(LockId::NONE, |k| {
        let private = k.b >> bit::KEY_OPERATION & FUTEX_PRIVATE != 0;
        builder.lock(futex_key(k.a, k.b as u32, private))
    })
}

fn futex_key(address: u64, pid: u32, private: bool) -> LockKey {
    LockKey { kind: LockKind::Futex, pid: if private { pid } else { 0 }, address }
}

fn wake(lock: LockId, chain: ChainId, cpu: Cpu, r: Record) -> WakeEvent {
    WakeEvent {
        cpu,
        waker: tid(r.a, 0),
        wakee: tid(r.a, bit::SECOND),
        context: WakeContext::from_code((r.a >> bit::CONTEXT) as u8),
        source: r.b as u16,
        // sched_waking comes before the target is chosen.
        target: Cpu::NONE,
        lock,
        chain,
    }
}

fn block_io(r: Record) -> BlockIoEvent {
    BlockIoEvent {
        device: r.b as u32,
        sector: r.a & 0xff_ffff_ffff,
        bytes: (r.b >> bit::BYTES) as u32,
        tid: (r.a >> bit::ISSUER) as u32 & 0x7f_ffff,
        issue: r.a >> bit::ISSUE == 1,
    }
}

/// Whether the word of a futex on which a thread begins to wait may be a mutex's: glibc's is 2 while others wait, and one
/// that inherits priorities, or outlives its owner, holds its owner with a flag. Semaphores, condition variables and joins
/// have other words, and behind them lies no owner.
fn may_be_mutex(operation: u8, word: u32) -> bool {
    const WAITERS: u32 = 1 << 31;
    linux::locks_by_owner(operation) || word == 2 || word & WAITERS != 0
}
