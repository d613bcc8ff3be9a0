//! Follows the changes of all threads forward.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashSet;

use super::clocks::{Clocks, Set, each};
use super::cpus::{Cpus, Has};
use super::length::{Length, Lengths};
use super::moves::{self, Move};
use super::pieces::Pieces;
use super::taken::{Taken, Work};
use super::waits::{Passes, Places};
use super::{COST_NS, Now, Replay};
use crate::blame::{Blame, Study};
use crate::classify::{Verdict, WaitKind};
use crate::intervals::{Chunk, State, Wait};

fn is_ready(state: State) -> bool {
    matches!(state, State::Runnable(_) | State::Yields(_) | State::Woken(_))
}

impl<'a> Replay<'a> {
    pub(super) fn new(study: &'a Study<'a>, blame: &Blame, taken: &'a [Taken]) -> Self {
        let threads = study.trace.threads.tid.len();
        let fresh = |i: usize| Now {
            state: State::Unknown,
            since: study.window.from,
            born: false,
            ours: study.focus.contains(ThreadIdx(i as u32)),
            talks: 0,
            behind: 0,
            waker: ThreadIdx::NONE,
            passes: Passes::Never,
            slept: None,
            polls: false,
            gone: 0,
            relieved: 0,
        };
        Replay {
            study,
            taken,
            places: Places::new(blame),
            pieces: Pieces::new(taken, threads),
            clocks: Clocks::new(threads, taken.len() + 2),
            cpus: Cpus::new(study.timeline.cpus),
            threads: (0..threads).map(fresh).collect(),
            ran: vec![0; threads],
            saved: vec![0; taken.len()],
            removed: vec![0; taken.len()],
            spared: vec![0; taken.len()],
            last: vec![None; taken.len()],
            partners: FxHashSet::default(),
            moves: Vec::new(),
            begun: false,
        }
    }

    /// Follows one part of the trace, which lies behind those before.
    pub(super) fn part(&mut self, chunk: &Chunk) {
        let mut moves = std::mem::take(&mut self.moves);
        let states = moves::of(chunk, &mut moves);
        self.begin(chunk, &states);
        let mut samples = chunk.samples().iter().peekable();
        for step in &moves {
            // A sample at a switch belongs to what ran before it.
            while let Some(sample) = samples.next_if(|s| s.t.nanos() <= step.t) {
                self.sample(sample);
            }
            self.change(step, chunk);
        }
        samples.for_each(|sample| self.sample(sample));
        self.moves = moves;
    }

    /// The waits of this part have other numbers than those of the last; what it contradicts of it was never true.
    fn begin(&mut self, chunk: &Chunk, states: &[State]) {
        for (i, &state) in states.iter().enumerate().skip(1).take(self.threads.len().saturating_sub(1)) {
            let known = self.threads[i].state;
            let same = std::mem::discriminant(&known) == std::mem::discriminant(&state);
            if self.begun && (same || is_ready(known) && is_ready(state)) {
                self.threads[i].state = state;
                continue;
            }
            if let State::Running(cpu) = known {
                self.cpus.end(cpu, i as u32, chunk.from);
            }
            self.enter(i, chunk.from, state, chunk);
        }
        self.begun = true;
    }

    fn change(&mut self, step: &Move, chunk: &Chunk) {
        let (i, t) = (step.thread.index(), step.t);
        if i == 0 || i >= self.threads.len() {
            return;
        }
        if is_ready(step.before) && is_ready(step.after) {
            self.threads[i].state = step.after;
            return;
        }
        self.settle(i, t);
        match step.before {
            State::Running(cpu) => {
                self.cpus.end(cpu, i as u32, t);
                self.threads[i].relieved = 0;
            }
            State::Waiting(w) => self.end_wait(i, &chunk.waits()[w as usize], t, step.after),
            State::Runnable(_) | State::Yields(_) | State::Woken(_) => self.end_ready(i, step.after, t),
            State::Gone | State::Unknown => self.be_born(i, t),
        }
        self.enter(i, t, step.after, chunk);
    }

    /// Thread `i` begins to do something.
    fn enter(&mut self, i: usize, t: u64, state: State, chunk: &Chunk) {
        let now = &mut self.threads[i];
        (now.state, now.since) = (state, t);
        match state {
            State::Running(cpu) => {
                let has = if now.ours { Has::Ours } else { Has::Foreign };
                self.cpus.begin(cpu, i as u32, has, t);
            }
            State::Waiting(w) => self.start_wait(i, &chunk.waits()[w as usize], t),
            State::Runnable(_) | State::Yields(_) | State::Woken(_) | State::Gone | State::Unknown => {}
        }
    }

    fn start_wait(&mut self, i: usize, wait: &Wait, t: u64) {
        let gone = self.pieces.of_wait(wait);
        let passes = self.places.passes(wait, self.study.focus);
        let known = wait.waker.is_real() && wait.waker.index() < self.threads.len() && wait.waker.index() != i;
        let held_up = known && self.may_be_held_up(wait);
        if held_up {
            self.settle(wait.waker.index(), t);
            self.threads[wait.waker.index()].behind += 1;
        }
        let now = &mut self.threads[i];
        (now.gone, now.passes) = (gone, passes);
        now.polls = now.slept.is_some_and(|slept| looks_again(slept, wait));
        now.slept = (!wait.waker.is_real() && wait.kind == WaitKind::Timer).then_some((wait.stack, wait.resumed));
        now.waker = if held_up { wait.waker } else { ThreadIdx::NONE };
    }

    /// Whether it is not known that nobody is held up there.
    fn may_be_held_up(&self, wait: &Wait) -> bool {
        let is_by_design = wait.verdict == Some(Verdict::Idle) || self.study.classifier.role(wait.thread).is_some();
        !wait.exempt && !is_by_design && self.study.focus.contains(wait.thread)
    }

    fn end_wait(&mut self, i: usize, wait: &Wait, t: u64, after: State) {
        let now = &mut self.threads[i];
        let (gone, held_up_by) = (now.gone, std::mem::replace(&mut now.waker, ThreadIdx::NONE));
        now.relieved = gone;
        self.note(gone, t);
        if held_up_by != ThreadIdx::NONE {
            self.settle(held_up_by.index(), t);
            self.threads[held_up_by.index()].behind -= 1;
        }
        let waker = wait.waker.index();
        let ended = wait.goes_on == 0 && !matches!(after, State::Unknown | State::Gone);
        if ended && wait.waker.is_real() && waker < self.threads.len() && waker != i {
            self.settle(waker, t);
            self.threads[waker].slept = None;
            self.clocks.follow(i, waker, gone);
            self.threads[i].relieved |= self.pieces.by(waker, wait.start, wait.woken);
            self.meet(i, waker, wait);
        }
        let now = &self.threads[i];
        each(if now.ours { now.relieved } else { 0 }).for_each(|n| self.spared[n] += COST_NS);
    }

    /// Who answers the program or asks it again and again works for it, and so do others of its name that answer or ask: those that it begins
    /// for one answer each.
    fn meet(&mut self, i: usize, waker: usize, wait: &Wait) {
        let focus = self.study.focus;
        let other = match (self.threads[i].ours, self.threads[waker].ours) {
            (true, false) => waker,
            (false, true) => i,
            _ => return,
        };
        if !wait.exempt && !focus.is_kernel(wait.thread) && !focus.is_kernel(wait.waker) {
            let (program, now) = (self.study.trace.threads.process[other], &mut self.threads[other]);
            now.talks += 1;
            if now.talks >= OFTEN {
                self.partners.insert(program);
            }
            now.ours = self.partners.contains(&program);
        }
    }

    /// A new thread goes on where the one was that made it.
    fn be_born(&mut self, i: usize, t: u64) {
        let threads = &self.study.trace.threads;
        let parent = threads.parent[i].index();
        let made = !std::mem::replace(&mut self.threads[i].born, true) && threads.start[i].nanos() > 0;
        if made && threads.parent[i].is_real() && parent < self.threads.len() && parent != i {
            self.settle(parent, t);
            self.clocks.follow(i, parent, 0);
        }
    }

    /// Something of these findings was taken out.
    pub(super) fn note(&mut self, findings: Set, t: u64) {
        each(findings).for_each(|n| self.last[n] = Some(t));
    }

    /// So many nanoseconds are not, without these findings.
    pub(super) fn remove(&mut self, findings: Set, ns: u64) {
        each(findings).for_each(|n| self.removed[n] += ns);
    }

    /// The longest paths, and what CPU time is left.
    pub(super) fn finish(mut self) -> Lengths {
        let window = self.study.window;
        (1..self.threads.len()).for_each(|i| self.settle(i, window.to));
        let ours: Vec<usize> = (1..self.threads.len()).filter(|&i| self.threads[i].ours).collect();
        let work: u64 = ours.iter().map(|&i| self.ran[i]).sum();
        let longest = |clock: usize| ours.iter().map(|&i| self.clocks.at(i, clock)).max().unwrap_or(0);
        let without = |n: usize| {
            let last = self.last[n]?;
            let work = work.saturating_sub(self.saved[n]);
            if self.taken[n].work == Work::Free {
                return Some(Length { work, ..Length::default() });
            }
            let touched = if self.lasts(last) { self.longest_touched(&ours, n + 1) } else { None };
            let rest = (window.to - window.from).saturating_sub(self.removed[n]);
            Some(Length { path: longest(n + 1), touched, work, rest })
        };
        Lengths {
            unchanged: Length { path: longest(self.taken.len() + 1), touched: None, work, rest: 0 },
            without: (0..self.taken.len()).map(without).collect(),
            duration: window.to - window.from,
            cpus: self.study.timeline.cpus,
            returns: ours
                .iter()
                .filter_map(|&i| self.study.timeline.changes.get(i))
                .map(|n| u64::from(n / CHANGES))
                .sum(),
        }
    }

    /// Whether a finding goes on to the end.
    fn lasts(&self, last: u64) -> bool {
        let window = self.study.window;
        window.to.saturating_sub(last) as f64 <= REST * (window.to - window.from) as f64
    }

    /// The longest path of a thread that is done sooner without a finding.
    fn longest_touched(&self, ours: &[usize], clock: usize) -> Option<u64> {
        let of = |&i: &usize| (self.clocks.at(i, 0), self.clocks.at(i, clock));
        let gains = |(all, left): (u64, u64)| 1.0 - left as f64 / all.max(1) as f64;
        let most = ours.iter().map(of).map(gains).fold(0.0, f64::max);
        let sooner = SOONER.max(PART * most);
        ours.iter().map(of).filter(|pair| gains(*pair) > sooner).map(|(_, left)| left).max()
    }
}

/// Whether a thread that slept there until then sleeps in the same place again, and did next to nothing in between.
fn looks_again((stack, until): (StackId, u64), wait: &Wait) -> bool {
    let ran = wait.start.saturating_sub(until) as f64;
    wait.stack == stack && !wait.waker.is_real() && ran <= LOOK * wait.length() as f64
}

/// To look whether something is done takes no more than this share of the time until the next look.
const LOOK: f64 = 0.05;
/// Changes of a thread's state for each of its waits, at least: it waits, is ready, runs.
const CHANGES: u32 = 2;
/// Who starts a program, or waits for its end, talks less often with it.
const OFTEN: u32 = 20;
/// A finding that was there up to this share of the time before the end was there to the end.
const REST: f64 = 0.1;
/// A thread that gains no more than this share of its time without a finding has no part in it,
const SOONER: f64 = 0.02;
/// nor has one that gains no more than this share of what another one does: it has only less to wake, or is woken sooner.
const PART: f64 = 0.25;
