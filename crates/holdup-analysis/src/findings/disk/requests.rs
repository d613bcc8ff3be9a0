//! Requests to block devices, from what was issued and completed.

use holdup_trace::ThreadIdx;
use holdup_trace::tables::BlockIo;
use rustc_hash::FxHashMap;

/// Open requests that are remembered: no device queues more, so what is older was never seen to end.
const MOST_OPEN: usize = 1 << 16;
pub(super) const SECTOR: u64 = 512;

/// A request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) device: u32,
    pub(super) thread: ThreadIdx,
    /// Where on the device it begins, in sectors of 512 bytes.
    pub(super) sector: u64,
    /// None for one that only empties the device's cache.
    pub(super) bytes: u32,
    /// When it was issued and when it ended, in nanoseconds.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Requests of the device in flight when it was issued, with itself.
    pub(super) depth: u32,
    /// Whether it begins where the device's previous request ended.
    pub(super) follows: bool,
}

/// What is known of a device.
#[derive(Debug, Default)]
struct Device {
    open: u32,
    /// The sector behind its last request.
    next: Option<u64>,
}

/// All requests that are under way. Memory is that of open requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: FxHashMap<(u32, u64), Request>,
    devices: FxHashMap<u32, Device>,
}

impl Requests {
    /// Takes the next row of the table; returns the request that ends with it. An end without a beginning is none.
    pub(super) fn see(&mut self, row: &BlockIo) -> Option<Request> {
        let t = row.t.nanos();
        if !row.issue {
            let done = self.open.remove(&(row.device, row.sector))?;
            let device = self.devices.entry(row.device).or_default();
            device.open = device.open.saturating_sub(1);
            return Some(Request { to: t, ..done });
        }
        if self.open.len() >= MOST_OPEN {
            self.open.clear();
            self.devices.clear();
        }
        let device = self.devices.entry(row.device).or_default();
        let has_data = row.bytes > 0;
        let follows = has_data && device.next == Some(row.sector);
        if has_data {
            device.next = Some(row.sector.saturating_add(u64::from(row.bytes) / SECTOR));
        }
        let (thread, depth) = (row.thread, device.open + 1);
        let BlockIo { device: on, sector, bytes, .. } = *row;
        let request = Request { device: on, thread, sector, bytes, from: t, to: t, depth, follows };
        // Nobody asks for a sector again before it was answered: the end of the older one is missing.
        if self.open.insert((row.device, row.sector), request).is_none() {
            device.open += 1;
        }
        None
    }
}
