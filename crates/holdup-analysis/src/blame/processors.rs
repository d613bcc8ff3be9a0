//! What the CPUs run, and who would run there.

use holdup_trace::{Cpu, ThreadIdx};
use rustc_hash::FxHashMap;

use super::clock::Serial;
use super::forest::NONE;

/// All CPUs at an instant.
#[derive(Debug)]
pub(super) struct Processors {
    /// Who runs there, and when that ends, in time that grows backwards.
    run: Vec<u32>,
    ends: Vec<u64>,
    lost: Vec<bool>,
    /// Threads that could run there, and for which others wait.
    starving: Vec<Vec<u32>>,
    /// Up to when it is known who ran there instead.
    since: Vec<u64>,
    /// What had been charged for free places when the present thread came, going backwards.
    serial: Vec<Serial>,
    /// How long (second) ran on the CPU for which (first) was ready while others waited for it, in nanoseconds.
    pub(super) instead: FxHashMap<(ThreadIdx, ThreadIdx), u64>,
    /// By CPU: who runs there and is not of the focus, and what one of those had come to when it began to.
    others: Vec<Option<(ThreadIdx, f64)>>,
    /// What each of them has come to.
    pub(super) neighbours: FxHashMap<ThreadIdx, f64>,
}

impl Processors {
    pub(super) fn new(lost: &[bool]) -> Self {
        let n = lost.len();
        Processors {
            run: vec![NONE; n],
            ends: vec![0; n],
            lost: lost.to_vec(),
            starving: vec![Vec::new(); n],
            since: vec![0; n],
            serial: vec![Serial::default(); n],
            instead: FxHashMap::default(),
            others: vec![None; n],
            neighbours: FxHashMap::default(),
        }
    }

    /// Who runs there, if there is such a CPU.
    pub(super) fn running(&self, cpu: Cpu) -> Option<u32> {
        self.run.get(cpu.index()).copied()
    }

    pub(super) fn is_lost(&self, cpu: Cpu) -> bool {
        self.lost[cpu.index()]
    }

    pub(super) fn set_lost(&mut self, cpu: Cpu, lost: bool) {
        self.lost[cpu.index()] = lost;
    }

    /// What was charged for free places since this was last called for the CPU; `now` are the integrals.
    pub(super) fn serial_since(&mut self, cpu: Cpu, now: Serial) -> Serial {
        now.since(&std::mem::replace(&mut self.serial[cpu.index()], now))
    }

    /// From `now` on, going backwards (`now` grows), `thread` runs there.
    #[inline]
    pub(super) fn set_running(&mut self, cpu: Cpu, thread: u32, now: u64) {
        if !self.starving[cpu.index()].is_empty() {
            self.settle(cpu, now);
        }
        (self.run[cpu.index()], self.ends[cpu.index()]) = (thread, now);
    }

    /// For how long it has run there, going backwards; `u64::MAX` where it goes on behind the end of the part.
    pub(super) fn has_run(&self, cpu: Cpu, now: u64) -> u64 {
        match self.ends.get(cpu.index()) {
            Some(0) => u64::MAX,
            Some(end) => now.saturating_sub(*end),
            None => 0,
        }
    }

    /// Whether `thread` is ready for `cpu` and others wait for it, from `now` on.
    pub(super) fn set_starving(&mut self, cpu: Cpu, thread: u32, starves: bool, now: u64) {
        let Some(present) = self.starving.get(cpu.index()) else { return };
        let at = present.iter().position(|&t| t == thread);
        if at.is_some() == starves {
            return;
        }
        self.settle(cpu, now);
        let present = &mut self.starving[cpu.index()];
        match at {
            Some(at) => drop(present.swap_remove(at)),
            None => present.push(thread),
        }
    }

    fn settle(&mut self, cpu: Cpu, now: u64) {
        let ns = now - std::mem::replace(&mut self.since[cpu.index()], now);
        let runs = self.run[cpu.index()];
        if ns == 0 || runs == NONE {
            return;
        }
        for &thread in self.starving[cpu.index()].iter().filter(|&&t| t != runs) {
            *self.instead.entry((ThreadIdx(thread), ThreadIdx(runs))).or_default() += ns;
        }
    }

    /// Who uses the CPU and is not of the focus, from here on; one of those has come to `each` of what the focus misses.
    pub(super) fn set_neighbour(&mut self, cpu: Cpu, thread: Option<ThreadIdx>, each: f64) {
        let Some(present) = self.others.get_mut(cpu.index()) else { return };
        let before = std::mem::replace(present, thread.map(|t| (t, each)));
        if let Some((thread, since)) = before.filter(|(_, since)| *since < each) {
            *self.neighbours.entry(thread).or_default() += each - since;
        }
    }

    /// At the end.
    pub(super) fn settle_neighbours(&mut self, each: f64) {
        (0..self.run.len()).for_each(|cpu| self.set_neighbour(Cpu(cpu as u16), None, each));
    }

    /// At the end.
    pub(super) fn settle_all(&mut self, now: u64) {
        (0..self.run.len()).for_each(|cpu| self.settle(Cpu(cpu as u16), now));
    }
}
