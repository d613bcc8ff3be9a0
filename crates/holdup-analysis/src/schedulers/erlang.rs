//! Erlang's virtual machine: its schedulers run the processes of the language.

use super::row::Scheduler;

pub(super) const ERLANG: Scheduler = Scheduler {
    is_own: |module, _| module.rsplit('/').next().is_some_and(|base| base.starts_with("beam.smp")),
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
    design: &["erts_sys_main_thread"],
    ..Scheduler::NONE
};
