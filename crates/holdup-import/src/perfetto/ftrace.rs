//! A bundle of ftrace: the events of one CPU, plain or compact.

use holdup_trace::{BlockIoEvent, ChainId, ForkEvent, SwitchState};
use rustc_hash::FxHashMap;

use super::calls::Calls;
use super::compact::{Row, Rows};
use super::names::Counts;
use super::processes::Processes;
use super::wire::{Fields, Value, field};
use crate::linux::Instant;
use crate::linux::irq::{Interrupt, UNKNOWN_SOURCE};
use crate::linux::kernel::{Kernel, Switch, Wake, WakeKind};
use crate::linux::state::StateBits;

/// Numbers of events in `FtraceEvent`, after which the published schema names them.
pub mod number {
    pub const SWITCH: u32 = 4;
    pub const WAKEUP: u32 = 17;
    pub const WAKING: u32 = 20;
    pub const IPI_ENTRY: u32 = 21;
    pub const IPI_EXIT: u32 = 22;
    pub const SOFTIRQ_ENTRY: u32 = 24;
    pub const SOFTIRQ_EXIT: u32 = 25;
    pub const IRQ_ENTRY: u32 = 36;
    pub const IRQ_EXIT: u32 = 37;
    pub const BLOCK_ISSUE: u32 = 45;
    pub const WAKEUP_NEW: u32 = 114;
    pub const BLOCK_COMPLETE: u32 = 125;
    pub const NEW_TASK: u32 = 235;
    pub const RENAME: u32 = 236;
    pub const EXEC: u32 = 237;
    pub const EXIT: u32 = 238;
    pub const FORK: u32 = 239;
    pub const GENERIC: u32 = 327;
    pub const SYS_ENTER: u32 = 329;
    pub const SYS_EXIT: u32 = 330;
    pub const HRTIMER_ENTRY: u32 = 553;
    pub const HRTIMER_EXIT: u32 = 554;
    pub const TIMER_ENTRY: u32 = 557;
    pub const TIMER_EXIT: u32 = 558;
}

/// What is known while bundles are read.
#[derive(Debug, Default)]
pub struct Ftrace {
    /// How many of each event.
    pub counts: Counts,
    /// Events that have no name in the schema, by the kernel's.
    pub generic: std::collections::BTreeMap<String, u64>,
    /// Events that are cut, or of an instant that cannot be.
    pub damaged: u64,
    /// System calls.
    pub calls: Calls,
    /// The bits of states.
    pub states: Option<StateBits>,
    /// Who runs on each CPU, by compact switches.
    pub running: Running,
    /// The time of the last event of each CPU.
    last: FxHashMap<u32, u64>,
    /// Marks of lost events.
    pub marks: u64,
}

/// Who runs on each CPU, with its name, filled up with zeros.
type Running = FxHashMap<u32, (u32, [u8; 16])>;

/// An event's frame.
#[derive(Debug, Clone, Copy)]
struct Head {
    at: Instant,
    tid: u32,
    flags: Option<u8>,
}

impl Ftrace {
    /// Takes a bundle.
    pub fn bundle(&mut self, message: &[u8], kernel: &mut Kernel, processes: &Processes) {
        let (mut cpu, mut lost, mut clock, mut own, mut boot) = (0, false, 0, 0_u64, 0_u64);
        for (number, value) in Fields::new(message) {
            match (number, value) {
                (1, value) => cpu = value.low(),
                (3, value) => lost = value.number() != 0,
                (5, value) => clock = value.low(),
                (6, value) => own = value.number(),
                (7, value) => boot = value.number(),
                _ => {}
            }
        }
        // Another clock than the trace's was read together with it.
        let shift = if clock == 0 { 0 } else { boot.wrapping_sub(own) };
        let since = self.last.get(&cpu).copied();
        if lost {
            self.running.remove(&cpu);
        }
        let mut first = None;
        for (number, value) in Fields::new(message) {
            let time = match (number, value) {
                (2, Value::Bytes(event)) => self.event(event, cpu, shift, kernel, processes),
                (4, Value::Bytes(events)) => self.compact(Rows::new(events, shift), cpu, kernel),
                _ => continue,
            };
            first = first.or(time);
            if let Some(time) = time {
                let last = self.last.entry(cpu).or_default();
                *last = time.max(*last);
            }
        }
        if let Some(first) = first.filter(|_| lost) {
            self.marks += 1;
            let span = first.saturating_sub(since.or(kernel.sink.start()).unwrap_or(first));
            kernel.lost(Instant { time: first, cpu }, span, 1, "events that ftrace overwrote (at least)");
        }
    }

    /// Takes an event, and says when it was.
    #[inline]
    fn event(&mut self, message: &[u8], cpu: u32, shift: u64, kernel: &mut Kernel, known: &Processes) -> Option<u64> {
        let mut head = Head { at: Instant { time: 0, cpu }, tid: 0, flags: None };
        let mut body = None;
        let mut fields = Fields::new(message);
        for (number, value) in &mut fields {
            match (number, value) {
                (1, Value::Number(time)) => head.at.time = time.wrapping_add(shift),
                (2, value) => head.tid = value.low(),
                (5, value) => head.flags = Some(value.number() as u8),
                (_, Value::Bytes(bytes)) => body = Some((number, bytes)),
                _ => {}
            }
        }
        if let Some((number, body)) = body {
            self.counts.add(number, 1);
            if number == number::GENERIC {
                self.generic(head, body, kernel);
            } else if kernel.is_plausible(head.at) && fields.rest().is_empty() {
                self.dispatch(number, head, body, kernel, known);
                return Some(head.at.time);
            }
        }
        if !kernel.is_plausible(head.at) || !fields.rest().is_empty() {
            self.damaged += 1;
            return None;
        }
        Some(head.at.time)
    }

    #[inline]
    fn dispatch(&mut self, number: u32, head: Head, body: &[u8], kernel: &mut Kernel, known: &Processes) {
        use number::*;
        let (cpu, time) = (head.at.cpu, head.at.time);
        let low = |n| field(body, n).map_or(0, Value::low);
        let source = |n| u16::try_from(low(n)).unwrap_or(UNKNOWN_SOURCE);
        match number {
            SWITCH => self.switch(head.at, body, kernel),
            WAKING => wake(WakeKind::Waking, head, body, kernel),
            WAKEUP => wake(WakeKind::Woken, head, body, kernel),
            WAKEUP_NEW => wake(WakeKind::New, head, body, kernel),
            IRQ_ENTRY => kernel.interrupt_begin(cpu, Interrupt::Hard, source(1)),
            IRQ_EXIT => kernel.interrupt_end(cpu, Interrupt::Hard),
            SOFTIRQ_ENTRY => kernel.interrupt_begin(cpu, Interrupt::Soft, source(1)),
            SOFTIRQ_EXIT => kernel.interrupt_end(cpu, Interrupt::Soft),
            IPI_ENTRY => kernel.interrupt_begin(cpu, Interrupt::Ipi, UNKNOWN_SOURCE),
            IPI_EXIT => kernel.interrupt_end(cpu, Interrupt::Ipi),
            HRTIMER_ENTRY | TIMER_ENTRY => kernel.interrupt_begin(cpu, Interrupt::Timer, UNKNOWN_SOURCE),
            HRTIMER_EXIT | TIMER_EXIT => kernel.interrupt_end(cpu, Interrupt::Timer),
            SYS_ENTER => self.calls.seen(time, head.tid, Some(field(body, 1).map_or(u64::MAX, Value::number))),
            SYS_EXIT => self.calls.seen(time, head.tid, None),
            EXEC => kernel.exec(time, if low(2) == 0 { head.tid } else { low(2) }),
            EXIT => kernel.exit(time, if low(2) == 0 { head.tid } else { low(2) }),
            NEW_TASK | FORK => self.fork(number, head, body, kernel, known),
            RENAME => {
                let name = field(body, 3).map_or(&[][..], Value::bytes);
                let pid = known.of(low(1)).unwrap_or(low(1));
                kernel.named(time, pid, low(1), name);
            }
            BLOCK_ISSUE | BLOCK_COMPLETE => {
                let issue = number == BLOCK_ISSUE;
                let tid = if issue { head.tid } else { 0 };
                let sector = field(body, 2).map_or(0, |v| v.number());
                let bytes = low(3).saturating_mul(SECTOR);
                kernel.block(time, BlockIoEvent { device: low(1), sector, bytes, tid, issue });
            }
            _ => {}
        }
    }

    #[inline]
    fn switch(&mut self, at: Instant, body: &[u8], kernel: &mut Kernel) {
        let (mut prev, mut next, mut bits) = (0, 0, 0);
        let (mut prev_name, mut next_name) = (&[][..], &[][..]);
        for (number, value) in Fields::new(body) {
            match number {
                1 => prev_name = value.bytes(),
                2 => prev = value.low(),
                4 => bits = value.number(),
                5 => next_name = value.bytes(),
                6 => next = value.low(),
                _ => {}
            }
        }
        let state = self.state(prev, bits);
        kernel.switch(at, &Switch { prev, prev_name, pid: None, state, next, next_name, chain: ChainId::NONE });
    }

    /// The state in which `prev` leaves; the idle task can always run.
    #[inline]
    pub fn state(&mut self, prev: u32, bits: u64) -> SwitchState {
        let states = self.states.get_or_insert_with(StateBits::current);
        if prev == 0 { SwitchState::Runnable } else { states.state(bits) }
    }

    /// Takes compact events, and says when the first was.
    fn compact(&mut self, rows: Rows, cpu: u32, kernel: &mut Kernel) -> Option<u64> {
        let mut first = None;
        for row in rows {
            let (Row::Switch { time, .. } | Row::Waking { time, .. }) = row;
            let at = Instant { time, cpu };
            self.counts.add(if matches!(row, Row::Switch { .. }) { number::SWITCH } else { number::WAKING }, 1);
            if !kernel.is_plausible(at) {
                self.damaged += 1;
                continue;
            }
            first = first.or(Some(time));
            let chain = ChainId::NONE;
            match row {
                Row::Switch { state, next, name, .. } => {
                    let mut named = (next, [0; 16]);
                    named.1.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
                    // Of a CPU's first switch it is not known who left.
                    let Some((prev, prev_name)) = self.running.insert(cpu, named) else { continue };
                    let (state, prev_name) = (self.state(prev, state), &prev_name[..]);
                    kernel.switch(at, &Switch { prev, prev_name, pid: None, state, next, next_name: name, chain });
                }
                Row::Waking { wakee, name, target, flags, .. } => {
                    // Before the CPU's first switch it is not known who wakes; of the idle task nobody believes it.
                    let waker = self.running.get(&cpu).map_or(0, |&(tid, _)| tid);
                    let kind = WakeKind::Waking;
                    kernel.wake(at, &Wake { kind, waker, wakee, wakee_name: name, target, flags, chain });
                }
            }
        }
        first
    }

    fn fork(&mut self, number: u32, head: Head, body: &[u8], kernel: &mut Kernel, known: &Processes) {
        const CLONE_THREAD: u64 = 0x10000;
        let low = |n| field(body, n).map_or(0, Value::low);
        let (parent, tid, name, thread) = match number {
            number::NEW_TASK => (head.tid, low(1), 2, field(body, 3).is_some_and(|f| f.number() & CLONE_THREAD != 0)),
            // The same thread was told of by task_newtask, which knows more.
            _ if self.counts.of(number::NEW_TASK) > 0 => return,
            _ => (low(2), low(4), 3, false),
        };
        let parent_pid = known.of(parent).unwrap_or(parent);
        let pid = if thread { parent_pid } else { known.of(tid).unwrap_or(tid) };
        let name = field(body, name).map_or(&[][..], Value::bytes);
        kernel.fork(head.at.time, ForkEvent { parent_pid, parent, pid, tid });
        if !name.is_empty() {
            kernel.named(head.at.time, pid, tid, name);
        }
    }

    /// An event that the schema has no message for: its own name, and fields with names.
    fn generic(&mut self, head: Head, body: &[u8], kernel: &mut Kernel) {
        let name = field(body, 1).map_or(&[][..], Value::bytes);
        let named = |wanted: &[u8]| {
            let fields = Fields::new(body).filter(|&(n, _)| n == 2).map(|(_, value)| value.bytes());
            let mut found = fields.filter(|f| field(f, 1).is_some_and(|name| name.bytes() == wanted));
            let found = found.next()?;
            field(found, 5).or_else(|| field(found, 4)).map(|value| value.number())
        };
        let begin = name == b"contention_begin";
        if (begin || name == b"contention_end")
            && kernel.is_plausible(head.at)
            && let Some(address) = named(b"lock_addr")
        {
            kernel.contention(head.at, head.tid, (address, named(b"flags")), begin);
        }
        match self.generic.get_mut(&*String::from_utf8_lossy(name)) {
            Some(count) => *count += 1,
            None => drop(self.generic.insert(crate::bytes::text(name), 1)),
        }
    }
}

/// Bytes of a sector, whatever the device.
const SECTOR: u32 = 512;

#[inline]
fn wake(kind: WakeKind, head: Head, body: &[u8], kernel: &mut Kernel) {
    let (mut wakee, mut wakee_name, mut target, mut success) = (0, &[][..], u32::MAX, None);
    for (number, value) in Fields::new(body) {
        match number {
            1 => wakee_name = value.bytes(),
            2 => wakee = value.low(),
            4 => success = Some(value.number()),
            5 => target = value.low(),
            _ => {}
        }
    }
    if success != Some(0) {
        let (waker, flags) = (head.tid, head.flags);
        kernel.wake(head.at, &Wake { kind, waker, wakee, wakee_name, target, flags, chain: ChainId::NONE });
    }
}
