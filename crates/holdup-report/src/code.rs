//! Whose code a report brings along: that of functions that ran, as far as there is room.

use holdup_trace::tables::Code;
use holdup_trace::{Result, StringId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Hexadecimal digits of code that a report holds, at most: most of a recording of a second can be code.
const MOST: usize = 1 << 20;

/// The bytes of code that `trace` keeps: of the functions with the most samples first.
///
/// # Errors
/// If a table is damaged.
pub(crate) fn kept(trace: &Trace) -> Result<FxHashSet<StringId>> {
    let mut samples: FxHashMap<(StringId, StringId), u64> = FxHashMap::default();
    for sample in trace.samples.iter() {
        let leaf = trace.stacks.frames(sample?.stack).next();
        // Code is kept by the function as it was compiled, not by what was inlined into it.
        if let Some(outer) = leaf.and_then(|frame| trace.names.locations(frame).last()) {
            *samples.entry((outer.function, outer.module)).or_default() += 1;
        }
    }
    let mut codes: Vec<(u64, Code)> = trace
        .names
        .codes()
        .filter_map(|code| samples.get(&(code.function, code.module)).map(|count| (*count, code)))
        .collect();
    codes.sort_by_key(|(count, code)| (std::cmp::Reverse(*count), code.bytes));
    let mut room = MOST;
    let fits = |(_, code): &(u64, Code)| {
        let length = trace.text(code.bytes).len();
        let fits = length <= room;
        room -= if fits { length } else { 0 };
        fits
    };
    Ok(codes.into_iter().filter(fits).map(|(_, code)| code.bytes).collect())
}
