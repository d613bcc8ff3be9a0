//! For how long nobody of the program had a CPU.

use holdup_trace::Cpu;

use crate::intervals::HANDOFF_NS;

/// Who has a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Has {
    #[default]
    Nobody,
    /// A thread of the program, or one that works for it.
    Ours,
    Foreign,
}

#[derive(Debug, Clone, Copy, Default)]
struct Now {
    has: Has,
    thread: u32,
    since: u64,
    /// Since when nobody of the program has it.
    unused: u64,
    /// How long foreigners have had it since then, but for the one that has it now.
    foreign: u64,
}

#[derive(Debug)]
pub(super) struct Cpus(Vec<Now>);

impl Cpus {
    pub(super) fn new(cpus: usize) -> Self {
        Cpus(vec![Now::default(); cpus])
    }

    pub(super) fn begin(&mut self, cpu: Cpu, thread: u32, has: Has, t: u64) {
        if let Some(now) = self.0.get_mut(cpu.index()) {
            now.end(t);
            (now.has, now.thread) = (has, thread);
        }
    }

    pub(super) fn end(&mut self, cpu: Cpu, thread: u32, t: u64) {
        if let Some(now) = self.0.get_mut(cpu.index()).filter(|now| now.thread == thread) {
            now.end(t);
        }
    }

    /// The latency of a thread that has been ready since then and gets this CPU at `t`: how long the CPU was idle, and how long
    /// foreigners had it meanwhile, in nanoseconds. A CPU that stays idle for longer than a hand-off is withheld by a quota, or by
    /// a mistake: who needs less CPU time then may well get it sooner.
    pub(super) fn latency(&self, cpu: Cpu, since: u64, t: u64) -> (u64, u64) {
        let Some(now) = self.0.get(cpu.index()).filter(|now| now.has != Has::Ours) else { return (0, 0) };
        let unused = t.saturating_sub(now.unused.max(since));
        let present = if now.has == Has::Foreign { t.saturating_sub(now.since) } else { 0 };
        let foreign = (now.foreign + present).min(unused);
        ((unused - foreign).min(HANDOFF_NS), foreign)
    }
}

impl Now {
    fn end(&mut self, t: u64) {
        match self.has {
            Has::Ours => (self.unused, self.foreign) = (t, 0),
            Has::Foreign => self.foreign += t.saturating_sub(self.since),
            Has::Nobody => {}
        }
        (self.has, self.thread, self.since) = (Has::Nobody, 0, t);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Cpu = Cpu(0);

    #[test]
    fn who_waits_for_its_own_program_has_no_latency() {
        let mut cpus = Cpus::new(1);
        cpus.begin(CPU, 7, Has::Ours, 10);
        assert_eq!(cpus.latency(CPU, 20, 50), (0, 0));
        cpus.end(CPU, 7, 60);
        assert_eq!(cpus.latency(CPU, 20, 60), (0, 0));
        assert_eq!(cpus.latency(CPU, 20, 65), (5, 0), "idle since 60");
        assert_eq!(cpus.latency(CPU, 62, 65), (3, 0), "ready since 62");
        assert_eq!(cpus.latency(Cpu(9), 0, 65), (0, 0), "no such CPU");
    }

    #[test]
    fn a_foreigners_time_counts_whole_and_an_idle_cpu_only_so_long() {
        let mut cpus = Cpus::new(1);
        let long = 5 * HANDOFF_NS;
        assert_eq!(cpus.latency(CPU, 0, long), (HANDOFF_NS, 0));
        cpus.begin(CPU, 3, Has::Foreign, long);
        cpus.begin(CPU, 4, Has::Foreign, 2 * long);
        assert_eq!(cpus.latency(CPU, long, 3 * long), (0, 2 * long));
        cpus.end(CPU, 4, 3 * long);
        assert_eq!(cpus.latency(CPU, long, 4 * long), (HANDOFF_NS, 2 * long));
    }
}
