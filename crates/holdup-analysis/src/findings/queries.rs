//! What databases work at, by functions of theirs that tell: their own functions are not what their users can change, queries and indices are.

use holdup_trace::StackId;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::place;
use crate::schedulers;

/// From this share of the work on, it is what the work is.
const MOST: f64 = 0.5;

/// Functions below which one thing is done, what that is, and what to do about it.
///
/// Those further up are looked for first.
const KNOWN: [(&[&str], &str, &str); 3] = [
    (
        &["RI_FKey_*"],
        "looks for rows that refer to others (foreign keys)",
        "index the columns that refer, so that a row is changed or deleted without a look through their whole table.",
    ),
    (
        &[
            "heap_getnextslot",
            "heap_getnext",
            "handler::ha_rnd_next*",
            "rr_sequential*",
            "TableScanIterator::Read*",
            "ha_innobase::rnd_next*",
        ],
        "reads whole tables",
        "index what the query asks for (EXPLAIN tells what it reads), or ask for less.",
    ),
    (
        &["tuplesort_performsort", "filesort*"],
        "sorts",
        "sort less: by an index in that order, with a LIMIT, or with more memory for it (work_mem, sort_buffer_size).",
    ),
];

/// What to do about what most of these samples do for a query; none where they are of no database, or do several things.
pub(super) fn advice(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<String> {
    let all: f64 = samples.values().sum();
    KNOWN.iter().find_map(|(functions, what, mend)| {
        let does = |stack: StackId| {
            let mut names = place::functions(context, stack).map(|function| context.trace.text(function));
            names.any(|name| schedulers::any(functions, name))
        };
        let own: f64 = samples.iter().filter(|(stack, _)| does(**stack)).map(|(_, weight)| weight).sum();
        (own > MOST * all).then(|| format!("{:.0} % of it {what}: {mend}", 100.0 * own / all))
    })
}
