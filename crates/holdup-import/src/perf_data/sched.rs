//! `PERF_RECORD_SWITCH_CPU_WIDE`: switches without tracepoints.

use holdup_trace::{LockId, SwitchEvent, SwitchState};

use super::decoder::Decoder;
use crate::bytes::u32_at;
use crate::linux::Instant;
use crate::linux::cpus::cpu;

impl Decoder<'_> {
    /// A record, where there is no `sched_switch`: who left, and for whom.
    pub fn switch_record(&mut self, body: &[u8], misc: u16, s: Instant, thread: (u32, u32)) -> Option<()> {
        const OUT: u16 = 1 << 13;
        const PREEMPTED: u16 = 1 << 14;
        let next = u32_at(body, 4)?;
        if misc & OUT == 0 || !self.kernel.sink.is_plausible(s.time) {
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
        self.kernel.sink.timed(s.time, event);
        Some(())
    }
}
