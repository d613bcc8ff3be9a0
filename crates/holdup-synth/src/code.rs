//! The code that the threads seem to execute: functions with names, and the stacks that they are in.

use std::sync::Arc;

use holdup_trace::{ChainId, Image, Location, Symbolizer, TraceBuilder};

use crate::random::Random;

/// Addresses from one function to the next.
const FUNCTION: u64 = 0x400;
/// How many instructions of a function are ever sampled.
pub(crate) const LEAVES: usize = 8;

/// Where a function lives: first address, file, source folder.
struct Module {
    start: u64,
    path: &'static str,
    source: &'static str,
    /// By address.
    functions: &'static [&'static str],
}

const KERNEL: Module = Module {
    start: 0xffff_ffff_8100_0000,
    path: "[kernel]",
    source: "",
    functions: &[
        "entry_SYSCALL_64_after_hwframe",
        "do_syscall_64",
        "__x64_sys_futex",
        "do_futex",
        "futex_wait",
        "futex_wait_queue",
        "__x64_sys_epoll_wait",
        "ep_poll",
        "__x64_sys_clock_nanosleep",
        "hrtimer_nanosleep",
        "do_nanosleep",
        "__x64_sys_pread64",
        "vfs_read",
        "folio_wait_bit_common",
        "io_schedule",
        "__x64_sys_fdatasync",
        "file_write_and_wait_range",
        "folio_wait_writeback",
        "__x64_sys_recvfrom",
        "tcp_recvmsg",
        "sk_wait_data",
        "schedule",
    ],
};

const LIBC: Module = Module {
    start: 0x7f00_1000_0000,
    path: "/usr/lib/x86_64-linux-gnu/libc.so.6",
    source: "",
    functions: &[
        "clone3",
        "start_thread",
        "__lll_lock_wait",
        "pthread_mutex_lock",
        "pthread_mutex_unlock",
        "__futex_abstimed_wait",
        "pthread_cond_wait",
        "pthread_cond_signal",
        "epoll_wait",
        "clock_nanosleep",
        "pread64",
        "fdatasync",
        "recv",
        "send",
    ],
};

const PROGRAM: Module = Module {
    start: 0x5555_0040_0000,
    path: "/usr/bin/synthd",
    source: "/src/synthd/",
    functions: &[
        "main",
        "run_job",
        "janitor_main",
        "sweep_pages",
        "bitmap_scan",
        "dispatcher_main",
        "dispatch_request",
        "worker_main",
        "parse_request",
        "serve_read",
        "serve_query",
        "lookup_catalog",
        "run_query",
        "serve_write",
        "flush_page",
        "hub_main",
        "route_batch",
        "load_segment",
        "merge_results",
        "take_task",
        "handle_task",
        "writer_main",
        "log_request",
        "append_entry",
        "prepare_entry",
        "server_main",
        "next_request",
        "answer_request",
        "ask_store",
        "store_main",
        "fetch_record",
    ],
};

const MODULES: [&Module; 3] = [&KERNEL, &LIBC, &PROGRAM];

/// The kernel's part of a stack, the innermost function first.
pub(crate) mod kernel {
    pub(crate) const NONE: &[&str] = &[];
    pub(crate) const FUTEX: &[&str] = &[
        "schedule",
        "futex_wait_queue",
        "futex_wait",
        "do_futex",
        "__x64_sys_futex",
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
    ];
    pub(crate) const POLL: &[&str] =
        &["schedule", "ep_poll", "__x64_sys_epoll_wait", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"];
    pub(crate) const SLEEP: &[&str] = &[
        "schedule",
        "do_nanosleep",
        "hrtimer_nanosleep",
        "__x64_sys_clock_nanosleep",
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
    ];
    pub(crate) const READ_DISK: &[&str] = &[
        "io_schedule",
        "folio_wait_bit_common",
        "vfs_read",
        "__x64_sys_pread64",
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
    ];
    pub(crate) const SYNC_DISK: &[&str] = &[
        "io_schedule",
        "folio_wait_writeback",
        "file_write_and_wait_range",
        "__x64_sys_fdatasync",
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
    ];
    pub(crate) const RECEIVE: &[&str] = &[
        "schedule",
        "sk_wait_data",
        "tcp_recvmsg",
        "__x64_sys_recvfrom",
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
    ];
}

/// The first address of the function `name`, and where in its source it stands.
fn find(name: &str) -> Option<u64> {
    MODULES.iter().find_map(|m| {
        let at = m.functions.iter().position(|f| *f == name)?;
        Some(m.start + at as u64 * FUNCTION)
    })
}

/// A stack in several variants that differ in the innermost instruction of the program.
pub(crate) fn chains(
    builder: &mut TraceBuilder,
    pid: u32,
    kernel: &[&str],
    user: &[&str],
    random: &mut Random,
) -> [(ChainId, u64); LEAVES] {
    // A call returns to somewhere in the function, always to the same place.
    let inside = |name: &&str| find(name).map(|start| start + 0x80 + (name.len() as u64 * 0x24) % 0x200);
    let kernel: Vec<u64> = kernel.iter().filter_map(inside).collect();
    let mut user: Vec<u64> = user.iter().filter_map(inside).collect();
    std::array::from_fn(|_| {
        if kernel.is_empty()
            && let Some(leaf) = user.first_mut()
        {
            *leaf = *leaf / FUNCTION * FUNCTION + 0x40 + 4 * random.below(0x60);
        }
        let ip = kernel.first().or(user.first()).copied().unwrap_or(0);
        (builder.chain(pid, &kernel, &user), ip)
    })
}

/// The files that a process maps as code.
pub(crate) fn images(pid: u32) -> impl Iterator<Item = Image> {
    MODULES.iter().filter(move |m| (m.path == KERNEL.path) == (pid == 0)).map(move |m| Image {
        start: m.start,
        end: m.start + m.functions.len() as u64 * FUNCTION,
        file_offset: 0,
        path: m.path.to_owned(),
        build_id: None,
        pid,
    })
}

/// Names what [`chains`] made.
pub(crate) struct Names;

impl Symbolizer for Names {
    fn locate(&mut self, _kernel: bool, _images: &[Arc<Image>], address: u64) -> Vec<Location> {
        let place = MODULES.iter().find_map(|m| {
            let at = address.checked_sub(m.start)? / FUNCTION;
            Some((m, at, m.functions.get(usize::try_from(at).ok()?)?))
        });
        let Some((module, at, name)) = place else { return Vec::new() };
        let offset = (address - module.start) % FUNCTION;
        let has_source = !module.source.is_empty();
        let file = if has_source {
            format!("{}{}.c", module.source, name.split('_').next().unwrap_or(name))
        } else {
            String::new()
        };
        // Four instructions to a line.
        let line = if has_source { 1 + at as u32 * 70 + offset as u32 / 16 } else { 0 };
        vec![Location { function: (*name).to_owned(), module: module.path.to_owned(), file, line, offset }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}
