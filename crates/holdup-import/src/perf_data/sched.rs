//! `sched_switch`, `sched_waking` and `sched_wakeup*`.

use holdup_trace::{Cpu, LockId, SwitchEvent, SwitchState, WakeContext, WakeEvent};

use super::chain::At;
use super::cpus::cpu;
use super::decoder::Decoder;
use super::fields::{SwitchFields, WakeFields};
use super::plan::{Plan, Sample};

impl Decoder<'_> {
    /// A sample of `sched_switch`; `None` if it is damaged.
    #[inline]
    pub fn switch(&mut self, f: &SwitchFields, plan: &Plan, misc: u16, s: &Sample) -> Option<()> {
        let raw = s.raw;
        if !f.is_complete(raw) {
            return None;
        }
        let (prev, next) = (f.prev.low(raw), f.next.low(raw));
        let state = if prev == 0 { SwitchState::Runnable } else { f.states.state(f.prev_state.value(raw)) };
        self.other_namespace |= s.tid != prev && s.tid != u32::MAX;
        // The idle task always leaves from the same place.
        let chain = match prev {
            0 => holdup_trace::ChainId::NONE,
            _ => self.splitter.chain(plan, misc, s, At::Switch, self.sink.builder),
        };
        self.threads.seen_current(s.time, (s.pid, prev), || f.prev_comm.bytes(raw), &mut self.sink);
        self.threads.seen_name(s.time, next, || f.next_comm.bytes(raw), &mut self.sink);
        let syscall = self.calls.blocked_in(prev, state);
        let cpu = cpu(s.cpu);
        let event = SwitchEvent { cpu, prev, next, state, io_wait: false, syscall, lock: LockId::NONE, chain };
        self.sink.timed(s.time, event);
        Some(())
    }

    /// A sample of a wake-up; `None` if it is damaged.
    #[inline]
    pub fn wake(&mut self, f: &WakeFields, plan: &Plan, misc: u16, s: &Sample) -> Option<()> {
        let raw = s.raw;
        if !f.wakee.is_within(raw) || !f.target.is_within(raw) {
            return None;
        }
        if f.success.is_some_and(|success| success.value(raw) == 0) {
            return Some(());
        }
        let (waker, wakee) = (f.waker.low(raw), f.wakee.low(raw));
        let (context, source) = match self.contexts.of(s.cpu, f.flags.value(raw) as u8) {
            // The idle task wakes nobody: somebody did so from afar.
            (WakeContext::Task, _) if waker == 0 => (WakeContext::Unknown, super::irq::UNKNOWN_SOURCE),
            known => known,
        };
        let chain = self.splitter.chain(plan, misc, s, At::Wake, self.sink.builder);
        self.threads.seen_name(s.time, wakee, || f.comm.bytes(raw), &mut self.sink);
        let target: Cpu = cpu(f.target.low(raw));
        let lock = LockId::NONE;
        let event = WakeEvent { cpu: cpu(s.cpu), waker, wakee, context, source, target, lock, chain };
        self.sink.timed(s.time, event);
        Some(())
    }

    /// A sample of `PERF_RECORD_SWITCH_CPU_WIDE`, where there is no `sched_switch`: who left, and for whom.
    pub fn switch_record(&mut self, body: &[u8], misc: u16, s: super::plan::Stamp, thread: (u32, u32)) -> Option<()> {
        const OUT: u16 = 1 << 13;
        const PREEMPTED: u16 = 1 << 14;
        let next = super::bytes::u32_at(body, 4)?;
        if misc & OUT == 0 || !self.sink.is_plausible(s.time) {
            return Some(());
        }
        let state = if misc & PREEMPTED != 0 || thread.1 == 0 { SwitchState::Runnable } else { SwitchState::Sleeping };
        let event = SwitchEvent {
            cpu: cpu(s.cpu),
            prev: thread.1,
            next,
            state,
            io_wait: false,
            syscall: -1,
            lock: LockId::NONE,
            chain: holdup_trace::ChainId::NONE,
        };
        self.losses.seen(s.cpu, s.time);
        self.sink.timed(s.time, event);
        Some(())
    }
}
