//! What a stack says about a wait, and which frame of it belongs to the application.

mod calls;
mod frames;

use std::sync::OnceLock;

use holdup_base::named;
use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId, Syscall, ThreadIdx, Trace};

pub use calls::kind_of_call;

use crate::lock_names::{asks_for_name, takes_lock};
use crate::lock_words::Near;
use crate::runtime::{self, Ambiguous, Innermost, Role, Roles};
use crate::schedulers::{self, Parked};

named! {
    /// For what a thread waits, as far as its own side tells.
    #[derive(Default)]
    #[repr(u8)]
    pub enum WaitKind {
        /// A mutex, rwlock, file lock, semaphore: something that a thread holds.
        Lock = "lock",
        /// A futex of which it is not known whether it is a lock.
        Futex = "futex",
        /// A condition variable, barrier or parked thread: a signal of another thread.
        Condition = "condition",
        /// A disk or file system.
        Disk = "disk",
        /// A time to pass.
        Timer = "timer",
        /// Input by poll, select, epoll, accept.
        Input = "input",
        /// Bytes to read.
        Read = "read",
        /// Room to write.
        Write = "write",
        /// The end of a child or thread.
        Join = "join",
        /// A signal.
        Signal = "signal",
        /// A page.
        PageFault = "page-fault",
        /// To be let go on: a signal stopped it, or its control group is frozen.
        Stopped = "stopped",
        /// Kernel threads without work.
        KernelIdle = "kernel-idle",
        /// Anything else.
        #[default]
        Unknown = "unknown",
    }
}

impl WaitKind {
    /// Whether it is for input, room or a signal, which the world outside may send.
    pub(crate) const fn is_for_input(self) -> bool {
        use WaitKind::{Input, Read, Signal, Write};
        matches!(self, Input | Read | Write | Signal)
    }

    /// Whether it is for what somebody writes.
    pub(crate) const fn is_for_bytes(self) -> bool {
        matches!(self, WaitKind::Input | WaitKind::Read)
    }
}

/// What a stack tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackFacts {
    /// What the thread waits for.
    pub kind: Option<WaitKind>,
    /// The name of a kernel lock's kind.
    pub kernel_lock: bool,
    /// Whether the stack runs through the kernel's code for locks: futexes, its own sleeping locks, `sched_yield`.
    pub lock_overhead: bool,
    /// Whether it ends in the kernel.
    pub in_kernel: bool,
    /// Whether the kernel interrupts other CPUs here and waits until they have answered.
    pub interrupts: bool,
    /// Whether the kernel spins here.
    pub kernel_spin: bool,
    /// Whether the thread exits because its process does: by no doing of its own.
    pub is_made_to_exit: bool,
    /// Whether the thread gives way to others instead of waiting: `sched_yield`.
    pub yields: bool,
    /// The innermost function of the application; 0 if there is none.
    pub application: StringId,
    /// The function of the application that waits here for a lock, as far as names tell: the outermost of those around the
    /// wait that have a lock's name.
    pub lock_function: StringId,
    /// Whether it comes to code that is neither the kernel's nor the C library's.
    pub tells: bool,
    /// Whether it is for the lock of a language of which one thread runs at a time.
    pub one_runs: bool,
    /// Whether the program asked to sleep for a time, however its runtime does that.
    pub sleeps: bool,
    /// Whether it is stopped for its tracer: a debugger, or strace.
    pub traced: bool,
    /// Whether a condition variable serves as a lock here.
    pub by_condition: bool,
    /// Whether the C library asks here what address a name has.
    pub asks_for_name: bool,
    /// Whether a thread of a scheduler inside of the program waits here for a task: it is at home.
    pub parked: bool,
    /// What the user said of waits here.
    pub verdict: Option<Verdict>,
}

/// The user's word on a place that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Idle by design.
    Idle,
    /// Held up.
    Work,
}

/// Caches [`StackFacts`] by stack.
pub struct Classifier<'a> {
    trace: &'a Trace,
    /// By stack id; small and dense.
    facts: Vec<OnceLock<StackFacts>>,
    sites: Vec<(String, Verdict)>,
    roles: Roles,
}

impl<'a> Classifier<'a> {
    /// A classifier for the stacks of `trace`.
    pub fn new(trace: &'a Trace) -> Self {
        let facts = (0..=trace.stacks.len()).map(|_| OnceLock::new()).collect();
        Classifier { trace, facts, sites: Vec::new(), roles: Roles::of(trace) }
    }

    /// Takes the user's word for waits below functions with these names.
    pub fn with_sites(mut self, idle: &[String], work: &[String]) -> Self {
        self.sites = idle.iter().map(|s| (s.clone(), Verdict::Idle)).collect();
        self.sites.extend(work.iter().map(|s| (s.clone(), Verdict::Work)));
        self
    }

    /// For what a language's runtime keeps the thread; `None` for threads of the program.
    pub fn role(&self, thread: ThreadIdx) -> Option<Role> {
        self.roles.role(thread)
    }

    /// What `stack` tells. O(depth) for the first time.
    pub fn facts(&self, stack: StackId) -> StackFacts {
        if stack == StackId::NONE {
            return StackFacts::default();
        }
        match self.facts.get(stack.index()) {
            Some(facts) => *facts.get_or_init(|| self.examine(stack)),
            // A damaged id.
            None => StackFacts::default(),
        }
    }

    fn examine(&self, stack: StackId) -> StackFacts {
        let mut facts = StackFacts::default();
        let mut near = Near::default();
        let (mut innermost, mut ambiguous) = (Innermost::default(), Ambiguous::default());
        let (mut parked, mut callee) = (Parked::default(), "");
        for (_, location) in self.own_locations(stack) {
            let function = self.trace.text(location.function);
            if let Some((_, verdict)) = self.sites.iter().find(|(site, _)| site == function) {
                facts.verdict = Some(*verdict);
            }
            let module = self.trace.text(location.module);
            let function = runtime::known_as(module, function, std::mem::replace(&mut callee, function));
            if is_kernel_module(module) {
                kernel_facts(function, &mut facts);
            } else {
                if !is_runtime_module(module) {
                    facts.tells |= !module.is_empty();
                    innermost.see(function);
                    parked.see(function);
                }
                ambiguous.see(module, function);
                facts.asks_for_name |= asks_for_name(function);
                facts.one_runs |= runtime::lets_one_run(function);
                facts.sleeps |= runtime::sleeps(function);
                let before = facts.kind;
                facts.kind = user_kind(function, before);
                facts.by_condition |= before == Some(WaitKind::Condition) && facts.kind == Some(WaitKind::Lock);
                if self.is_application(&location) {
                    near.see(location.function, function);
                    if facts.application == StringId::default() {
                        facts.application = location.function;
                    }
                }
            }
        }
        facts.lock_function = near.lock;
        facts.parked = parked.is_parked;
        if innermost.is_home || parked.is_by_design {
            facts.verdict = facts.verdict.or(Some(Verdict::Idle));
        }
        if innermost.is_entry && matches!(facts.kind, Some(WaitKind::Futex | WaitKind::Condition) | None) {
            facts.kind = Some(WaitKind::Lock);
        }
        if let (Some(is_lock), Some(WaitKind::Futex | WaitKind::Condition) | None) = (ambiguous.is_lock, facts.kind) {
            facts.by_condition |= is_lock && facts.kind == Some(WaitKind::Condition);
            facts.kind = Some(if is_lock { WaitKind::Lock } else { WaitKind::Condition });
        }
        facts
    }

    /// Whether the location is code of the program, not of the kernel, the C library or a language runtime.
    pub fn is_application(&self, location: &LocationRow) -> bool {
        let (module, function) = (self.trace.text(location.module), self.trace.text(location.function));
        !function.is_empty()
            && !is_kernel_module(module)
            && !is_runtime_module(module)
            && !is_runtime_function(function)
            && !runtime::is_own(module, function)
            && !is_runtime_source(self.trace.text(location.file))
    }
}

/// Whether a module is the kernel or one of its modules.
pub fn is_kernel_module(module: &str) -> bool {
    module.starts_with('[') && !matches!(module, "[vdso]" | "[anon]" | "[heap]" | "[stack]" | "[jit]")
}

/// Whether a module is the C library or one that languages bring.
pub(crate) fn is_runtime_module(module: &str) -> bool {
    const LIBRARIES: &[&str] = &[
        "libc.so",
        "libc-2",
        "libpthread",
        "ld-linux",
        "ld-2",
        "libstdc++",
        "libgcc_s",
        "libm.so",
        "libc++",
        "librt.",
        "libgomp",
        "libtbb",
        "ld-musl",
        "libdl",
        "libresolv",
    ];
    let base = module.rsplit('/').next().unwrap_or(module);
    module == "[vdso]" || LIBRARIES.iter().any(|l| base.starts_with(l))
}

fn is_runtime_function(function: &str) -> bool {
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

fn is_runtime_source(file: &str) -> bool {
    file.starts_with("/rustc/")
        || file.contains("/library/std/src/")
        || file.contains("/include/c++/")
        || file.starts_with("/usr/include/")
        || file.contains("/lib/gcc/")
        || file.contains("/lib/clang/")
        || file.contains("/.cargo/registry/")
        || schedulers::is_library_source(file)
}

fn kernel_facts(function: &str, facts: &mut StackFacts) {
    use WaitKind::*;
    facts.lock_overhead |= matches!(function, "do_futex" | "futex_wait" | "futex_wake" | "__x64_sys_futex")
        || function.starts_with("__x64_sys_sched_yield")
        || function.starts_with("rwsem_wake")
        || function == "__mutex_unlock_slowpath";
    facts.in_kernel = true;
    facts.interrupts |= function.starts_with("smp_call_function");
    // A signal that kills ends here for all threads but the one that asked for the end.
    facts.is_made_to_exit |= function == "get_signal";
    facts.kernel_spin |= SPIN_SITES.contains(&function);
    facts.yields |= function.ends_with("sched_yield");
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
        "kthread" if facts.kind.is_none() => Some(KernelIdle),
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

/// A futex wait is made more precise by the function that called it.
fn user_kind(function: &str, kind: Option<WaitKind>) -> Option<WaitKind> {
    use WaitKind::*;
    // What a program's own lock is made of says less than that it is one.
    if matches!(kind, Some(Futex | Condition) | None) && takes_lock(function) {
        return Some(Lock);
    }
    if !matches!(kind, Some(Futex) | None) {
        return kind;
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
        kind
    }
}
