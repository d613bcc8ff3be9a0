//! `block:block_rq_issue` and `block_rq_complete`: requests to disks.

use holdup_trace::BlockIoEvent;

use super::format::{Field, Format};
use super::plan::Sample;
use super::session::State;

/// Fields of both tracepoints.
#[derive(Debug, Clone)]
pub struct Fields {
    thread: Field,
    device: Field,
    sector: Field,
    sectors: Field,
}

impl Fields {
    /// `None` if one is missing.
    pub fn of(format: &Format) -> Option<Self> {
        Some(Fields {
            thread: format.field("common_pid")?,
            device: format.field("dev")?,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector")?,
        })
    }
}

impl State<'_> {
    /// A sample of a request's issue or completion; `None` if it is damaged.
    pub fn block(&mut self, f: &Fields, issue: bool, s: &Sample) -> Option<()> {
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
