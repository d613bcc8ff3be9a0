//! The beginning of the part, where the sweep ends: all that is still being charged.

use holdup_trace::Cpu;

use super::super::charged::Charged;
use super::super::forest::{Class, NONE};
use super::Sweep;

impl Sweep<'_> {
    /// Charges everything up to the part's beginning.
    pub(super) fn finish(mut self) -> Charged {
        self.end();
        let mut out = self.out;
        out.waiting = self.clock.take_waiting();
        out.cpu = self.clock.sums;
        self.processors.settle_neighbours(self.clock.starved);
        out.neighbours = self.processors.neighbours;
        out.instead = self.processors.instead;
        (out.cells, out.spans) = self.cells.finish();
        out.looks = self.census.finish();
        out
    }

    /// Charges everything up to there.
    pub(super) fn end(&mut self) {
        self.advance(self.chunk.from);
        let now = self.clock.total.t;
        self.processors.settle_all(now);
        for cpu in (0..self.chunk.lost_at_end.len()).map(|cpu| Cpu(cpu as u16)) {
            match self.processors.running(cpu) {
                Some(i) if i != NONE => self.charge_serial(cpu, i),
                _ => {}
            }
        }
        for i in 0..self.forest.threads.len() as u32 {
            self.close(i);
        }
        for q in 0..self.forest.queue_count() {
            self.retire(q);
        }
    }

    /// Charges a thread, and notes where its wait was charged if it has begun before the part.
    fn close(&mut self, i: u32) {
        let thread = self.forest.at(i);
        let Some(w) = thread.state.wait() else { return self.discharge(i) };
        let wait = self.wait(w);
        // Whatever was noted up to now belongs to a wait that goes on in the part before.
        self.forest.at_mut(i).crossing = true;
        let before = self.out.crossing.len();
        let (q, joined, joined_at) = (self.forest.at(i).queue, self.forest.at(i).joined, self.forest.at(i).joined_at);
        if q == NONE {
            self.discharge(i);
        } else if self.forest.at(i).class != Class::None {
            let off = self.off(q);
            let mut passed = Vec::new();
            self.charged_since(q, joined_at, &mut passed);
            self.count_in(i, wait, &off.since(&joined), &passed);
        }
        let open = self.out.crossing.split_off(before);
        self.out.open.extend(open.into_iter().map(|(thread, keys, _)| (thread, keys)));
    }
}
