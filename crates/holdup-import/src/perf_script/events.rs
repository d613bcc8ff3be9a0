//! What becomes of an event, by its name and its text.

use holdup_trace::{BlockIoEvent, ChainId, ForkEvent, SampleEvent, SwitchState};

use super::Script;
use super::line::Head;
use crate::linux::Instant;
use crate::linux::block::SECTOR;
use crate::linux::cpus::cpu;
use crate::linux::irq::{Interrupt, UNKNOWN_SOURCE};
use crate::linux::kernel::{Switch, Wake, WakeKind};
use crate::linux::syscalls::{Call, Futex};
use crate::linux::x86_64;

/// Events whose samples are CPU time.
const CPU_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles"];

/// What stands behind `key`, up to `until` or the end.
fn between<'a>(text: &'a str, key: &str, until: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    if until.is_empty() { Some(rest) } else { rest.split_once(until).map(|(value, _)| value) }
}

/// The number behind `key`.
fn number<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let value = between(text, key, "")?;
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    value.get(..end)?.parse().ok()
}

/// `comm:12 [120]` of perf's plugins, and what follows it.
fn short_thread(text: &str) -> Option<(&str, u32, &str)> {
    let (thread, rest) = text.split_once(" [")?;
    let (comm, tid) = thread.rsplit_once(':')?;
    Some((comm, tid.parse().ok()?, rest.split_once(']')?.1))
}

fn state(text: &str) -> SwitchState {
    match (text.ends_with('+'), text.bytes().next()) {
        (true, _) | (_, Some(b'R')) => SwitchState::Runnable,
        (_, Some(b'S')) => SwitchState::Sleeping,
        (_, Some(b'D')) => SwitchState::Uninterruptible,
        (_, Some(b'I' | b'P')) => SwitchState::Idle,
        (_, Some(b'T' | b't')) => SwitchState::Stopped,
        (_, Some(b'X' | b'x' | b'Z')) => SwitchState::Dead,
        _ => SwitchState::Unknown,
    }
}

/// A thread's name and its tid.
type Named<'a> = (&'a str, u32);

/// Who leaves and who comes: names, tids, and the state.
fn switched(text: &str) -> Option<(Named<'_>, SwitchState, Named<'_>)> {
    let (prev, next) = text.split_once(" ==> ")?;
    if let Some(comm) = between(prev, "prev_comm=", " prev_pid=") {
        let left = state(between(prev, "prev_state=", "")?.trim());
        let next_comm = between(next, "next_comm=", " next_pid=")?;
        return Some(((comm, number(prev, "prev_pid=")?), left, (next_comm, number(next, "next_pid=")?)));
    }
    let (prev, tid, left) = short_thread(prev)?;
    let (next, next_tid, _) = short_thread(next)?;
    Some(((prev, tid), state(left.trim()), (next, next_tid)))
}

/// Who becomes runnable, and on which CPU.
fn woken(text: &str) -> Option<(&str, u32, u32)> {
    if let Some(comm) = between(text, "comm=", " pid=") {
        return Some((comm, number(text, " pid=")?, number(text, "cpu=")?));
    }
    let (comm, tid, rest) = short_thread(text)?;
    Some((comm, tid, number(rest, "CPU:")?))
}

/// `uaddr: 0x7f11c8000b60, op: 0x00000080, …`
fn futex(text: &str) -> Option<Futex> {
    let hexadecimal = |name: &str| {
        let (_, rest) = text.split_once(name)?;
        let digits = rest.trim_start().trim_start_matches("0x");
        u64::from_str_radix(digits.split(|c: char| !c.is_ascii_hexdigit()).next()?, 16).ok()
    };
    Some(Futex { address: hexadecimal("uaddr:")?, operation: hexadecimal(" op:")? as u32 })
}

impl Script<'_> {
    /// Takes an event with its call chain. `None` if its text is not what it should be.
    pub fn event(&mut self, h: &Head, pid: u32) -> Option<()> {
        let at = Instant { time: h.time, cpu: h.cpu.unwrap_or(u32::MAX) };
        if let Some(record) = h.event.strip_prefix("PERF_RECORD_") {
            return self.record(at, record);
        }
        if !self.kernel.sink.is_plausible(at.time) {
            return None;
        }
        let (system, name) = h.event.split_once(':').unwrap_or(("", h.event));
        match (system, name) {
            ("sched", "sched_switch") => return self.switch(at, h, pid),
            ("sched", "sched_waking") => return self.wake(at, WakeKind::Waking, h, pid),
            ("sched", "sched_wakeup") => return self.wake(at, WakeKind::Woken, h, pid),
            ("sched", "sched_wakeup_new") => return self.wake(at, WakeKind::New, h, pid),
            ("block", "block_rq_issue") => return self.block(at, true, h),
            ("block", "block_rq_complete") => return self.block(at, false, h),
            ("sched", "sched_process_exit") => self.kernel.exit(at.time, number(h.text, " pid=")?),
            ("sched", "sched_process_exec") => self.kernel.exec(at.time, number(h.text, " pid=")?),
            ("irq" | "timer" | "irq_vectors", _) => self.interrupt(at, name, h.text),
            ("raw_syscalls" | "syscalls", _) => self.call(at, name, h, pid),
            _ => self.sample(at, h, pid),
        }
        Some(())
    }

    fn chain(&mut self, pid: u32) -> ChainId {
        self.chain.take(pid, self.kernel.sink.builder)
    }

    fn switch(&mut self, at: Instant, h: &Head, pid: u32) -> Option<()> {
        let ((prev_name, prev), state, (next_name, next)) = switched(h.text)?;
        let chain = if prev == 0 { ChainId::NONE } else { self.chain(pid) };
        let state = if prev == 0 { SwitchState::Runnable } else { state };
        self.kernel.contexts.leave(at.cpu);
        let (prev_name, next_name) = (prev_name.as_bytes(), next_name.as_bytes());
        let pid = (h.pid.is_some() && pid != u32::MAX).then_some(pid);
        self.kernel.switch(at, &Switch { prev, prev_name, pid, state, next, next_name, chain });
        Some(())
    }

    fn wake(&mut self, at: Instant, kind: WakeKind, h: &Head, pid: u32) -> Option<()> {
        let (name, wakee, target) = woken(h.text)?;
        let chain = self.chain(pid);
        let wake = Wake { kind, waker: h.tid, wakee, wakee_name: name.as_bytes(), target, flags: None, chain };
        self.kernel.wake(at, &wake);
        Some(())
    }

    fn interrupt(&mut self, at: Instant, name: &str, text: &str) {
        let (what, number) = match name {
            "irq_handler_entry" | "irq_handler_exit" => (Interrupt::Hard, number(text, "irq=")),
            "softirq_entry" | "softirq_exit" => (Interrupt::Soft, number(text, "vec=")),
            "hrtimer_expire_entry" | "hrtimer_expire_exit" | "timer_expire_entry" | "timer_expire_exit" => {
                (Interrupt::Timer, Some(0))
            }
            name if name.starts_with("reschedule_") || name.starts_with("call_function_") => {
                (Interrupt::Ipi, number(text, "vector="))
            }
            _ => return,
        };
        if name.ends_with("_entry") {
            self.kernel.interrupt_begin(at.cpu, what, number.unwrap_or(UNKNOWN_SOURCE));
        } else {
            self.kernel.interrupt_end(at.cpu, what);
        }
    }

    fn call(&mut self, at: Instant, name: &str, h: &Head, pid: u32) {
        let entered = match name.strip_prefix("sys_enter") {
            None => None,
            Some("") => Some(Call::of(number(h.text, "NR ").unwrap_or(x86_64::OTHER.into()))),
            // Numbers by name are known of one architecture.
            Some(_) if self.is_other_machine => return,
            Some(call) => {
                let call = call.trim_start_matches('_');
                let futex = if call == "futex" { futex(h.text) } else { None };
                Some(Call { futex: futex.map(|f| (f, pid)), ..Call::of(x86_64::number(call).into()) })
            }
        };
        self.kernel.system_call(at.time, h.tid, entered);
    }

    /// `254,0 WS 65536 () 4096 + 128 [dd]`
    fn block(&mut self, at: Instant, issue: bool, h: &Head) -> Option<()> {
        const MINOR_BITS: u32 = 20;
        let (major, minor) = h.text.split_once(' ')?.0.split_once(',')?;
        let (before, after) = h.text.split_once(" + ")?;
        let sectors: u32 = after.split_whitespace().next()?.parse().ok()?;
        let event = BlockIoEvent {
            device: major.parse::<u32>().ok()? << MINOR_BITS | minor.parse::<u32>().ok()?,
            sector: before.rsplit(' ').next()?.parse().ok()?,
            bytes: sectors.saturating_mul(SECTOR),
            tid: if issue { h.tid } else { 0 },
            issue,
        };
        self.kernel.block(at.time, event);
        Some(())
    }

    /// One kind of event alone is CPU time: a second one would count the same time again.
    fn sample(&mut self, at: Instant, h: &Head, pid: u32) {
        let name = h.event.split([':', '/']).next().unwrap_or("");
        if !CPU_TIME.contains(&name) || self.cpu_time.as_ref().is_some_and(|known| known != h.event) {
            return;
        }
        if self.cpu_time.is_none() {
            self.cpu_time = Some(h.event.to_owned());
        }
        if name.ends_with("-clock") {
            self.period = self.period.max(h.period.unwrap_or(0));
        }
        let chain = self.chain(pid);
        self.kernel
            .sink
            .timed(at.time, SampleEvent { cpu: cpu(at.cpu), tid: h.tid, ip: self.chain.leaf(), bp: 0, chain });
    }

    /// `FORK(12:13):(1:1)`, `COMM exec: perf:12/13`, `LOST lost 5`; others are counted.
    fn record(&mut self, at: Instant, record: &str) -> Option<()> {
        let pair = |text: &str, between: char| {
            let (pid, tid) = text.split_once(between)?;
            Some((pid.parse::<u32>().ok()?, tid.parse::<u32>().ok()?))
        };
        if let Some(both) = record.strip_prefix("FORK(").or_else(|| record.strip_prefix("EXIT(")) {
            let (of, by) = both.strip_suffix(')')?.split_once("):(")?;
            let ((pid, tid), (parent_pid, parent)) = (pair(of, ':')?, pair(by, ':')?);
            if record.starts_with("EXIT") {
                self.kernel.exit(at.time, tid);
            } else {
                self.processes.insert(tid, pid);
                if self.kernel.sink.is_plausible(at.time) {
                    self.kernel.fork(at.time, ForkEvent { parent_pid, parent, pid, tid });
                }
            }
        } else if let Some(named) = record.strip_prefix("COMM") {
            let (exec, named) = named.split_once(": ")?;
            let (comm, thread) = named.rsplit_once(':')?;
            let (pid, tid) = pair(thread, '/')?;
            if exec.contains("exec") {
                self.kernel.exec(at.time, pid);
            }
            self.processes.insert(tid, pid);
            self.kernel.named(at.time, pid, tid, comm.as_bytes());
        } else if record.starts_with("LOST") {
            let count = number(record, "lost ")?;
            self.kernel.lost(at, 0, count, "records lost by perf's buffer");
        }
        Some(())
    }
}
