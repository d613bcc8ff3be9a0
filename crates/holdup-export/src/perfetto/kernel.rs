//! Events of the kernel, as ftrace would have them, in bundles of one CPU each.

use std::collections::BTreeMap;

use holdup_trace::tables::{BlockIo, KernelLock, Switch, Wake};
use holdup_trace::{Cpu, LockKind, StringId, SwitchState, Table, ThreadIdx, Trace, WakeContext};

use super::message::Message;
use super::packet::{Writer, untimed};

/// Numbers of events in `FtraceEvent`, after the published schema.
mod number {
    pub const SWITCH: u32 = 4;
    pub const WAKING: u32 = 20;
    pub const IPI_ENTRY: u32 = 21;
    pub const IPI_EXIT: u32 = 22;
    pub const SOFTIRQ_ENTRY: u32 = 24;
    pub const SOFTIRQ_EXIT: u32 = 25;
    pub const IRQ_ENTRY: u32 = 36;
    pub const IRQ_EXIT: u32 = 37;
    pub const BLOCK_ISSUE: u32 = 45;
    pub const BLOCK_COMPLETE: u32 = 125;
    pub const NEW_TASK: u32 = 235;
    pub const RENAME: u32 = 236;
    pub const EXIT: u32 = 238;
    pub const GENERIC: u32 = 327;
    pub const SYS_ENTER: u32 = 329;
    pub const SYS_EXIT: u32 = 330;
    pub const HRTIMER_ENTRY: u32 = 553;
    pub const HRTIMER_EXIT: u32 = 554;
}

/// Bits of `common_flags`.
const HARD: u64 = 0x08;
const SOFT: u64 = 0x10;
/// An ordinary thread's priority: the trace does not hold it.
const PRIORITY: u64 = 120;
const CLONE_THREAD: u64 = 0x10000;
const SECTOR: u32 = 512;

/// Writes events of the kernel.
pub struct Kernel<'a> {
    trace: &'a Trace,
    /// Nanoseconds of the source's clock at the trace's start.
    base: u64,
    bundles: BTreeMap<u16, Message>,
    /// The name that each thread has now.
    names: Vec<StringId>,
    /// Which threads have been named.
    named: Vec<bool>,
    /// Which threads are told to be in a system call.
    calls: Vec<i16>,
}

/// An event's frame: CPU, time, and who ran.
#[derive(Clone, Copy)]
struct At {
    cpu: Cpu,
    time: u64,
    thread: ThreadIdx,
}

impl<'a> Kernel<'a> {
    /// For `trace`, whose times count from `base` on.
    pub fn new(trace: &'a Trace, base: u64) -> crate::Result<Self> {
        let mut names: Vec<StringId> = trace.threads.rows().map(|thread| thread.name).collect();
        let mut known = vec![false; names.len()];
        // The first name that is told of a thread is the one that it had before.
        for row in trace.thread_names.iter() {
            let row = row?;
            if let Some(known) = known.get_mut(row.thread.index()).filter(|known| !**known) {
                *known = true;
                names[row.thread.index()] = row.name;
            }
        }
        let named = vec![false; names.len()];
        let calls = vec![-1; names.len()];
        Ok(Kernel { trace, base, bundles: BTreeMap::new(), names, named, calls })
    }

    /// The time of `t` by the trace's clock.
    pub fn time(&self, t: holdup_trace::Timestamp) -> u64 {
        self.base.saturating_add(t.nanos())
    }

    /// The number of a thread; 0 for the idle task and for nobody.
    pub fn tid(&self, thread: ThreadIdx) -> u32 {
        self.trace.thread(thread).map_or(0, |row| row.tid)
    }

    /// Process and number of a thread.
    pub fn task(&self, thread: ThreadIdx) -> (u32, u32) {
        self.trace.thread(thread).map_or((0, 0), |row| (row.pid, row.tid))
    }

    /// The name that a thread has now.
    pub fn name(&self, thread: ThreadIdx) -> &'a str {
        match thread {
            ThreadIdx::IDLE => "swapper",
            _ => self.names.get(thread.index()).map_or("", |&name| self.trace.text(name)),
        }
    }

    fn event(&mut self, at: At, number: u32, flags: u64, write: impl FnOnce(&mut Message, &Self)) {
        // What happened on no CPU that is known is told with the first one's.
        let cpu = if at.cpu == Cpu::NONE { 0 } else { at.cpu.0 };
        let mut bundle = self.bundles.remove(&cpu).unwrap_or_default();
        bundle.message(2, |event| {
            event.number(1, at.time);
            event.number(2, self.tid(at.thread).into());
            if number == number::WAKING {
                event.number(5, flags);
            }
            event.message(number, |body| write(body, self));
        });
        self.bundles.insert(cpu, bundle);
    }

    /// Events of `cpu` are missing before those that follow; `Cpu::NONE` for all CPUs.
    pub fn lost(&mut self, cpu: Cpu, cpus: u16) {
        let all = if cpu == Cpu::NONE { 0..cpus } else { cpu.0..cpu.0.saturating_add(1) };
        for cpu in all {
            self.bundles.entry(cpu).or_default().number(3, 1);
        }
    }

    /// A thread is made.
    pub fn fork(&mut self, thread: ThreadIdx) {
        let Some(row) = self.trace.thread(thread) else { return };
        let same = self.trace.thread(row.parent).is_some_and(|parent| parent.pid == row.pid);
        let at = At { cpu: Cpu::NONE, time: self.time(row.start), thread: row.parent };
        self.event(at, number::NEW_TASK, 0, |task, kernel| {
            task.number(1, row.tid.into());
            task.text(2, kernel.name(thread));
            task.number(3, if same { CLONE_THREAD } else { 0 });
        });
    }

    /// A thread has a name from now on.
    pub fn rename(&mut self, time: u64, thread: ThreadIdx, name: StringId) {
        let Some(known) = self.named.get_mut(thread.index()) else { return };
        if std::mem::replace(known, true) {
            self.event(At { cpu: Cpu::NONE, time, thread }, number::RENAME, 0, |task, kernel| {
                task.number(1, kernel.tid(thread).into());
                task.text(2, kernel.name(thread));
                task.text(3, kernel.trace.text(name));
            });
        }
        self.names[thread.index()] = name;
    }

    /// A thread ends.
    pub fn exit(&mut self, thread: ThreadIdx) {
        let Some(row) = self.trace.thread(thread) else { return };
        self.event(At { cpu: Cpu::NONE, time: self.time(row.end), thread }, number::EXIT, 0, |task, kernel| {
            task.text(1, kernel.name(thread));
            task.number(2, row.tid.into());
            task.number(3, row.pid.into());
        });
    }

    /// A switch, with the system call in which the thread leaves.
    pub fn switch(&mut self, s: &Switch) {
        let at = At { cpu: s.cpu, time: self.time(s.t), thread: s.prev };
        if s.syscall >= 0 {
            self.event(at, number::SYS_ENTER, 0, |call, _| call.number(1, s.syscall as u64));
        }
        self.event(at, number::SWITCH, 0, |switch, kernel| {
            switch.text(1, kernel.name(s.prev));
            switch.number(2, kernel.tid(s.prev).into());
            switch.number(3, PRIORITY);
            switch.number(4, state(s.state));
            switch.text(5, kernel.name(s.next));
            switch.number(6, kernel.tid(s.next).into());
            switch.number(7, PRIORITY);
        });
        if let Some(call) = self.calls.get_mut(s.prev.index()) {
            *call = s.syscall;
        }
        let call = self.calls.get_mut(s.next.index()).map_or(-1, |call| std::mem::replace(call, -1));
        if call >= 0 {
            self.event(At { thread: s.next, ..at }, number::SYS_EXIT, 0, |exit, _| exit.number(1, call as u64));
        }
    }

    /// A wake-up, inside the handler that it came from.
    pub fn wake(&mut self, w: &Wake) {
        let at = At { cpu: w.cpu, time: self.time(w.t), thread: w.waker };
        let known = w.source != u16::MAX;
        let (flags, handler) = match w.context {
            WakeContext::HardIrq => (HARD, known.then_some((number::IRQ_ENTRY, number::IRQ_EXIT))),
            WakeContext::SoftIrq => (SOFT, known.then_some((number::SOFTIRQ_ENTRY, number::SOFTIRQ_EXIT))),
            WakeContext::Timer => (HARD, Some((number::HRTIMER_ENTRY, number::HRTIMER_EXIT))),
            WakeContext::Ipi => (HARD, Some((number::IPI_ENTRY, number::IPI_EXIT))),
            WakeContext::Task | WakeContext::Unknown => (0, None),
        };
        let source = |body: &mut Message, _: &Self| match w.context {
            WakeContext::HardIrq | WakeContext::SoftIrq => body.number(1, w.source.into()),
            _ => {}
        };
        if let Some((entry, _)) = handler {
            self.event(at, entry, 0, source);
        }
        // Nobody is known to have woken it: not who ran there.
        let waker = if w.context == WakeContext::Unknown { ThreadIdx::IDLE } else { w.waker };
        self.event(At { thread: waker, ..at }, number::WAKING, flags, |waking, kernel| {
            waking.text(1, kernel.name(w.wakee));
            waking.number(2, kernel.tid(w.wakee).into());
            waking.number(3, PRIORITY);
            waking.number(4, 1);
            if w.target != Cpu::NONE {
                waking.number(5, w.target.0.into());
            }
        });
        if let Some((_, exit)) = handler {
            self.event(at, exit, 0, source);
        }
    }

    /// Contention on a kernel lock, which the schema has no event for.
    pub fn lock(&mut self, l: &KernelLock) {
        let Some(lock) = (l.lock.index() < self.trace.locks.len()).then(|| self.trace.locks.row(l.lock.index())) else {
            return;
        };
        let at = At { cpu: l.cpu, time: self.time(l.t), thread: l.thread };
        let flags = match lock.kind {
            LockKind::Spinlock => 1,
            LockKind::Rwsem => 2,
            LockKind::KernelMutex => 32,
            LockKind::Other | LockKind::File | LockKind::Futex | LockKind::Unknown => 0,
        };
        self.event(at, number::GENERIC, 0, |generic, _| {
            generic.text(1, if l.begin { "contention_begin" } else { "contention_end" });
            for (name, value) in [("lock_addr", lock.address), ("flags", flags)] {
                generic.message(2, |field| {
                    field.text(1, name);
                    field.number(5, value);
                });
            }
        });
    }

    /// A request to a disk.
    pub fn block(&mut self, b: &BlockIo) {
        let at = At { cpu: Cpu::NONE, time: self.time(b.t), thread: b.thread };
        self.event(at, if b.issue { number::BLOCK_ISSUE } else { number::BLOCK_COMPLETE }, 0, |request, _| {
            request.number(1, b.device.into());
            request.number(2, b.sector);
            request.number(3, (b.bytes / SECTOR).into());
        });
    }

    /// Writes the bundles so far.
    pub fn flush(&mut self, out: &mut Message) {
        for (cpu, bundle) in std::mem::take(&mut self.bundles) {
            untimed(out, Writer::Ftrace, |packet| {
                packet.message(1, |message| {
                    message.number(1, cpu.into());
                    message.append(&bundle);
                });
            });
        }
    }
}

/// Bits of `prev_state`, of kernels since 4.14.
fn state(state: SwitchState) -> u64 {
    match state {
        SwitchState::Runnable => 0,
        SwitchState::Sleeping => 0x01,
        SwitchState::Uninterruptible => 0x02,
        SwitchState::Stopped => 0x04,
        SwitchState::Dead => 0x10,
        SwitchState::Idle => 0x80,
        SwitchState::Unknown => 0x400,
    }
}
