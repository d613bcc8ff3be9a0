//! Which lock of the kernel a thread spins for, told by the functions that take it.
//!
//! To add one: a row of [`KNOWN`].

use holdup_trace::{StackId, Trace};

use crate::classify::is_kernel_module;
use crate::known::{Known, Place};
use crate::lock_names::{is_kernel_lock_code, taken_in};

/// The table. Those that a thread sleeps for are in [`crate::lock_names`]; it spins for them first.
const KNOWN: &[Known] = &[
    Known::of_kernel(
        "a lock on the process's page tables",
        "Touch less fresh memory in {}: keep buffers and use them again (mallopt: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), touch it ahead of time, or take large pages (MADV_HUGEPAGE).",
        &[
            "__pte_offset_map_lock",
            "pte_offset_map_lock",
            "do_anonymous_page",
            "do_huge_pmd_anonymous_page",
            "finish_fault",
            "do_wp_page",
            "wp_page_copy",
            "zap_pte_range",
            "copy_pte_range",
            "pmd_install",
            "__pte_alloc",
            "change_pte_range",
            "do_numa_page",
        ],
    ),
    Known::of_kernel(
        "the kernel's lists of memory in use (LRU)",
        "Take and give back less memory in {}: keep buffers and use them again, or read less through the page cache.",
        &[
            "folio_lruvec_lock_irqsave",
            "folio_lruvec_lock_irq",
            "folio_batch_move_lru",
            "lru_add_drain_cpu",
            "__page_cache_release",
            "folios_put_refs",
            "release_pages",
            "shrink_inactive_list",
        ],
    ),
    Known::of_kernel(
        "the kernel's lists of free memory (zone)",
        "Take and give back less memory in {}: keep buffers and use them again, or take large pages.",
        &[
            "rmqueue_bulk",
            "rmqueue",
            "free_pcppages_bulk",
            "__rmqueue_pcplist",
            "free_one_page",
            "free_unref_page_commit",
        ],
    ),
    Known::of_kernel(
        "a CPU's run queue",
        "Wake threads less often in {}: hand over more at a time, to fewer threads.",
        &[
            "raw_spin_rq_lock_nested",
            "try_to_wake_up",
            "ttwu_queue",
            "__task_rq_lock",
            "task_rq_lock",
            "sched_balance_newidle",
        ],
    ),
    Known::of_kernel(
        "the kernel's table of waiters (futex)",
        "Take the lock or condition behind it less often in {}, or by fewer threads at a time.",
        &["futex_q_lock", "futex_wake", "futex_wait_setup", "__futex_wait", "futex_requeue", "futex_wake_op"],
    ),
    Known::of_kernel(
        "a path's entry (dentry)",
        "Open and look up the same files and folders less often in {}, or by fewer threads at a time.",
        &[
            "lockref_get_not_dead",
            "lockref_get",
            "lockref_put_return",
            "lockref_put_or_lock",
            "dput",
            "d_alloc_parallel",
            "__d_lookup",
            "d_lookup",
            "d_alloc",
            "dcache_dir_lseek",
        ],
    ),
    Known::of_kernel(
        "the process's table of open files",
        "Open and close fewer files and sockets in {}, or use several processes.",
        &["alloc_fd", "file_close_fd", "close_fd", "fd_install", "get_unused_fd_flags", "do_dup2"],
    ),
    Known::of_kernel(
        "the process's signals and timers (sighand)",
        "Use fewer signals and CPU timers in {}, or several processes.",
        &[
            "lock_task_sighand",
            "__lock_task_sighand",
            "do_sigaction",
            "do_send_sig_info",
            "run_posix_cpu_timers",
            "get_signal",
        ],
    ),
    Known::of_kernel(
        "the kernel's list of processes (tasklist)",
        "Start and end fewer processes and threads in {}, or keep them in a pool.",
        &[
            "release_task",
            "exit_notify",
            "copy_process",
            "wait_consider_task",
            "do_wait_pid",
            "__do_wait",
            "begin_new_exec",
        ],
    ),
    Known::of_kernel(
        "a socket's queue",
        "Let fewer threads use the same socket at once in {} (SO_REUSEPORT, one for each thread).",
        &[
            "__lock_sock_fast",
            "lock_sock_fast",
            "release_sock",
            "skb_queue_tail",
            "unix_dgram_sendmsg",
            "sock_queue_rcv_skb",
        ],
    ),
    Known::of_kernel(
        "an epoll instance's list",
        "Give each thread an epoll instance of its own, or wake one for each event (EPOLLEXCLUSIVE).",
        &["ep_poll_callback", "ep_poll", "ep_insert", "ep_remove", "ep_done_scan"],
    ),
    Known::of_kernel(
        "a list of waiters",
        "Let fewer threads wait for the same thing in {}, or wake one at a time.",
        &[
            "__wake_up_common_lock",
            "__wake_up_sync_key",
            "prepare_to_wait_exclusive",
            "remove_wait_queue",
            "add_wait_queue",
        ],
    ),
];

/// Callers of the kernel's own code for locks that tell which lock it is.
const CALLERS: usize = 3;

/// The lock for which a thread spins at `stack`, if people know it by name. O(depth).
pub(crate) fn lock_at(trace: &Trace, stack: StackId) -> Option<&'static Known> {
    let locations = trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f));
    let kernel = locations.take_while(|l| is_kernel_module(trace.text(l.module))).map(|l| trace.text(l.function));
    let mut takers = kernel.filter(|f| !is_machinery(f)).take(CALLERS);
    takers.find_map(|function| {
        let here = KNOWN.iter().find(|known| known.functions.contains(&function));
        here.or_else(|| taken_in(function).filter(|known| known.place == Place::Kernel))
    })
}

/// Functions of the kernel that make up any lock that spins.
fn is_machinery(function: &str) -> bool {
    const PARTS: &[&str] =
        &["spin_lock", "read_lock_slowpath", "write_lock_slowpath", "_raw_read_lock", "_raw_write_lock", "osq_lock"];
    is_kernel_lock_code(function) || PARTS.iter().any(|part| function.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_is_one_lock() {
        let mut seen = std::collections::BTreeMap::new();
        for known in KNOWN {
            for function in known.functions {
                assert_eq!(seen.insert(*function, known.name), None, "{function}");
                assert!(!is_machinery(function), "{function} is never looked at");
            }
            assert!(known.advice.ends_with('.'), "{}", known.name);
        }
    }
}
