//! One function, instruction by instruction: samples, source lines, loops, and what the loops wait for.

mod find;
mod loops;
mod report;
mod rows;

use holdup_trace::{Error, FrameId, Result, Table, Trace};
use rustc_hash::FxHashMap;

use crate::code::Disassembler;
pub(crate) use find::matching;
pub use report::{Annotated, InstructionRow, LoopFacts, Other};

/// Annotates the function that `wanted` means: by its whole name, else by its end, else by a part, else as a regular
/// expression; of several the one with most samples. `path` is only repeated in the answer. O(samples + frames).
///
/// Fails if the trace is damaged or has no CPU samples, or if there is no such function.
pub fn annotate(trace: &Trace, path: &str, wanted: &str, disassembler: &dyn Disassembler) -> Result<Annotated> {
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    let leaves = leaves(trace)?;
    let total: u64 = leaves.values().sum();
    if total == 0 {
        let what = "the trace has no CPU samples; record with --freq 999, or with perf record -e cpu-clock";
        return Err(refuse(what.into()));
    }
    let (function, others) = find::find(trace, &leaves, wanted).map_err(refuse)?;
    let mut found = rows::annotate(trace, &leaves, &function, disassembler);
    found.trace = path.to_owned();
    found.samples_total = total;
    found.share = found.samples as f64 / total as f64;
    found.others = others;
    Ok(found)
}

/// Samples by the frame in which they lie.
fn leaves(trace: &Trace) -> Result<FxHashMap<FrameId, u64>> {
    let mut by_stack: FxHashMap<_, u64> = FxHashMap::default();
    for chunk in trace.samples.chunks() {
        let chunk = chunk?;
        for i in 0..chunk.len() {
            *by_stack.entry(chunk.stack[i]).or_default() += 1;
        }
    }
    let mut leaves = FxHashMap::default();
    for (stack, n) in by_stack {
        if let Some(frame) = trace.stacks.frames(stack).next() {
            *leaves.entry(frame).or_default() += n;
        }
    }
    Ok(leaves)
}
