//! What is known of the runtimes of languages: which threads they keep for themselves, which functions are theirs, where
//! their threads are at home, and the locks and pauses that people know by a name.
//!
//! To add one: a file with a [`Runtime`], and its row in [`ALL`].

mod jvm;
mod others;
mod python;
mod roles;
mod row;

use holdup_trace::COMPILED;
pub(crate) use others::ERLANG_NAMES;
pub(crate) use roles::Roles;
pub use row::Role;
use row::Runtime;
pub(crate) use row::bare;

use crate::known::{Known, Runs};

/// The table.
const ALL: &[Runtime] = &[
    jvm::JVM,
    python::PYTHON,
    others::RUBY,
    others::OCAML,
    others::JEMALLOC,
    others::PYPY,
    others::MONO,
    others::PHP,
    others::JAVASCRIPT,
    others::PERL,
    others::LUA,
    others::R,
    others::OCTAVE,
    others::TEX,
    others::VALGRIND,
    others::SHELL,
    others::ERLANG,
    others::POSTGRES,
    others::MARIADB,
];

/// The locks of all runtimes.
pub(crate) fn locks() -> impl Iterator<Item = &'static Known> {
    ALL.iter().flat_map(|runtime| runtime.locks)
}

/// Whether a function belongs to a runtime or a language's own library, and is none that the author of a program would name.
pub(crate) fn is_own(module: &str, function: &str) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    let by_file = |r: &Runtime| r.modules.iter().any(|m| base.starts_with(m));
    // Code that was compiled at run time and has no names.
    holdup_trace::is_made_at_run_time(module) || ALL.iter().any(|r| by_file(r) || (r.is_own)(module, function))
}

/// Whether a function of a runtime sleeps for a time: one such sleep does not go on in the next.
pub(crate) fn sleeps(function: &str) -> bool {
    const SLEEPS: [&str; 5] = [
        "JavaThread::sleep",
        "java.lang.Thread.sleep",
        "java.lang.Thread.sleep0",
        // Ruby's `sleep`.
        "rb_thread_sleep",
        "rb_thread_wait_for",
    ];
    SLEEPS.contains(&bare(function))
}

/// The language that the interpreter in this file runs, whose functions are not the file's.
pub(crate) fn interprets(module: &str) -> Option<&'static str> {
    ALL.iter().find(|r| (r.interprets)(module)).map(|r| r.language)
}

/// Whether a function of an interpreter runs whatever the program has, so that it says nothing.
pub(crate) fn runs_anything(module: &str, function: &str) -> bool {
    ALL.iter().any(|r| (r.interprets)(module) && r.loops.iter().any(|own| is_it(own, function)))
}

/// Whether it is this function, or one that begins so.
fn is_it(pattern: &str, function: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == function, |begin| function.starts_with(begin))
}

/// What a thread runs of this language whose functions are not known, as the name of a function.
pub(crate) fn nameless(language: &str) -> &'static str {
    ALL.iter().find(|r| r.language == language).map_or("", |r| r.nameless)
}

/// What tells such functions, a sentence; empty for others.
pub(crate) fn naming(nameless: &str) -> &'static str {
    ALL.iter().find(|r| !nameless.is_empty() && r.nameless == nameless).map_or("", |r| r.naming)
}

/// The same of code without names that a program has compiled.
pub(crate) fn naming_of_compiled(program: &str) -> &'static str {
    ALL.iter().find(|r| r.compilers.contains(&program)).map_or("", |r| r.naming)
}

/// Whether code is of a language of which one thread of a process runs at a time.
pub(crate) fn is_one_at_a_time(module: &str, function: &str) -> bool {
    let is_nameless = |r: &Runtime| !function.is_empty() && r.nameless == function;
    let is_code = |r: &&'static Runtime| (r.interprets)(module) || (r.is_language)(module, function) || is_nameless(r);
    ALL.iter().filter(is_code).any(|r| r.locks.iter().any(|lock| lock.runs == Runs::One))
}

/// Over what to spread the work of such code, or of any other.
pub(crate) fn spread_over(module: &str, function: &str) -> &'static str {
    if is_one_at_a_time(module, function) { "processes" } else { "threads" }
}

/// Whether code is of an interpreted language: its source file, or what its runtime compiled.
pub(crate) fn is_interpreted(module: &str, function: &str) -> bool {
    module == COMPILED || ALL.iter().any(|r| (r.is_language)(module, function))
}

/// Whether a file in an interpreted language is of a package that was installed for the program.
pub(crate) fn is_installed(module: &str) -> bool {
    ALL.iter().flat_map(|r| r.packages).any(|folder| module.contains(folder))
}

/// Whether the own life of a forked child begins in this function: its stack goes on with what its parent was in.
pub(crate) fn begins(module: &str, function: &str) -> bool {
    ALL.iter().any(|r| (r.begins)(module, function))
}

/// What the functions of a stack are known as, the innermost first: another name than their own where that is not known and what they
/// do tells.
#[derive(Default)]
pub(crate) struct KnownAs<'t> {
    /// Whether what was seen last waits with a condition variable, or hands on what does.
    waits: bool,
    /// The file of the code without names that hands it on.
    through: Option<&'t str>,
}

impl<'t> KnownAs<'t> {
    /// Takes the next function outwards, and whether it [waits with a condition variable](waits_for_condition) itself.
    pub(crate) fn see(&mut self, module: &'t str, function: &'t str, waits: bool) -> &'t str {
        if waits || !self.waits || self.through.is_some_and(|file| file != module) {
            *self = KnownAs { waits, through: None };
            return function;
        }
        let known = ALL.iter().map(|r| (r.conditions)(module, function)).find(|name| !name.is_empty());
        self.waits = known.is_none() && function.contains("+0x");
        self.through = Some(module);
        known.unwrap_or(function)
    }
}

/// Whether a function waits with a condition variable of the C library.
pub(crate) fn waits_for_condition(function: &str) -> bool {
    function.contains("pthread_cond_") && function.contains("wait")
}

/// What the functions around a wait say of it that looks like one for a lock, the innermost first.
#[derive(Default)]
pub(crate) struct Ambiguous {
    is_over: bool,
    is_ambiguous: bool,
    /// Whether it is for a lock; `None` if they say nothing.
    pub(crate) is_lock: Option<bool>,
}

impl Ambiguous {
    /// Whether it waits for the function that tells.
    pub(crate) fn is_open(&self) -> bool {
        self.is_ambiguous && !self.is_over
    }

    /// Takes the next function outwards.
    pub(crate) fn see(&mut self, module: &str, function: &str) {
        if self.is_over {
            return;
        }
        if is_ambiguous(function) {
            self.is_ambiguous = true;
            return;
        }
        // The first function in the language itself tells.
        if self.is_ambiguous && ALL.iter().any(|r| (r.is_language)(module, function)) {
            self.is_over = true;
            self.is_lock = Some(!ALL.iter().any(|r| is_among(r.signals, module, function)));
        }
    }
}

/// Whether a function of a file is one of those that are given by how its name and its file end.
fn is_among(those: &[(&str, &str)], module: &str, function: &str) -> bool {
    let name = bare(function);
    let is = |end: &str| name.strip_suffix(end).is_some_and(|scope| scope.is_empty() || scope.ends_with('.'));
    those.iter().any(|(end, file)| is(end) && module.ends_with(file))
}

/// Whether a thread waits in this function for the result of what it has itself given others to do.
pub(crate) fn awaits_result(module: &str, function: &str) -> bool {
    ALL.iter().any(|r| is_among(r.results, module, function)) || function.starts_with("std::__basic_future<")
}

/// Whether a function waits for a lock or for a signal.
pub(crate) fn is_ambiguous(function: &str) -> bool {
    ALL.iter().any(|r| r.ambiguous.contains(&bare(function)))
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
    /// Whether it waits there for what serves as a lock.
    pub(crate) is_entry: bool,
}

impl Innermost {
    /// Takes the next function outwards. One without a name says nothing.
    pub(crate) fn see(&mut self, function: &str) {
        if self.is_over
            || function.is_empty()
            || function.contains("+0x")
            || ALL.iter().any(|r| r.waits.contains(&function))
        {
            return;
        }
        self.is_over = true;
        self.is_home = ALL.iter().any(|r| r.homes.contains(&function));
        self.is_entry = ALL.iter().any(|r| r.entries.contains(&function));
    }
}

#[cfg(test)]
mod tests;
