//! What the CPUs run, and what the samples say of it.

use holdup_trace::tables::Sample;
use holdup_trace::{Cpu, LockId, StackId, ThreadIdx};

use super::super::forest::NONE;
use super::super::key::{Key, Terminal};
use super::Sweep;
use crate::classify::WaitKind;

impl Sweep<'_> {
    #[inline]
    pub(super) fn set_running(&mut self, cpu: Cpu, i: u32, starts: bool) {
        let Some(present) = self.processors.running(cpu) else { return };
        let lost = self.processors.is_lost(cpu);
        let now = self.clock.total.t;
        if starts {
            if present != NONE {
                self.charge_serial(cpu, present);
                self.count_running(present, lost, false);
            }
            self.processors.serial_since(cpu, self.clock.serial);
            self.record_serial(cpu, None, 0.0);
            self.processors.set_running(cpu, i, now);
            self.count_running(i, lost, true);
            self.set_use(cpu, i);
        } else if present == i {
            self.charge_serial(cpu, i);
            self.processors.set_running(cpu, NONE, now);
            self.count_running(i, lost, false);
            self.set_use(cpu, NONE);
        }
    }

    /// CPUs are idle because of what runs: while thread `i` ran on `cpu`, so much was charged to it for them.
    #[inline]
    pub(super) fn charge_serial(&mut self, cpu: Cpu, i: u32) {
        let passed = self.processors.serial_since(cpu, self.clock.serial);
        if passed.t == 0 || !self.contains(i) || self.processors.is_lost(cpu) {
            return self.record_serial(cpu, None, 0.0);
        }
        let id = self.serial_cell(i);
        self.record_serial(cpu, Some(id), passed.cpu);
        let from = self.clock.time();
        self.cells.add_window(id, from, from + passed.t);
        let cell = self.cells.at(id);
        cell.cpu_ns += passed.cpu;
        cell.rank_ns += passed.rank;
    }

    fn record_serial(&mut self, cpu: Cpu, cell: Option<u32>, passed: f64) {
        if let Some(recorder) = &mut self.recorder {
            let cell = cell.map(|cell| (cell, self.cells.keys.as_slice()));
            recorder.serial(cpu, cell, self.clock.time(), passed, self.clock.serial.cpu);
        }
    }

    fn serial_cell(&mut self, i: u32) -> u32 {
        let (terminal, kind) = (Terminal::Serial, WaitKind::Unknown);
        self.own_cell(i, Key { terminal, thread: ThreadIdx(i), lock: LockId::NONE, kind, site: StackId::NONE })
    }

    #[inline]
    pub(super) fn count_running(&mut self, i: u32, lost: bool, starts: bool) {
        if lost {
            return;
        }
        let focus = self.contains(i);
        let present = &mut self.clock.present;
        let count = if focus { &mut present.running_focus } else { &mut present.running_other };
        *count = if starts { *count + 1 } else { *count - 1 };
    }

    /// A CPU sample: whose blame is it at this instant?
    pub(super) fn sample(&mut self, sample: &Sample) {
        let i = sample.thread.0;
        if !self.clock.is_inside(sample.t.nanos()) || sample.thread.index() >= self.forest.threads.len() {
            return;
        }
        let period = self.study.period();
        *self.out.profile.entry((sample.thread, sample.stack)).or_default() += period;
        let facts = self.study.classifier.facts(sample.stack);
        if self.contains(i) {
            let present = self.clock.present;
            let at = self.out.at_work.entry((present.at_work(), sample.thread, sample.stack)).or_default();
            at.0 += period;
            at.1 += period / present.running_focus.max(1) as f64;
            self.clock.sums.spin += if self.study.spins.has(sample.stack) { period } else { 0.0 };
            if facts.lock_overhead {
                self.charge_overhead(i, sample.stack);
            }
            let alone = self.clock.serial_weight();
            if alone > 0.0 {
                let cell = self.serial_cell(i);
                *self.cells.at(cell).samples.entry(sample.stack).or_default() += alone * period;
            }
        }
        if self.forest.at(i).behind == 0 {
            return;
        }
        // Even where no CPU is idle the function is wanted: a small weight keeps it.
        let weight = self.clock.rank_weight().max(1e-3) * period;
        for q in self.forest.queues_of(i) {
            let queue = self.forest.queue(q);
            let Some(edge) = queue.edge else { continue };
            let held = queue.counts.held_up(edge.holds);
            if held > 0 {
                *self.cells.at(edge.cell).samples.entry(sample.stack).or_default() += weight * f64::from(held);
            }
        }
    }

    /// CPU time in the kernel's futex code belongs to the lock that the thread is about to wait for.
    fn charge_overhead(&mut self, i: u32, stack: StackId) {
        let coming = self.forest.at(i).coming;
        let Some(wait) = self.chunk.waits().get(coming as usize).filter(|w| w.kind == WaitKind::Lock) else { return };
        let (thread, lock, kind) = (ThreadIdx(i), wait.lock, wait.kind);
        debug_assert!(lock != LockId::NONE, "locks without an address have a name");
        let id = self.cells.id(Key { terminal: Terminal::Overhead, thread, lock, kind, site: StackId::NONE });
        let period = self.study.period();
        let cell = self.cells.at(id);
        cell.rank_ns += period;
        *cell.samples.entry(stack).or_default() += period;
    }
}
