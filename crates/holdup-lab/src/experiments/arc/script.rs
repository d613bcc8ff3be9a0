//! A real script engine, called as load generators call theirs: a new virtual machine for each call, on handles that
//! are shared, cloned, or each thread's own.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as Turn, Poll, Waker};
use std::thread;

use rune::alloc::clone::TryClone;
use rune::runtime::RuntimeContext;
use rune::{Context, Hash, Source, Sources, Unit, Vm};

use crate::experiment::Session;
use crate::harness::case::Case;
use crate::result::{Outcome, Series, Verdict};
use crate::{Error, Result};

/// The least that a workload can be.
const TEXT: &str = "pub async fn run(ctx, i) {}";

/// All threads call the same.
const SHARED: &str = "script shared";
/// Each thread has copies of context and unit with counts of their own. What is counted inside them, such as native
/// functions and strings, is still shared.
const CLONED: &str = "script cloned for each thread";
/// Each thread has compiled its own.
const COMPILED: &str = "script compiled by each thread";

/// So many times the calls per second of a shared script are an advantage.
const FASTER: f64 = 1.5;
/// Where copies scale, too.
const ADVICE: &str = "compile the script in each thread, which shares nothing; or give each thread new Arcs around copies of \
                      context and unit (try_clone), which is as good for calls that count nothing inside them. A clone \
                      of the Arcs shares their counts";

/// A compiled script, and where to call it.
struct Script {
    context: Arc<RuntimeContext>,
    unit: Arc<Unit>,
    function: Hash,
}

impl Script {
    fn compile() -> Result<Self> {
        let build = || -> std::result::Result<Script, String> {
            let modules = Context::with_config(false).map_err(text)?;
            let mut sources = Sources::new();
            sources.insert(Source::memory(TEXT).map_err(text)?).map_err(text)?;
            let unit = rune::prepare(&mut sources).with_context(&modules).build().map_err(text)?;
            let context = Arc::new(modules.runtime().map_err(text)?);
            Ok(Script { context, unit: Arc::new(unit), function: Hash::type_hash(["run"]) })
        };
        let script = build().map_err(|why| refused(&why))?;
        // A call that fails in the middle of a round would be measured as a fast one.
        if script.call(0) { Ok(script) } else { Err(refused("its function can't be called")) }
    }

    /// One script for each thread, all compiled at the same time: their memory then comes from places that threads do
    /// not share.
    fn compile_for_each(threads: usize) -> Result<Vec<Self>> {
        thread::scope(|scope| {
            let compilers: Vec<_> = (0..threads).map(|_| scope.spawn(Script::compile)).collect();
            let joined = compilers.into_iter().map(|compiler| compiler.join());
            joined.map(|script| script.unwrap_or_else(|_| Err(refused("the compiler panicked")))).collect()
        })
    }

    fn try_clone(&self) -> Result<Self> {
        let context = RuntimeContext::try_clone(&self.context).map_err(|e| refused(&e.to_string()))?;
        let unit = Unit::try_clone(&self.unit).map_err(|e| refused(&e.to_string()))?;
        Ok(Script { context: Arc::new(context), unit: Arc::new(unit), function: self.function })
    }

    /// Runs the function once, to its end; false if it failed or did not end at once.
    fn call(&self, cycle: i64) -> bool {
        let mut vm = Vm::new(Arc::clone(&self.context), Arc::clone(&self.unit));
        let call = pin!(vm.async_call(self.function, ((), cycle)));
        matches!(call.poll(&mut Turn::from_waker(Waker::noop())), Poll::Ready(Ok(_)))
    }

    /// So many calls.
    fn calls(&self, n: u64) {
        for cycle in 0..n {
            assert!(self.call(cycle as i64), "a call of the script failed that succeeded when it was compiled");
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn refused(why: &str) -> Error {
    Error::Platform(format!("the script engine refused the script of this experiment ({why})"))
}

/// The script called in the three ways.
pub(super) fn cases(session: &Session) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let counts = session.values.counts("threads");
    for &threads in &counts {
        let script = Script::compile()?;
        cases.push(Case::new(SHARED, threads, move |_, n| script.calls(n)));
    }
    for &threads in &counts {
        let script = Script::compile()?;
        let scripts = (0..threads).map(|_| script.try_clone()).collect::<Result<Vec<Script>>>()?;
        cases.push(Case::new(CLONED, threads, move |who, n| scripts[who].calls(n)));
    }
    for &threads in &counts {
        let scripts = Script::compile_for_each(threads)?;
        cases.push(Case::new(COMPILED, threads, move |who, n| scripts[who].calls(n)));
    }
    Ok(cases)
}

/// By calls per second of all threads together, with the fewest and with the most threads.
pub(super) fn verdict(series: &[Series], fewest: usize, most: usize) -> Verdict {
    let rates = |name: &str| {
        let at = |threads: usize| Outcome::median_in(series, name, threads as f64).map(|ns| 1e3 * threads as f64 / ns);
        Some((at(fewest)?, at(most)?))
    };
    let all = (rates(SHARED), rates(CLONED), rates(COMPILED));
    let (Some(shared), Some(cloned), Some(compiled)) = all else { return Verdict::without_clean_rounds() };
    let many = |threads: usize| if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    let change = |(few, more): (f64, f64)| {
        if most > fewest { format!("from {few:.2} to {more:.2} million") } else { format!("{more:.2} million") }
    };
    let where_to = if most > fewest { format!("from {} to {}", many(fewest), many(most)) } else { many(most) };
    let fewer = if most > fewest && shared.1 < shared.0 { ", fewer with more threads" } else { "" };
    Verdict {
        reproduced: most > fewest && compiled.1 > FASTER * shared.1,
        because: format!(
            "{where_to}, empty calls per second of one script that all share go {}{fewer}; of scripts cloned for each \
             thread {}; of scripts compiled by each thread {}",
            change(shared),
            change(cloned),
            change(compiled)
        ),
        advice: if cloned.1 > FASTER * shared.1 { ADVICE } else { super::ADVICE }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Point;

    #[test]
    fn all_handles_can_be_called() {
        let script = Script::compile().expect("a script");
        let clone = script.try_clone().expect("a clone");
        assert!(script.call(1) && clone.call(2));
        assert!(!Arc::ptr_eq(&script.unit, &clone.unit));
        let own = Script::compile_for_each(2).expect("two scripts");
        assert!(own.len() == 2 && own.iter().all(|script| script.call(3)));
        assert!(!Arc::ptr_eq(&own[0].context, &own[1].context));
    }

    #[test]
    fn a_call_that_fails_is_told() {
        let script = Script::compile().expect("a script");
        let missing = Script { function: Hash::type_hash(["walk"]), ..script };
        assert!(!missing.call(1));
    }

    fn series(name: &str, ns: [f64; 2]) -> Series {
        let points = [1.0, 2.0].iter().zip(ns).map(|(&x, ns)| Point::of(x, [ns])).collect();
        Series { name: name.to_owned(), unit: "ns/op".to_owned(), axis: None, points }
    }

    #[test]
    fn a_verdict_is_about_calls_per_second() {
        let own = series(COMPILED, [100.0, 100.0]);
        let worse = [series(SHARED, [100.0, 400.0]), series(CLONED, [100.0, 125.0]), own.clone()];
        let found = verdict(&worse, 1, 2);
        assert!(found.reproduced, "{}", found.because);
        assert!(found.because.contains("from 10.00 to 5.00 million, fewer with more threads"), "{}", found.because);
        assert_eq!(found.advice, ADVICE);
        assert!(found.because.ends_with("compiled by each thread from 10.00 to 20.00 million"), "{}", found.because);
        let same = [series(SHARED, [100.0, 110.0]), series(CLONED, [100.0, 110.0]), own];
        let found = verdict(&same, 1, 2);
        assert!(!found.reproduced && found.advice == super::super::ADVICE && !found.because.contains("fewer"));
        assert!(!verdict(&worse, 2, 2).reproduced);
        assert!(!verdict(&worse[..2], 1, 2).reproduced);
    }
}
