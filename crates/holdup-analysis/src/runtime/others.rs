//! Runtimes of which little more than the lock is known that lets one thread at a time run the language.

use super::row::Runtime;
use crate::known::Known;

pub(super) const ONE_AT_A_TIME: &str = "Only one thread runs the language at a time: spread {} over processes, or do it in native code that lets the lock go.";

pub(super) const RUBY: Runtime = Runtime {
    locks: &[Known::of_runtime(
        "Ruby's interpreter lock (GVL)",
        ONE_AT_A_TIME,
        &["gvl_acquire_worker", "thread_sched_wait_running_turn", "thread_sched_to_running_common", "rb_gvl_init"],
    )],
    ..Runtime::NONE
};

pub(super) const OCAML: Runtime = Runtime {
    locks: &[Known::of_runtime("OCaml's master lock", ONE_AT_A_TIME, &["st_masterlock_acquire", "st_thread_yield"])],
    ..Runtime::NONE
};
