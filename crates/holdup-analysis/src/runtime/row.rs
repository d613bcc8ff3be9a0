//! What there is to know of one runtime.

use holdup_base::named;

use crate::known::Known;

named! {
    /// For what a runtime keeps a thread.
    pub enum Role {
        /// It collects garbage, in pauses or beside the program.
        Collector = "garbage collector",
        /// It compiles code while the program runs.
        Compiler = "compiler",
        /// It does what needs the world to stand still: collections, too.
        Operations = "operations of the virtual machine",
        /// It keeps house: signals, references, timers.
        Housekeeping = "housekeeping",
    }
}

/// What is known of one.
pub(crate) struct Runtime {
    /// How the files begin that hold its code, without their folders.
    pub(super) modules: &'static [&'static str],
    /// Whether a function in a file is its own, or of its standard library, where the file alone does not tell.
    pub(super) is_own: fn(module: &str, function: &str) -> bool,
    /// The language that it interprets, whose functions are on a stack only if somebody put them there; empty if there are none such.
    pub(super) language: &'static str,
    /// What a thread runs of it whose functions are not on the stack, as the name of a function.
    pub(super) nameless: &'static str,
    /// What tells them, a sentence.
    pub(super) naming: &'static str,
    /// Functions of that interpreter that run whatever the program has, or how these begin if they end with `*`: they say nothing.
    pub(super) loops: &'static [&'static str],
    /// Whether a file holds that interpreter.
    pub(super) interprets: fn(module: &str) -> bool,
    /// A thread that each of its processes has.
    pub(super) marker: &'static str,
    /// The threads that it keeps for itself, by how their names begin.
    pub(super) roles: &'static [(Role, &'static [&'static str])],
    /// Programs that are it, which compile what they run: where that has no names, `naming` is said.
    pub(super) compilers: &'static [&'static str],
    /// Functions with which its threads wait for anything.
    pub(super) waits: &'static [&'static str],
    /// Functions that wait so, as the next ones on the stack, for work that its own threads do by design.
    pub(super) homes: &'static [&'static str],
    /// Functions that wait so for what serves as a lock. They are on the stacks of those that have it, too, farther out.
    pub(super) entries: &'static [&'static str],
    /// Functions that wait for a lock or for a signal: only the language's own functions around them tell which.
    pub(super) ambiguous: &'static [&'static str],
    /// Whether a function in a file is written in the language.
    pub(super) is_language: fn(module: &str, function: &str) -> bool,
    /// What the path of a package has in it that was installed for the program.
    pub(super) packages: &'static [&'static str],
    /// Whether the own life of a forked child begins in this function of a file: what is outside of it is its parent's past.
    pub(super) begins: fn(module: &str, function: &str) -> bool,
    /// Functions, by how their name and their file end, that wait for a signal with what serves as a lock elsewhere.
    pub(super) signals: &'static [(&'static str, &'static str)],
    /// Functions, by how their name and their file end, that wait for the result of what the thread itself has others do.
    pub(super) results: &'static [(&'static str, &'static str)],
    /// Functions below which it collects garbage.
    pub(super) collects: fn(function: &str) -> bool,
    /// Functions in which the program waits for a collection that it has begun.
    pub(super) asks: &'static [&'static str],
    /// What the function of a file is called that alone of what such a one calls waits with a condition variable of the C library: so it
    /// is known where it has no name. Empty of those that call none.
    pub(super) conditions: fn(module: &str, function: &str) -> &'static str,
    /// Its locks.
    pub(super) locks: &'static [Known],
    /// What to do about its collections; `{}` is who allocates.
    pub(super) collector: &'static str,
}

impl Runtime {
    /// One of which nothing is known: a beginning to override.
    pub(super) const NONE: Runtime = Runtime {
        modules: &[],
        is_own: |_, _| false,
        language: "",
        nameless: "",
        naming: "",
        loops: &[],
        interprets: |_| false,
        marker: "",
        roles: &[],
        compilers: &[],
        waits: &[],
        homes: &[],
        entries: &[],
        ambiguous: &[],
        is_language: |_, _| false,
        packages: &[],
        begins: |_, _| false,
        signals: &[],
        results: &[],
        collects: |_| false,
        asks: &[],
        conditions: |_, _| "",
        locks: &[],
        collector: "",
    };
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
