//! Where threads wait, and who ends their waits there: what [`super::homes`] judges.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::origin::{Origin, origin};
use super::prepare::{Dictionary, REWAIT_NS};
use super::requests::Requests;
use super::wait::Wait;
use crate::classify::WaitKind;

/// The waits of one thread at one place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) kind: WaitKind,
    pub(super) syscall: i16,
    pub(super) waits: u32,
    /// All of them together, in nanoseconds.
    pub(super) ns: u64,
    /// That follow on another one here at once: it looks for something again and again.
    pub(super) again: u32,
    /// Ended by a device, or by a thread of another program: input arrives here.
    pub(super) from_outside: u32,
    /// Ended by a thread of the same program.
    pub(super) from_peers: u32,
    /// The program that brought input first, how often it did, and how often others or the network did.
    pub(super) brought_by: StringId,
    pub(super) brought: [u32; 2],
    /// Whether most sleeps lie within requests: who asked waited meanwhile, and was answered by this thread afterwards.
    pub(super) asked: bool,
    /// Whether they are only taken to lie there: whoever asked never had to wake the thread.
    pub(super) presumed: bool,
}

impl Seen {
    /// How often who ended a wait here.
    pub(super) fn by_origin(&self) -> [(Origin, u32); 3] {
        let rest = self.waits.saturating_sub(self.arrivals());
        [(Origin::Outside, self.from_outside), (Origin::Peer, self.from_peers), (Origin::Nobody, rest)]
    }

    /// Counts who brought the input that ended a wait here: another process, or the network.
    fn bring(&mut self, wait: &Wait, origin: Origin, dictionary: &Dictionary) {
        let threads = &dictionary.trace.threads;
        let pid = |thread: ThreadIdx| threads.pid.get(thread.index());
        let program = match () {
            () if wait.waker.is_real() && pid(wait.waker) != pid(wait.thread) => {
                threads.process.get(wait.waker.index())
            }
            () if origin == Origin::Outside => None,
            () => return,
        };
        let program = program.copied().unwrap_or_default();
        self.brought_by = if self.brought == [0; 2] { program } else { self.brought_by };
        self.brought[usize::from(program != self.brought_by)] += 1;
    }

    /// How often somebody ended a wait here.
    pub(super) fn arrivals(&self) -> u32 {
        self.from_outside + self.from_peers
    }
}

/// What is seen of all threads.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub(super) waits: FxHashMap<(ThreadIdx, StackId), Seen>,
    /// How often each thread ended a wait of another program.
    pub(super) answers: FxHashMap<ThreadIdx, u32>,
    /// How often each thread's waits for input were ended by another thread, and how often by the network.
    pub(super) arrivals: FxHashMap<ThreadIdx, [u32; 2]>,
    /// By thread: where it waited last, and until when.
    last: Vec<Option<(StackId, u64)>>,
    pub(super) requests: Requests,
}

impl Sites {
    /// A prepared wait.
    pub(super) fn learn(&mut self, wait: &Wait, dictionary: &Dictionary) {
        let origin = origin(wait, dictionary);
        if origin == Origin::Outside && wait.waker.is_real() {
            *self.answers.entry(wait.waker).or_default() += 1;
        }
        if origin == Origin::Outside && wait.kind.is_for_bytes() {
            self.arrivals.entry(wait.thread).or_default()[usize::from(wait.is_from_network())] += 1;
        }
        if wait.stack == StackId::NONE || wait.kind == WaitKind::KernelIdle {
            return;
        }
        let seen = self.waits.entry((wait.thread, wait.stack)).or_default();
        (seen.kind, seen.syscall) = (wait.kind, wait.syscall);
        seen.waits += 1;
        seen.ns = seen.ns.saturating_add(wait.woken.saturating_sub(wait.start));
        self.last.resize(self.last.len().max(wait.thread.index() + 1), None);
        let last = self.last[wait.thread.index()].replace((wait.stack, wait.resumed));
        let again = |&(stack, resumed): &(StackId, u64)| stack == wait.stack && wait.start < resumed + REWAIT_NS;
        seen.again += u32::from(last.as_ref().is_some_and(again));
        match origin {
            Origin::Outside => seen.from_outside += 1,
            Origin::Peer => seen.from_peers += 1,
            Origin::Nobody => {}
        }
        if wait.kind.is_for_bytes() {
            seen.bring(wait, origin, dictionary);
        }
    }
}
