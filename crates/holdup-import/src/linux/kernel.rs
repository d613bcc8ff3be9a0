//! What is known while a trace of Linux is read, and the events that follow from what its records say.

use holdup_trace::{
    BlockIoEvent, ChainId, ExecEvent, ExitEvent, ForkEvent, FutexEvent, LockId, NameEvent, SwitchEvent, SwitchState,
    TraceBuilder, WakeContext, WakeEvent,
};
use rustc_hash::FxHashMap;

use super::Instant;
use super::cpus::{MAX_CPUS, cpu};
use super::irq::{Contexts, Interrupt, UNKNOWN_SOURCE};
use super::sink::Sink;
use super::syscalls::{Call, Calls};
use super::threads::Threads;

/// A thread leaves a CPU to another.
#[derive(Debug, Clone, Copy)]
pub struct Switch<'a> {
    /// The tid that leaves.
    pub prev: u32,
    /// Its name, up to the first NUL.
    pub prev_name: &'a [u8],
    /// Its process, where the source says it here.
    pub pid: Option<u32>,
    /// In which state it leaves.
    pub state: SwitchState,
    /// The tid that comes.
    pub next: u32,
    /// Its name, up to the first NUL.
    pub next_name: &'a [u8],
    /// Where `prev` leaves.
    pub chain: ChainId,
}

/// Which of the scheduler's events tells of a wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeKind {
    /// `sched_waking`: in the context of who wakes.
    Waking,
    /// `sched_wakeup`: the thread is in a queue. Tells nothing new where `sched_waking` is in the trace, too.
    Woken,
    /// `sched_wakeup_new`: a thread that was just made.
    New,
}

/// A thread becomes runnable.
#[derive(Debug, Clone, Copy)]
pub struct Wake<'a> {
    /// By which event that is told.
    pub kind: WakeKind,
    /// The tid that ran where the event was written.
    pub waker: u32,
    /// The tid that becomes runnable.
    pub wakee: u32,
    /// Its name, up to the first NUL.
    pub wakee_name: &'a [u8],
    /// The CPU that is to run it.
    pub target: u32,
    /// The tracepoint's `common_flags`, which say whether an interrupt was handled; without them the handlers' own events tell.
    pub flags: Option<u8>,
    /// Where the waker was.
    pub chain: ChainId,
}

/// What is known while records are read.
pub struct Kernel<'b> {
    /// Where events go.
    pub sink: Sink<'b>,
    /// Which threads are known.
    pub threads: Threads,
    /// Which handlers run.
    pub contexts: Contexts,
    /// Which system calls run.
    pub calls: Calls,
    /// The address and the lock that each thread contends for.
    pub contended: FxHashMap<u32, (u64, LockId)>,
    /// Who runs on each CPU, by its last switch.
    running: Vec<Option<u32>>,
    has_waking: bool,
}

impl<'b> Kernel<'b> {
    /// Nothing is known yet; events go to `builder`.
    pub fn new(builder: &'b mut TraceBuilder) -> Self {
        Kernel {
            sink: Sink::new(builder),
            threads: Threads::new(),
            contexts: Contexts::default(),
            calls: Calls::default(),
            contended: FxHashMap::default(),
            running: Vec::new(),
            has_waking: false,
        }
    }

    /// Whether something can have happened at `at`: a CPU that no machine has, or a time far from all others, is damage.
    #[inline]
    pub fn is_plausible(&self, at: Instant) -> bool {
        self.sink.is_plausible(at.time) && at.cpu < MAX_CPUS.into()
    }

    /// A switch.
    #[inline]
    pub fn switch(&mut self, at: Instant, s: &Switch) {
        match s.pid {
            Some(pid) => self.threads.seen_current(at.time, (pid, s.prev), s.prev_name, &mut self.sink),
            None => self.threads.seen_name(at.time, s.prev, s.prev_name, &mut self.sink),
        }
        self.threads.seen_name(at.time, s.next, s.next_name, &mut self.sink);
        self.runs(at.cpu, s.next);
        let call = self.calls.blocked_in(s.prev, s.state);
        let lock = self.waits_for(at.time, s.prev, call);
        let event = SwitchEvent {
            cpu: cpu(at.cpu),
            prev: s.prev,
            next: s.next,
            state: s.state,
            io_wait: false,
            syscall: call.number,
            lock,
            chain: s.chain,
        };
        self.sink.timed(at.time, event);
    }

    /// The futex that `tid` begins to wait for in `call`.
    fn waits_for(&mut self, time: u64, tid: u32, call: Call) -> LockId {
        let Some((futex, pid)) = call.futex else { return LockId::NONE };
        let Some(operation) = futex.waits() else { return LockId::NONE };
        let lock = self.sink.builder.lock(futex.key(pid));
        self.sink.timed(time, FutexEvent { tid, lock, owner: 0, operation, timed: false });
        lock
    }

    /// A wake-up.
    #[inline]
    pub fn wake(&mut self, at: Instant, w: &Wake) {
        self.has_waking |= w.kind == WakeKind::Waking;
        if w.kind == WakeKind::Woken && self.has_waking {
            return;
        }
        let (context, source) = match self.contexts.of(at.cpu, w.flags) {
            // The idle task wakes nobody: somebody did so from afar.
            (WakeContext::Task, _) if w.waker == 0 => (WakeContext::Unknown, UNKNOWN_SOURCE),
            known => known,
        };
        self.threads.seen_name(at.time, w.wakee, w.wakee_name, &mut self.sink);
        let event = WakeEvent {
            cpu: cpu(at.cpu),
            waker: w.waker,
            wakee: w.wakee,
            context,
            source,
            target: cpu(w.target),
            lock: LockId::NONE,
            chain: w.chain,
        };
        self.sink.timed(at.time, event);
    }

    /// Who runs on `cpu`, by its last switch; `None` before the first.
    pub fn running(&self, cpu: u32) -> Option<u32> {
        self.running.get(cpu as usize).copied().flatten()
    }

    #[inline]
    fn runs(&mut self, cpu: u32, tid: u32) {
        let at = cpu as usize;
        if at >= self.running.len() && at < usize::from(MAX_CPUS) {
            self.running.resize(at + 1, None);
        }
        if let Some(running) = self.running.get_mut(at) {
            *running = Some(tid);
        }
    }

    /// `tid` enters a system call, or leaves the one that it is in.
    pub fn system_call(&mut self, time: u64, tid: u32, call: Option<Call>) {
        self.calls.with_exits |= call.is_none();
        self.calls.seen(time, tid, call.unwrap_or(Call::NONE));
    }

    /// A handler begins on `cpu`. `source` is the interrupt's number or the softirq's vector.
    pub fn interrupt_begin(&mut self, cpu: u32, what: Interrupt, source: u16) {
        self.contexts.begin(cpu, what, source);
    }

    /// It ends.
    pub fn interrupt_end(&mut self, cpu: u32, what: Interrupt) {
        self.contexts.end(cpu, what);
    }

    /// A thread is made.
    pub fn fork(&mut self, time: u64, event: ForkEvent) {
        self.threads.knows(event.tid);
        self.sink.maybe_timed(time, event);
    }

    /// A process starts another program.
    pub fn exec(&mut self, time: u64, pid: u32) {
        self.sink.maybe_timed(time, ExecEvent { pid });
    }

    /// A thread ends.
    pub fn exit(&mut self, time: u64, tid: u32) {
        if tid != 0 {
            self.sink.maybe_timed(time, ExitEvent { tid });
        }
    }

    /// A thread has a name and belongs to a process, from `time` on, or since ever where that is 0.
    pub fn named(&mut self, time: u64, pid: u32, tid: u32, name: &[u8]) {
        if tid == 0 {
            return;
        }
        self.threads.knows(tid);
        let name = self.sink.builder.string(&crate::bytes::text(name));
        self.sink.maybe_timed(time, NameEvent { pid, tid, name });
    }

    /// A request to a disk is issued or done.
    pub fn block(&mut self, time: u64, event: BlockIoEvent) {
        self.sink.timed(time, event);
    }

    /// `count` records of `cpu` (`u32::MAX`: of any) were lost in the `span` nanoseconds before `at`.
    pub fn lost(&mut self, at: Instant, span: u64, count: u64, what: &str) {
        self.sink.lost(at.time, cpu(at.cpu), span, count, what);
    }

    /// The name of a thread, where nothing better told it.
    pub fn seen(&mut self, time: u64, tid: u32, name: &[u8]) {
        self.threads.seen_name(time, tid, name, &mut self.sink);
    }

    /// Completes the trace's events.
    pub fn finish(&mut self) {
        self.sink.release();
    }
}
