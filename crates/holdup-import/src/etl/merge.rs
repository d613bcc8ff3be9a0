//! The second pass: the records of all CPUs in the order of time, with one buffer of each in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use holdup_trace::Result;

use super::buffer::{Buffer, Loader};
use super::counts::{Reason, Skipped};
use super::record::{self, Record};

/// Bytes of records that all CPUs together may have in memory, and for a file that is smaller: this many times its size.
const ROOM: u64 = 512 << 20;
const RATIO: u64 = 64;
/// An average record, to estimate how many are missing.
const TYPICAL_RECORD: u64 = 64;

/// What comes out.
pub trait Consumer {
    /// A record, with its time in ticks.
    fn record(&mut self, cpu: u16, ticks: u64, record: &Record) -> Result<()>;
    /// About so many records are missing on a CPU before the next one of it.
    fn gap(&mut self, cpu: u16, count: u64);
}

/// The buffers of one CPU and session, in their order.
struct Stream {
    cpu: u16,
    /// Those to come, the next one last.
    left: Vec<Buffer>,
    records: Vec<u8>,
    at: usize,
}

impl Stream {
    /// The next record; where a buffer ends, that of the next one.
    fn peek(&mut self, room: &mut Room, out: &mut impl Consumer) -> Option<u64> {
        loop {
            match record::next(&self.records, self.at) {
                Ok(Some((record, size))) => match record.time {
                    Some(ticks) => return Some(ticks),
                    None => self.at += size,
                },
                Ok(None) => self.load(room, out)?,
                Err(record::Damaged) => {
                    out.gap(self.cpu, ((self.records.len() - self.at) as u64 / TYPICAL_RECORD).max(1));
                    self.load(room, out)?;
                }
            }
        }
    }

    /// Puts the next buffer in place of this one; `None` if there is none.
    fn load(&mut self, room: &mut Room, out: &mut impl Consumer) -> Option<()> {
        self.at = 0;
        let buffer = self.left.pop()?;
        if buffer.follows_loss() {
            out.gap(self.cpu, 1);
        }
        if !room.exchange(self.records.capacity(), buffer.room()) {
            room.skipped.add(Reason::Crowd, buffer.offset, buffer.room() as u64);
            out.gap(self.cpu, (buffer.room() as u64 / TYPICAL_RECORD).max(1));
            self.records.clear();
            return Some(());
        }
        if room.loader.load(&buffer, &mut self.records).is_err() {
            let missing = buffer.room().saturating_sub(self.records.len()) as u64;
            out.gap(self.cpu, (missing / TYPICAL_RECORD).max(1));
        }
        Some(())
    }
}

/// Reads buffers, as long as there is room for them.
struct Room<'a> {
    loader: &'a mut Loader,
    skipped: &'a mut Skipped,
    left: u64,
}

impl Room<'_> {
    /// Takes room for a buffer in place of one that had `before` bytes. False if there is none.
    fn exchange(&mut self, before: usize, size: usize) -> bool {
        let more = (size as u64).saturating_sub(before as u64);
        let fits = more <= self.left;
        if fits {
            self.left -= more;
        }
        fits
    }
}

/// Gives all records that have a time to `out`, in the order of time. n log(CPUs).
pub fn merge(loader: &mut Loader, buffers: &[Buffer], skipped: &mut Skipped, out: &mut impl Consumer) -> Result<()> {
    let mut streams = streams(buffers);
    let left = loader.len.saturating_mul(RATIO).min(ROOM);
    let mut room = Room { loader, skipped, left };
    let mut queue = BinaryHeap::new();
    for (number, stream) in streams.iter_mut().enumerate() {
        queue.extend(stream.peek(&mut room, out).map(|ticks| Reverse((ticks, number))));
    }
    while let Some(Reverse((mut ticks, number))) = queue.pop() {
        let Some(stream) = streams.get_mut(number) else { break };
        // Most records are followed by others of their CPU.
        let others = queue.peek().map_or(u64::MAX, |Reverse((ticks, _))| *ticks);
        loop {
            if let Ok(Some((record, size))) = record::next(&stream.records, stream.at) {
                out.record(stream.cpu, ticks, &record)?;
                stream.at += size;
            }
            match stream.peek(&mut room, out) {
                Some(next) if next <= others => ticks = next,
                Some(next) => {
                    queue.push(Reverse((next, number)));
                    break;
                }
                None => break,
            }
        }
    }
    Ok(())
}

/// The buffers by CPU and session.
fn streams(buffers: &[Buffer]) -> Vec<Stream> {
    let mut sorted = buffers.to_vec();
    sorted.sort_by_key(|buffer| (buffer.cpu, buffer.logger, Reverse(buffer.offset)));
    let runs = sorted.chunk_by(|a, b| (a.cpu, a.logger) == (b.cpu, b.logger));
    let stream = |run: &[Buffer]| {
        let cpu = run.first().map_or(0, |buffer| buffer.cpu);
        Stream { cpu, left: run.to_vec(), records: Vec::new(), at: 0 }
    };
    runs.map(stream).collect()
}
