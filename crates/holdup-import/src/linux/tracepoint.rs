//! Tracepoints in the kernel's own layout, as perf and trace-cmd store them: what each is used for, and how it is decoded.

use holdup_trace::{ChainId, SwitchState, TraceBuilder};

use super::Instant;
use super::fields::{BlockFields, CallFields, LockFields, SwitchFields, WakeFields};
use super::format::{Field, Format};
use super::irq::{Interrupt, UNKNOWN_SOURCE};
use super::kernel::{Kernel, Switch, Wake, WakeKind};

/// What a tracepoint is used for.
#[derive(Debug, Clone)]
pub enum Tracepoint {
    /// `sched_switch`.
    Switch(SwitchFields),
    /// `sched_waking` and its relatives.
    Wake(WakeKind, WakeFields),
    /// `sched_process_exec`.
    Exec,
    /// A system call begins.
    SysEnter(CallFields),
    /// A system call ends.
    SysExit,
    /// `contention_begin` (true) or `contention_end`.
    Lock(LockFields, bool),
    /// `block_rq_issue` (true) or `block_rq_complete`.
    Block(BlockFields, bool),
    /// An interrupt handler, softirq or timer begins; the field holds its number.
    InterruptBegin(Interrupt, Option<Field>),
    /// It ends.
    InterruptEnd(Interrupt),
}

/// Who ran where a tracepoint was hit.
#[derive(Debug, Clone, Copy)]
pub struct Current {
    /// The process; `u32::MAX` if it is not known.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// At what kind of event a call chain was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A thread leaves its CPU.
    Switch,
    /// A thread wakes another.
    Wake,
    /// A thread runs. If there is no chain, the instruction stands for it.
    Sample,
}

impl Tracepoint {
    /// What the tracepoint of this format is used for; `None` if it is only counted.
    pub fn of(format: &Format) -> Option<Self> {
        let begins = |what, number: &str| Tracepoint::InterruptBegin(what, format.field(number));
        match (format.system.as_str(), format.name.as_str()) {
            ("sched", "sched_switch") => SwitchFields::of(format).map(Tracepoint::Switch),
            ("sched", "sched_waking") => WakeFields::of(format).map(|f| Tracepoint::Wake(WakeKind::Waking, f)),
            ("sched", "sched_wakeup") => WakeFields::of(format).map(|f| Tracepoint::Wake(WakeKind::Woken, f)),
            ("sched", "sched_wakeup_new") => WakeFields::of(format).map(|f| Tracepoint::Wake(WakeKind::New, f)),
            ("sched", "sched_process_exec") => Some(Tracepoint::Exec),
            ("raw_syscalls", "sys_enter") => CallFields::of(format).map(Tracepoint::SysEnter),
            ("syscalls", name) if name.starts_with("sys_enter_") => CallFields::of(format).map(Tracepoint::SysEnter),
            ("raw_syscalls", "sys_exit") => Some(Tracepoint::SysExit),
            ("syscalls", name) if name.starts_with("sys_exit_") => Some(Tracepoint::SysExit),
            ("lock", "contention_begin") => LockFields::of(format).map(|f| Tracepoint::Lock(f, true)),
            ("lock", "contention_end") => LockFields::of(format).map(|f| Tracepoint::Lock(f, false)),
            ("block", "block_rq_issue") => BlockFields::of(format).map(|f| Tracepoint::Block(f, true)),
            ("block", "block_rq_complete") => BlockFields::of(format).map(|f| Tracepoint::Block(f, false)),
            ("irq", "irq_handler_entry") => Some(begins(Interrupt::Hard, "irq")),
            ("irq", "irq_handler_exit") => Some(Tracepoint::InterruptEnd(Interrupt::Hard)),
            ("irq", "softirq_entry") => Some(begins(Interrupt::Soft, "vec")),
            ("irq", "softirq_exit") => Some(Tracepoint::InterruptEnd(Interrupt::Soft)),
            ("timer", "hrtimer_expire_entry" | "timer_expire_entry") => Some(begins(Interrupt::Timer, "")),
            ("timer", "hrtimer_expire_exit" | "timer_expire_exit") => Some(Tracepoint::InterruptEnd(Interrupt::Timer)),
            ("irq_vectors", "reschedule_entry" | "call_function_entry" | "call_function_single_entry") => {
                Some(begins(Interrupt::Ipi, "vector"))
            }
            ("irq_vectors", "reschedule_exit" | "call_function_exit" | "call_function_single_exit") => {
                Some(Tracepoint::InterruptEnd(Interrupt::Ipi))
            }
            _ => None,
        }
    }

    /// Whether it is `sched_switch`.
    pub fn is_switch(&self) -> bool {
        matches!(self, Tracepoint::Switch(_))
    }

    /// Whether it tells of wake-ups.
    pub fn is_wake(&self) -> bool {
        matches!(self, Tracepoint::Wake(..))
    }
}

impl Kernel<'_> {
    /// A tracepoint was hit: `raw` are its bytes, `chain` gives the call chain that was taken there. `None` if it is damaged.
    #[inline]
    pub fn tracepoint(
        &mut self,
        point: &Tracepoint,
        (at, current): (Instant, Current),
        raw: &[u8],
        chain: impl FnOnce(At, &mut TraceBuilder) -> ChainId,
    ) -> Option<()> {
        match point {
            Tracepoint::Switch(fields) => self.raw_switch(fields, (at, current), raw, chain),
            Tracepoint::Wake(kind, fields) => self.raw_wake((*kind, fields), at, raw, chain),
            other => self.rarer(other, (at, current), raw),
        }
    }

    #[inline]
    fn raw_switch(
        &mut self,
        f: &SwitchFields,
        (at, current): (Instant, Current),
        raw: &[u8],
        chain: impl FnOnce(At, &mut TraceBuilder) -> ChainId,
    ) -> Option<()> {
        if !f.is_complete(raw) {
            return None;
        }
        let (prev, next) = (f.prev.low(raw), f.next.low(raw));
        let state = if prev == 0 { SwitchState::Runnable } else { f.states.state(f.prev_state.value(raw)) };
        // The idle task always leaves from the same place.
        let chain = if prev == 0 { ChainId::NONE } else { chain(At::Switch, self.sink.builder) };
        let pid = (current.pid != u32::MAX).then_some(current.pid);
        let (prev_name, next_name) = (f.prev_comm.all(raw), f.next_comm.all(raw));
        self.switch(at, &Switch { prev, prev_name, pid, state, next, next_name, chain });
        Some(())
    }

    #[inline]
    fn raw_wake(
        &mut self,
        (kind, f): (WakeKind, &WakeFields),
        at: Instant,
        raw: &[u8],
        chain: impl FnOnce(At, &mut TraceBuilder) -> ChainId,
    ) -> Option<()> {
        if !f.wakee.is_within(raw) || !f.target.is_within(raw) {
            return None;
        }
        if f.success.is_some_and(|success| success.value(raw) == 0) {
            return Some(());
        }
        let (waker, wakee, target) = (f.waker.low(raw), f.wakee.low(raw), f.target.low(raw));
        let chain = chain(At::Wake, self.sink.builder);
        let flags = Some(f.flags.value(raw) as u8);
        self.wake(at, &Wake { kind, waker, wakee, wakee_name: f.comm.all(raw), target, flags, chain });
        Some(())
    }

    fn rarer(&mut self, point: &Tracepoint, (at, current): (Instant, Current), raw: &[u8]) -> Option<()> {
        match point {
            Tracepoint::SysEnter(fields) => {
                let pid = if current.pid == u32::MAX { 0 } else { current.pid };
                self.system_call(at.time, current.tid, Some(fields.call(raw, pid)));
            }
            Tracepoint::SysExit => self.system_call(at.time, current.tid, None),
            Tracepoint::Lock(fields, begin) => return self.lock(fields, *begin, at, raw),
            Tracepoint::Block(fields, issue) => return self.raw_block(fields, *issue, at, raw),
            Tracepoint::InterruptBegin(what, number) => {
                let source = number.and_then(|n| u16::try_from(n.low(raw)).ok()).unwrap_or(UNKNOWN_SOURCE);
                self.interrupt_begin(at.cpu, *what, source);
            }
            Tracepoint::InterruptEnd(what) => self.interrupt_end(at.cpu, *what),
            Tracepoint::Exec if current.pid != u32::MAX => self.exec(at.time, current.pid),
            _ => {}
        }
        Some(())
    }
}
