//! What the other threads of a process did at the same instant: whom spinning threads waited for, and who wrote the
//! same memory.
//!
//! The word that a spin loop looks at is changed by a thread that runs meanwhile, or by one that does not run and
//! should. Which of them it is the samples do not tell; what the other threads of the process did while this one spun,
//! they do: at each sample in a spin loop, the nearest sample of every other CPU.

mod sums;

use std::collections::BTreeSet;

use holdup_trace::tables::{LocationRow, Sample};
use holdup_trace::{Cpu, StackId, StringId, ThreadIdx};
use rustc_hash::FxHashSet;

use crate::blame::Study;
use crate::intervals::{Chunk, State, Step};
pub(crate) use sums::{Meanwhile, Spun, Written};
use sums::{Site, Target};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// How two atomic instructions meet, the surest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sharing {
    /// They change one variable.
    Same,
    /// They change two variables in one line.
    Beside,
    /// It is one function, and what it changes is not known.
    Unknown,
}

/// How many sampling periods away another CPU's sample may be and still tell what it ran.
const NEAR: f64 = 1.5;
/// How many away it may be and still tell that its thread does not only spin: who is about as often at work as it spins, and changes
/// from one to the other between samples, is met spinning by chance.
const AROUND: f64 = 4.0;

/// What the threads of one part of the trace did meanwhile. O(steps) if any of its samples is in a loop that waits, or at
/// an atomic instruction, else O(samples).
pub(crate) fn meanwhile(chunk: &Chunk, study: &Study) -> Meanwhile {
    let inside = |s: &&Sample| {
        let t = s.t.nanos();
        t >= study.window.from && t <= study.window.to && s.thread.index() < chunk.last.len()
    };
    let samples: Vec<&Sample> = chunk.samples().iter().filter(inside).collect();
    let spinning: FxHashSet<u32> = samples
        .iter()
        .filter(|s| study.focus.contains(s.thread) && (study.spins.has(s.stack) || study.spins.is_atomic(s.stack)))
        .map(|s| pid(study, s.thread))
        .collect();
    if spinning.is_empty() {
        return Meanwhile::default();
    }
    Walk::new(chunk, study, spinning, &samples).run(&samples)
}

fn pid(study: &Study, thread: ThreadIdx) -> u32 {
    study.trace.threads.pid.get(thread.index()).copied().unwrap_or(0)
}

/// Goes backwards through a part and knows who runs and who could.
struct Walk<'a> {
    study: &'a Study<'a>,
    chunk: &'a Chunk,
    /// Processes with a thread that spins.
    spinning: FxHashSet<u32>,
    running: Vec<ThreadIdx>,
    ready: BTreeSet<ThreadIdx>,
    yielding: BTreeSet<ThreadIdx>,
    states: Vec<State>,
    /// By CPU: its samples in time order.
    of_cpu: Vec<Vec<&'a Sample>>,
    found: Meanwhile,
}

impl<'a> Walk<'a> {
    fn new(chunk: &'a Chunk, study: &'a Study<'a>, spinning: FxHashSet<u32>, samples: &[&'a Sample]) -> Self {
        let mut of_cpu: Vec<Vec<&Sample>> = vec![Vec::new(); study.timeline.cpus];
        for sample in samples {
            if let Some(own) = of_cpu.get_mut(usize::from(sample.cpu.0)) {
                own.push(sample);
            }
        }
        let running = vec![ThreadIdx::NONE; study.timeline.cpus];
        let states = vec![State::Unknown; chunk.last.len()];
        let found = Meanwhile::default();
        let (ready, yielding) = (BTreeSet::new(), BTreeSet::new());
        Walk { study, chunk, spinning, running, ready, yielding, states, of_cpu, found }
    }

    fn run(mut self, samples: &[&Sample]) -> Meanwhile {
        for (i, state) in self.chunk.last.iter().enumerate().skip(1) {
            self.set(ThreadIdx(i as u32), *state);
        }
        let (mut steps, mut late) = (self.chunk.steps(), self.chunk.inserted());
        for sample in samples.iter().rev() {
            // Like the sweep: of one instant the steps first, and the late ones before them.
            loop {
                let last = |of: &[Step]| of.last().filter(|s| s.t >= sample.t.nanos()).map(|s| s.t);
                let from = match (last(steps), last(late)) {
                    (None, None) => break,
                    (a, b) if b >= a => &mut late,
                    _ => &mut steps,
                };
                let Some((step, rest)) = from.split_last() else { break };
                *from = rest;
                self.set(step.thread, step.before());
            }
            if self.study.focus.contains(sample.thread) {
                if self.study.spins.has(sample.stack) {
                    self.spins(sample);
                } else if self.study.spins.is_atomic(sample.stack) {
                    self.writes(sample);
                }
            } else if !self.yielding.is_empty() {
                self.gave_way(sample);
            }
        }
        self.found
    }

    fn set(&mut self, thread: ThreadIdx, state: State) {
        let Some(known) = self.states.get_mut(thread.index()) else { return };
        let old = std::mem::replace(known, state);
        if let State::Running(Cpu(cpu)) = old
            && let Some(on) = self.running.get_mut(usize::from(cpu)).filter(|on| **on == thread)
        {
            *on = ThreadIdx::NONE;
        }
        if let State::Running(Cpu(cpu)) = state
            && let Some(on) = self.running.get_mut(usize::from(cpu))
        {
            *on = thread;
        }
        let spins = || self.spinning.contains(&pid(self.study, thread));
        let (ready, yields) =
            (matches!(state, State::Runnable(_) | State::Woken(_)), matches!(state, State::Yields(_)));
        for (set, is) in [(&mut self.ready, ready), (&mut self.yielding, yields)] {
            if is && spins() {
                set.insert(thread);
            } else {
                set.remove(&thread);
            }
        }
    }

    /// A sample of a thread that spins: what did the others of its process do?
    fn spins(&mut self, sample: &Sample) {
        let (study, t) = (self.study, sample.t.nanos());
        let own = pid(study, sample.thread);
        let period = study.trace.meta.sample_period_ns as f64;
        let of_process = |j: &ThreadIdx| *j != ThreadIdx::NONE && *j != sample.thread && pid(study, *j) == own;
        // Where none of the process does anything, others of the same program may, which share memory with it.
        let alone = !self.running.iter().chain(&self.ready).any(of_process);
        let kin = |j: &ThreadIdx| if alone { self.is_partner(*j, sample.thread) } else { of_process(j) };
        let others: Vec<(usize, ThreadIdx)> =
            self.running.iter().copied().enumerate().filter(|(_, j)| kin(j)).collect();
        let at: Vec<(ThreadIdx, StackId)> =
            others.iter().map(|&(cpu, j)| (j, self.near(cpu, j, t, period * NEAR))).collect();
        let mut worked: Vec<_> = at.iter().copied().filter(|(_, stack)| !study.spins.has(*stack)).collect();
        let ready: Vec<ThreadIdx> = self.ready.iter().copied().filter(kin).collect();
        if worked.is_empty() && ready.is_empty() {
            let around =
                others.iter().map(|&(cpu, j)| (j, self.around(cpu, j, t, period * AROUND, |s| !study.spins.has(s))));
            worked = around.filter(|(_, stack)| *stack != StackId::NONE).collect();
        }
        let program = |t: ThreadIdx| study.trace.threads.process.get(t.index());
        let other = |j: &ThreadIdx| *j != ThreadIdx::NONE && *j != sample.thread && !kin(j);
        // What many processes of one program do to each other is the program's own.
        let crowded = self.running.iter().any(|j| other(j) && program(*j) != program(sample.thread));
        let site = Site { pid: own, function: site(study, sample.stack) };
        let spun = self.found.spun.entry(site).or_default();
        *spun.threads.entry(sample.thread).or_default() += period;
        *spun.stacks.entry(sample.stack).or_default() += period;
        add_span(&mut spun.spans, t.saturating_sub(period as u64), t, 2 * period as u64);
        if !worked.is_empty() {
            let part = period / worked.len() as f64;
            worked.into_iter().for_each(|key| *spun.worked.entry(key).or_default() += part);
        } else if !ready.is_empty() {
            let part = period / ready.len() as f64;
            spun.crowded += if crowded { period } else { 0.0 };
            ready.into_iter().for_each(|j| *spun.ready.entry(j).or_default() += part);
        } else if others.is_empty() {
            spun.alone += period;
        } else {
            spun.others_spun += period;
        }
    }

    /// Whether a thread is of another process of the same program, in focus like this one.
    fn is_partner(&self, other: ThreadIdx, thread: ThreadIdx) -> bool {
        let program = |t: ThreadIdx| self.study.trace.threads.process.get(t.index());
        let study = self.study;
        pid(study, other) != pid(study, thread) && study.focus.contains(other) && program(other) == program(thread)
    }

    /// A sample of another program, on a CPU that threads which give way again and again have left to it.
    fn gave_way(&mut self, sample: &Sample) {
        let (study, t) = (self.study, sample.t.nanos());
        let period = study.trace.meta.sample_period_ns as f64;
        let yielding: Vec<ThreadIdx> = self.yielding.iter().copied().filter(|j| study.focus.contains(*j)).collect();
        for thread in &yielding {
            let own = pid(study, *thread);
            let kin =
                self.running.iter().copied().enumerate().filter(|&(_, j)| j != ThreadIdx::NONE && pid(study, j) == own);
            let at = kin.map(|(cpu, j)| (j, self.near(cpu, j, t, period * NEAR)));
            let worked: Vec<_> = at.filter(|(_, stack)| !study.spins.has(*stack)).collect();
            let part = period / yielding.len() as f64;
            let spun = self.found.gave.entry(*thread).or_default();
            *spun.threads.entry(*thread).or_default() += part;
            spun.gave += part;
            add_span(&mut spun.spans, t.saturating_sub(period as u64), t, 2 * period as u64);
            if worked.is_empty() {
                spun.alone += part;
            }
            let each = part / worked.len().max(1) as f64;
            worked.into_iter().for_each(|key| *spun.worked.entry(key).or_default() += each);
        }
    }

    /// A sample at an atomic instruction: was another thread of the process at one that writes the same line?
    fn writes(&mut self, sample: &Sample) {
        let (study, t) = (self.study, sample.t.nanos());
        let own = pid(study, sample.thread);
        let period = study.trace.meta.sample_period_ns as f64;
        let kin = |j: &ThreadIdx| *j != ThreadIdx::NONE && *j != sample.thread && pid(study, *j) == own;
        let place = Site { pid: own, function: site(study, sample.stack) };
        let variable = study.spins.leaf(sample.stack).variable;
        let target = variable.map_or(Target::By(place), |v| Target::Line(own, v / LINE));
        let others = self.running.iter().copied().enumerate().filter(|(_, j)| kin(j));
        let stacks = others.map(|(cpu, j)| self.near(cpu, j, t, period * NEAR));
        let near = stacks.filter(|s| study.spins.is_beside_atomic(*s));
        let shared = near
            .filter_map(|stack| match (variable, study.spins.leaf(stack).variable) {
                (Some(a), Some(b)) if a == b => Some(Sharing::Same),
                (Some(a), Some(b)) if a / LINE == b / LINE => Some(Sharing::Beside),
                // In registers: the same code may well change the same thing.
                (None, None) if site(study, stack) == place.function => Some(Sharing::Unknown),
                _ => None,
            })
            .min();
        let written = self.found.written.entry(target).or_default();
        *written.stacks.entry(sample.stack).or_default() += period;
        let Some(shared) = shared else { return };
        *written.threads.entry(sample.thread).or_default() += period;
        add_span(&mut written.spans, t.saturating_sub(period as u64), t, 2 * period as u64);
        if let Some(variable) = variable {
            *written.variables.entry(variable).or_default() += period;
        }
        match shared {
            Sharing::Same => written.same += period,
            Sharing::Beside => written.beside += period,
            Sharing::Unknown => {}
        }
    }

    /// The stack of `thread` in the sample of its CPU nearest to `t`.
    fn near(&self, cpu: usize, thread: ThreadIdx, t: u64, within: f64) -> StackId {
        let own = &self.of_cpu[cpu];
        let at = own.partition_point(|s| s.t.nanos() < t);
        nearest(&own[at.saturating_sub(1)..(at + 1).min(own.len())], thread, t, within, |_| true)
    }

    /// The same of the samples whose stack is one of those `wanted`.
    fn around(&self, cpu: usize, thread: ThreadIdx, t: u64, within: f64, wanted: impl Fn(StackId) -> bool) -> StackId {
        let own = &self.of_cpu[cpu];
        let from = own.partition_point(|s| (s.t.nanos() as f64) < t as f64 - within);
        let to = own.partition_point(|s| s.t.nanos() as f64 <= t as f64 + within);
        nearest(&own[from..to], thread, t, within, wanted)
    }
}

/// The stack of the one of `samples` that is nearest to `t`, and no farther than `within`.
fn nearest(samples: &[&Sample], thread: ThreadIdx, t: u64, within: f64, wanted: impl Fn(StackId) -> bool) -> StackId {
    let distance = |s: &&Sample| s.t.nanos().abs_diff(t);
    let fits = |s: &&Sample| s.thread == thread && distance(s) as f64 <= within && wanted(s.stack);
    samples.iter().copied().filter(fits).min_by_key(distance).map_or(StackId::NONE, |s| s.stack)
}

/// Going backwards: spans closer than `gap` are one.
fn add_span(spans: &mut Vec<(u64, u64)>, from: u64, to: u64, gap: u64) {
    match spans.last_mut() {
        Some(last) if last.0 <= to.saturating_add(gap) => last.0 = last.0.min(from),
        _ => spans.push((from, to)),
    }
}

/// To what spinning with `stack` belongs: the function that calls others to look for what has come; the application's function around
/// the loop; else the loop's own, or the file where that has no name.
fn site(study: &Study, stack: StackId) -> StringId {
    let trace = study.trace;
    if let Some(driver) = study.spins.driver(stack) {
        return driver;
    }
    let leaf = trace.stacks.frames(stack).next().and_then(|f| trace.names.locations(f).last());
    let nameless = |l: &LocationRow| trace.text(l.function).contains("+0x") || l.function == StringId::default();
    let application = study.classifier.facts(stack).application;
    match leaf {
        // A runtime's threads have none of the application's functions, and spin in the same loop as those that have.
        Some(l) if nameless(&l) => l.module,
        _ if application != StringId::default() => application,
        l => l.map_or(StringId::default(), |l| l.function),
    }
}
