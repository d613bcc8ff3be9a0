//! `wakes`: who made whom runnable.

use holdup_trace::tables::Wake;
use holdup_trace::{ThreadIdx, WakeContext};

use super::frames::Part;
use super::{Actor, Def, Get, Provider, cpu, def};
use crate::explore::relation::Unit::{Id, Instant, Text};
use crate::explore::{Explorer, Result};

pub(super) struct Wakes;

/// Interrupts are no work of the thread that they interrupt.
fn waker(r: &Wake) -> Actor {
    let by_task = matches!(r.context, WakeContext::Task | WakeContext::Unknown);
    Actor(if by_task { r.waker } else { ThreadIdx::NONE }, r.context)
}

impl Provider for Wakes {
    type Row = Wake;

    const COLUMNS: &'static [Def<Wake>] = &[
        def("t", Instant, &["Ready Time"], "When.", Get::Number(|r| r.t.nanos())),
        def("cpu", Id, &["Readying CPU"], "On which CPU it was issued.", Get::Number(|r| cpu(r.cpu))),
        def(
            "context",
            Text,
            &[],
            "By a thread, or in an interrupt, softirq, timer or IPI.",
            Get::Word(|r| r.context.name()),
        ),
        def(
            "source",
            Id,
            &[],
            "Interrupt number or softirq vector; 67 for packets that had waited for an acknowledgement that was held back. Of a thread, the file descriptor to which it writes, plus 1.",
            Get::Number(|r| u64::from(r.source)),
        ),
        def("waker-process", Text, &["Readying Process"], "Whose process woke it.", Get::Process(waker)),
        def("waker-thread", Text, &["Readying Thread Name"], "Who woke it.", Get::Thread(waker)),
        def(
            "waker-tid",
            Id,
            &["Readying Thread Id"],
            "The waker's number.",
            Get::ThreadNumber(|r| waker(r).0, |t| t.tid),
        ),
        def("process", Text, &["New Process"], "The woken thread's process.", Get::Process(|r| r.wakee.into())),
        def("pid", Id, &["New Process Id"], "Its number.", Get::ThreadNumber(|r| r.wakee, |t| t.pid)),
        def("thread", Text, &["New Thread Name"], "The thread that became runnable.", Get::Thread(|r| r.wakee.into())),
        def("tid", Id, &["New Thread Id"], "Its number.", Get::ThreadNumber(|r| r.wakee, |t| t.tid)),
        def("target", Id, &["Cpu"], "The CPU that was to run it.", Get::Number(|r| cpu(r.target))),
        def("lock", Text, &[], "The lock that was released.", Get::Lock(|r| r.lock)),
        def(
            "waker-function",
            Text,
            &[],
            "The innermost function of the application where the waker was, if a stack was taken here.",
            Get::Stack(|r| r.stack, Part::Application),
        ),
        def("waker-site", Text, &[], "The same with its source line.", Get::Stack(|r| r.stack, Part::Site)),
        def(
            "waker-stack",
            Text,
            &["Readying Thread Stack", "Ready Thread Stack"],
            "Where the waker was, the innermost function first.",
            Get::Stack(|r| r.stack, Part::Whole),
        ),
        def(
            "waker-depth:N",
            Text,
            &[],
            "The N-th function of that stack from the outermost.",
            Get::StackAt(|r| r.stack, Part::Depth),
        ),
        def(
            "waker-inner:N",
            Text,
            &[],
            "The N-th function of that stack from the innermost.",
            Get::StackAt(|r| r.stack, Part::Inner),
        ),
    ];

    fn thread(row: &Wake) -> ThreadIdx {
        row.wakee
    }

    fn span(row: &Wake) -> (u64, u64) {
        (row.t.nanos(), row.t.nanos())
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&Wake) -> Result<()>) -> Result<()> {
        explorer.trace.wakes.iter().try_for_each(|row| each(&row?))
    }
}
