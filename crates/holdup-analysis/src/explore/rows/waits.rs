//! `waits`: what every thread waited for, from leaving a CPU to running again.

use holdup_trace::ThreadIdx;

use super::frames::Part;
use super::{Actor, Def, Get, Provider, def};
use crate::explore::relation::Unit::{Id, Instant, Nanos, Text};
use crate::explore::waits;
use crate::explore::{Explorer, Result};
use crate::intervals::Wait;

pub(super) struct Waits;

/// A wait and its number.
pub(super) struct Waiting {
    index: usize,
    wait: Wait,
}

fn waker(r: &Waiting) -> Actor {
    Actor(r.wait.waker, r.wait.context)
}

impl Provider for Waits {
    type Row = Waiting;

    const COLUMNS: &'static [Def<Waiting>] = &[
        def("id", Id, &[], "Its number, for `holdup chain --wait`.", Get::Number(|r| r.index as u64)),
        def(
            "start",
            Instant,
            &["Last Switch-Out Time"],
            "When the thread left its CPU.",
            Get::Number(|r| r.wait.start),
        ),
        def(
            "end",
            Instant,
            &["Switch-In Time"],
            "When it ran again; the trace's end if never.",
            Get::Number(|r| r.wait.resumed),
        ),
        def(
            "wait",
            Nanos,
            &["Waits"],
            "From leaving the CPU to being woken.",
            Get::Number(|r| r.wait.woken.saturating_sub(r.wait.start)),
        ),
        def(
            "ready",
            Nanos,
            &["Ready"],
            "From being woken to running.",
            Get::Number(|r| r.wait.resumed.saturating_sub(r.wait.woken)),
        ),
        def("time-since-last", Nanos, &["Time Since Last"], "Both together.", Get::Number(|r| r.wait.length())),
        def(
            "process",
            Text,
            &["New Process", "New Process Name"],
            "Whose process.",
            Get::Process(|r| r.wait.thread.into()),
        ),
        def("pid", Id, &["New Process Id"], "Its number.", Get::ThreadNumber(|r| r.wait.thread, |t| t.pid)),
        def("thread", Text, &["New Thread Name"], "Whose.", Get::Thread(|r| r.wait.thread.into())),
        def("tid", Id, &["New Thread Id"], "The thread's number.", Get::ThreadNumber(|r| r.wait.thread, |t| t.tid)),
        def("kind", Text, &["New Wait Reason"], "For what, in kind.", Get::Word(|r| r.wait.kind.name())),
        def("lock", Text, &[], "For which lock.", Get::Lock(|r| r.wait.lock)),
        def("syscall", Text, &[], "In which system call.", Get::Call(|r| r.wait.syscall)),
        def(
            "function",
            Text,
            &[],
            "The innermost function of the application where it blocked.",
            Get::Stack(|r| r.wait.stack, Part::Application),
        ),
        def("site", Text, &[], "The same with its source line.", Get::Stack(|r| r.wait.stack, Part::Site)),
        def(
            "blocked",
            Text,
            &["New Thread Function"],
            "The innermost function at all, the scheduler's own left out.",
            Get::Stack(|r| r.wait.stack, Part::Blocked),
        ),
        def(
            "stack",
            Text,
            &["New Thread Stack"],
            "Where it blocked, the innermost function first.",
            Get::Stack(|r| r.wait.stack, Part::Whole),
        ),
        def(
            "stack-id",
            Id,
            &[],
            "The stack's number in the trace: equal stacks have one.",
            Get::Number(|r| u64::from(r.wait.stack.0)),
        ),
        def(
            "depth:N",
            Text,
            &[],
            "The N-th function of that stack from the outermost.",
            Get::StackAt(|r| r.wait.stack, Part::Depth),
        ),
        def(
            "inner:N",
            Text,
            &[],
            "The N-th function of that stack from the innermost.",
            Get::StackAt(|r| r.wait.stack, Part::Inner),
        ),
        def("waker-process", Text, &["Readying Process"], "Whose process woke it.", Get::Process(waker)),
        def("waker-thread", Text, &["Readying Thread Name"], "Who woke it.", Get::Thread(waker)),
        def(
            "waker-tid",
            Id,
            &["Readying Thread Id"],
            "The waker's number.",
            Get::ThreadNumber(|r| r.wait.waker, |t| t.tid),
        ),
        def("context", Text, &[], "In which context it was woken.", Get::Word(|r| r.wait.context.name())),
        def(
            "waker-function",
            Text,
            &[],
            "The innermost function of the application where the waker was.",
            Get::Stack(|r| r.wait.waker_stack, Part::Application),
        ),
        def("waker-site", Text, &[], "The same with its source line.", Get::Stack(|r| r.wait.waker_stack, Part::Site)),
        def(
            "waker-stack",
            Text,
            &["Readying Thread Stack", "Ready Thread Stack"],
            "Where the waker was, the innermost function first.",
            Get::Stack(|r| r.wait.waker_stack, Part::Whole),
        ),
        def(
            "waker-depth:N",
            Text,
            &[],
            "The N-th function of that stack from the outermost.",
            Get::StackAt(|r| r.wait.waker_stack, Part::Depth),
        ),
        def(
            "waker-inner:N",
            Text,
            &[],
            "The N-th function of that stack from the innermost.",
            Get::StackAt(|r| r.wait.waker_stack, Part::Inner),
        ),
        def(
            "open",
            Text,
            &[],
            "`yes` if nobody ended it within the trace.",
            Get::Word(|r| if r.wait.open { "yes" } else { "no" }),
        ),
    ];

    fn thread(row: &Waiting) -> ThreadIdx {
        row.wait.thread
    }

    fn span(row: &Waiting) -> (u64, u64) {
        (row.wait.start, row.wait.resumed)
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&Waiting) -> Result<()>) -> Result<()> {
        let timeline = explorer.followed()?;
        let mut waits = waits::Waits::of(&timeline);
        while let Some((index, wait)) = waits.next()? {
            each(&Waiting { index, wait })?;
        }
        Ok(())
    }
}
