//! What perf could not record: LOST, LOST_SAMPLES.

use rustc_hash::FxHashMap;

use crate::bytes::u64_at;
use crate::linux::Instant;
use crate::linux::cpus::{MAX_CPUS, cpu};
use crate::linux::sink::Sink;

/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: a filter of the user's dropped them, nothing was lost.
const DROPPED_BY_FILTER: u16 = 1 << 15;

/// Follows each CPU's records, to tell since when something may be missing.
#[derive(Debug, Default)]
pub struct Losses {
    /// The time of each CPU's last record.
    last: Vec<u64>,
    /// Records lost at a known time.
    placed: u64,
    /// Records lost by a total that perf wrote at the end, by CPU. It counts what was placed a second time.
    totals: FxHashMap<u32, u64>,
}

impl Losses {
    /// A record of `cpu` at `t`.
    #[inline]
    pub fn seen(&mut self, cpu: u32, t: u64) {
        let at = cpu as usize;
        if at >= self.last.len() {
            if at >= usize::from(MAX_CPUS) {
                return;
            }
            self.last.resize(at + 1, 0);
        }
        self.last[at] = t;
    }

    /// `PERF_RECORD_LOST`.
    pub fn lost(&mut self, body: &[u8], stamp: Instant, sink: &mut Sink) -> Option<()> {
        self.lose(u64_at(body, 8)?, stamp, sink);
        Some(())
    }

    /// `PERF_RECORD_LOST_SAMPLES`: by the kernel with a time, or perf's own total without one.
    pub fn lost_samples(&mut self, body: &[u8], misc: u16, stamp: Instant, sink: &mut Sink) -> Option<()> {
        let count = u64_at(body, 0)?;
        if misc & DROPPED_BY_FILTER != 0 {
            return Some(());
        }
        if sink.is_plausible(stamp.time) {
            self.lose(count, stamp, sink);
        } else {
            let total = self.totals.entry(stamp.cpu).or_default();
            *total = total.saturating_add(count);
        }
        Some(())
    }

    fn lose(&mut self, count: u64, stamp: Instant, sink: &mut Sink) {
        let since = self.last.get(stamp.cpu as usize).copied().filter(|&t| t != 0);
        let since = since.or(sink.start()).unwrap_or(stamp.time);
        self.placed = self.placed.saturating_add(count);
        let time = if sink.is_plausible(stamp.time) { stamp.time } else { sink.latest() };
        sink.lost(time, cpu(stamp.cpu), time.saturating_sub(since), count, "records lost by perf's buffer");
        self.seen(stamp.cpu, time);
    }

    /// At the end: what the totals know beyond the records that were placed.
    pub fn finish(&mut self, sink: &mut Sink) {
        let total = self.totals.values().fold(0_u64, |a, &b| a.saturating_add(b));
        let missing = total.saturating_sub(self.placed);
        if missing > 0 {
            sink.lost_anywhere(missing, "samples lost by the kernel, at a time that perf does not tell");
        }
    }
}
