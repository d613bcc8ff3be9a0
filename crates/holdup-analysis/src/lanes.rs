//! What every thread does at every instant, in a word: for drawing it.
//!
//! A state of [`intervals`](crate::intervals) says that a thread waits; a lane says for what, and tells spinning from work by
//! the samples. Parts of the trace can be followed in any order.

use holdup_base::named;
use holdup_trace::{Cpu, ThreadIdx};
use rustc_hash::FxHashMap;

use crate::classify::{Classifier, Verdict, WaitKind};
use crate::intervals::{Chunk, LONGEST_NAP_NS, Place, State, Stretch, Wait};
use crate::spins::SpinSites;

named! {
    /// What a thread does. The order is that of the codes, which never change.
    #[derive(Default)]
    pub enum Doing {
        /// It does not exist, or nothing is known of it.
        #[default]
        Nothing = "nothing",
        /// It runs.
        Runs = "running",
        /// It runs, and only waits for another CPU.
        Spins = "spinning",
        /// It could run.
        Ready = "runnable",
        /// It waits for a lock.
        Lock = "lock",
        /// It waits for a disk or a page.
        Disk = "disk",
        /// It waits for the network, or for something else outside, in the middle of its work.
        Outside = "outside",
        /// It sleeps.
        Sleeps = "sleeping",
        /// It waits where its cycle begins: it has nothing to do.
        Home = "idle",
        /// It waits for the end of a child or a thread.
        Child = "child",
        /// The records are lost.
        Lost = "lost",
        /// Several of these.
        Mixed = "mixed",
        /// It waits for another thread in the middle of its work.
        Thread = "thread",
    }
}

impl Doing {
    /// How many there are.
    pub const COUNT: usize = 13;

    /// Its code, below [`COUNT`](Self::COUNT).
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether it has a CPU.
    pub const fn has_cpu(self) -> bool {
        matches!(self, Doing::Runs | Doing::Spins)
    }

    /// Whether it has something to do and does not get on: not while it sleeps, or has no work.
    pub const fn is_held(self) -> bool {
        matches!(self, Doing::Lock | Doing::Disk | Doing::Outside | Doing::Thread)
    }
}

/// What tells one from the other.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// What stacks tell.
    pub classifier: &'a Classifier<'a>,
    /// Which of them spin.
    pub spins: &'a SpinSites<'a>,
    /// The sampling period in nanoseconds.
    pub period: u64,
}

/// What a thread did for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Did {
    /// Which thread.
    pub thread: ThreadIdx,
    /// From when, in nanoseconds since the trace's start.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// What.
    pub doing: Doing,
    /// On which CPU, if it has one.
    pub cpu: Cpu,
}

impl Look<'_> {
    /// What a thread does that is in this wait.
    pub fn at_wait(&self, wait: &Wait) -> Doing {
        if wait.exempt {
            return if wait.kind == WaitKind::Join { Doing::Child } else { Doing::Home };
        }
        match wait.kind {
            WaitKind::Lock => Doing::Lock,
            WaitKind::Disk | WaitKind::PageFault => Doing::Disk,
            WaitKind::KernelIdle => Doing::Home,
            WaitKind::Join => Doing::Child,
            WaitKind::Stopped => Doing::Sleeps,
            kind => self.by_place(wait, kind),
        }
    }

    fn by_place(&self, wait: &Wait, kind: WaitKind) -> Doing {
        let works = match wait.verdict {
            Some(Verdict::Work) => true,
            Some(Verdict::Idle) => return Doing::Home,
            None => wait.place != Place::Home,
        };
        match kind {
            WaitKind::Timer if works || wait.length() < LONGEST_NAP_NS => Doing::Sleeps,
            _ if !works => Doing::Home,
            kind if kind.is_for_input() => Doing::Outside,
            _ => Doing::Thread,
        }
    }

    fn of(&self, chunk: &Chunk, state: State) -> (Doing, Cpu) {
        match state {
            State::Running(cpu) => (Doing::Runs, cpu),
            State::Runnable(_) | State::Yields(_) | State::Woken(_) => (Doing::Ready, Cpu::NONE),
            State::Waiting(w) => (chunk.waits().get(w as usize).map_or(Doing::Nothing, |w| self.at_wait(w)), Cpu::NONE),
            State::Unknown | State::Gone => (Doing::Nothing, Cpu::NONE),
        }
    }

    /// Shows `see` what the threads did in one part of the trace. Those of one thread come in the order of time and do not
    /// overlap; what crosses the part's border is cut there. O(steps + samples + threads).
    pub fn follow(&self, chunk: &Chunk, mut see: impl FnMut(Did)) {
        let mut spun = self.spinning(chunk);
        chunk.stretches(|s: Stretch| {
            let (doing, cpu) = self.of(chunk, s.state);
            let mut rest = Did { thread: s.thread, from: s.from, to: s.to, doing, cpu };
            if doing == Doing::Runs
                && let Some(spun) = spun.get_mut(&s.thread)
            {
                cut(spun, &mut rest, &mut see);
            }
            if rest.to > rest.from {
                see(rest);
            }
        });
    }

    /// When threads were seen to spin: by thread, the latest sample first, so that the next is at the end.
    fn spinning(&self, chunk: &Chunk) -> FxHashMap<ThreadIdx, Vec<(u64, u64)>> {
        let mut spun: FxHashMap<ThreadIdx, Vec<(u64, u64)>> = FxHashMap::default();
        for sample in chunk.samples().iter().rev().filter(|s| self.spins.has(s.stack)) {
            let t = sample.t.nanos();
            spun.entry(sample.thread).or_default().push((t.saturating_sub(self.period), t));
        }
        spun
    }
}

/// Takes the spinning out of a stretch of running; what remains is behind it.
fn cut(spun: &mut Vec<(u64, u64)>, rest: &mut Did, see: &mut impl FnMut(Did)) {
    while let Some(&(from, to)) = spun.last() {
        if from >= rest.to {
            return;
        }
        let (a, b) = (from.max(rest.from), to.min(rest.to));
        if a < b {
            if a > rest.from {
                see(Did { to: a, ..*rest });
            }
            see(Did { from: a, to: b, doing: Doing::Spins, ..*rest });
            rest.from = b;
        }
        if to > rest.to {
            return;
        }
        spun.pop();
    }
}
