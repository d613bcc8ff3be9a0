//! What databases work at, and what carries objects between processes, by functions that tell: those are not what their users can change,
//! but queries, indices and what is sent are.

use holdup_trace::{StackId, StringId};
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
static FOR: [(&[&str], &str); 3] = [
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

/// What carries objects to others.
const CARRIES: &[&str] = &[
    "postMessage",
    "structuredClone",
    "ForkingPickler.dumps",
    "_ForkingPickler.dumps",
    "Queue._feed",
    "Queue.get",
    "SimpleQueue.get",
    "_ConnectionBase.*",
    "CloudPickler.dump",
    "node::worker::Message::*",
    "v8::internal::ValueSerializer::*",
    "v8::internal::ValueDeserializer::*",
    "v8::ValueSerializer::*",
    "v8::ValueDeserializer::*",
];

/// Where an attribute of an object from a database is read when it is asked for: in SQLAlchemy, Django, peewee, Active Record and Hibernate.
const LOADS_LAZILY: &[&str] = &[
    "LazyLoader.*",
    "_LazyLoader.*",
    "ForwardManyToOneDescriptor.get_object",
    "ForwardManyToOneDescriptor.__get__",
    "DeferredAttribute.__get__",
    "ForeignKeyAccessor.get_rel_instance",
    "ActiveRecord::Associations::SingularAssociation#*",
    "ActiveRecord::Associations::CollectionAssociation#load_target",
    "org.hibernate.proxy.AbstractLazyInitializer.*",
    "org.hibernate.collection.internal.AbstractPersistentCollection.*",
    "org.hibernate.collection.spi.AbstractPersistentCollection.*",
];

/// Those further up are looked for first.
static KNOWN: [Known; 12] = [
    Known {
        functions: LOADS_LAZILY,
        around: (&[], &[]),
        with: &[],
        is_trigger: false,
        what: "reads what objects refer to, one query for each (an ORM's lazy loading)",
        mend: "read it with the query that finds them (joinedload, selectinload, select_related, prefetch_related, includes, JOIN FETCH).",
    },
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
        functions: &["mdb_id2entry", "mdb_cursor_get", "mdb_entry_decode", "test_filter*"],
        around: (&[], &[]),
        with: &["test_filter*"],
        is_trigger: false,
        what: "looks through the directory's entries",
        mend: "index the attributes that the filter names (olcDbIndex), or search below a narrower base.",
    },
    Known {
        functions: &["tuplesort_*", "_bt_load", "_bt_spools_heapscan"],
        around: (&["btbuild"], &[]),
        with: &["btbuild"],
        is_trigger: false,
        what: "sorts for an index",
        mend: "let more workers build it (max_parallel_maintenance_workers, the table's parallel_workers), give them more memory \
               (maintenance_work_mem), or compare without a language's rules (COLLATE \"C\").",
    },
    Known {
        functions: &[
            "varstrfastcmp_locale",
            "varlenafastcmp_locale",
            "varstr_abbrev_convert",
            "strcoll_l",
            "strxfrm_l",
            "my_strnncollsp_*",
        ],
        around: (&[], &[]),
        with: &["tuplesort_*", "filesort*"],
        is_trigger: false,
        what: "compares texts by a language's rules to sort them",
        mend: "sort where these do not matter with COLLATE \"C\" (a binary collation), or read in the order of an index.",
    },
    Known {
        functions: &["tuplesort_*"],
        around: (&[], &[]),
        with: &["LogicalTapeWrite", "LogicalTapeRead"],
        is_trigger: false,
        what: "sorts, with files for what has no room in its memory",
        mend: "sort less (by an index in that order, with a LIMIT), compare texts without a language's rules (COLLATE \"C\"), or see whether \
               more memory (work_mem) makes it faster.",
    },
    Known {
        functions: &["tuplesort_*", "filesort*"],
        around: (&[], &[]),
        with: &[],
        is_trigger: false,
        what: "sorts",
        mend: "sort less: by an index in that order, with a LIMIT, or with more memory for it (work_mem, sort_buffer_size).",
    },
    Known {
        functions: &["saveCommand", "flushallCommand", "flushdbCommand"],
        around: (&[], &[]),
        with: &["processCommand"],
        is_trigger: false,
        what: "is a command that keeps all clients waiting until it is done (SAVE, FLUSHALL)",
        mend: "use its form in the background (BGSAVE, FLUSHALL ASYNC).",
    },
    Known {
        functions: &[
            "evalCommand",
            "evalGenericCommand",
            "evalShaCommand",
            "fcallCommand",
            "scriptCall",
            "luaCallFunction",
        ],
        around: (&[], &[]),
        with: &["processCommand"],
        is_trigger: false,
        what: "runs scripts (EVAL, FCALL), and no other client's command meanwhile",
        mend: "let a script do less at a time, or do its work in the clients.",
    },
    Known {
        functions: &["standard_planner", "standard_ExecutorStart", "InitPlan", "JOIN::optimize*", "sqlite3RunParser"],
        around: (&[], &[]),
        with: &[],
        is_trigger: false,
        what: "plans queries, and opens what they read",
        mend: "prepare them once (plan_cache_mode, prepared statements), or let them read fewer tables and partitions: which of these may be left out \
               shows only in conditions that are known when the query is planned (EXPLAIN).",
    },
    Known {
        functions: CARRIES,
        around: (&[], &[]),
        with: &[],
        is_trigger: false,
        what: "carries objects to other processes or threads (pickle, structured clone)",
        mend: "send less of them: indices or names of files in place of data, results that are summed up where they are made, or memory that \
               is shared.",
    },
];

/// Which lists of functions there are, a bit of a set for each: four of each kind of work, and those on whose behalf it is done.
fn lists() -> impl Iterator<Item = &'static [&'static str]> {
    let of = |known: &'static Known| [known.functions, known.around.0, known.around.1, known.with];
    KNOWN.iter().flat_map(of).chain(FOR.iter().map(|(functions, _)| *functions))
}

/// The lists that a stack's functions are in.
type Set = u64;

/// The weight of the samples by what their functions are in. O(frames + functions × lists).
fn sets(context: &Context, samples: &FxHashMap<StackId, f64>) -> Vec<(Set, f64)> {
    let mut of_function: FxHashMap<StringId, Set> = FxHashMap::default();
    let is_in = |function: StringId| {
        let name = context.trace.text(function);
        lists().enumerate().fold(0, |set, (n, list)| set | Set::from(schedulers::any(list, name)) << n)
    };
    let mut of_stack = |stack: StackId| {
        let functions = place::functions(context, stack);
        functions.fold(0, |set, function| set | *of_function.entry(function).or_insert_with(|| is_in(function)))
    };
    samples.iter().map(|(stack, weight)| (of_stack(*stack), *weight)).collect()
}

/// Whether most of these samples carry objects to others: what these do to take them in is on other threads, or in other processes.
pub(super) fn carries(context: &Context, samples: &FxHashMap<StackId, f64>) -> bool {
    let is_it = |stack: StackId| place::has(context, stack, |name| schedulers::any(CARRIES, name));
    let own: f64 = samples.iter().filter(|(stack, _)| is_it(**stack)).map(|(_, weight)| weight).sum();
    own > MOST * samples.values().sum::<f64>()
}

/// What to do about what most of these samples do for somebody else; none where nothing is known of it, or they do several things.
pub(super) fn advice(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<String> {
    let (sets, all) = (sets(context, samples), samples.values().sum::<f64>());
    let share = |does: &dyn Fn(Set) -> bool| {
        sets.iter().filter(|(set, _)| does(*set)).map(|(_, weight)| weight).sum::<f64>() / all
    };
    let of = |(n, known): (usize, &'static Known)| {
        let [narrow, around, but, with] = [0, 1, 2, 3].map(|list| 1 << (4 * n + list));
        let seen = |list: Set| share(&|set| set & list != 0) > SEEN;
        let is_seen = seen(narrow) && (known.with.is_empty() || seen(with));
        let does = |set: Set| set & narrow != 0 || set & around != 0 && set & but == 0;
        (if is_seen { share(&does) } else { 0.0 }, known)
    };
    let (own, known) = KNOWN.iter().enumerate().map(of).find(|(share, _)| *share > MOST).unzip();
    let on_behalf = FOR.iter().enumerate().map(|(n, (_, what))| {
        let list = 1 << (4 * KNOWN.len() + n);
        (share(&|set| set & list != 0), *what)
    });
    // That of foreign keys is done by triggers of the database's own.
    let is_for = |(share, _): &(f64, &str)| *share > MOST && known.is_none_or(|known: &Known| !known.is_trigger);
    let on_behalf = on_behalf.into_iter().find(is_for);
    let parts = [on_behalf, own.zip(known.map(|known| known.what))];
    let parts: Vec<String> =
        parts.iter().flatten().map(|(share, what)| format!("{:.0} % of it {what}", 100.0 * share)).collect();
    let mend = known.map_or("see what their own queries do.", |known| known.mend);
    (!parts.is_empty()).then(|| format!("{}: {mend}", parts.join(", ")))
}
