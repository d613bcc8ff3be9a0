//! The log's first record: what machine and clock it is of, and what it lost.

use super::clock::Clock;
use super::fields::Fields;
use super::record::Record;

/// Bytes of the shortest such record.
pub const SMALLEST: usize = 200;

/// Windows knows 2048 CPUs at most.
const MOST_CPUS: u32 = 2048;

/// What the log says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHeader {
    /// Bytes of a buffer that is not packed.
    pub buffer_size: u32,
    /// Major, minor and build number of Windows.
    pub windows: (u8, u8, u32),
    cpus: u32,
    /// The CPUs' speed.
    pub mhz: u32,
    /// Events for which there was no room.
    pub lost_events: u32,
    /// Buffers that could not be written.
    pub lost_buffers: u32,
    /// The clock.
    pub clock: Clock,
}

impl LogHeader {
    /// From the first record; `None` if it is too short.
    pub fn parse(record: &Record) -> Option<LogHeader> {
        let mut at = Fields::new(record.body, true);
        let buffer_size = at.u32()?;
        let (major, minor) = (at.u8()?, at.u8()?);
        at.skip(2)?;
        let (build, cpus) = (at.u32()?, at.u32()?);
        // End time, resolution of timers, greatest size, mode, buffers written, buffers at the start.
        at.skip(8 + 4 * 5)?;
        let (pointer, lost_events, mhz) = (at.u32()?, at.u32()?, at.u32()?);
        // Two pointers without meaning in a file, and the time zone, which ends aligned.
        at.skip(if pointer == 4 { 8 + 172 + 4 } else { 16 + 172 + 4 })?;
        let _boot = at.u64()?;
        let (counter, start, kind, lost_buffers) = (at.u64()?, at.u64()?, at.u32()?, at.u32()?);
        let clock = Clock::by_type(kind, counter, mhz, record.time?, start);
        Some(LogHeader { buffer_size, windows: (major, minor, build), cpus, mhz, lost_events, lost_buffers, clock })
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> u16 {
        self.cpus.clamp(1, MOST_CPUS) as u16
    }
}
