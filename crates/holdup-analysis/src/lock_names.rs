//! Locks that have no name in a trace and are known to everybody by one: told by the functions that wait for them.
//!
//! To add one: a row of [`KNOWN`]; of a database: of [`databases::LOCKS`]; of a language's runtime: in [`runtime`].

// Long because it is a table.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::known::{Known, Place, Runs};
use crate::runtime;

mod databases;

const fn library(name: &'static str, advice: &'static str, functions: &'static [&'static str]) -> Known {
    Known { place: Place::Library, ..Known::of_runtime(name, advice, functions) }
}

const FILES: &str = "Let fewer threads work on the same file or directory at once in {}, or spread them over several.";
const MAPPINGS: &str = "Map and unmap less often in {}: keep memory and use it again (mallopt: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), or use processes instead of threads.";
const MALLOC: &str = "Allocate less in {}, or use an allocator with more arenas and caches for each thread (MALLOC_ARENA_MAX, jemalloc, tcmalloc, mimalloc).";
const ONCE: &str = "Call it less often in {}: once, ahead of time, or in one thread.";

/// What asks for the address of a name, and waits until it is told or time is over.
const NAMES: Known = Known::of_answer(
    "an address for a name (DNS)",
    "See which name server does not answer, or is slow (/etc/resolv.conf; its options timeout and attempts), keep addresses instead of \
     asking for them in {} each time, or run a cache on this machine.",
    &[
        "__res_context_send",
        "__res_context_query",
        "__res_context_search",
        "getaddrinfo",
        "gethostbyname_r",
        "gethostbyname2_r",
        "gethostbyaddr_r",
    ],
);

/// What asks another end for a connection, and waits until it has one. Whoever is not answered asks again after a second.
const CONNECTIONS: Known = Known::of_answer(
    "a connection",
    "Keep connections open in {} and use them again. Where it takes 1, 2, 3 or 7 s, nobody answered at first: the other end's queue of new \
     connections may be full (listen's backlog, net.core.somaxconn; `nstat -az TcpExtListenOverflows` there counts it), so that it should \
     accept sooner, or a packet was lost.",
    &[
        "__inet_stream_connect",
        "inet_wait_for_connect",
        "unix_wait_for_peer",
        // With a time-out of its own: Python, Java.
        "internal_connect",
        "sun.nio.ch.NioSocketImpl.connect",
    ],
);

/// What asks a file system that a process serves.
const FILES_OF_A_PROCESS: Known = Known::of_answer(
    "a file system that a process serves (FUSE)",
    "Each call goes to the process that serves those files, and back: ask for more at a time (larger reads and writes, fewer files opened and \
     looked at), let the kernel keep what it was told (attr_timeout, entry_timeout, kernel_cache, writeback_cache), or go past it.",
    &["request_wait_answer", "fuse_simple_request", "__fuse_simple_request"],
);

/// What stands for code without names in OpenMP's library.
pub(crate) const OPENMP: &str = "libgomp+";

/// Whether a function of the kernel or the C library asks for something, and waits for the answer.
pub(crate) fn asks(function: &str) -> bool {
    taken_in(function).is_some_and(|known| known.place == Place::Answer)
}

/// The table.
const KNOWN: &[Known] = &[
    NAMES,
    CONNECTIONS,
    FILES_OF_A_PROCESS,
    Known {
        is_for_callers: true,
        ..library(
            "one of OpenMP's barriers or locks",
            "Begin no more threads of OpenMP than there are CPUs for them (OMP_NUM_THREADS, num_threads, n_jobs), and give each more to do in {} \
             before it waits for the others.",
            &[OPENMP, "gomp_mutex_lock_slow"],
        )
    },
    Known {
        is_single: true,
        ..Known::of_kernel(
            "the lock on the process's memory map (mmap_lock)",
            MAPPINGS,
            &[
                "vm_mmap_pgoff",
                "__vm_munmap",
                "vm_munmap",
                "do_user_addr_fault",
                "lock_mm_and_find_vma",
                "do_mprotect_pkey",
                "__do_sys_brk",
                "__x64_sys_brk",
                "do_madvise",
                "do_madvise.part.0",
                "madvise_lock",
                "dup_mmap",
                "exit_mmap",
                "exit_mm",
                "__x64_sys_mremap",
                "__do_sys_mremap",
                "mmap_read_lock",
                "mmap_write_lock",
                "mmap_write_lock_killable",
                "mmap_read_lock_killable",
                "proc_pid_cmdline_read",
                "m_start",
                "do_mlock",
                "apply_mlockall_flags",
                "mmput",
                "__mmput",
                "task_numa_work",
                "khugepaged_scan_mm_slot",
                "process_vm_rw_core",
                "get_user_pages_unlocked",
                "fixup_user_fault",
                "get_user_pages_fast",
                "internal_get_user_pages_fast",
                "uprobe_munmap",
                "mpol_rebind_mm",
            ],
        )
    },
    Known::of_kernel(
        "the kernel's list of who maps a file (i_mmap_rwsem)",
        MAPPINGS,
        &[
            "unlink_file_vma",
            "unlink_file_vma_batch_process",
            "unlink_file_vma_batch_final",
            "vma_link_file",
            "vma_link",
            "vma_prepare",
            "rmap_walk_file",
            "__rmap_walk_file",
            "unmap_mapping_range",
            "unmap_mapping_pages",
        ],
    ),
    Known::of_kernel(
        "the kernel's list of who shares memory after a fork (anon_vma)",
        MAPPINGS,
        &[
            "unlink_anon_vmas",
            "anon_vma_clone",
            "anon_vma_fork",
            "__anon_vma_prepare",
            "rmap_walk_anon",
            "folio_lock_anon_vma_read",
            "page_lock_anon_vma_read",
        ],
    ),
    Known::of_kernel(
        "a directory's lock",
        FILES,
        &[
            "open_last_lookups",
            "path_openat",
            "do_unlinkat",
            "filename_create",
            "lookup_slow",
            "walk_component",
            "iterate_dir",
            "do_rmdir",
            "lock_rename",
            "do_renameat2",
            "start_dirop",
            "__start_dirop",
            "simple_start_creating",
        ],
    ),
    Known::of_kernel(
        "a file's lock (inode)",
        FILES,
        &[
            "ext4_buffered_write_iter",
            "ext4_file_write_iter",
            "ext4_file_read_iter",
            "ext4_dio_write_iter",
            "ext4_dio_read_iter",
            "generic_file_write_iter",
            "xfs_ilock",
            "xfs_file_buffered_write",
            "btrfs_inode_lock",
            "btrfs_buffered_write",
            "f2fs_file_write_iter",
            "shmem_file_write_iter",
            "notify_change",
            "do_truncate",
            "chown_common",
            "chmod_common",
            "ext4_map_blocks",
            "ext4_llseek",
            "vfs_fallocate",
            "ext4_fallocate",
            "inode_lock",
            "inode_lock_shared",
        ],
    ),
    Known::of_kernel(
        "a lock that programs set on a file (flock, fcntl)",
        "Keep the file's lock in {} for shorter, or give each process a file of its own.",
        &[
            "flock_lock_inode_wait",
            "locks_lock_inode_wait",
            "fcntl_setlk",
            "posix_lock_inode_wait",
            "do_lock_file_wait",
        ],
    ),
    Known::of_kernel("a file's position, which its threads share", FILES, &["__fdget_pos", "fdget_pos"]),
    Known::of_kernel(
        "a socket's lock",
        "Let one thread at a time use the socket in {}, or give each its own (SO_REUSEPORT).",
        &["__lock_sock", "lock_sock_nested", "unix_stream_read_generic", "unix_stream_sendmsg", "__unix_dgram_recvmsg"],
    ),
    Known::of_kernel(
        "a pipe's lock",
        "Read and write larger pieces in {}, or use more than one pipe.",
        &["pipe_lock", "pipe_read", "pipe_write", "anon_pipe_read", "anon_pipe_write", "pipe_double_lock"],
    ),
    Known::of_kernel(
        "an epoll instance's lock",
        "Give each thread an epoll instance of its own.",
        &["do_epoll_ctl", "ep_send_events", "ep_start_scan"],
    ),
    Known::of_kernel(
        "a terminal's lock",
        "Print less in {}, or into a file.",
        &["tty_write_lock", "file_tty_write", "file_tty_write.isra.0", "n_tty_read", "n_tty_write"],
    ),
    Known::of_kernel(
        "the file system's journal",
        "Create, change and sync fewer files in {}.",
        &["start_this_handle", "add_transaction_credits", "jbd2__journal_start", "wait_transaction_locked"],
    ),
    Known::of_kernel(
        "the kernel's lock on network settings (rtnl)",
        ONCE,
        &["rtnl_lock", "rtnetlink_rcv_msg", "rtnl_lock_killable", "netlink_dump"],
    ),
    Known::of_kernel(
        "the kernel's lock on control groups",
        ONCE,
        &[
            "cgroup_kn_lock_live",
            "cgroup_procs_write_start",
            "cgroup_attach_lock",
            "copy_cgroup_ns",
            "cgroup_can_fork",
            "exit_signals",
        ],
    ),
    library(
        "malloc's arena lock",
        MALLOC,
        &[
            "malloc",
            "free",
            "calloc",
            "realloc",
            "memalign",
            "aligned_alloc",
            "posix_memalign",
            "cfree",
            "__libc_malloc",
            "__libc_free",
            "__libc_calloc",
            "__libc_realloc",
            "_int_malloc",
            "_int_free",
            "_int_realloc",
            "_int_memalign",
            "_int_free_chunk",
            "_int_free_merge_chunk",
            "arena_get2",
            "arena_get_retry",
            "get_free_list",
            "sysmalloc",
            "malloc_consolidate",
            "tcache_init",
            "__malloc_arena_thread_freeres",
            "_mid_memalign",
            "tcache_thread_shutdown",
        ],
    ),
    library(
        "the dynamic loader's lock",
        "Load libraries and look up symbols ahead of time instead of in {}; exceptions and backtraces take this lock, too.",
        &[
            "_dl_open",
            "dlopen",
            "dlopen_doit",
            "__dlopen",
            "dlclose",
            "_dl_close",
            "dlsym",
            "_dl_sym",
            "dl_iterate_phdr",
            "__dl_iterate_phdr",
            "_dl_fixup",
            "_dl_runtime_resolve",
            "__tls_get_addr",
            "tls_get_addr_tail",
            "_dl_allocate_tls_init",
            "_dl_addr",
            "dladdr",
        ],
    ),
    library(
        "a stdio stream's lock (FILE)",
        "Write larger pieces in {}, or give each thread a stream of its own.",
        &[
            "fwrite",
            "_IO_fwrite",
            "fputs",
            "_IO_fputs",
            "puts",
            "_IO_puts",
            "fputc",
            "putc",
            "putchar",
            "printf",
            "fprintf",
            "vfprintf",
            "__vfprintf_internal",
            "fflush",
            "_IO_fflush",
            "_IO_flush_all",
            "_IO_flush_all_lockp",
            "fread",
            "_IO_fread",
            "fgets",
            "_IO_fgets",
            "getc",
            "fgetc",
            "getline",
            "_IO_getdelim",
            "flockfile",
            "__flockfile",
            "_IO_getc",
            "_IO_putc",
            "fclose",
            "_IO_fclose",
            "_IO_link_in",
            "_IO_un_link",
            "fopen",
            "_IO_new_fopen",
            "ftell",
            "fseek",
        ],
    ),
    Known::of_runtime(
        "the lock on standard output",
        "Write larger pieces in {}: into a buffer first (BufWriter), then with the lock taken once.",
        &[
            "std::io::stdio::_print",
            "std::io::stdio::_eprint",
            "std::io::stdio::Stdout::lock",
            "std::io::stdio::Stderr::lock",
        ],
    ),
    library(
        "the C library's time zone lock",
        ONCE,
        &["__tz_convert", "tzset", "localtime", "localtime_r", "mktime", "__mktime_internal"],
    ),
    library(
        "the C library's lock on random()",
        "Use a generator of its own for each thread in {} (random_r, a C++ or Rust engine).",
        &["random", "rand", "__random", "srandom"],
    ),
    library(
        "the lock on thread stacks",
        "Start fewer threads in {}: keep them in a pool.",
        &[
            "allocate_stack",
            "allocate_thread_stack",
            "__nptl_deallocate_stack",
            "__nptl_free_tcb",
            "pthread_create",
            "__make_stacks_executable",
        ],
    ),
    library("the guard of a static variable", ONCE, &["__cxa_guard_acquire"]),
    library(
        "syslog's lock",
        "Log less in {}, or from one thread.",
        &["__vsyslog_internal", "__vsyslog_chk", "syslog", "openlog"],
    ),
    Known {
        is_single: false,
        ..Known::of_runtime(
            "a lock of parking_lot",
            "Do the work of {} before taking the lock, or let the lock go between parts of it.",
            &[
                "parking_lot::raw_mutex::RawMutex::lock_slow",
                "parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow",
                "parking_lot::raw_rwlock::RawRwLock::lock_shared_slow",
                "parking_lot::raw_rwlock::RawRwLock::lock_upgradable_slow",
            ],
        )
    },
    Known {
        is_single: false,
        ..Known::of_runtime(
            "a shard's lock of DashMap",
            "Do the work of {} before taking the entry, or spread the keys over more shards.",
            &["dashmap::lock::RawRwLock::lock_exclusive_slow", "dashmap::lock::RawRwLock::lock_shared_slow"],
        )
    },
    // Boehm's collector, SBCL, Mono, .NET and Go.
    Known {
        runs: Runs::None,
        ..Known::of_runtime(
            "the stop of all threads",
            "Collections and the like have to wait until all threads have stopped: let {} come to a point where it can, such as a call or an \
             allocation.",
            &[
                "GC_stop_world",
                "GC_suspend_all",
                "gc_stop_the_world",
                "sgen_client_stop_world",
                "unified_suspend_stop_world",
                "ThreadSuspend::SuspendEE",
                "ThreadSuspend::SuspendAllThreads",
                "ThreadSuspend::SuspendRuntime",
                "runtime.stopTheWorldWithSema",
            ],
        )
    },
    Known::of_runtime("jemalloc's lock", MALLOC, &["malloc_mutex_lock_slow", "je_malloc_mutex_lock_slow"]),
];

/// All of them.
fn known() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().chain(databases::LOCKS).chain(runtime::locks())
}

fn table() -> &'static FxHashMap<&'static str, &'static Known> {
    static TABLE: OnceLock<FxHashMap<&'static str, &'static Known>> = OnceLock::new();
    TABLE.get_or_init(|| known().flat_map(|known| known.functions.iter().map(move |f| (*f, known))).collect())
}

/// The lock that a function takes.
pub(crate) fn taken_in(function: &str) -> Option<&'static Known> {
    table().get(runtime::bare(function)).copied()
}

/// Whether a function is the kernel's own code for locks that threads sleep for: its callers tell which lock it is.
pub(crate) fn is_kernel_lock_code(function: &str) -> bool {
    const PREFIXES: &[&str] =
        &["rwsem_", "__rwsem", "down_", "__down", "mutex_", "__mutex", "percpu_", "__percpu", "rt_mutex"];
    PREFIXES.iter().any(|prefix| function.starts_with(prefix))
}

/// Whether a thread that waits in this function of a program or runtime waits for a lock, whatever it waits with.
pub(crate) fn takes_lock(function: &str) -> bool {
    taken_in(function).is_some_and(|known| known.place == Place::Runtime) && !runtime::is_ambiguous(function)
}

/// Whether what a function waits for is kept by whichever thread of its process runs.
pub(crate) fn is_kept_by_runner(function: &str) -> bool {
    taken_in(function).is_some_and(|known| known.runs != Runs::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_farther_out_tells_which_lock_of_a_database_it_is() {
        let within = |function: &str| taken_in("ProcSleep").unwrap().within(function).map(|known| known.name);
        assert_eq!(within("LockRelationOid"), Some("a table lock of PostgreSQL"));
        assert_eq!(within("pg_advisory_lock_int8"), Some("an advisory lock of PostgreSQL"));
        assert_eq!(within("LockAcquireExtended"), None);
        assert_eq!(taken_in("LockRelationOid"), None, "it is on the stack of who has it, too");
    }

    #[test]
    fn some_are_kept_by_whoever_runs() {
        let kept = [
            "take_gil",
            "rb_threadptr_execute_interrupts",
            "SafepointSynchronize::synchronize_threads",
            "GC_stop_world",
        ];
        assert_eq!(kept.map(is_kept_by_runner), [true; 4]);
        assert_eq!(["ObjectMonitor::EnterI", "lock_wait", "malloc"].map(is_kept_by_runner), [false; 3]);
    }

    #[test]
    fn the_locks_of_libraries_that_park_are_locks() {
        assert!(takes_lock("parking_lot::raw_mutex::RawMutex::lock_slow") && takes_lock("lock_wait"));
        assert!(!takes_lock("parking_lot_core::parking_lot::park"));
    }

    #[test]
    fn one_function_is_one_lock() {
        let mut seen = std::collections::BTreeMap::new();
        for known in known() {
            for function in known.functions {
                let other = seen.insert(*function, known.name);
                assert_eq!(other, None, "{function}");
            }
            assert!(!known.functions.is_empty() && known.advice.ends_with('.'), "{}", known.name);
        }
    }
}
