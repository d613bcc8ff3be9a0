//! Threads that could run and do not, and for which nobody waits: for want of which CPU?

use holdup_trace::{Cpu, LockId, Nanos, StackId, ThreadIdx};

use super::super::forest::{Mark, NONE};
use super::super::key::{Key, Terminal};
use super::super::ready::{Reading, Use};
use super::super::terminal;
use super::Sweep;
use crate::classify::WaitKind;
use crate::intervals::{HANDOFF_NS, State, Wait};

impl Sweep<'_> {
    /// The CPU is used by that thread from here on, going backwards.
    pub(super) fn set_use(&mut self, cpu: Cpu, thread: u32) {
        let to = match thread {
            _ if self.processors.is_lost(cpu) => Use::Own,
            NONE => Use::Idle,
            _ if self.contains(thread) => Use::Own,
            _ => Use::Other,
        };
        let total = self.clock.total;
        self.ready.set_use(cpu, to, &total);
        let neighbour = (to == Use::Other).then_some(ThreadIdx(thread));
        self.processors.set_neighbour(cpu, neighbour, self.clock.starved);
    }

    /// The CPU on which a thread that is ready will run.
    fn coming_cpu(&self, state: State) -> Cpu {
        match state {
            State::Runnable(cpu) => cpu,
            State::Woken(w) => self.wait(w).cpu,
            _ => Cpu::NONE,
        }
    }

    /// Thread `i` is ready from here on, going backwards.
    pub(super) fn begin_queued(&mut self, i: u32) {
        let cpu = self.coming_cpu(self.forest.at(i).state);
        let reading = self.ready.read(ThreadIdx(i), cpu, self.clock.time(), &self.clock.total);
        self.readings.insert(i, reading);
    }

    /// Charges a thread that was ready: a part to each way of being so.
    pub(super) fn end_queued(&mut self, i: u32) {
        self.clock.present.queued -= 1;
        let Some(reading) = self.readings.remove(&i) else { return };
        let missed = self.ready.missed(&reading, &self.clock.total);
        let on_its_way = match self.forest.at(i).state {
            State::Woken(w) => Some(woken_key(self.wait(w))),
            _ => None,
        };
        // No scheduler moves a thread for a moment.
        let turn = on_its_way.is_some() || missed.all.t < HANDOFF_NS;
        self.charge_ready(on_its_way.unwrap_or_else(|| ready_key(i, Terminal::Stalled)), &missed.own, &reading);
        let moved = if turn { Terminal::Turn } else { Terminal::Misplaced };
        self.charge_ready(ready_key(i, moved), &missed.allowed, &reading);
        self.charge_ready(ready_key(i, Terminal::Barred), &missed.barred, &reading);
        self.charge_ready(ready_key(i, Terminal::Starved), &missed.taken, &reading);
    }

    fn charge_ready(&mut self, key: Key, passed: &Mark, since: &Reading) {
        if passed.t == 0 {
            return;
        }
        let (thread, terminal) = (key.thread, key.terminal);
        let id = self.own_cell(thread.0, key);
        let from = self.clock.time();
        if let Some(recorder) = &mut self.recorder {
            recorder.ready(id, &self.cells.keys, &since.at, &self.clock.total, passed.cpu);
        }
        let cell = self.cells.at(id);
        if !matches!(terminal, Terminal::Waking | Terminal::Disk) {
            // Wake-ups are counted where they are told to have met an idle CPU, waits for a disk where they begin.
            cell.count_alone(thread, passed.t, StackId::NONE);
        }
        cell.thread_ns = cell.thread_ns.saturating_add(passed.t);
        cell.cpu_ns += passed.cpu;
        // A CPU that a neighbour uses is not one that stood idle while it could have run.
        let counts = matches!(terminal, Terminal::Starved | Terminal::Barred);
        cell.rank_ns += if counts { passed.rank } else { passed.cpu };
        self.cells.add_window(id, from, from + passed.t);
    }

    /// Going backwards, thread `i` is woken here, by wait `w`: if a CPU stood idle for it then, it pays for the way there.
    pub(super) fn count_latency(&mut self, i: u32, w: u32) {
        let wait = *self.wait(w);
        let counts = self.contains(i) || self.forest.at(i).behind > 0;
        if !counts
            || self.is_handoff(w)
            || terminal::is_for_disk(&wait)
            || !self.ready.is_idle(wait.cpu)
            || !self.clock.is_inside(wait.woken)
        {
            return;
        }
        let took = Nanos(wait.resumed.saturating_sub(wait.woken));
        let program = self.study.trace.threads.process.get(i as usize).copied().unwrap_or_default();
        self.out.latencies.entry(program).or_default().add(took);
        let id = self.own_cell(i, ready_key(i, Terminal::Waking));
        self.cells.at(id).count_alone(wait.thread, took.0, wait.stack);
    }
}

/// Of a thread on its way from a wait to an idle CPU: that way is a part of what a disk costs, which who asks it less often saves, too.
fn woken_key(wait: &Wait) -> Key {
    match terminal::is_for_disk(wait) {
        true => Key {
            terminal: Terminal::Disk,
            kind: wait.kind,
            site: wait.stack,
            ..ready_key(wait.thread.0, Terminal::Disk)
        },
        false => ready_key(wait.thread.0, Terminal::Waking),
    }
}

fn ready_key(i: u32, terminal: Terminal) -> Key {
    Key { terminal, thread: ThreadIdx(i), lock: LockId::NONE, kind: WaitKind::Unknown, site: StackId::NONE }
}
