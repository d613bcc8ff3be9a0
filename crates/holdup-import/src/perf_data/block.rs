//! `block:block_rq_issue` and `block_rq_complete`: requests to disks.

use holdup_trace::BlockIoEvent;

use super::decoder::Decoder;
use super::fields::BlockFields;
use super::plan::Sample;

impl Decoder<'_> {
    /// A sample of a request's issue or completion; `None` if it is damaged.
    pub fn block(&mut self, f: &BlockFields, issue: bool, s: &Sample) -> Option<()> {
        const SECTOR: u32 = 512;
        if !f.sector.is_within(s.raw) || !f.sectors.is_within(s.raw) {
            return None;
        }
        let event = BlockIoEvent {
            device: f.device.low(s.raw),
            sector: f.sector.value(s.raw),
            bytes: f.sectors.low(s.raw).saturating_mul(SECTOR),
            tid: if issue { f.thread.low(s.raw) } else { 0 },
            issue,
        };
        self.sink.timed(s.time, event);
        Some(())
    }
}
