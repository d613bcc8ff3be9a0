//! `switches`: every time that a thread came onto a CPU, what it had waited for and who had readied it.

use holdup_trace::tables::Switch;
use holdup_trace::{Cpu, StackId, SwitchState, Table as _, ThreadIdx, Trace, WakeContext};

use super::frames::Part;
use super::{Actor, Def, Get, Provider, between, cpu, def};
use crate::classify::WaitKind;
use crate::explore::relation::Unit::{Id, Instant, Nanos, Text};
use crate::explore::waits::Waits;
use crate::explore::{Explorer, Result};
use crate::intervals::Wait;

pub(super) struct Switches;

/// A switch-in.
pub(super) struct SwitchIn {
    t: u64,
    cpu: Cpu,
    thread: ThreadIdx,
    on_cpu: u64,
    old: ThreadIdx,
    old_state: SwitchState,
    /// How the thread had left its CPU before.
    left: Left,
}

/// How, and when, a thread left its CPU.
#[derive(Clone, Copy)]
struct Left {
    t: Option<u64>,
    /// Since when it was runnable.
    ready: Option<u64>,
    state: SwitchState,
    reason: Reason,
    waker: Actor,
    stack: StackId,
    waker_stack: StackId,
}

/// Why a thread was on no CPU.
#[derive(Clone, Copy)]
enum Reason {
    Unknown,
    Preempted,
    Created,
    Waited(WaitKind),
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Preempted => "preempted",
            Reason::Created => "created",
            Reason::Waited(kind) => kind.name(),
        }
    }
}

impl Left {
    /// Nothing is known.
    const UNKNOWN: Left = Left {
        t: None,
        ready: None,
        state: SwitchState::Unknown,
        reason: Reason::Unknown,
        waker: Actor(ThreadIdx::NONE, WakeContext::Unknown),
        stack: StackId::NONE,
        waker_stack: StackId::NONE,
    };

    fn preempted(row: &Switch) -> Self {
        let t = Some(row.t.nanos());
        Left { t, ready: t, state: row.state, reason: Reason::Preempted, stack: row.stack, ..Left::UNKNOWN }
    }

    fn waiting(row: &Switch, wait: &Wait) -> Self {
        Left {
            t: Some(wait.start),
            ready: Some(wait.woken),
            state: row.state,
            reason: Reason::Waited(wait.kind),
            waker: Actor(wait.waker, wait.context),
            stack: wait.stack,
            waker_stack: wait.waker_stack,
        }
    }

    fn created(trace: &Trace, thread: ThreadIdx) -> Self {
        let row = trace.thread(thread).filter(|t| t.start.nanos() > 0);
        row.map_or(Left::UNKNOWN, |t| Left { ready: Some(t.start.nanos()), reason: Reason::Created, ..Left::UNKNOWN })
    }
}

fn real(thread: ThreadIdx) -> ThreadIdx {
    if thread == ThreadIdx::IDLE { ThreadIdx::NONE } else { thread }
}

impl Provider for Switches {
    type Row = SwitchIn;

    const COLUMNS: &'static [Def<SwitchIn>] = &[
        def("t", Instant, &["Switch-In Time"], "When.", Get::Number(|r| r.t)),
        def("cpu", Id, &[], "On which CPU.", Get::Number(|r| cpu(r.cpu))),
        def(
            "process",
            Text,
            &["New Process", "New Process Name"],
            "The process of the thread that came.",
            Get::Process(|r| r.thread.into()),
        ),
        def("pid", Id, &["New Process Id"], "Its number.", Get::ThreadNumber(|r| r.thread, |t| t.pid)),
        def("thread", Text, &["New Thread Name"], "The thread that came.", Get::Thread(|r| r.thread.into())),
        def("tid", Id, &["New Thread Id"], "Its number.", Get::ThreadNumber(|r| r.thread, |t| t.tid)),
        def(
            "time-since-last",
            Nanos,
            &["Time Since Last"],
            "Since it had left its CPU.",
            Get::Number(|r| between(r.left.t, r.t)),
        ),
        def("ready", Nanos, &["Ready"], "Since it could run.", Get::Number(|r| between(r.left.ready, r.t))),
        def(
            "wait",
            Nanos,
            &["Waits", "Waiting"],
            "From leaving the CPU until it could run again.",
            Get::Number(|r| between(r.left.t, r.left.ready.unwrap_or(r.t))),
        ),
        def(
            "on-cpu",
            Nanos,
            &["CPU Usage (in view)", "New Switched-In Time"],
            "How long it then ran.",
            Get::Number(|r| r.on_cpu),
        ),
        def(
            "wait-reason",
            Text,
            &["New Wait Reason"],
            "What it had waited for, in kind; `preempted` if it had not waited.",
            Get::Word(|r| r.left.reason.name()),
        ),
        def("state", Text, &["New Prev State"], "In which state it had left.", Get::Word(|r| r.left.state.name())),
        def("waker-process", Text, &["Readying Process"], "Whose process woke it.", Get::Process(|r| r.left.waker)),
        def("waker-thread", Text, &["Readying Thread Name"], "Who woke it.", Get::Thread(|r| r.left.waker)),
        def(
            "waker-tid",
            Id,
            &["Readying Thread Id"],
            "The waker's number.",
            Get::ThreadNumber(|r| r.left.waker.0, |t| t.tid),
        ),
        def("context", Text, &[], "In which context it was woken.", Get::Word(|r| r.left.waker.1.name())),
        def(
            "waker-function",
            Text,
            &[],
            "The innermost function of the application where the waker was.",
            Get::Stack(|r| r.left.waker_stack, Part::Application),
        ),
        def(
            "old-process",
            Text,
            &["Old Process"],
            "The process that left; empty for idle.",
            Get::Process(|r| real(r.old).into()),
        ),
        def(
            "old-thread",
            Text,
            &["Old Thread Name"],
            "The thread that left; empty for idle.",
            Get::Thread(|r| real(r.old).into()),
        ),
        def("old-tid", Id, &["Old Thread Id"], "Its number.", Get::ThreadNumber(|r| r.old, |t| t.tid)),
        def("old-state", Text, &["Old State"], "In which state that one left.", Get::Word(|r| r.old_state.name())),
        def(
            "function",
            Text,
            &[],
            "The innermost function of the application where the thread that came had left.",
            Get::Stack(|r| r.left.stack, Part::Application),
        ),
        def("site", Text, &[], "The same with its source line.", Get::Stack(|r| r.left.stack, Part::Site)),
        def(
            "blocked",
            Text,
            &["New Thread Function"],
            "The innermost function at all, the scheduler's own left out.",
            Get::Stack(|r| r.left.stack, Part::Blocked),
        ),
        def(
            "stack",
            Text,
            &["New Thread Stack"],
            "That stack, the innermost function first.",
            Get::Stack(|r| r.left.stack, Part::Whole),
        ),
        def(
            "depth:N",
            Text,
            &[],
            "The N-th function of that stack from the outermost.",
            Get::StackAt(|r| r.left.stack, Part::Depth),
        ),
        def(
            "inner:N",
            Text,
            &[],
            "The N-th function of that stack from the innermost.",
            Get::StackAt(|r| r.left.stack, Part::Inner),
        ),
        def(
            "waker-stack",
            Text,
            &["Readying Thread Stack", "Ready Thread Stack"],
            "Where the waker was, the innermost function first.",
            Get::Stack(|r| r.left.waker_stack, Part::Whole),
        ),
        def(
            "waker-depth:N",
            Text,
            &[],
            "The N-th function of that stack from the outermost.",
            Get::StackAt(|r| r.left.waker_stack, Part::Depth),
        ),
        def(
            "waker-inner:N",
            Text,
            &[],
            "The N-th function of that stack from the innermost.",
            Get::StackAt(|r| r.left.waker_stack, Part::Inner),
        ),
    ];

    fn thread(row: &SwitchIn) -> ThreadIdx {
        row.thread
    }

    fn span(row: &SwitchIn) -> (u64, u64) {
        (row.t, row.t)
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&SwitchIn) -> Result<()>) -> Result<()> {
        let trace = explorer.trace;
        let timeline = explorer.followed()?;
        let mut waits = Waits::of(&timeline);
        let on_cpu = times_on_cpu(trace)?;
        let mut left: Vec<Option<Left>> = vec![None; trace.threads.len()];
        for (index, switch) in trace.switches.iter().enumerate() {
            let row = switch?;
            let t = row.t.nanos();
            // Waits begin in the order of the switches that begin them.
            while waits.peek()?.is_some_and(|w| w.start < t) {
                waits.next()?;
            }
            if let Some(slot) = left.get_mut(row.prev.index()) {
                let begins = waits.peek()?.is_some_and(|w| w.start == t && w.thread == row.prev);
                let wait = if begins { waits.next()? } else { None };
                *slot = match wait {
                    Some((_, wait)) => Some(Left::waiting(&row, &wait)),
                    None if row.state == SwitchState::Runnable => Some(Left::preempted(&row)),
                    None => Some(Left { t: Some(t), state: row.state, ..Left::UNKNOWN }),
                };
            }
            if row.next.is_real() {
                let before = left.get_mut(row.next.index()).and_then(Option::take);
                let left = before.unwrap_or_else(|| Left::created(trace, row.next));
                let (cpu, thread, old, old_state) = (row.cpu, row.next, row.prev, row.state);
                each(&SwitchIn { t, cpu, thread, on_cpu: on_cpu[index], old, old_state, left })?;
            }
        }
        Ok(())
    }
}

/// For each switch, the time until the next one on its CPU, in nanoseconds.
pub(super) fn times_on_cpu(trace: &Trace) -> Result<Vec<u64>> {
    let mut last: Vec<Option<(usize, u64)>> = Vec::new();
    let mut times = Vec::with_capacity(trace.switches.rows() as usize);
    for row in trace.switches.iter() {
        let row = row?;
        let (cpu, t) = (row.cpu.index(), row.t.nanos());
        if last.len() <= cpu {
            last.resize(cpu + 1, None);
        }
        if let Some((before, since)) = last[cpu].replace((times.len(), t)) {
            times[before] = t.saturating_sub(since);
        }
        times.push(trace.meta.duration_ns.saturating_sub(t));
    }
    Ok(times)
}
