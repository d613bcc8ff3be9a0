//! What is known of the runtimes of languages: which threads they keep for themselves, which functions are theirs, where
//! their threads are at home, and the locks and pauses that people know by a name.
//!
//! To add one: a file with a [`Runtime`], and its row in [`ALL`].

mod jvm;
mod others;
mod python;
mod roles;

pub use roles::Role;
pub(crate) use roles::Roles;

use crate::known::Known;

/// What is known of one.
pub(crate) struct Runtime {
    /// How the files begin that hold its code, without their folders.
    modules: &'static [&'static str],
    /// Whether a function in a file is its own, or of its standard library, where the file alone does not tell.
    is_own: fn(module: &str, function: &str) -> bool,
    /// A thread that each of its processes has.
    marker: &'static str,
    /// The threads that it keeps for itself, by how their names begin.
    roles: &'static [(Role, &'static [&'static str])],
    /// Functions with which its threads wait for anything.
    waits: &'static [&'static str],
    /// Functions that wait so, as the next ones on the stack, for work that its own threads do by design.
    homes: &'static [&'static str],
    /// Functions, by name and how their file ends, that wait for a signal with what serves as a lock elsewhere.
    signals: &'static [(&'static str, &'static str)],
    /// Functions below which it collects garbage.
    collects: fn(function: &str) -> bool,
    /// Functions in which the program waits for a collection that it has begun.
    asks: &'static [&'static str],
    /// Its locks.
    locks: &'static [Known],
    /// What to do about its collections; `{}` is who allocates.
    collector: &'static str,
}

impl Runtime {
    /// One of which nothing is known: a beginning to override.
    const NONE: Runtime = Runtime {
        modules: &[],
        is_own: |_, _| false,
        marker: "",
        roles: &[],
        waits: &[],
        homes: &[],
        signals: &[],
        collects: |_| false,
        asks: &[],
        locks: &[],
        collector: "",
    };
}

/// The table.
const ALL: &[Runtime] = &[jvm::JVM, python::PYTHON, others::RUBY, others::OCAML];

/// The locks of all runtimes.
pub(crate) fn locks() -> impl Iterator<Item = &'static Known> {
    ALL.iter().flat_map(|runtime| runtime.locks)
}

/// Whether a function belongs to a runtime or a language's own library, and is none that the author of a program would name.
pub(crate) fn is_own(module: &str, function: &str) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    let by_file = |r: &Runtime| r.modules.iter().any(|m| base.starts_with(m));
    // Code that was compiled at run time and has no names.
    module.starts_with("//anon") || ALL.iter().any(|r| by_file(r) || (r.is_own)(module, function))
}

/// Whether a function waits for a signal, or a thread's end, with what serves as a lock elsewhere.
pub(crate) fn waits_for_signal(module: &str, function: &str) -> bool {
    let name = function.rsplit('.').next().unwrap_or(function);
    ALL.iter().flat_map(|r| r.signals).any(|(signal, file)| name == *signal && module.ends_with(file))
}

/// Whether a runtime collects garbage in this function and below it.
pub(crate) fn collects(function: &str) -> bool {
    ALL.iter().any(|r| (r.collects)(function))
}

/// Whether the program waits in this function for a collection that it has begun.
pub(crate) fn asks_for_collection(function: &str) -> bool {
    ALL.iter().any(|r| r.asks.contains(&function))
}

/// What to do about the collections of the runtime that keeps such threads, most of which are for room that `allocates`
/// asks for: empty, or ` in f`.
pub(crate) fn advice_for_collections(allocates: &str) -> String {
    let runtime = ALL.iter().find(|r| !r.collector.is_empty());
    runtime.map_or(String::new(), |r| r.collector.replace("{}", allocates))
}

/// Whether a thread is at home whose innermost functions outside of kernel and C library are these, the innermost first.
#[derive(Default)]
pub(crate) struct Innermost {
    is_over: bool,
    pub(crate) is_home: bool,
}

impl Innermost {
    /// Takes the next function outwards.
    pub(crate) fn see(&mut self, function: &str) {
        if self.is_over || ALL.iter().any(|r| r.waits.contains(&function)) {
            return;
        }
        self.is_over = true;
        self.is_home = ALL.iter().any(|r| r.homes.contains(&function));
    }
}

/// A function's name without what it returns and takes, of a language that writes these: `Map.get` of
/// `java.lang.Object Map.get(int)`.
pub(crate) fn bare(function: &str) -> &str {
    let name = function.split('(').next().unwrap_or(function);
    match name.rsplit_once(' ') {
        Some((_, last)) if !last.is_empty() && !name.contains('<') => last,
        _ => name,
    }
}

#[cfg(test)]
mod tests;
