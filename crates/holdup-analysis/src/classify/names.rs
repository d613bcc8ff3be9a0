//! What the names of functions and files tell by themselves.

use holdup_trace::Syscall;

use super::{StackFacts, WaitKind, kind_of_call};
use crate::lock_names::{asks, takes_lock};
use crate::schedulers;

pub(crate) fn is_runtime_function(function: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "std::",
        "core::",
        "alloc::",
        "__gthread",
        "__gnu_cxx::",
        "parking_lot",
        "_start",
        "__libc_",
        "__rust_",
        "<std::",
        "<core::",
        "<alloc::",
        "<&mut F as core::",
        "<F as core::",
        "<F as alloc::",
        "runtime.",
        "crossbeam",
        "lock_api::",
        "pthread_",
        "__pthread",
        "hashbrown::",
        "<T as core::",
        "<parking_lot",
        "__lll_",
        "[plt]",
    ];
    // A bare "module+0x…" names no function.
    function.contains("+0x") || PREFIXES.iter().any(|p| function.starts_with(p))
}

pub(super) fn is_runtime_source(file: &str) -> bool {
    file.starts_with("/rustc/")
        // What the standard library is made of.
        || file.starts_with("/rust/deps/")
        || file.contains("/library/std/src/")
        || file.contains("/include/c++/")
        || file.starts_with("/usr/include/")
        || file.contains("/lib/gcc/")
        || file.contains("/lib/clang/")
        || file.contains("/.cargo/registry/")
        || schedulers::is_library_source(file)
}

pub(super) fn kernel_facts(function: &str, facts: &mut StackFacts) {
    use WaitKind::*;
    facts.lock_overhead |= matches!(function, "do_futex" | "futex_wait" | "futex_wake" | "__x64_sys_futex")
        || function.starts_with("__x64_sys_sched_yield")
        || function.starts_with("rwsem_wake")
        || function == "__mutex_unlock_slowpath";
    facts.in_kernel = true;
    facts.asks |= asks(function);
    facts.interrupts |= function.starts_with("smp_call_function");
    facts.by_timer |= matches!(function, "hrtimer_wakeup" | "process_timeout");
    // A signal that kills ends here for all threads but the one that asked for the end.
    facts.is_made_to_exit |= function == "get_signal";
    facts.signals |=
        matches!(function, "zap_other_threads" | "zap_process" | "complete_signal" | "signal_wake_up_state");
    facts.kernel_spin |= SPIN_SITES.contains(&function);
    facts.yields |= function.ends_with("sched_yield");
    facts.frees_memory |= matches!(function, "shrink_node" | "shrink_lruvec" | "do_try_to_free_pages");
    facts.at_memory_limit |= function == "try_to_free_mem_cgroup_pages";
    facts.swaps |= matches!(function, "do_swap_page" | "shmem_swapin_folio" | "shmem_swapin");
    facts.maps |= function == "filemap_fault";
    let kind = match function {
        "io_schedule"
        | "io_schedule_timeout"
        | "jbd2_log_wait_commit"
        | "submit_bio_wait"
        | "wait_on_buffer"
        | "balance_dirty_pages"
        | "rq_qos_wait"
        | "folio_wait_writeback"
        | "blk_io_schedule" => Some(Disk),
        "hrtimer_nanosleep" | "do_nanosleep" | "clock_nanosleep" => Some(Timer),
        "ep_poll" | "do_poll" | "do_sys_poll" | "do_select" | "inet_csk_accept" | "io_cqring_wait" => Some(Input),
        "do_wait" | "kernel_wait4" | "do_wait4" => Some(Join),
        // For its tracer.
        "ptrace_stop" => {
            facts.traced = true;
            Some(Signal)
        }
        "do_signal_stop" | "do_freezer_trap" | "__refrigerator" => Some(Stopped),
        "rwsem_down_read_slowpath"
        | "rwsem_down_write_slowpath"
        | "__mutex_lock_slowpath"
        | "__mutex_lock"
        | "rwsem_down_write_failed"
        | "rwsem_down_read_failed" => {
            facts.kernel_lock = true;
            Some(Lock)
        }
        "flock_lock_inode_wait" | "locks_lock_inode_wait" | "fcntl_setlk" | "posix_lock_inode_wait" => Some(Lock),
        // The second are io_uring's own workers.
        "kthread" | "io_wq_worker" => Some(KernelIdle),
        "pipe_read" | "pipe_wait_readable" | "anon_pipe_read" => Some(Read),
        "pipe_write" | "pipe_wait_writable" | "anon_pipe_write" => Some(Write),
        "exc_page_fault" | "asm_exc_page_fault" | "page_fault" | "do_page_fault" => Some(PageFault),
        _ => Syscall::from_kernel_function(function).and_then(|call| kind_of_call(call, false)),
    };
    facts.kind = facts.kind.or(kind);
}

/// Where the kernel burns CPU time while it waits for another CPU.
const SPIN_SITES: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "mutex_spin_on_owner",
    "rwsem_spin_on_owner",
    "osq_lock",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
];

/// Whether all of several threads wait in this function until the last one has come.
pub(super) fn gathers(function: &str) -> bool {
    const BARRIERS: [&str; 5] = ["barrier_wait", "Barrier.wait", "Barrier::wait", "CyclicBarrier.", "__kmp_barrier"];
    BARRIERS.iter().any(|barrier| function.contains(barrier))
}

/// What a function makes of a wait for a futex that it called.
pub(super) fn user_kind(function: &str) -> Option<WaitKind> {
    use WaitKind::*;
    if takes_lock(function) {
        return Some(Lock);
    }
    let has = |parts: &[&str]| parts.iter().any(|p| function.contains(p));
    if has(&["join", "JoinHandle"]) && !has(&["rayon"]) {
        Some(Join)
    } else if has(&[
        "cond_wait",
        "cond_timedwait",
        "cond_clockwait",
        "Condvar",
        "condition_variable",
        "barrier_wait",
        "Barrier",
    ]) || has(&["thread::park", "Parker", "mpsc", "mpmc", "::recv", "runtime.note"])
    {
        Some(Condition)
    } else if has(&["mutex_lock", "Mutex", "mutex::", "lll_lock", "rwlock", "RwLock"])
        || has(&["lock_contended", "lock_slow", "cnd_lock", "mtx_lock"])
        || has(&["__cxa_guard_acquire", "pthread_once", "once::futex::Once"])
    {
        Some(Lock)
    } else {
        None
    }
}
