//! `block:block_rq_issue` and `block_rq_complete`: requests to disks.

use holdup_trace::BlockIoEvent;

use super::Instant;
use super::fields::BlockFields;
use super::kernel::Kernel;

/// Bytes of a sector, in all events of the kernel.
pub const SECTOR: u32 = 512;

impl Kernel<'_> {
    /// A request's issue or completion, as the kernel lays it out; `None` if it is damaged.
    pub fn raw_block(&mut self, f: &BlockFields, issue: bool, at: Instant, raw: &[u8]) -> Option<()> {
        if !f.sector.is_within(raw) || !f.sectors.is_within(raw) {
            return None;
        }
        let event = BlockIoEvent {
            device: f.device.low(raw),
            sector: f.sector.value(raw),
            bytes: f.sectors.low(raw).saturating_mul(SECTOR),
            tid: if issue { f.thread.low(raw) } else { 0 },
            issue,
        };
        self.block(at.time, event);
        Some(())
    }
}
