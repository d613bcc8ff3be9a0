//! What a stack says about a wait, and which frame of it belongs to the application.

mod frames;
mod names;
mod places;

use std::sync::OnceLock;

use holdup_base::named;
use holdup_trace::tables::LocationRow;
use holdup_trace::{COMPILED, StackId, StringId, Syscall, ThreadIdx, Trace};

use crate::lock_words::Near;
use crate::runtime::{self, Ambiguous, Innermost, KnownAs, Role, Roles};
use crate::schedulers::Parked;
pub(crate) use names::is_runtime_function;
pub(crate) use places::is_own;
use places::{Places, User};

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

    /// Whether it is for a lock, or for a signal that may stand for one: another thread lets it in.
    pub(crate) const fn is_for_turn(self) -> bool {
        matches!(self, WaitKind::Lock | WaitKind::Futex | WaitKind::Condition)
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
    /// Whether the thread sends a signal here, or ends its process: it wakes threads, whatever they wait for.
    pub signals: bool,
    /// Whether the thread gives way to others instead of waiting: `sched_yield`.
    pub yields: bool,
    /// The innermost function of the application; 0 if there is none.
    pub application: StringId,
    /// The function of the application that waits here for a lock, as far as names tell: the outermost of those around the
    /// wait that have a lock's name.
    pub lock_function: StringId,
    /// Whether it comes to code that is neither the kernel's nor the C library's.
    pub tells: bool,
    /// Whether what it is for is kept by whichever thread of the process runs.
    pub kept_by_runner: bool,
    /// Whether it goes through a function that people know as a lock's.
    pub takes_lock: bool,
    /// Whether the program asked to sleep for a time, however its runtime does that.
    pub sleeps: bool,
    /// Whether it waits until all of several threads have come here: a barrier.
    pub gathers: bool,
    /// Whether the kernel looks here for memory that it can take away from somebody,
    pub frees_memory: bool,
    /// and does so because a control group may have no more.
    pub at_memory_limit: bool,
    /// Whether memory is fetched here that was swapped out,
    pub swaps: bool,
    /// or a part of a file that the program has mapped.
    pub maps: bool,
    /// Whether it is stopped for its tracer: a debugger, or strace.
    pub traced: bool,
    /// Whether a sleep's timer wakes somebody here.
    pub by_timer: bool,
    /// Whether a condition variable serves as a lock here.
    pub by_condition: bool,
    /// Whether the thread waits here for the answer to what it asked itself: the address of a name, a connection, the result of a task that it
    /// gave away.
    pub asks: bool,
    /// Whether a thread of a scheduler inside of the program waits here for a task: it is at home.
    pub parked: bool,
    /// What the user said of waits here.
    pub verdict: Option<Verdict>,
}

impl StackFacts {
    /// Adds what a function of the kernel tells by itself: of what is waited for, those further in tell first.
    fn add_kernel(&mut self, function: &StackFacts) {
        self.lock_overhead |= function.lock_overhead;
        self.in_kernel |= function.in_kernel;
        self.interrupts |= function.interrupts;
        self.is_made_to_exit |= function.is_made_to_exit;
        self.signals |= function.signals;
        self.kernel_spin |= function.kernel_spin;
        self.yields |= function.yields;
        self.traced |= function.traced;
        self.by_timer |= function.by_timer;
        self.asks |= function.asks;
        self.frees_memory |= function.frees_memory;
        self.at_memory_limit |= function.at_memory_limit;
        self.swaps |= function.swaps;
        self.maps |= function.maps;
        self.kernel_lock |= function.kernel_lock;
        self.kind = self.kind.or(function.kind);
    }
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
    places: Places,
    /// By stack, too: whether garbage is collected there.
    collecting: Vec<OnceLock<bool>>,
}

impl<'a> Classifier<'a> {
    /// A classifier for the stacks of `trace`.
    pub fn new(trace: &'a Trace) -> Self {
        let stacks = 0..=trace.stacks.len();
        let (facts, collecting) = stacks.map(|_| (OnceLock::new(), OnceLock::new())).unzip();
        let (roles, places) = (Roles::of(trace), Places::of(trace));
        Classifier { trace, facts, sites: Vec::new(), roles, places, collecting }
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

    /// What of its tasks' waiting the kernel does not see, where a loop waits for whatever they wait for: not in one of them.
    pub(crate) fn unseen_at(&self, stack: StackId) -> Option<&'static str> {
        // Of some loops all that they do is on the stacks of tasks.
        let is_in = || self.scheduler_at(stack).is_some() && self.application_leaf(stack).is_some();
        let in_task = !self.facts(stack).parked && is_in();
        if in_task { None } else { self.unseen_in(stack) }
    }

    fn examine(&self, stack: StackId) -> StackFacts {
        let mut facts = StackFacts::default();
        let mut near = Near::default();
        let (mut innermost, mut ambiguous) = (Innermost::default(), Ambiguous::default());
        let (mut parked, mut known_as) = (Parked::default(), KnownAs::default());
        for (_, number) in self.own_locations(stack) {
            let said = self.places.at(self.trace, number);
            let location = self.trace.names.location(number);
            let own = self.trace.text(location.function);
            if let Some((_, verdict)) = self.sites.iter().find(|(site, _)| site == own) {
                facts.verdict = Some(*verdict);
            }
            let module = self.trace.text(location.module);
            let function = known_as.see(module, own, said.waits_for_condition);
            if said.in_kernel {
                facts.add_kernel(&said.kernel);
                continue;
            }
            if !said.in_library {
                facts.tells |= !module.is_empty();
                innermost.see(function);
                parked.see(function);
            }
            let user = if function == own { said.user } else { User::of(function) };
            if user.is_ambiguous || ambiguous.is_open() {
                ambiguous.see(module, function);
            }
            facts.asks |= user.asks || said.awaits_result;
            facts.kept_by_runner |= user.kept_by_runner;
            facts.takes_lock |= user.takes_lock;
            facts.sleeps |= user.sleeps;
            facts.gathers |= user.gathers;
            let before = facts.kind;
            facts.kind = user.refine(before);
            facts.by_condition |= before == Some(WaitKind::Condition) && facts.kind == Some(WaitKind::Lock);
            if said.is_application {
                near.see(location.function, user.says_lock, user.keeps_lock);
                if facts.application == StringId::default() {
                    facts.application = location.function;
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

    /// Whether a module is of a package that was installed for the program.
    pub(crate) fn is_installed(&self, module: StringId) -> bool {
        runtime::is_installed(self.trace.text(module))
    }

    /// Whether the location is code of the program, not of the kernel, the C library or a language runtime.
    pub fn is_application(&self, location: &LocationRow) -> bool {
        places::is_application(self.trace, location)
    }
}

/// Whether a module is the kernel or one of its modules.
pub fn is_kernel_module(module: &str) -> bool {
    module.starts_with('[') && !matches!(module, "[vdso]" | "[anon]" | "[heap]" | "[stack]" | COMPILED)
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
        "libffi",
    ];
    let base = module.rsplit('/').next().unwrap_or(module);
    module == "[vdso]" || LIBRARIES.iter().any(|l| base.starts_with(l))
}

/// Whether a file is a shared library, by its name: `libcrypto.so.3`.
pub(crate) fn is_library(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or_default();
    name.ends_with(".so") || name.contains(".so.")
}

/// What a wait in a system call is for; `io_wait` is the kernel's own word that it is for I/O.
pub fn kind_of_call(call: Syscall, io_wait: bool) -> Option<WaitKind> {
    use WaitKind::*;
    Some(match call {
        Syscall::Futex => Futex,
        Syscall::Sleep => Timer,
        Syscall::FileLock => Lock,
        _ if io_wait => Disk,
        Syscall::Poll | Syscall::Accept => Input,
        // For an answer.
        Syscall::Read | Syscall::Connect => Read,
        Syscall::Write => Write,
        Syscall::WaitChild => Join,
        Syscall::Sync => Disk,
        Syscall::WaitSignal => Signal,
        Syscall::None => return None,
        Syscall::Exit | Syscall::Yield | Syscall::Other => Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::is_library;

    #[test]
    fn libraries_are_known_by_their_names() {
        assert!(is_library("/usr/lib/x86_64-linux-gnu/libcrypto.so.3") && is_library("_ssl.cpython-313.so"));
        assert!(!is_library("/usr/bin/ssh") && !is_library("[kernel]") && !is_library("server.sock"));
    }
}
