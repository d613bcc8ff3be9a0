//! Erlang's virtual machine: its schedulers run the processes of the language.

use holdup_trace::COMPILED;

use super::row::Scheduler;
use crate::runtime::ERLANG_NAMES;

/// The memory of the assembler that it compiles with.
const PAGES: &str = "memfd:vmem";

pub(super) const ERLANG: Scheduler = Scheduler {
    idles: &["erts_schedule", "erts_check_io*"],
    unseen: "processes that wait for a message of each other, or for a time, do so inside of the program, where the kernel does not see it. \
             observer tells, or the lengths of their mailboxes.",
    task: "process",
    is_own: |module, function| {
        module.rsplit('/').next().is_some_and(|base| base.starts_with("beam.smp"))
            || module == COMPILED && is_of_library(function)
    },
    // Compiled code is named so for perf. Else it has no names, and lies where what writes it keeps its pages.
    is_task: |module, function| {
        module == COMPILED && function.starts_with('$') && function.contains(':') || module.contains(PAGES)
    },
    nameless: "Erlang without names",
    naming: ERLANG_NAMES,
    migrates: true,
    lends_threads: true,
    works: "Let more processes do what {} does, or make it shorter: those that wait for it wait in its mailbox, one behind the other.",
    // Most of its functions have no names.
    waits: &[
        "ethr_event_wait",
        "ethr_event_twait",
        "ethr_event_swait",
        "ethr_event_stwait",
        "erts_poll_wait*",
        "beam.smp+0x*",
    ],
    homes: &["erts_schedule", "erts_check_io*"],
    // Its other program starts what ports run, and awaits orders.
    design: &["erts_sys_main_thread", "erl_child_setup+0x*"],
    ..Scheduler::NONE
};

/// Whether a function is of OTP or of Elixir's own modules: `$gen_server:loop/7`, `$'Elixir.Enum':reduce/3`.
fn is_of_library(function: &str) -> bool {
    let Some((module, _)) = function.strip_prefix('$').and_then(|name| name.split_once(':')) else { return false };
    let module = module.trim_matches('\'');
    match module.strip_prefix("Elixir.") {
        Some(elixir) => ELIXIR.contains(&elixir.split('.').next().unwrap_or(elixir)),
        None => OTP.contains(&module) || OTP_FAMILIES.iter().any(|family| module.starts_with(family)),
    }
}

/// Modules of Elixir's standard library.
const ELIXIR: &[&str] = &[
    "Access",
    "Agent",
    "Application",
    "Code",
    "Collectable",
    "DynamicSupervisor",
    "Enum",
    "Enumerable",
    "File",
    "Float",
    "GenServer",
    "IO",
    "Inspect",
    "Integer",
    "Kernel",
    "Keyword",
    "List",
    "Logger",
    "Macro",
    "Map",
    "MapSet",
    "Module",
    "Path",
    "Port",
    "Process",
    "Range",
    "Regex",
    "Registry",
    "Stream",
    "String",
    "StringIO",
    "Supervisor",
    "System",
    "Task",
    "Tuple",
    "URI",
];

/// Modules of OTP that call what a program gives them, or that everybody calls.
const OTP: &[&str] = &[
    "application",
    "application_master",
    "array",
    "base64",
    "binary",
    "calendar",
    "crypto",
    "dets",
    "dict",
    "erlang",
    "error_handler",
    "ets",
    "file",
    "gb_sets",
    "gb_trees",
    "init",
    "io",
    "io_lib",
    "lists",
    "maps",
    "math",
    "mnesia",
    "orddict",
    "ordsets",
    "os",
    "proc_lib",
    "proplists",
    "queue",
    "rand",
    "re",
    "sets",
    "ssl",
    "string",
    "supervisor",
    "sys",
    "timer",
    "unicode",
    "zlib",
];

/// How others begin.
const OTP_FAMILIES: &[&str] = &["gen_", "erts_", "prim_", "inet", "io_lib_", "elixir", "erl_", "global", "erl_eval"];
