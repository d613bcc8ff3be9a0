//! Shared reference counts, alone and inside a script engine's calls.

#[cfg(feature = "script")]
mod script;

use std::hint::black_box;
use std::sync::Arc;

use holdup_sync::{Padded, PerCpuArc};

use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::case::Case;
use crate::knobs::{CPUS, ROUND_US, ROUNDS, THREADS};
#[cfg(not(feature = "script"))]
use crate::result::{Outcome, Series, Verdict};

const ABOUT: &str = if cfg!(feature = "script") {
    "an Arc cloned by all threads, by each its own, and in each call of a script, shared or compiled for each thread"
} else {
    "an Arc cloned by all threads, by each its own, and in each call of a small interpreter as script engines do"
};

/// The fourth story.
pub const EXPERIMENT: Experiment =
    Experiment { name: "arc", about: ABOUT, axis: "threads", knobs: &[THREADS, CPUS, ROUNDS, ROUND_US], run };

/// A stand-in for a script engine: an interpreter of a few instructions. As in real ones, each call takes a handle on
/// the context and on the compiled unit, and gives both back.
#[derive(Clone)]
struct Engine {
    // Padded: the counts of two engines must not share a line by the allocator's choice.
    context: Arc<Padded<[i64; 4]>>,
    unit: Arc<Padded<Vec<Instruction>>>,
}

#[derive(Clone, Copy)]
enum Instruction {
    Push(i64),
    Load(usize),
    Add,
    Multiply,
}

impl Engine {
    fn compile() -> Self {
        use Instruction::{Add, Load, Multiply, Push};
        let unit = vec![Load(0), Push(3), Multiply, Load(1), Add, Push(7), Multiply, Load(2), Add];
        Engine { context: Arc::new(Padded::new([1, 2, 3, 4])), unit: Arc::new(Padded::new(unit)) }
    }

    fn call(&self) -> i64 {
        let (context, unit) = (Arc::clone(&self.context), Arc::clone(&self.unit));
        execute(&context, &unit)
    }
}

fn execute(context: &[i64; 4], unit: &[Instruction]) -> i64 {
    let (mut stack, mut top) = ([0i64; 8], 0);
    for instruction in unit {
        match *instruction {
            Instruction::Push(value) => (stack[top], top) = (value, top + 1),
            Instruction::Load(place) => (stack[top], top) = (context[place], top + 1),
            Instruction::Add => (stack[top - 2], top) = (stack[top - 2].wrapping_add(stack[top - 1]), top - 1),
            Instruction::Multiply => (stack[top - 2], top) = (stack[top - 2].wrapping_mul(stack[top - 1]), top - 1),
        }
    }
    stack[0]
}

fn run(session: &mut Session) -> Result<Found> {
    let mut cases = handles(session);
    cases.extend(engines(session));
    #[cfg(feature = "script")]
    cases.extend(script::cases(session)?);
    let ladder = session.measure(cases);
    let series = ladder.time_per_op();
    let counts = session.values.counts("threads");
    let most = counts.iter().copied().max().unwrap_or(1);
    #[cfg(feature = "script")]
    let verdict = script::verdict(&series, counts.into_iter().min().unwrap_or(1), most);
    #[cfg(not(feature = "script"))]
    let verdict = verdict(&series, most);
    let notes = ladder.notes();
    Ok(Found { series, notes, verdict })
}

fn handles(session: &Session) -> Vec<Case> {
    let shared = session.for_threads(|threads| {
        let value = Arc::new(1u64);
        Case::new("clone and drop, shared", threads, move |_, n| {
            (0..n).for_each(|_| drop(black_box(Arc::clone(&value))));
        })
    });
    let cloned = session.for_threads(|threads| {
        let value = Arc::new(1u64);
        let handles: Vec<Arc<u64>> = (0..threads).map(|_| Arc::clone(&value)).collect();
        let body = move |who: usize, n| (0..n).for_each(|_| drop(black_box(Arc::clone(&handles[who]))));
        Case::new("clone and drop, each its own handle", threads, body)
    });
    let unshared = session.for_threads(|threads| {
        let values: Vec<Arc<Padded<u64>>> = (0..threads).map(|_| Arc::new(Padded::new(1))).collect();
        let body = move |who: usize, n| (0..n).for_each(|_| drop(black_box(Arc::clone(&values[who]))));
        Case::new("clone and drop, unshared", threads, body)
    });
    let per_cpu = session.for_threads(|threads| {
        let value = PerCpuArc::new(1u64);
        Case::new("get and drop, per CPU", threads, move |_, n| (0..n).for_each(|_| drop(black_box(value.get()))))
    });
    let borrowed = session.for_threads(|threads| {
        let value = Arc::new(1u64);
        Case::new("borrowed, no count", threads, move |_, n| (0..n).for_each(|_| _ = black_box(&*value)))
    });
    [shared, cloned, unshared, per_cpu, borrowed].concat()
}

fn engines(session: &Session) -> Vec<Case> {
    let shared = session.for_threads(|threads| {
        let engine = Engine::compile();
        Case::new("engine shared", threads, move |_, n| (0..n).for_each(|_| _ = black_box(engine.call())))
    });
    let cloned = session.for_threads(|threads| {
        let engine = Engine::compile();
        let engines: Vec<Engine> = (0..threads).map(|_| engine.clone()).collect();
        Case::new("engine cloned for each thread", threads, move |who, n| {
            (0..n).for_each(|_| _ = black_box(engines[who].call()));
        })
    });
    let compiled = session.for_threads(|threads| {
        let engines: Vec<Engine> = (0..threads).map(|_| Engine::compile()).collect();
        Case::new("engine compiled for each thread", threads, move |who, n| {
            (0..n).for_each(|_| _ = black_box(engines[who].call()));
        })
    });
    [shared, cloned, compiled].concat()
}

const ADVICE: &str = "give each thread an object of its own, built again, not cloned: a clone shares its counts. Else borrow \
                      instead of cloning, or use holdup_sync::PerCpuArc";

#[cfg(not(feature = "script"))]
fn verdict(series: &[Series], most: usize) -> Verdict {
    let at = |name: &str| Outcome::median_in(series, name, most as f64);
    let all = (at("engine shared"), at("engine cloned for each thread"), at("engine compiled for each thread"));
    let (Some(shared), Some(cloned), Some(compiled)) = all else { return Verdict::without_clean_rounds() };
    Verdict {
        reproduced: most > 1 && shared > 1.5 * compiled,
        because: format!(
            "with {most} threads a call takes {shared:.0} ns on a shared engine, {cloned:.0} ns on clones of it, which share its \
             counts, and {compiled:.0} ns on engines compiled for each thread"
        ),
        advice: ADVICE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_computes() {
        assert_eq!(Engine::compile().call(), (3 + 2) * 7 + 3);
    }
}
