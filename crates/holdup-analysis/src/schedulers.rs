//! Schedulers inside of programs: what hands tasks of its own to a few threads, so that the kernel sees who runs them and never
//! who waits. Go's goroutines, Node's event loop and its pool, asyncio's tasks, gevent's greenlets, Netty's handlers, tokio's and rayon's tasks, OpenMP's iterations.
//!
//! A thread of theirs that has no task is at home. If somebody works meanwhile who then gives it one, it could have run
//! earlier: that counts as for others, but it is told as an idle thread, not as a waiter. What tasks wait for is told, if at
//! all, by where such threads are woken ([`Scheduler::wakes`]). Threads that only keep house are idle by design.
//!
//! To add one: a file with a [`Scheduler`], and its row in [`ALL`].

mod asyncio;
mod erlang;
mod gevent;
mod go;
mod haskell;
mod netty;
mod node;
mod openmp;
mod row;
mod rust;

pub(crate) use row::{Scheduler, Wakes, any};

/// The table. Of two whose tasks are on one stack the inner one counts.
const ALL: &[Scheduler] = &[
    go::GO,
    node::POOL,
    node::EVENT_LOOP,
    node::PLATFORM,
    asyncio::ASYNCIO,
    gevent::GEVENT,
    netty::NETTY,
    rust::TOKIO,
    rust::RAYON,
    openmp::OPENMP,
    erlang::ERLANG,
    haskell::HASKELL,
];

/// Whether a function belongs to a scheduler or to its language's library.
pub(crate) fn is_own(module: &str, function: &str) -> bool {
    ALL.iter().any(|s| (s.is_own)(module, function))
}

/// Whether a function of a language's library tells what a task does.
pub(crate) fn is_of_library(module: &str, function: &str) -> bool {
    ALL.iter().any(|s| (s.is_of_library)(module, function))
}

/// Whether a source file belongs to what came with the program, not to the program.
pub(crate) fn is_library_source(file: &str) -> bool {
    file.starts_with("node:") || file.contains("/node_modules/") || file.contains("/go/pkg/mod/")
}

/// What to do about the garbage that is collected in this function and below it.
pub(crate) fn collector(function: &str) -> Option<&'static str> {
    ALL.iter().find(|s| any(s.collects, function)).map(|s| s.collector)
}

/// What of its tasks' waiting the kernel does not see, of the scheduler one of whose threads is idle in this function.
pub(crate) fn unseen(function: &str) -> Option<&'static str> {
    ALL.iter().find(|s| any(s.idles, function)).map(|s| s.unseen)
}

/// Whether a function is a loop's that never runs within a task.
pub(crate) fn loops(function: &str) -> bool {
    ALL.iter().any(|s| any(s.loops, function))
}

/// The scheduler that has this function on the stacks of its tasks, and only there.
pub(crate) fn of_task(module: &str, function: &str) -> Option<&'static Scheduler> {
    ALL.iter().find(|s| (s.is_task)(module, function))
}

/// What a thread was woken for, by the functions of who woke it.
pub(crate) fn woken_for<'a>(mut functions: impl Iterator<Item = &'a str>) -> Option<&'static Wakes> {
    functions.find_map(|function| ALL.iter().flat_map(|s| s.wakes).find(|w| any(w.functions, function)))
}

/// Whether a thread waits for a task, by the functions around its wait outside of kernel and C library, the innermost first.
#[derive(Default)]
pub(crate) struct Parked {
    is_over: bool,
    /// The function seen last, of a thread that still only waits.
    waits_in: Option<&'static str>,
    pub(crate) is_parked: bool,
    /// Whether it is one that does no part of the program's work.
    pub(crate) is_by_design: bool,
}

impl Parked {
    /// Takes the next function outwards.
    pub(crate) fn see(&mut self, function: &str) {
        if self.is_over {
            return;
        }
        let behind = |s: &Scheduler| self.waits_in.is_some_and(|w| is_behind(s, w, function));
        self.is_by_design = ALL.iter().any(|s| any(s.design, function) || behind(s));
        self.is_parked = self.is_by_design || ALL.iter().any(|s| any(s.homes, function));
        if self.is_parked {
            self.is_over = true;
            return;
        }
        let patterns = || ALL.iter().flat_map(|s| s.waits.iter().copied());
        match patterns().find(|w| any(&[w], function)) {
            Some(waits_in) => self.waits_in = Some(waits_in),
            None => self.is_over = true,
        }
    }
}

/// Whether `function` is a home by design to those that wait in `waits_in`.
fn is_behind(scheduler: &Scheduler, waits_in: &str, function: &str) -> bool {
    scheduler.design_behind.iter().any(|(inner, home)| *inner == waits_in && any(&[home], function))
}

#[cfg(test)]
mod tests;
