//! What the CPUs do, and what the samples say of it.

use holdup_trace::tables::Sample;
use holdup_trace::{Cpu, StackId, ThreadIdx};

use super::super::cells::{Key, Terminal};
use super::super::forest::{NONE, Role};
use super::Sweep;
use crate::classify::WaitKind;

impl Sweep<'_> {
    pub(super) fn set_running(&mut self, cpu: Cpu, i: u32, starts: bool) {
        let Some(&present) = self.cpu_run.get(cpu.index()) else { return };
        let lost = self.cpu_lost[cpu.index()];
        if starts {
            if present != NONE {
                self.count_running(present, lost, false);
            }
            self.cpu_run[cpu.index()] = i;
            self.count_running(i, lost, true);
        } else if present == i {
            self.cpu_run[cpu.index()] = NONE;
            self.count_running(i, lost, false);
        }
    }

    pub(super) fn count_running(&mut self, i: u32, lost: bool, starts: bool) {
        if lost {
            return;
        }
        let focus = self.focus.contains(ThreadIdx(i));
        let count = if focus { &mut self.running_focus } else { &mut self.running_other };
        *count = if starts { *count + 1 } else { *count - 1 };
    }

    pub(super) fn set_lost(&mut self, cpu: Cpu, lost: bool) {
        if self.cpu_lost[cpu.index()] == lost {
            return;
        }
        let running = self.cpu_run[cpu.index()];
        if running != NONE {
            self.count_running(running, false, !lost);
        }
        self.cpu_lost[cpu.index()] = lost;
        self.lost = if lost { self.lost + 1 } else { self.lost - 1 };
    }

    /// Weight of one held-up thread at this instant, in the ranking.
    pub(super) fn rank_weight(&self) -> f64 {
        let members = self.held + self.queued;
        let idle = self.intervals.cpus.saturating_sub(self.running_focus + self.lost);
        if members == 0 { 0.0 } else { idle.min(members) as f64 / members as f64 }
    }

    /// A CPU sample: whose blame is it at this instant?
    pub(super) fn sample(&mut self, sample: &Sample) {
        let i = sample.thread.0;
        let inside = sample.t.nanos() >= self.window.from && sample.t.nanos() <= self.window.to;
        if !inside || sample.thread.index() >= self.forest.nodes.len() {
            return;
        }
        *self.out.profile.entry((sample.thread, sample.stack)).or_default() += self.period;
        let facts = self.classifier.facts(sample.stack);
        if self.focus.contains(sample.thread) {
            let at = self.out.at_work.entry((self.at_work(), sample.thread, sample.stack)).or_default();
            at.0 += self.period;
            at.1 += self.period / self.running_focus.max(1) as f64;
            self.out.cpu.spin += if facts.kernel_spin { self.period } else { 0.0 };
            if facts.lock_overhead {
                self.charge_overhead(i, sample.stack);
            }
        }
        if self.forest.at(i).behind == 0 {
            return;
        }
        // Even where no CPU is idle the function is wanted: a small weight keeps it.
        let weight = self.rank_weight().max(1e-3) * self.period;
        let mut behind = Vec::new();
        self.forest.subtree(i, &mut behind);
        for &n in &behind[1..] {
            let node = self.forest.at(n);
            if node.role == Role::HeldUp {
                *self.cells.cells[node.cell as usize].samples.entry(sample.stack).or_default() += weight;
            }
        }
    }

    /// CPU time in the kernel's futex code belongs to the lock that the thread is about to wait for.
    pub(super) fn charge_overhead(&mut self, i: u32, stack: StackId) {
        let coming = self.forest.at(i).coming;
        let Some(wait) = self.intervals.waits.get(coming as usize) else { return };
        if wait.kind != WaitKind::Lock {
            return;
        }
        let (thread, lock, kind) = (ThreadIdx(i), wait.lock, wait.kind);
        let id = self.cells.id(Key { terminal: Terminal::Overhead, thread, lock, kind, site: StackId::NONE });
        let cell = &mut self.cells.cells[id as usize];
        cell.rank_ns += self.period;
        *cell.samples.entry(stack).or_default() += self.period;
    }
}
