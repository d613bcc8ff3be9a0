//! What a recorder sees: events, and gaps.

use holdup_trace::{ChainId, Cpu, Event, LockId, Nanos, StringId, SwitchState};
use holdup_trace::{FutexEvent, LostEvent, SampleEvent, SwitchEvent, WakeEvent};

/// The events, and of each CPU whether its records are being lost.
pub(super) struct Record {
    pub(super) events: Vec<(u64, Event)>,
    /// The machine's clock.
    pub(super) now: u64,
    /// When the last switch, wake-up or sample was.
    last: u64,
    /// Switches and wake-ups.
    pub(super) made: u64,
    wanted: u64,
    gaps: Vec<Option<Gap>>,
    open_gaps: usize,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    since: u64,
    lost: u32,
}

impl Record {
    pub(super) fn new(cpus: usize, wanted: u64) -> Self {
        Record { events: Vec::new(), now: super::START, last: 0, made: 0, wanted, gaps: vec![None; cpus], open_gaps: 0 }
    }

    /// Whether more events are wanted.
    pub(super) fn is_open(&self) -> bool {
        self.made < self.wanted
    }

    /// Something happens on `cpu`.
    #[inline]
    pub(super) fn push(&mut self, cpu: u16, event: Event) {
        if !self.is_open() {
            return;
        }
        if self.open_gaps > 0
            && let Some(gap) = &mut self.gaps[usize::from(cpu)]
        {
            gap.lost += 1;
            return;
        }
        match event {
            // No two at one instant: whoever wakes another and then sleeps did the one before the other.
            Event::Switch(SwitchEvent { .. }) | Event::Wake(WakeEvent { .. }) => {
                self.last = self.now.max(self.last + 1);
                self.made += 1;
            }
            Event::Sample(SampleEvent { .. }) => self.last = self.now.max(self.last + 1),
            // It belongs to the switch that follows.
            Event::Futex(FutexEvent { .. }) => return self.events.push((self.now.max(self.last + 1), event)),
            _ => {}
        }
        self.events.push((self.now.max(self.last), event));
    }

    #[inline]
    pub(super) fn switch(&mut self, cpu: u16, prev: u32, next: u32, state: SwitchState, syscall: i16, lock: LockId) {
        let io_wait = state == SwitchState::Uninterruptible;
        let (on, chain) = (Cpu(cpu), ChainId::NONE);
        self.push(cpu, Event::Switch(SwitchEvent { cpu: on, prev, next, state, io_wait, syscall, lock, chain }));
    }

    /// Something that is no switch and no wake-up, and is never lost.
    pub(super) fn add(&mut self, event: Event) {
        self.events.push((self.now.max(self.last), event));
    }

    /// From now on the records of `cpu` are lost; `false` if they are already.
    pub(super) fn lose(&mut self, cpu: u16) -> bool {
        let gap = &mut self.gaps[usize::from(cpu)];
        let free = gap.is_none();
        if free {
            *gap = Some(Gap { since: self.now.max(self.last), lost: 0 });
            self.open_gaps += 1;
        }
        free
    }

    /// Ends the gap of `cpu`, if something is lost in it.
    pub(super) fn found(&mut self, cpu: u16, what: StringId) -> bool {
        let gap = self.gaps[usize::from(cpu)].filter(|gap| gap.lost > 0);
        let Some(Gap { since, lost: count }) = gap else { return false };
        self.gaps[usize::from(cpu)] = None;
        self.open_gaps -= 1;
        self.add(Event::Lost(LostEvent {
            kind: holdup_trace::LossKind::Events,
            cpu: Cpu(cpu),
            span: Nanos(self.now.max(self.last) - since),
            count,
            what,
        }));
        true
    }

    /// Ends all gaps.
    pub(super) fn end(&mut self, what: StringId) {
        for cpu in 0..self.gaps.len() {
            self.found(cpu as u16, what);
        }
    }
}
