//! Which time-outs lie within a request: somebody asked a server, waited, and was answered by the thread that slept meanwhile.
//!
//! ```text
//!   client  asks ──┐ waits ····································┐ goes on
//!   server         └ wakes, works, [sleeps], works, answers ───┘
//! ```
//!
//! Neither how long the sleep is nor what the stacks look like decides, so that it holds for a retry after seconds, for stacks that tell
//! nothing, and for a timer that an event loop waits for where its input arrives. Who keeps a pace was asked by nobody.
//!
//! Who is asked may hand it on: to a thread that it begins for that request, or that it wakes.

use holdup_trace::{StackId, ThreadIdx, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::wait::Wait;
use crate::classify::WaitKind;

/// So many time-outs of one request are told apart, at most: the last ones.
const MOST: usize = 64;
/// Shorter ones are not told apart from others at the same place, in nanoseconds: there may be very many.
const SHORTEST_NS: u64 = 2_000_000;

/// An answer comes in so many pieces, at most: after a handshake, or as a head and what belongs to it. Who sends more often was not asked for
/// each.
const PIECES: u8 = 3;

/// So many waits for input that timed out are kept, at most: memory does not grow with the trace. Later ones are told by their place alone.
const MOST_TIMEOUTS: usize = 1 << 20;

/// What is known of requests so far.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// When a thread last ended a wait of a process, and how often the process has ended one of it since.
    asked: FxHashMap<(u32, ThreadIdx), (u64, u8)>,
    /// The same of two processes: who asks by a new thread each time, and closes what it asked by last, is seen to ask by that one.
    asked_by: FxHashMap<(u32, u32), (u64, u8)>,
    /// The same of one thread of it: a client may ask several at the same time.
    asked_of: FxHashMap<(ThreadIdx, ThreadIdx), (u64, u8)>,
    /// When a process last ended a wait of a thread.
    woke: FxHashMap<(u32, ThreadIdx), u64>,
    threads: FxHashMap<ThreadIdx, Past>,
    /// Processes with threads whose waits timed out.
    sleepers: FxHashSet<u32>,
    /// Threads that began, the last ones first, as far as time has not come to them.
    births: Option<Vec<(u64, ThreadIdx)>>,
    /// Of each thread and place, how many sleeps lie in a request, and of how many it is known whether they do.
    pub(super) sleeps: FxHashMap<(ThreadIdx, StackId), [u32; 2]>,
    /// How often another thread of its process answered somebody as soon as a thread had woken it: a pool's threads leave the answers to
    /// the one that took the requests.
    pub(super) answers: FxHashMap<ThreadIdx, u32>,
    /// Waits for input that timed out, by thread and beginning.
    pub(super) timeouts: FxHashSet<(ThreadIdx, u64)>,
}

/// What a thread did up to now.
#[derive(Debug, Default)]
struct Past {
    /// Its time-outs since it answered last.
    slept: Vec<Slept>,
    /// Whether something has arrived since it slept last.
    arrived: bool,
    /// Who of its process woke it last, if it was one of those, and it has answered nobody since.
    sent_by: Option<ThreadIdx>,
    /// Who asked it last, and when; or the one that handed this on to it.
    asked: Option<(ThreadIdx, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Slept {
    stack: StackId,
    start: u64,
    /// Whether it was a sleep, and no wait for input.
    sleep: bool,
    lasts: bool,
    /// Whether something had arrived before.
    arrived: bool,
}

impl Requests {
    /// The waits of a part that are over, and who woke whom, and when, out of one that had begun before the trace. O(n log n) in the waits
    /// of processes that sleep, and of those they wait for or wake.
    pub(super) fn learn_part<'w>(
        &mut self,
        waits: impl Iterator<Item = &'w Wait> + Clone,
        censored: &[(ThreadIdx, ThreadIdx, u64)],
        trace: &Trace,
    ) {
        let pid = |thread: ThreadIdx| trace.threads.pid.get(thread.index()).copied().unwrap_or_default();
        self.sleepers.extend(waits.clone().filter(|w| times_out(w)).map(|w| pid(w.thread)));
        if self.sleepers.is_empty() {
            return;
        }
        for &(asked, by, t) in censored {
            self.ask(asked, by, t, pid);
            self.threads.entry(asked).or_default().arrived = true;
        }
        let mut births = self.births.take().unwrap_or_else(|| births(trace));
        let sleeps = |thread: ThreadIdx| self.sleepers.contains(&pid(thread));
        let mut ordered: Vec<&Wait> =
            waits.filter(|w| sleeps(w.thread) || w.waker.is_real() && sleeps(w.waker)).collect();
        ordered.sort_by_key(|w| (w.woken, w.start));
        for wait in ordered {
            while let Some((_, thread)) = births.pop_if(|(t, _)| *t <= wait.woken) {
                let parent = trace.threads.parent.get(thread.index()).copied().unwrap_or(ThreadIdx::NONE);
                self.hand_on(parent, thread);
            }
            self.learn(wait, pid);
        }
        self.births = Some(births);
    }

    /// What a thread was asked last is now another one's to answer.
    fn hand_on(&mut self, from: ThreadIdx, to: ThreadIdx) {
        let Some((by, t)) = self.threads.get(&from).and_then(|past| past.asked) else { return };
        let past = self.threads.entry(to).or_default();
        if past.asked.is_none_or(|(_, before)| before < t) {
            (past.asked, past.arrived) = (Some((by, t)), true);
            self.asked_of.insert((to, by), (t, 0));
        }
    }

    /// A thread ended a wait of another program's.
    fn ask(&mut self, asked: ThreadIdx, by: ThreadIdx, t: u64, pid: impl Fn(ThreadIdx) -> u32) {
        self.asked_again(asked, by, pid(asked));
        let unanswered = (t, 0);
        self.asked.insert((pid(asked), by), unanswered);
        self.asked_by.insert((pid(asked), pid(by)), unanswered);
        self.asked_of.insert((asked, by), unanswered);
        self.threads.entry(asked).or_default().asked = Some((by, t));
    }

    /// Who asks a thread of a process again has its answer. Where it asks several at a time, the answer of another one of them may have ended its
    /// wait, and it was at work when this one came.
    fn asked_again(&mut self, asked: ThreadIdx, by: ThreadIdx, pid: u32) {
        let (Some(past), Some(&woke)) = (self.threads.get_mut(&asked), self.woke.get(&(pid, by))) else { return };
        let Some((_, before)) = past.asked.filter(|(last, _)| *last == by) else { return };
        for slept in past.slept.extract_if(.., |slept| slept.sleep && (before..=woke).contains(&slept.start)) {
            self.sleeps.entry((asked, slept.stack)).or_default().iter_mut().for_each(|n| *n += 1);
        }
    }

    fn learn(&mut self, wait: &Wait, pid: impl Fn(ThreadIdx) -> u32) {
        let own = wait.waker.is_real() && pid(wait.waker) == pid(wait.thread);
        self.threads.entry(wait.thread).or_default().enter(wait, own);
        if !arrives(wait) || !wait.waker.is_real() {
            return;
        }
        if own {
            self.hand_on(wait.waker, wait.thread);
            return;
        }
        self.ask(wait.thread, wait.waker, wait.woken, &pid);
        let answers = |(t, answers): &mut (u64, u8)| {
            *answers = answers.saturating_add(1);
            (*answers <= PIECES).then_some(*t)
        };
        let of_process = self.asked.get_mut(&(pid(wait.waker), wait.thread)).and_then(answers);
        let of_thread = self.asked_of.get_mut(&(wait.waker, wait.thread)).and_then(answers);
        let of_both = self.asked_by.get_mut(&(pid(wait.waker), pid(wait.thread))).and_then(answers);
        let asked = of_thread.or(of_process).or(of_both);
        self.woke.insert((pid(wait.waker), wait.thread), wait.woken);
        let Some(past) = self.threads.get_mut(&wait.waker) else { return };
        if let Some(by) = past.sent_by.take() {
            *self.answers.entry(by).or_default() += 1;
        }
        for slept in std::mem::take(&mut past.slept) {
            let within = asked.is_some_and(|t| slept.start >= t);
            if slept.sleep {
                let [yes, known] = self.sleeps.entry((wait.waker, slept.stack)).or_default();
                (*yes, *known) = (*yes + u32::from(within), *known + u32::from(within || slept.arrived));
            } else if within && slept.lasts && self.timeouts.len() < MOST_TIMEOUTS {
                self.timeouts.insert((wait.waker, slept.start));
            }
        }
    }
}

impl Past {
    /// `own` tells that a thread of its process ended it.
    fn enter(&mut self, wait: &Wait, own: bool) {
        if arrives(wait) {
            self.sent_by = own.then_some(wait.waker);
        }
        if times_out(wait) {
            if self.slept.len() == MOST {
                self.slept.remove(0);
            }
            let lasts = wait.woken.saturating_sub(wait.start) >= SHORTEST_NS;
            let (stack, start, sleep) = (wait.stack, wait.start, wait.kind == WaitKind::Timer);
            self.slept.push(Slept { stack, start, sleep, lasts, arrived: self.arrived });
            self.arrived = false;
        } else if arrives(wait) {
            // What it waited for before is not what it does now.
            self.slept.retain(|slept| slept.sleep);
            self.arrived = true;
        }
    }
}

/// When which threads began, the last ones first.
fn births(trace: &Trace) -> Vec<(u64, ThreadIdx)> {
    let begun = trace.threads.start.iter().zip(0..).filter(|(t, _)| t.nanos() > 0);
    let mut births: Vec<_> = begun.map(|(t, thread)| (t.nanos(), ThreadIdx(thread))).collect();
    births.sort_unstable_by_key(|birth| std::cmp::Reverse(*birth));
    births
}

/// Whether nothing but a time to pass ended it.
fn times_out(wait: &Wait) -> bool {
    let slept = wait.kind == WaitKind::Timer || wait.is_timed_out() && is_for_others(wait.kind);
    slept && wait.stack != StackId::NONE && !wait.open
}

/// Whether somebody may have asked by ending it, or answered.
fn arrives(wait: &Wait) -> bool {
    is_for_others(wait.kind) && !wait.open && !wait.is_timed_out()
}

fn is_for_others(kind: WaitKind) -> bool {
    use WaitKind::{Condition, Futex, Input, Read, Signal, Unknown};
    matches!(kind, Condition | Futex | Input | Read | Signal | Unknown)
}
