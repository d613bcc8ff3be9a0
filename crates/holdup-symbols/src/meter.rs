//! What reading files may cost, and what was left out because of it.
//!
//! Programs, their debug information and their perf maps are the work of whoever runs them, and `holdup record` reads
//! them as root. Each file has a [`Meter`] of its own, with half of what is left to all files: memory that stays in use,
//! and CPU time. Who has used up either gets nothing more; the others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Memory for all files, whatever the machine has.
const MEMORY: std::ops::RangeInclusive<u64> = 256 << 20..=4 << 30;
/// CPU time for all files.
const TIME: Duration = Duration::from_secs(40);
/// The clock is a system call: it is read at every so many reads.
const CLOCK_EVERY: u64 = 1 << 12;
/// How far the stack may grow while a file is parsed. addr2line follows nested functions by recursion.
const STACK_LIMIT: usize = 1 << 20;

/// What all files together may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes that stay in use.
    pub memory: u64,
    /// CPU time.
    pub time: Duration,
}

impl Limits {
    /// An eighth of the machine's memory.
    pub fn of_this_machine() -> Limits {
        let info = rustix::system::sysinfo();
        let all = u64::from(info.mem_unit).saturating_mul(info.totalram);
        Limits { memory: (all / 8).clamp(*MEMORY.start(), *MEMORY.end()), time: TIME }
    }
}

/// What can be left out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// A name that is cut, or shown as it is in the file.
    Name,
    /// A function with more inlined functions in each other than are followed.
    Depth,
    /// A file that needs more than it may have.
    File,
}

/// What is left to all files.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    memory: AtomicU64,
    /// Nanoseconds.
    time: AtomicU64,
    cuts: [AtomicU64; 3],
}

impl Budget {
    pub fn new(limits: Limits) -> Arc<Budget> {
        let (memory, time) = (AtomicU64::new(limits.memory), AtomicU64::new(limits.time.as_nanos() as u64));
        Arc::new(Budget { limits, memory, time, cuts: Default::default() })
    }

    pub fn count(&self, cut: Cut) {
        self.cuts[cut as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What was left out, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let [names, depths, files] =
            [Cut::Name, Cut::Depth, Cut::File].map(|c| self.cuts[c as usize].load(Ordering::Relaxed));
        let Limits { memory, time } = self.limits;
        let (mib, seconds) = (memory >> 20, time.as_secs());
        let all = [
            (
                names,
                format!(
                    "names of functions are too long or too costly: cut, marked with …, or not demangled ({names} of them)"
                ),
            ),
            (depths, format!("functions inlined in each other too deeply are left out ({depths} functions or files)")),
            (
                files,
                format!(
                    "files were read in part, since their symbols and debug information need too much ({files} of them): \
                     all files have {mib} MiB of memory and {seconds} s of CPU time together, one half of what is left"
                ),
            ),
        ];
        all.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text).collect()
    }
}

/// What is left to one file.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Arc<Budget>,
    memory: AtomicU64,
    /// Nanoseconds.
    time: AtomicU64,
    /// When the clock was read last, in nanoseconds of this thread's CPU time.
    clock: AtomicU64,
    reads: AtomicU64,
    /// Where the stack was when parsing began; 0 outside of that.
    stack: AtomicUsize,
    /// Whether this file is counted as one that was read in part.
    short: AtomicU64,
}

impl Meter {
    pub fn new(budget: &Arc<Budget>) -> Arc<Meter> {
        let half = |left: &AtomicU64| AtomicU64::new(left.load(Ordering::Relaxed) / 2);
        let (memory, time) = (half(&budget.memory), half(&budget.time));
        let [clock, reads, short] = [0, 0, 0].map(AtomicU64::new);
        Arc::new(Meter { budget: budget.clone(), memory, time, clock, reads, stack: AtomicUsize::new(0), short })
    }

    /// Whether `bytes` may stay in use; they are taken.
    pub fn hold(&self, bytes: u64) -> bool {
        let enough = take(&self.memory, bytes) & take(&self.budget.memory, bytes);
        enough || self.fail()
    }

    /// How many bytes may still be used.
    pub fn memory_left(&self) -> u64 {
        self.memory.load(Ordering::Relaxed).min(self.budget.memory.load(Ordering::Relaxed))
    }

    /// Counts something of this file that was left out.
    pub fn cut(&self, cut: Cut) {
        self.budget.count(cut);
    }

    /// Whether there is time left.
    pub fn has_time(&self) -> bool {
        let enough = [&self.time, &self.budget.time].iter().all(|left| left.load(Ordering::Relaxed) > 0);
        enough || self.fail()
    }

    /// Runs a parser at the cost of this file, if there is time left. The first `free` of its time costs nothing:
    /// what is cheap and asked for without end must not use up the time of what is not.
    pub fn timed<T>(&self, free: Duration, parse: impl FnOnce() -> T) -> Option<T> {
        if self.stack.load(Ordering::Relaxed) != 0 {
            return Some(parse());
        }
        if !self.has_time() {
            return None;
        }
        self.clock.store(now() + free.as_nanos() as u64, Ordering::Relaxed);
        self.stack.store(stack_pointer(), Ordering::Relaxed);
        let found = crate::guarded(parse);
        self.stack.store(0, Ordering::Relaxed);
        self.charge_time();
        found
    }

    /// One read of a parser, after which `weight` bytes may stay in use. `false` ends the parsing.
    pub fn read(&self, weight: u64) -> bool {
        let reads = self.reads.load(Ordering::Relaxed) + 1;
        self.reads.store(reads, Ordering::Relaxed);
        if reads.is_multiple_of(CLOCK_EVERY) && !self.tick() {
            return false;
        }
        let stack = self.stack.load(Ordering::Relaxed);
        if stack != 0 && stack.abs_diff(stack_pointer()) > STACK_LIMIT {
            self.cut(Cut::Depth);
            return false;
        }
        weight == 0 || self.hold(weight)
    }

    /// Whether there is time left for the parser that runs.
    pub fn tick(&self) -> bool {
        if self.stack.load(Ordering::Relaxed) != 0 { self.charge_time() } else { self.has_time() }
    }

    /// Whether `bytes` may be used for a moment.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes <= self.memory_left() || self.fail()
    }

    fn charge_time(&self) -> bool {
        let (now, before) = (now(), self.clock.load(Ordering::Relaxed));
        // Before that the time was free.
        let Some(spent) = now.checked_sub(before) else { return true };
        self.clock.store(now, Ordering::Relaxed);
        let enough = take(&self.time, spent) & take(&self.budget.time, spent);
        enough || self.fail()
    }

    fn fail(&self) -> bool {
        if self.short.swap(1, Ordering::Relaxed) == 0 {
            self.cut(Cut::File);
        }
        false
    }
}

/// Takes from what is left; what is not enough is taken all the same, so that it ends here.
fn take(left: &AtomicU64, amount: u64) -> bool {
    // Only one thread at a time works on a file: a plain read and write are several times cheaper than an exchange.
    let before = left.load(Ordering::Relaxed);
    left.store(before.saturating_sub(amount), Ordering::Relaxed);
    before >= amount
}

/// CPU time of this thread: other programs must not make names disappear.
fn now() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0u8;
    std::hint::black_box(&raw const here).addr()
}
