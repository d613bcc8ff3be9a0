//! In which system call each thread leaves its CPU. A bundle holds one CPU's events of a quarter of a second or more, and threads
//! change CPUs: so what they entered and left is put in the order of time before it is given to the switches.

use holdup_trace::{Event, SwitchState, TraceBuilder};
use rustc_hash::FxHashMap;

/// Entries and exits of a round.
#[derive(Debug, Default)]
pub struct Calls {
    /// Thread, time, and number; -1 for an exit.
    seen: Vec<(u32, u64, i16)>,
    /// Where each thread was when the last round ended.
    before: FxHashMap<u32, i16>,
    /// Whether exits are in the trace.
    pub with_exits: bool,
    /// How many of the held events have been looked at.
    done: usize,
}

impl Calls {
    /// `tid` enters a system call, or leaves it: `None`.
    pub fn seen(&mut self, time: u64, tid: u32, number: Option<u64>) {
        self.with_exits |= number.is_none();
        self.seen.push((tid, time, number.and_then(|n| i16::try_from(n).ok()).unwrap_or(-1)));
    }

    /// Tells the switches that are held which calls their threads were in.
    pub fn finish_round(&mut self, builder: &mut TraceBuilder) {
        if self.seen.is_empty() && self.before.is_empty() {
            return;
        }
        // At one instant an exit comes before the next entry.
        self.seen.sort_unstable();
        for (t, event) in builder.held_mut().skip(self.done) {
            let Event::Switch(switch) = event else { continue };
            // Without exits an old call may look like the present one; a sleep is hardly anything but a call.
            let left = switch.state.is_blocked() || switch.state == SwitchState::Dead;
            if switch.state == SwitchState::Sleeping || self.with_exits && left {
                switch.syscall = self.at(switch.prev, t);
            }
        }
        for &(tid, _, call) in &self.seen {
            self.before.insert(tid, call);
        }
        self.seen.clear();
    }

    /// After a round: what is still held has been looked at.
    pub fn kept(&mut self, builder: &mut TraceBuilder) {
        self.done = builder.held_mut().count();
    }

    fn at(&self, tid: u32, t: u64) -> i16 {
        let behind = self.seen.partition_point(|&(other, time, _)| (other, time) <= (tid, t));
        match behind.checked_sub(1).and_then(|at| self.seen.get(at)) {
            Some(&(other, _, call)) if other == tid => call,
            _ => self.before.get(&tid).copied().unwrap_or(-1),
        }
    }
}
