//! What is seen of the machine beside switches and wake-ups: requests to the disk, samples, gaps.

use holdup_trace::{BlockIoEvent, BlockedEvent, SampleEvent};
use holdup_trace::{Cpu, Event, LockId};

use super::timers::Due;
use super::{MIN_WAIT, Machine, NOBODY, State, Thread};
use crate::cast::Who;

impl Machine {
    pub(super) fn block_io(&mut self, cpu: u16, who: Who, issue: bool) {
        let Thread { tid, sector, .. } = self.threads[who as usize];
        self.record.push(cpu, Event::BlockIo(BlockIoEvent { device: 259 << 20, sector, bytes: 16 << 10, tid, issue }));
    }

    /// The next CPU's turn to be sampled.
    pub(super) fn sample(&mut self) {
        let cpu = (self.next_tick % self.running.len() as u64) as u16;
        self.next_tick += 1;
        self.timers.set(self.now + self.tick, Due::Tick);
        let who = self.running[usize::from(cpu)];
        if who == NOBODY {
            return;
        }
        let Thread { tid, site, .. } = self.threads[who as usize];
        let leaf = self.random.below(crate::code::LEAVES as u64) as usize;
        let (chain, ip) = self.sites[usize::from(site)].chains[leaf];
        self.record.push(cpu, Event::Sample(SampleEvent { cpu: Cpu(cpu), tid, ip, bp: 0, chain }));
    }

    pub(super) fn loss_begins(&mut self) {
        let cpu = self.random.below(self.running.len() as u64) as u16;
        let free = (0..self.running.len() as u16).map(|i| (cpu + i) % self.running.len() as u16);
        if let Some(cpu) = { free }.find(|&cpu| self.record.lose(cpu)) {
            let ns = self.random.within(200_000, 2_000_000);
            self.timers.set(self.now + ns, Due::LossEnds(cpu));
        }
    }

    pub(super) fn loss_ends(&mut self, cpu: u16) {
        // Nothing happened there meanwhile: nothing is lost yet.
        if !self.record.found(cpu, self.common.lost) {
            self.timers.set(self.now + 200_000, Due::LossEnds(cpu));
        }
    }

    /// Says where the waits blocked that are still open, as a recorder does.
    pub(super) fn end(&mut self) {
        for thread in &self.threads {
            if thread.state == State::Blocked && thread.since > 0 && self.now - thread.since >= MIN_WAIT {
                let chain = self.sites[usize::from(thread.site)].chains[0].0;
                self.record.add(Event::Blocked(BlockedEvent { tid: thread.tid, chain, lock: LockId::NONE }));
            }
        }
        self.record.end(self.common.lost);
    }
}
