//! Runtimes of which little more is known than the lock that lets one thread at a time run the language, or the files that
//! interpret it.

use holdup_base::text::is_version_of;

use super::row::{Role, Runtime};
use crate::known::Known;

pub(super) const RUBY: Runtime = Runtime {
    language: "Ruby",
    interprets: |module| begins(module, &["libruby", "ruby"]),
    locks: &[Known::of_language(
        "Ruby's interpreter lock (GVL)",
        &[
            "gvl_acquire_worker",
            "thread_sched_wait_running_turn",
            "thread_sched_to_running_common",
            "rb_gvl_init",
            // Whose time slice is over: Debian's has no names for what it calls.
            "rb_threadptr_execute_interrupts",
        ],
    )],
    ..Runtime::NONE
};

pub(super) const OCAML: Runtime = Runtime {
    locks: &[Known::of_language(
        "OCaml's master lock",
        // The compiler puts the first two into the others.
        &["st_masterlock_acquire", "st_thread_yield", "caml_thread_yield", "caml_thread_leave_blocking_section"],
    )],
    ..Runtime::NONE
};

pub(super) const PYPY: Runtime = Runtime {
    modules: &["libpypy"],
    conditions: |module| if begins(module, &["libpypy"]) { "RPyGilAcquireSlowPath" } else { "" },
    locks: &[Known::of_language(
        "PyPy's interpreter lock (GIL)",
        &["RPyGilAcquireSlowPath", "RPyGilYieldThreadSlowPath"],
    )],
    ..Runtime::NONE
};

/// The classes that come with it are compiled ahead of time; what the program's own compile to has no names.
pub(super) const MONO: Runtime = Runtime {
    modules: &["mono-sgen", "mono-boehm", "libmonosgen", "libmono-native"],
    is_own: |module, _| module.ends_with(".dll.so"),
    ..Runtime::NONE
};

pub(super) const PHP: Runtime = Runtime {
    language: "PHP",
    interprets: is_php,
    // What it comes with is in the file of its program, and stands on stacks as of `[php]`, or in extensions.
    is_own: |module, _| is_php(module) || module == "[php]" || module.contains("/lib/php/") && module.ends_with(".so"),
    is_language: |module, _| module.ends_with(".php"),
    ..Runtime::NONE
};

fn is_php(module: &str) -> bool {
    begins(module, &["libphp", "php"])
}

pub(super) const PERL: Runtime =
    Runtime { language: "Perl", interprets: |module| begins(module, &["libperl", "perl"]), ..Runtime::NONE };

pub(super) const LUA: Runtime =
    Runtime { language: "Lua", interprets: |module| begins(module, &["liblua", "lua", "luajit"]), ..Runtime::NONE };

/// Its schedulers run the program and are no threads of its own; what they run is told by [`crate::schedulers`].
pub(super) const ERLANG: Runtime = Runtime {
    marker: "sys_sig_dispatc",
    roles: &[(Role::Housekeeping, &["sys_sig_dispatc", "sys_msg_dispatc", "poller", "aux", "async_"])],
    ..Runtime::NONE
};

/// In these it waits for whatever it waits for: who called them tells.
const POSTGRES_WAITS: &[&str] = &[
    "WaitLatch",
    "WaitLatchOrSocket",
    "WaitEventSetWait",
    "WaitEventSetWaitBlock",
    "ConditionVariableSleep",
    "ConditionVariableTimedSleep",
    "PGSemaphoreLock",
];

/// A server rather than a runtime; but its authors, too, name who called these.
pub(super) const POSTGRES: Runtime = Runtime {
    is_own: |module, function| begins(module, &["postgres"]) && POSTGRES_WAITS.contains(&function),
    ..Runtime::NONE
};

/// Whether a file, without its folders, is one of these programs or libraries, of whichever version.
fn begins(module: &str, names: &[&str]) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    names.iter().any(|name| is_version_of(base, name))
}
