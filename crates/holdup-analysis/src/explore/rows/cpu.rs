//! `cpu`: what ran, by samples.

use holdup_trace::ThreadIdx;
use holdup_trace::tables::Sample;

use super::frames::Part;
use super::{Def, Get, Provider, cpu, def};
use crate::explore::relation::MISSING;
use crate::explore::relation::Unit::{Address, Id, Instant, Nanos, Text};
use crate::explore::{Explorer, Result};

pub(super) struct Cpu;

/// A sample and the CPU time for which it stands.
pub(super) struct OnCpu {
    sample: Sample,
    weight: u64,
}

impl Provider for Cpu {
    type Row = OnCpu;

    const COLUMNS: &'static [Def<OnCpu>] = &[
        def("t", Instant, &["TimeStamp"], "When.", Get::Number(|r| r.sample.t.nanos())),
        def("cpu", Id, &[], "On which CPU.", Get::Number(|r| cpu(r.sample.cpu))),
        def("process", Text, &["Process Name"], "Whose process.", Get::Process(|r| r.sample.thread.into())),
        def("pid", Id, &["Process Id"], "Its number.", Get::ThreadNumber(|r| r.sample.thread, |t| t.pid)),
        def("thread", Text, &["Thread Name"], "Who ran.", Get::Thread(|r| r.sample.thread.into())),
        def("tid", Id, &["Thread Id"], "The thread's number.", Get::ThreadNumber(|r| r.sample.thread, |t| t.tid)),
        def(
            "module",
            Text,
            &[],
            "The file that holds the code; [kernel] for the kernel.",
            Get::Stack(|r| r.sample.stack, Part::Module),
        ),
        def(
            "function",
            Text,
            &[],
            "The innermost function, inlined or not.",
            Get::Stack(|r| r.sample.stack, Part::Leaf),
        ),
        def(
            "outer",
            Text,
            &[],
            "The function into which that one is inlined, as the symbol table knows it.",
            Get::Stack(|r| r.sample.stack, Part::Outer),
        ),
        def(
            "inline",
            Text,
            &["Inlined Functions"],
            "All functions inlined at the instruction, the innermost first; empty if there are none.",
            Get::Stack(|r| r.sample.stack, Part::Inlined),
        ),
        def(
            "source",
            Text,
            &["line", "Source File Name", "Line Number"],
            "File and line of the instruction.",
            Get::Stack(|r| r.sample.stack, Part::Source),
        ),
        def("address", Address, &[], "The instruction.", Get::Number(|r| r.sample.ip)),
        def(
            "instruction",
            Text,
            &[],
            "That instruction as text, of the program or of the kernel; empty where the trace does not keep its code.",
            Get::Instruction(|r| r.sample.stack),
        ),
        def(
            "application",
            Text,
            &[],
            "The innermost function of the application, not of the kernel or a library.",
            Get::Stack(|r| r.sample.stack, Part::Application),
        ),
        def("caller", Text, &[], "Who called the innermost function.", Get::Stack(|r| r.sample.stack, Part::Caller)),
        def(
            "stack",
            Text,
            &[],
            "The whole stack, the innermost function first.",
            Get::Stack(|r| r.sample.stack, Part::Whole),
        ),
        def(
            "stack-id",
            Id,
            &[],
            "The stack's number in the trace: equal stacks have one.",
            Get::Number(|r| u64::from(r.sample.stack.0)),
        ),
        def(
            "depth:N",
            Text,
            &[],
            "The N-th function from the outermost.",
            Get::StackAt(|r| r.sample.stack, Part::Depth),
        ),
        def(
            "inner:N",
            Text,
            &[],
            "The N-th function from the innermost.",
            Get::StackAt(|r| r.sample.stack, Part::Inner),
        ),
        def(
            "weight",
            Nanos,
            &["CPU Usage (in view)"],
            "CPU time for which the sample stands: the sampling period; unknown where samples count something else.",
            Get::Number(|r| r.weight),
        ),
    ];

    fn thread(row: &OnCpu) -> ThreadIdx {
        row.sample.thread
    }

    fn span(row: &OnCpu) -> (u64, u64) {
        (row.sample.t.nanos(), row.sample.t.nanos())
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&OnCpu) -> Result<()>) -> Result<()> {
        let weight = match explorer.trace.meta.sample_period_ns {
            0 => MISSING,
            period => period,
        };
        explorer.trace.samples.iter().try_for_each(|sample| each(&OnCpu { sample: sample?, weight }))
    }
}
