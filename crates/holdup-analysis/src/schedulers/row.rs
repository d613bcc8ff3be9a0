//! What there is to know of one scheduler.

/// What is known of one. Patterns are names of functions without generic arguments, or how these begin if they end with `*`.
pub(crate) struct Scheduler {
    /// What its idle threads lack: `goroutine`.
    pub(crate) task: &'static str,
    /// Whether a function is its own, or its language's, so that no author of a program would look for it.
    pub(super) is_own: fn(module: &str, function: &str) -> bool,
    /// Whether a function is its language's library's, and tells what a task does on whose stack nothing is of the program's own.
    pub(super) is_of_library: fn(module: &str, function: &str) -> bool,
    /// Functions with which its threads wait for anything.
    pub(super) waits: &'static [&'static str],
    /// Functions that wait so, as the next ones on the stack, for a task.
    pub(super) homes: &'static [&'static str],
    /// Those of threads that do no part of the program's work: idle by design, whoever wakes them.
    pub(super) design: &'static [&'static str],
    /// Functions with names that others may have, too: such as in `design`, but only right behind that wait.
    pub(super) design_behind: &'static [(&'static str, &'static str)],
    /// Whether a function is on the stacks of its tasks, and only there.
    pub(super) is_task: fn(module: &str, function: &str) -> bool,
    /// Whether tasks go from thread to thread, so that it says nothing which thread ran what.
    pub(crate) migrates: bool,
    /// Whether no task has a place of its own to wait at: tasks that wait do so without their thread, or keep it from others.
    pub(crate) lends_threads: bool,
    /// What its threads are woken for.
    pub(super) wakes: &'static [Wakes],
    /// Functions below which it collects garbage.
    pub(super) collects: &'static [&'static str],
    /// What to do about collecting.
    pub(crate) collector: &'static str,
    /// What a task runs that has no name here, as the name of a function; empty if nobody can say.
    pub(crate) nameless: &'static str,
    /// How to get names, a sentence.
    pub(crate) naming: &'static str,
    /// What to do about a task that works while threads of the scheduler are idle; `{}` is its function.
    pub(crate) works: &'static str,
    /// The same of one that works all the time, so that nobody is known to wait; empty: nothing.
    pub(crate) busy: &'static str,
    /// A function behind which tasks run in threads that are made for them, and the advice there in place of the two above.
    pub(crate) aside: Option<(&'static str, &'static str)>,
    /// Functions on the stacks of its idle threads: where they are, tasks may wait unseen.
    pub(super) idles: &'static [&'static str],
    /// Functions of its loop, which never runs within a task: where no code of the program is below them, a thread waits for whatever comes.
    pub(super) loops: &'static [&'static str],
    /// What of its tasks' waiting the kernel does not see, and what does: a sentence.
    pub(crate) unseen: &'static str,
    /// What to do about a task that sleeps, or waits for a disk, with the thread that others need; empty: nothing.
    pub(crate) blocks: &'static str,
}

/// What threads are woken for.
pub(crate) struct Wakes {
    /// By whom, as the object of `by`: `channel operations`.
    pub(crate) by: &'static str,
    /// What to do about tasks that wait so; `{}` is the function that works meanwhile.
    pub(crate) advice: &'static str,
    /// Functions on the stack of who wakes.
    pub(super) functions: &'static [&'static str],
    /// Whether it is for a lock: what is done under it has to be done in any case.
    pub(crate) is_lock: bool,
}

impl Scheduler {
    /// One of which nothing is known: a beginning to override.
    pub(super) const NONE: Scheduler = Scheduler {
        task: "task",
        is_own: |_, _| false,
        is_of_library: |_, _| false,
        waits: &[],
        homes: &[],
        design: &[],
        design_behind: &[],
        migrates: false,
        is_task: |_, _| false,
        lends_threads: false,
        wakes: &[],
        collects: &[],
        collector: "",
        nameless: "",
        naming: "",
        works: "",
        busy: "",
        aside: None,
        idles: &[],
        loops: &[],
        unseen: "",
        blocks: "",
    };
}

/// Whether one of the patterns matches the function.
pub(crate) fn any(patterns: &[&str], function: &str) -> bool {
    let name = plain(function);
    // Few names have brackets to be taken away: the others are compared as they are.
    let whole = name.1.is_empty().then_some(name.0);
    patterns.iter().any(|pattern| match (pattern.strip_suffix('*'), whole) {
        (Some(begin), Some(whole)) => whole.starts_with(begin),
        (None, Some(whole)) => whole == *pattern,
        (Some(begin), None) => joined(name).take(begin.len()).eq(begin.bytes()),
        (None, None) => joined(name).eq(pattern.bytes()),
    })
}

/// A function's name as its author knows it: without Go's mark of an ABI, and without the brackets that Rust puts around the
/// type of a method.
fn plain(function: &str) -> (&str, &str) {
    let function = function.strip_suffix(".abi0").unwrap_or(function);
    let bracketed = function.strip_prefix('<').and_then(|rest| rest.split_once(">::"));
    match bracketed.filter(|(of, _)| !of.contains(" as ") && !of.contains('<')) {
        Some(parts) => parts,
        None => (function, ""),
    }
}

/// The two parts of a name, with `::` between them where there are two.
fn joined<'a>((of, method): (&'a str, &'a str)) -> impl Iterator<Item = u8> + 'a {
    let between = if method.is_empty() { "" } else { "::" };
    of.bytes().chain(between.bytes()).chain(method.bytes())
}
