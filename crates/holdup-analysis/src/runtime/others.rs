//! Runtimes of which little more is known than the lock that lets one thread at a time run the language, or the files that
//! interpret it.

use holdup_base::text::is_version_of;

use super::row::{Role, Runtime};
use crate::known::Known;

pub(super) const RUBY: Runtime = Runtime {
    language: "Ruby",
    nameless: "Ruby code without names",
    naming: "A profiler for Ruby (stackprof, rbspy) tells which of its functions.",
    loops: &[
        "main",
        "rb_call_super",
        "rb_ec_exec_node",
        "rb_ensure",
        "rb_funcallv",
        "rb_iseq_eval_main",
        "rb_obj_call_init_kw",
        "rb_proc_call",
        "rb_protect",
        "rb_rescue2",
        "rb_vm_exec",
        "rb_vm_invoke_proc",
        "rb_yield",
        "rb_yield_values",
        "ruby_exec_node",
        "ruby_run_node",
        "thread_do_start",
        "thread_do_start_proc",
        "thread_start_func_1",
        "thread_start_func_2",
        "vm_exec",
        "vm_exec_core",
    ],
    is_own: |module, _| is_ruby(module) || is_of_rubys_library(module),
    interprets: is_ruby,
    waits: &["rb_native_cond_wait", "rb_native_cond_timedwait"],
    entries: &["rb_mutex_lock", "rb_mutex_synchronize"],
    is_language: |module, _| [".rb", ".ru", ".rake", "/Rakefile"].iter().any(|end| module.ends_with(end)),
    packages: RUBY_PACKAGES,
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

fn is_ruby(module: &str) -> bool {
    begins(module, &["libruby", "ruby"])
}

/// Those of gems, and of distributions.
const RUBY_PACKAGES: &[&str] = &["/gems/", "/vendor_ruby/", "/site_ruby/"];

/// Whether a file, in Ruby or compiled, comes with the language.
fn is_of_rubys_library(module: &str) -> bool {
    let is_package = RUBY_PACKAGES.iter().any(|folder| module.contains(folder));
    module.starts_with("<internal:") || (module.contains("/ruby/") && !is_package)
}

pub(super) const OCAML: Runtime = Runtime {
    locks: &[Known::of_language(
        "OCaml's master lock",
        // The compiler puts the first two into the others.
        &["st_masterlock_acquire", "st_thread_yield", "caml_thread_yield", "caml_thread_leave_blocking_section"],
    )],
    ..Runtime::NONE
};

/// It gives memory back in a thread of its own, in programs of any language.
pub(super) const JEMALLOC: Runtime =
    Runtime { marker: "jemalloc_bg_thd", roles: &[(Role::Housekeeping, &["jemalloc_bg_thd"])], ..Runtime::NONE };

pub(super) const PYPY: Runtime = Runtime {
    modules: &["libpypy"],
    conditions: |module, _| if begins(module, &["libpypy"]) { "RPyGilAcquireSlowPath" } else { "" },
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
    nameless: "PHP code without names",
    interprets: is_php,
    // What it comes with is in the file of its program, and stands on stacks as of `[php]`, or in extensions.
    is_own: |module, _| is_php(module) || module == "[php]" || module.contains("/lib/php/") && module.ends_with(".so"),
    is_language: |module, _| module.ends_with(".php"),
    packages: &["/vendor/"],
    ..Runtime::NONE
};

fn is_php(module: &str) -> bool {
    begins(module, &["libphp", "php"])
}

/// What runs it is told by its event loop: `schedulers/node.rs`.
pub(super) const JAVASCRIPT: Runtime = Runtime {
    is_language: |module, _| {
        module.starts_with("node:") || [".js", ".mjs", ".cjs", ".ts", ".mts"].iter().any(|end| module.ends_with(end))
    },
    packages: &["/node_modules/"],
    ..Runtime::NONE
};

pub(super) const PERL: Runtime = Runtime {
    language: "Perl",
    nameless: "Perl code without names",
    naming: "A profiler for Perl (Devel::NYTProf) tells which of its functions.",
    loops: &["main", "perl_run", "Perl_call_list", "Perl_call_sv", "Perl_runops_standard"],
    interprets: |module| begins(module, &["libperl", "perl"]),
    ..Runtime::NONE
};

pub(super) const LUA: Runtime = Runtime {
    language: "Lua",
    nameless: "Lua code without names",
    naming: "A profiler for Lua tells which of its functions.",
    loops: &["main", "lua_call", "lua_callk", "lua_pcall", "lua_pcallk"],
    interprets: |module| begins(module, &["liblua", "lua", "luajit"]),
    ..Runtime::NONE
};

pub(super) const R: Runtime = Runtime {
    language: "R",
    nameless: "R code without names",
    naming: "R's own profiler (Rprof, profvis) tells which of its functions.",
    loops: &[
        "main",
        "R_ReplFile",
        "R_execClosure",
        "R_forceAndCall",
        "Rf_ReplIteration",
        "Rf_applyClosure",
        "Rf_eval",
        "Rf_mainloop",
        "run_Rmainloop",
    ],
    interprets: |module| matches!(module.rsplit('/').next(), Some("libR.so" | "R")),
    ..Runtime::NONE
};

pub(super) const OCTAVE: Runtime = Runtime {
    language: "Octave",
    nameless: "Octave code without names",
    naming: "Octave's profiler (profile on, profshow) tells which of its functions. A loop over numbers is slow there: one operation on a whole \
             array does the same at once.",
    loops: &[
        "main",
        "octave::tree_*",
        "octave::interpreter::*",
        "octave::application::*",
        "octave::cli_application::*",
        "octave_user_function::*",
        "octave::execute_*",
    ],
    interprets: |module| begins(module, &["liboctinterp", "liboctave", "octave-cli", "octave"]),
    ..Runtime::NONE
};

/// What sets a document is a language of macros.
pub(super) const TEX: Runtime = Runtime {
    language: "TeX",
    nameless: "TeX's macros",
    naming: "To leave parts of the document out (\\includeonly, draft) tells which of them take long: what macros draw (TikZ) may be kept (its \
             library external), and what they load may be dumped into a format (mylatexformat).",
    loops: &["main", "main_body", "main_control", "mainbody", "maincontrol"],
    interprets: |module| begins(module, &["luahbtex", "luatex", "pdftex", "xetex", "tex"]),
    ..Runtime::NONE
};

/// It runs what it has translated, one thread at a time.
pub(super) const VALGRIND: Runtime = Runtime {
    language: "a program under valgrind",
    nameless: "code under valgrind",
    naming: "Valgrind runs one thread of the program at a time, and each many times slower: callgrind tells which functions, and without valgrind \
             they wait for something else.",
    loops: &["main"],
    interprets: |module| {
        let base = module.rsplit('/').next().unwrap_or(module);
        ["memcheck-", "callgrind-", "cachegrind-", "helgrind-", "drd-", "massif-", "dhat-"]
            .iter()
            .any(|tool| base.starts_with(tool))
    },
    ..Runtime::NONE
};

/// What a shell spends in itself it spends in going through its script, line by line.
pub(super) const SHELL: Runtime = Runtime {
    language: "shell",
    nameless: "a script's own lines",
    naming: "A shell is slow at that: let one program (awk, perl) do what its loops do. `set -x` shows which lines it goes through.",
    loops: &[
        "main",
        "execute_command",
        "execute_command_internal",
        "execute_shell_function",
        "maybe_execute_file",
        "parse_and_execute",
        "reader_loop",
        "source_file",
    ],
    interprets: |module| matches!(module.rsplit('/').next(), Some("bash" | "dash" | "ksh" | "mksh" | "zsh")),
    ..Runtime::NONE
};

/// How its functions get names.
pub(crate) const ERLANG_NAMES: &str = "Start it with `+JPperf true` (in ERL_FLAGS), and its functions have names. Where one of Erlang's processes does \
                                       all, the others wait in its mailbox: observer, or process_info(Pid, message_queue_len), tells which.";

/// Its schedulers run the program and are no threads of its own; what they run is told by [`crate::schedulers`].
pub(super) const ERLANG: Runtime = Runtime {
    compilers: &["beam.smp"],
    naming: ERLANG_NAMES,
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
    waits: POSTGRES_WAITS,
    // A checkpoint takes its time, so that others have the disk.
    homes: &["CheckpointWriteDelay"],
    ..Runtime::NONE
};

/// Servers whose packages have no names for what is inside of their storage engine.
pub(super) const MARIADB: Runtime = Runtime {
    conditions: |module, function| {
        let engine = function.starts_with("handler::") && begins(module, &["mariadbd", "mysqld"]);
        if engine { "lock_wait" } else { "" }
    },
    ..Runtime::NONE
};

/// Whether a file, without its folders, is one of these programs or libraries, of whichever version.
fn begins(module: &str, names: &[&str]) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    names.iter().any(|name| is_version_of(base, name))
}
