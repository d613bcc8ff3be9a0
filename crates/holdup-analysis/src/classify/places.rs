//! What the names of a place in code tell. Many stacks run through the same functions, and reading names is most of what it takes to
//! tell what a stack says: each is read once.

use std::sync::OnceLock;

use holdup_trace::tables::LocationRow;
use holdup_trace::{StringId, Trace, is_made_at_run_time};
use rustc_hash::FxHashMap;

use super::names::{gathers, is_runtime_function, is_runtime_source, kernel_facts, user_kind};
use super::{StackFacts, WaitKind, is_kernel_module, is_runtime_module};
use crate::lock_names::{asks, is_kept_by_runner, takes_lock};
use crate::lock_words::{keeps_lock, says_lock};
use crate::runtime;
use crate::schedulers::{self, Scheduler};

/// What is known of a place: of its function, the file that holds the code, and the source file.
#[derive(Default)]
pub(super) struct Said {
    /// Whether the own life of a forked child begins here.
    pub(super) begins: bool,
    pub(super) in_kernel: bool,
    /// In the C library or one that languages bring.
    pub(super) in_library: bool,
    /// Code of the program.
    pub(super) is_application: bool,
    /// Code of the program or a library of its own, without a name.
    pub(super) is_nameless: bool,
    /// Written in an interpreted language.
    pub(super) is_interpreted: bool,
    /// Of a library's that runs tasks of its own, and tells what they do.
    pub(super) is_of_library: bool,
    /// Whether a thread waits here for the result of what it has others do.
    pub(super) awaits_result: bool,
    /// Whether its callers may be known by another name, for it waits with a condition variable.
    pub(super) waits_for_condition: bool,
    /// The scheduler on one of whose tasks it is.
    pub(super) task: Option<&'static Scheduler>,
    /// Whether it is a loop's that never runs within a task.
    pub(super) loops: bool,
    /// What of its tasks' waiting the kernel does not see, of the scheduler one of whose threads is idle here.
    pub(super) unseen: Option<&'static str>,
    /// Whether a runtime collects garbage in this function and below it.
    pub(super) collects: bool,
    /// What to do about the garbage that a scheduler inside of the program collects here.
    pub(super) collector: Option<&'static str>,
    /// What the kernel's function tells by itself.
    pub(super) kernel: StackFacts,
    /// What the function tells outside of the kernel.
    pub(super) user: User,
}

/// What a function tells outside of the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct User {
    pub(super) takes_lock: bool,
    /// What it makes of a wait for a futex.
    pub(super) kind: Option<WaitKind>,
    pub(super) asks: bool,
    pub(super) kept_by_runner: bool,
    pub(super) sleeps: bool,
    pub(super) gathers: bool,
    pub(super) is_ambiguous: bool,
    pub(super) says_lock: bool,
    pub(super) keeps_lock: bool,
}

impl User {
    pub(super) fn of(function: &str) -> Self {
        User {
            takes_lock: takes_lock(function),
            kind: user_kind(function),
            asks: asks(function),
            kept_by_runner: is_kept_by_runner(function),
            sleeps: runtime::sleeps(function),
            gathers: gathers(function),
            is_ambiguous: runtime::is_ambiguous(function),
            says_lock: says_lock(function),
            keeps_lock: keeps_lock(function),
        }
    }

    /// A wait that is of this kind so far is made more precise by the function that called it.
    pub(super) fn refine(&self, kind: Option<WaitKind>) -> Option<WaitKind> {
        match kind {
            // What a program's own lock is made of says less than that it is one.
            Some(WaitKind::Condition) if self.takes_lock => Some(WaitKind::Lock),
            Some(WaitKind::Futex) | None => self.kind.or(kind),
            _ => kind,
        }
    }
}

/// All places.
pub(super) struct Places {
    /// By location: which of `known` is its.
    of: Vec<u32>,
    known: Vec<OnceLock<Box<Said>>>,
}

impl Places {
    /// O(locations).
    pub(super) fn of(trace: &Trace) -> Self {
        let mut ids: FxHashMap<(StringId, StringId, StringId), u32> = FxHashMap::default();
        let place = |number: usize| {
            let LocationRow { function, module, file, .. } = trace.names.location(number);
            let next = ids.len() as u32;
            *ids.entry((function, module, file)).or_insert(next)
        };
        let of: Vec<u32> = (0..trace.names.count()).map(place).collect();
        Places { of, known: ids.iter().map(|_| OnceLock::new()).collect() }
    }

    /// What the place of a location tells.
    #[inline]
    pub(super) fn at(&self, trace: &Trace, location: usize) -> &Said {
        self.known[self.of[location] as usize]
            .get_or_init(|| Box::new(Said::of(trace, &trace.names.location(location))))
    }
}

impl Said {
    fn of(trace: &Trace, location: &LocationRow) -> Self {
        let (module, function) = (trace.text(location.module), trace.text(location.function));
        let (in_kernel, in_library) = (is_kernel_module(module), is_runtime_module(module));
        let foreign = module.is_empty() || in_kernel || in_library;
        let mut kernel = StackFacts::default();
        if in_kernel {
            kernel_facts(function, &mut kernel);
        }
        Said {
            begins: runtime::begins(module, function),
            in_kernel,
            in_library,
            is_application: is_application(trace, location),
            is_nameless: is_made_at_run_time(module) || !foreign && function.contains("+0x") && !is_own(module, ""),
            is_interpreted: runtime::is_interpreted(module, function),
            is_of_library: schedulers::is_of_library(module, function),
            awaits_result: runtime::awaits_result(module, function),
            waits_for_condition: runtime::waits_for_condition(function),
            task: schedulers::of_task(module, function),
            loops: schedulers::loops(function),
            unseen: schedulers::unseen(function),
            collects: runtime::collects(function),
            collector: schedulers::collector(function),
            kernel,
            user: if in_kernel { User::default() } else { User::of(function) },
        }
    }
}

/// Whether a function belongs to a runtime, to a scheduler, or to a language's own library.
pub(crate) fn is_own(module: &str, function: &str) -> bool {
    runtime::is_own(module, function) || schedulers::is_own(module, function)
}

/// Whether the location is code of the program, not of the kernel, the C library or a language runtime.
pub(super) fn is_application(trace: &Trace, location: &LocationRow) -> bool {
    let (module, function) = (trace.text(location.module), trace.text(location.function));
    !function.is_empty()
        && !is_kernel_module(module)
        && !is_runtime_module(module)
        && !is_runtime_function(function)
        && !is_own(module, function)
        && !is_runtime_source(trace.text(location.file))
}
