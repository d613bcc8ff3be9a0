//! tokio's runtimes and rayon's pool.

use super::row::{Scheduler, any};

/// What lies between a wait of Rust's and who asked for it.
const STD: [&str; 8] =
    ["std::*", "core::*", "parking_lot*", "lock_api::*", "crossbeam*", "<std::*", "<core::*", "<parking_lot*"];

pub(super) const TOKIO: Scheduler = Scheduler {
    idles: &["tokio::runtime::scheduler::*", "tokio::runtime::park*"],
    unseen: "tasks that await each other, a time or input do so inside of the program, where the kernel does not see it. tokio-console tells.",
    is_own: |_, function| any(&["tokio::*", "mio::*"], function) || is_implementation(function, &["tokio::", "mio::"]),
    waits: &[
        STD[0],
        STD[1],
        STD[2],
        STD[3],
        "mio::*",
        "<mio::*",
        "tokio::loom*",
        "tokio::runtime::driver*",
        "tokio::runtime::io::*",
        "tokio::runtime::park::Inner*",
        "tokio::runtime::park::CachedParkThread::park*",
        "tokio::runtime::process*",
        "tokio::runtime::scheduler::multi_thread::park*",
        "tokio::runtime::scheduler::multi_thread::worker::Context::park*",
        "tokio::runtime::signal*",
        "tokio::runtime::time*",
    ],
    homes: &[
        "tokio::runtime::blocking::pool::Inner::run*",
        "tokio::runtime::park::CachedParkThread::block_on*",
        "tokio::runtime::scheduler::current_thread::Context::park*",
        "tokio::runtime::scheduler::current_thread::CoreGuard*",
        "tokio::runtime::scheduler::multi_thread::worker::Context::run",
        "tokio::runtime::scheduler::multi_thread::worker::run*",
    ],
    migrates: true,
    lends_threads: true,
    is_task: |_, function| {
        any(
            &[
                "tokio::runtime::task::LocalNotified*",
                "tokio::runtime::scheduler::multi_thread::worker::Context::run_task*",
                "tokio::runtime::scheduler::current_thread::Context::run_task*",
            ],
            function,
        )
    },
    works: BLOCKED,
    busy: BLOCKED,
    blocks: "{} blocks a thread on which tokio runs tasks: give blocking calls to tokio::task::spawn_blocking, or use their \
             asynchronous form.",
    ..Scheduler::NONE
};

const BLOCKED: &str = "{} runs on a thread of tokio's for long, and other tasks of that thread wait until it awaits: give \
                       it to tokio::task::spawn_blocking or to rayon, or cut it with yield_now().await.";

pub(super) const RAYON: Scheduler = Scheduler {
    task: "job",
    is_own: |_, function| {
        any(&["rayon::*", "rayon_core::*"], function) || is_implementation(function, &["rayon::", "rayon_core::"])
    },
    waits: &[
        STD[0],
        STD[1],
        STD[2],
        STD[3],
        STD[4],
        STD[5],
        STD[6],
        STD[7],
        "rayon_core::latch::*",
        "rayon_core::sleep::*",
        "rayon_core::registry::WorkerThread::wait_until*",
    ],
    homes: &[
        "rayon_core::registry::main_loop",
        "rayon_core::registry::ThreadBuilder::run",
        // Who gives work to the pool from outside waits for all of it, like a join.
        "rayon_core::registry::Registry::in_worker_cold*",
    ],
    is_task: |_, function| {
        let plain =
            &["rayon::iter::plumbing::bridge*", "rayon_core::join::*", "rayon_core::scope::*", "rayon_core::job::*"];
        any(plain, function) || is_implementation(function, &["rayon_core::job::"])
    },
    works: "Cut the work of {} into smaller pieces (par_chunks, a lower with_min_len, join inside of it): rayon's other threads \
            found nothing to steal.",
    ..Scheduler::NONE
};

/// Whether a function is `<T as trait>::f` of a type in one of these crates.
fn is_implementation(function: &str, crates: &[&str]) -> bool {
    function.strip_prefix('<').is_some_and(|rest| crates.iter().any(|c| rest.starts_with(c)))
}
