//! What one run cost, by names that mean the same in another run: functions, places that wait, what held it up.
//!
//! Nothing here refers to addresses, ids or thread numbers of the trace, so that runs of different builds, processes
//! and machines can be laid side by side.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdup_base::text::clean;
use holdup_trace::{Result, StackId, ThreadIdx, Trace};

use crate::classify::{StackFacts, WaitKind};
use crate::code::Disassembler;
use crate::findings::{Context, Wanted, held_up, with_context};
pub use crate::findings::{Family, Held, Under};
use crate::leaves::Leaf;
use crate::report::Options;
use names::Names;

mod names;

/// A function of a process, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The process; empty for the program that the trace is about.
    pub process: Rc<str>,
    /// The function, or what stands for it.
    pub function: Rc<str>,
}

/// Where a sample was taken, by names: the innermost functions of the application, as far as it takes to tell a helper
/// from those who call it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trail {
    /// The process; empty for the program that the trace is about.
    pub process: Rc<str>,
    /// The innermost function first.
    pub calls: Vec<Call>,
}

/// A function on a [`Trail`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// The function.
    pub function: Rc<str>,
    /// Whether it is inlined into the next one.
    pub inlined: bool,
}

/// All functions of the application on a stack, each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    /// The process; empty for the program that the trace is about.
    pub process: Rc<str>,
    /// The innermost function first.
    pub functions: Rc<[Rc<str>]>,
}

/// Time of the threads that ran, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AtWork {
    /// CPU time.
    pub ran_ns: f64,
    /// Elapsed time: threads that run at once share it.
    pub elapsed_ns: f64,
}

/// CPU time in one function itself and in libraries and kernel below it, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ran {
    /// All of it.
    pub ns: f64,
    /// In loops that wait for another CPU, and in `sched_yield`.
    pub spin_ns: f64,
    /// In the locks' own code, futexes and the scheduler: it grows with every thread that comes at a bad moment.
    pub lock_ns: f64,
    /// On an instruction behind a `pause`.
    pub pause_ns: f64,
    /// On an instruction behind an atomic one.
    pub atomic_ns: f64,
    /// On an instruction that reads or writes memory other than the stack, or behind one.
    pub memory_ns: f64,
    /// In the kernel.
    pub kernel_ns: f64,
    /// In the kernel while it waits for CPUs that it has interrupted.
    pub interrupt_ns: f64,
    /// How many samples say so.
    pub samples: f64,
}

/// The waits of threads in focus at one place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waited {
    /// Thread nanoseconds, without waits that are idle by design of the waiting thread itself.
    pub ns: f64,
    /// How many.
    pub count: f64,
}

/// An instruction by its place, where code is the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The function of the application that holds it, or that calls the library which does.
    pub place: Place,
    /// The function whose code it is.
    pub code: Rc<str>,
    /// Distance from the start of that code in bytes.
    pub offset: u64,
    /// The instruction.
    pub text: Rc<str>,
    /// Whether it is a `pause` or follows one.
    pub behind_pause: bool,
}

/// One run.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The trace.
    pub path: String,
    /// How long the program in focus lived, or the window, in nanoseconds.
    pub elapsed_ns: f64,
    /// Number of CPUs.
    pub cpus: usize,
    /// CPU nanoseconds of the focus.
    pub ran_ns: f64,
    /// CPU nanoseconds of everybody else.
    pub other_ns: f64,
    /// CPU nanoseconds charged to what held the focus up.
    pub held_up_ns: f64,
    /// The name of the program in focus; empty for the whole machine.
    pub program: String,
    /// The machine's CPU.
    pub cpu_model: String,
    /// The share of its CPUs that the host took from a virtual machine.
    pub stolen: f64,
    /// Events that were lost.
    pub lost: u64,
    /// Nanoseconds for each sample.
    pub period_ns: f64,
    /// CPU time by function and callers.
    pub functions: BTreeMap<Trail, Ran>,
    /// CPU time by instruction.
    pub spots: BTreeMap<Spot, f64>,
    /// CPU time by function of the application, in it and below, and source line there, such as `file.c:12`.
    pub lines: BTreeMap<(Place, Rc<str>), f64>,
    /// Waits by place and kind.
    pub waits: BTreeMap<(Place, WaitKind), Waited>,
    /// What held it up.
    pub held: Vec<Held>,
    /// What ran while so many threads were at work: ran, could run, or waited for a lock, a disk, a time or the world outside.
    pub at_work: BTreeMap<(usize, Chain), AtWork>,
    /// How long so many threads ran or could run while so many waited for a lock, a disk or a time, in nanoseconds.
    pub waiting: BTreeMap<(usize, usize), f64>,
    /// CPU nanoseconds by stack, as `process;outermost;…;leaf`.
    pub folded: BTreeMap<String, f64>,
}

impl Facts {
    /// The facts of `trace`. O(events).
    pub fn new(trace: &Trace, path: &str, options: &Options, disassembler: &dyn Disassembler) -> Result<Facts> {
        with_context(trace, path, options, disassembler, Wanted::Waits, |context| {
            let mut facts = Facts::of_machine(context, path);
            let mut names = Names::new(context, &facts.program);
            facts.functions_of(context, &mut names);
            facts.waits_of(context, &mut names);
            facts.at_work_of(context, &mut names);
            facts.held = held_up(context)
                .into_iter()
                .map(|mut held| {
                    held.process = names.same_program(&held.process);
                    held
                })
                .collect();
            facts
        })
    }

    /// The share of the machine that others used.
    pub fn neighbours(&self) -> f64 {
        self.other_ns / (self.elapsed_ns * self.cpus as f64).max(1.0)
    }

    fn of_machine(context: &Context, path: &str) -> Facts {
        let cpu = &context.blame.cpu;
        let name = context.focus.name();
        Facts {
            path: path.to_owned(),
            elapsed_ns: lifetime(context),
            cpus: context.timeline.cpus,
            ran_ns: cpu.running,
            other_ns: cpu.other,
            held_up_ns: cpu.held_up,
            program: name.rsplit_once(" (").map_or(name, |(name, _)| name).to_owned(),
            cpu_model: context.trace.meta.host.cpu.clone(),
            stolen: context.trace.stolen_share(),
            lost: context.timeline.health.lost_events,
            period_ns: context.period().max(1.0),
            ..Facts::default()
        }
    }

    fn functions_of(&mut self, context: &Context, names: &mut Names) {
        let sampled: f64 = focus_profile(context).map(|(_, _, ns)| ns).sum();
        if sampled <= 0.0 {
            return;
        }
        // The switches tell the CPU time exactly, the samples only how it is distributed.
        let scale = self.ran_ns / sampled;
        let mut profile: Vec<_> = focus_profile(context).collect();
        profile.sort_by_key(|p| (p.0, p.1));
        for (thread, stack, ns) in profile {
            let leaf = context.spins.leaf(stack);
            let trail = names.trail(thread, stack);
            let place = Place { process: trail.process.clone(), function: trail.physical() };
            let facts = context.classifier.facts(stack);
            let ran = self.functions.entry(trail).or_default();
            ran.add(&leaf, context.spins.has(stack), &facts, ns * scale, ns / self.period_ns);
            if let Some(text) = leaf.text.as_deref().map(Rc::from) {
                let code = names.text(context.trace.text(leaf.code));
                let (offset, behind_pause) = (leaf.offset, leaf.behind_pause);
                *self.spots.entry(Spot { place, code, offset, text, behind_pause }).or_default() += ns * scale;
            }
            for line in names.lines(thread, stack) {
                *self.lines.entry(line).or_default() += ns * scale;
            }
            *self.folded.entry(folded(context, &names.process(thread), stack)).or_default() += ns * scale;
        }
    }

    fn at_work_of(&mut self, context: &Context, names: &mut Names) {
        for (&(threads, thread, stack), &(ran_ns, elapsed_ns)) in &context.blame.at_work {
            let sum = self.at_work.entry((threads, names.chain(thread, stack))).or_default();
            sum.ran_ns += ran_ns;
            sum.elapsed_ns += elapsed_ns;
        }
        self.waiting = context.blame.waiting.iter().map(|(&threads, &ns)| (threads, ns)).collect();
    }

    fn waits_of(&mut self, context: &Context, names: &mut Names) {
        for (&(thread, stack, kind), (ns, count)) in &context.learned.waited {
            let waited = self.waits.entry((names.place(thread, stack), kind)).or_default();
            waited.ns += *ns as f64;
            waited.count += *count as f64;
        }
    }
}

impl Trail {
    /// The innermost function that is compiled as one of its own.
    pub fn physical(&self) -> Rc<str> {
        let own = self.calls.iter().find(|c| !c.inlined).or(self.calls.last());
        own.map_or_else(|| "".into(), |c| c.function.clone())
    }
}

impl Ran {
    fn add(&mut self, leaf: &Leaf, spins: bool, facts: &StackFacts, ns: f64, samples: f64) {
        let part = |yes: bool| if yes { ns } else { 0.0 };
        self.ns += ns;
        self.spin_ns += part(spins);
        self.lock_ns += part(facts.lock_overhead && !spins);
        self.pause_ns += part(leaf.behind_pause);
        self.atomic_ns += part(leaf.behind_atomic);
        self.memory_ns += part(leaf.behind_memory);
        self.kernel_ns += part(facts.in_kernel);
        self.interrupt_ns += part(facts.interrupts);
        self.samples += samples;
    }
}

fn focus_profile<'a>(context: &'a Context) -> impl Iterator<Item = (ThreadIdx, StackId, f64)> + 'a {
    let all = context.blame.profile.iter().map(|&((thread, stack), ns)| (thread, stack, ns));
    all.filter(|(thread, _, _)| context.focus.contains(*thread))
}

/// A stack in the form that flame graphs are made of.
fn folded(context: &Context, process: &str, stack: StackId) -> String {
    let trace = context.trace;
    let mut names = vec![framed(process, "program")];
    let frames: Vec<_> = trace.stacks.frames(stack).collect();
    for frame in frames.into_iter().rev() {
        let inlined: Vec<_> = trace.names.locations(frame).map(|l| trace.text(l.function)).collect();
        names.extend(inlined.into_iter().rev().filter(|n| !n.is_empty()).map(|n| framed(n, "?")));
    }
    names.join(";")
}

/// A name as one frame of a folded line: without what ends a frame or a line, and without spaces at its ends, which
/// readers trim after they have sorted.
fn framed(name: &str, nameless: &str) -> String {
    let name = clean(name.trim()).replace(';', ":");
    if name.is_empty() { nameless.to_owned() } else { name }
}

/// From the first thread of the focus that started within the trace to the last that ended there.
fn lifetime(context: &Context) -> f64 {
    let (from, to) = context.blame.window;
    if context.focus.is_everything() {
        return (to - from) as f64;
    }
    let threads = &context.trace.threads;
    let members = || (1..threads.tid.len()).filter(|&i| context.focus.contains(ThreadIdx(i as u32)));
    let start = members().map(|i| threads.start[i].nanos()).min().unwrap_or(0).max(from);
    let end = members().map(|i| threads.end[i].nanos()).max().unwrap_or(to).min(to);
    end.saturating_sub(start) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_frame() {
        assert_eq!(framed("[u8; 8]", "?"), "[u8: 8]");
        assert_eq!(framed(" f 12\n", "?"), "f 12");
        assert_eq!(framed("a\nb 1 2\n", "?"), "a\\nb 1 2");
        assert_eq!(framed("\u{a0}\t", "?"), "?");
        assert_eq!(framed("", "program"), "program");
    }
}
