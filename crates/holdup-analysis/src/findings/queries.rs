//! What databases work at, by functions of theirs that tell: their own functions are not what their users can change, queries and indices are.

use holdup_trace::StackId;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::place;
use crate::schedulers;

/// From this share of the work on, it is what the work is.
const MOST: f64 = 0.5;
/// From this share on it is seen at all.
const SEEN: f64 = 0.05;

/// Work that is done below some functions.
struct Known {
    functions: &'static [&'static str],
    /// Functions that do it, too, if they do nothing else: those in the second list.
    around: (&'static [&'static str], &'static [&'static str]),
    /// Functions without which it is something else.
    with: &'static [&'static str],
    is_trigger: bool,
    what: &'static str,
    mend: &'static str,
}

/// On whose behalf it is done.
const FOR: [(&[&str], &str); 3] = [
    (
        &[
            "AfterTriggerEndQuery",
            "AfterTriggerFireDeferred",
            "ExecBRInsertTriggers",
            "ExecBRUpdateTriggers",
            "ExecBRDeleteTriggers",
            "sp_head::execute_trigger*",
        ],
        "runs triggers",
    ),
    (&["plpgsql_call_handler", "plpgsql_inline_handler", "sp_head::execute_*"], "runs stored procedures"),
    (&["plpython3_call_handler", "plperl_call_handler"], "runs stored procedures"),
];

/// Those further up are looked for first.
const KNOWN: [Known; 4] = [
    Known {
        functions: &["RI_FKey_*"],
        around: (&[], &[]),
        with: &[],
        is_trigger: true,
        what: "looks for rows that refer to others (foreign keys)",
        mend: "index the columns that refer, so that a row is changed or deleted without a look through their whole table.",
    },
    Known {
        functions: &[
            "heap_getnextslot",
            "heap_getnext",
            "handler::ha_rnd_next*",
            "rr_sequential*",
            "TableScanIterator::Read*",
            "ha_innobase::rnd_next*",
        ],
        // What it does with each row, such as to look whether it is wanted.
        around: (&["ExecScan"], &["index_getnext*", "tuplesort_*"]),
        with: &[],
        is_trigger: false,
        what: "reads whole tables",
        mend: "index what the query asks for (EXPLAIN tells what it reads), or ask for less.",
    },
    Known {
        functions: &["tuplesort_*"],
        around: (&[], &[]),
        with: &["LogicalTapeWrite", "LogicalTapeRead"],
        is_trigger: false,
        what: "sorts, with files for what has no room in its memory",
        mend: "give it more memory (work_mem), or sort less: by an index in that order, with a LIMIT.",
    },
    Known {
        functions: &["tuplesort_*", "filesort*"],
        around: (&[], &[]),
        with: &[],
        is_trigger: false,
        what: "sorts",
        mend: "sort less: by an index in that order, with a LIMIT, or with more memory for it (work_mem, sort_buffer_size).",
    },
];

/// What to do about what most of these samples do for a query; none where they are of no database, or do several things.
pub(super) fn advice(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<String> {
    let all: f64 = samples.values().sum();
    let on = |stack: StackId, functions: &[&str]| {
        let mut names = place::functions(context, stack).map(|function| context.trace.text(function));
        names.any(|name| schedulers::any(functions, name))
    };
    let share = |does: &dyn Fn(StackId) -> bool| {
        samples.iter().filter(|(stack, _)| does(**stack)).map(|(_, weight)| weight).sum::<f64>() / all
    };
    let of = |known: &Known| {
        let (around, but) = known.around;
        let narrow = |stack| on(stack, known.functions);
        let seen = share(&narrow) > SEEN && (known.with.is_empty() || share(&|stack| on(stack, known.with)) > SEEN);
        let does = |stack| narrow(stack) || on(stack, around) && !on(stack, but);
        if seen { share(&does) } else { 0.0 }
    };
    let (own, known) = KNOWN.iter().map(|known| (of(known), known)).find(|(share, _)| *share > MOST).unzip();
    let on_behalf = FOR.iter().map(|(functions, what)| (share(&|stack| on(stack, functions)), *what));
    // That of foreign keys is done by triggers of the database's own.
    let is_for = |(share, _): &(f64, &str)| *share > MOST && known.is_none_or(|known| !known.is_trigger);
    let on_behalf = on_behalf.into_iter().find(is_for);
    let parts = [on_behalf, own.zip(known.map(|known| known.what))];
    let parts: Vec<String> =
        parts.iter().flatten().map(|(share, what)| format!("{:.0} % of it {what}", 100.0 * share)).collect();
    let mend = known.map_or("see what their own queries do.", |known| known.mend);
    (!parts.is_empty()).then(|| format!("{}: {mend}", parts.join(", ")))
}
