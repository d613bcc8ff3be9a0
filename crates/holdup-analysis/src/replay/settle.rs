//! Moves the clocks of one thread on.

use holdup_trace::tables::Sample;

use super::COST_NS;
use super::Replay;
use super::clocks::each;
use super::taken::Work;
use super::waits::Passes;
use crate::intervals::State;

impl Replay<'_> {
    /// Moves the clocks of thread `i` on to this instant.
    pub(super) fn settle(&mut self, i: usize, t: u64) {
        let window = self.study.window;
        let now = &mut self.threads[i];
        let (from, to) = (now.since.max(window.from), t.min(window.to));
        let (state, behind, passes, gone) = (now.state, now.behind, now.passes, now.gone);
        let but = if now.polls { (1 << self.taken.len()) - 1 } else { gone };
        if matches!(state, State::Runnable(_) | State::Yields(_) | State::Woken(_)) {
            return;
        }
        now.since = t;
        if to <= from {
            return;
        }
        if matches!(state, State::Waiting(_)) && passes != Passes::ByDesign {
            self.remove(gone, to - from);
        }
        match (state, passes) {
            (State::Running(_), _) => self.pass_run(i, from, to),
            (State::Waiting(_), Passes::Always) => self.clocks.pass_but(i, to - from, but),
            (State::Waiting(_), Passes::HoldingUp) if behind > 0 => self.clocks.pass_but(i, to - from, but),
            _ => {}
        }
    }

    fn pass_run(&mut self, i: usize, from: u64, to: u64) {
        self.ran[i] += to - from;
        self.clocks.pass(i, to - from);
        let ours = self.threads[i].ours;
        for piece in self.pieces.of(i) {
            let (n, out) = (piece.clock - 1, piece.of_run(from, to));
            self.clocks.of(i)[piece.clock] -= out;
            self.removed[n] += out;
            self.saved[n] += if ours && self.taken[n].work == Work::Gone { out } else { 0 };
            if out > 0 {
                self.last[n] = Some(to);
            }
        }
    }

    /// Thread `i` was ready until now.
    pub(super) fn end_ready(&mut self, i: usize, after: State, t: u64) {
        let window = self.study.window;
        let now = &self.threads[i];
        let (from, to) = (now.since.max(window.from), t.min(window.to));
        let State::Running(cpu) = after else { return };
        if to <= from {
            return;
        }
        let (idle, foreign) = self.cpus.latency(cpu, now.since, t);
        let (latency, foreign) = (idle.min(to - from), foreign.min(to - from));
        let relieved = now.relieved;
        self.clocks.pass_but(i, latency, relieved);
        self.remove(relieved, to - from);
        // Neighbours may be others the next time: what they took tells why the run was as long as it was, and bounds no other.
        let as_it_was = self.taken.len() + 1;
        self.clocks.of(i)[as_it_was] += foreign.min(to - from - latency);
        for piece in self.pieces.of(i) {
            let charged = piece.ready.within(from, to);
            if charged > 0 {
                self.last[piece.clock - 1] = Some(to);
            }
            if relieved >> (piece.clock - 1) & 1 == 0 {
                let out = u128::from(latency) * u128::from(charged) / u128::from(to - from);
                self.clocks.of(i)[piece.clock] -= out as u64;
                self.removed[piece.clock - 1] += charged;
                // Who hands over less often waits less often.
                self.spared[piece.clock - 1] += if charged > 0 { COST_NS } else { 0 };
            }
        }
    }

    /// A CPU sample: the work of a finding is taken out wherever it is done.
    pub(super) fn sample(&mut self, sample: &Sample) {
        let (i, t) = (sample.thread.index(), sample.t.nanos());
        let [mut gone, moved, overhead] = self.pieces.of_stack(sample.stack);
        let inside = (self.study.window.from..self.study.window.to).contains(&t);
        if gone | moved | overhead == 0 || !inside || i == 0 || i >= self.threads.len() {
            return;
        }
        let (period, ours) = (self.study.trace.meta.sample_period_ns, self.threads[i].ours);
        for n in each(overhead) {
            if self.spared[n] >= period && !self.pieces.piece(i, n).runs.contains(t) {
                self.spared[n] -= period;
                gone |= 1 << n;
            }
        }
        for n in each(gone | moved) {
            let piece = self.pieces.piece(i, n);
            // What is charged is gone already.
            let charged = piece.runs.contains(t);
            piece.sampled += if charged { 0 } else { period };
            // With work that is gone it is counted where the thread ran.
            let counts = ours && gone >> n & 1 == 1 && self.taken[n].work != Work::Gone;
            self.saved[n] += if counts { period } else { 0 };
        }
    }
}
