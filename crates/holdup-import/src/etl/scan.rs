//! The first of two passes: where the buffers are, and all that has to be known before the events are read in order.

use super::buffer::{Buffer, HEADER, Loader, Unread};
use super::counts::{Counts, Reason, Skipped};
use super::existing::Existing;
use super::fields::Fields;
use super::keys::Keys;
use super::log_header::LogHeader;
use super::record::{self, Record, Source};

/// Hooks that are read here alone.
mod hook {
    pub const HEADER: u16 = 0x0000;
    pub const CPU: u16 = 0x0b0a;
    pub const INTERVAL: [u16; 2] = [0x0f49, 0x0f4a];
    pub const KEYS: [u16; 2] = [0x1823, 0x1824];
}

/// A machine's architecture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Arch {
    /// 32-bit Intel.
    X86,
    /// What most have.
    #[default]
    X86_64,
    /// 64-bit ARM.
    Arm64,
}

impl Arch {
    /// As Linux calls it.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86 => "i686",
            Arch::X86_64 => "x86_64",
            Arch::Arm64 => "aarch64",
        }
    }
}

/// What the first pass learns.
#[derive(Debug, Default)]
pub struct Scan {
    /// The buffers with records, in the file's order.
    pub buffers: Vec<Buffer>,
    /// The log's own record.
    pub log: Option<LogHeader>,
    /// Records by kind.
    pub counts: Counts,
    /// What could not be read.
    pub skipped: Skipped,
    /// Records that are too short for what they are, or whose time can't be.
    pub damaged: u64,
    /// Stacks by keys.
    pub keys: Keys,
    /// Who and what was there.
    pub existing: Existing,
    /// Time between two samples of a CPU, in units of 100 ns; 0 for unknown.
    pub interval: u32,
    /// The machine's name.
    pub computer: String,
    /// Its architecture.
    pub arch: Arch,
    /// Earliest and latest time of a record, in nanoseconds.
    pub span: Option<(u64, u64)>,
}

impl Scan {
    /// Reads the whole file once. Linear in its size.
    pub fn new(loader: &mut Loader) -> Scan {
        let mut scan = Scan::default();
        let mut records = Vec::new();
        let mut offset = 0;
        while let Some(buffer) = scan.next_buffer(loader, &mut offset) {
            let loaded = loader.load(&buffer, &mut records);
            if let Err(why) = loaded {
                let missing = buffer.room().saturating_sub(records.len()) as u64;
                let (reason, bytes) = match why {
                    Unread::Cut => (Reason::Cut, missing),
                    Unread::Damaged => (Reason::Packed, buffer.end() - buffer.offset - HEADER as u64),
                };
                scan.skipped.add(reason, buffer.offset, bytes);
            }
            scan.buffer(&buffer, &records);
            match scan.log.is_some_and(|log| buffer.cpu < log.cpus()) {
                true => scan.buffers.push(buffer),
                false => scan.skipped.add(Reason::Cpu, buffer.offset, records.len() as u64),
            }
        }
        scan
    }

    /// The buffer at `offset`, or the next one behind it that is sound.
    fn next_buffer(&mut self, loader: &mut Loader, offset: &mut u64) -> Option<Buffer> {
        let from = *offset;
        loop {
            let found = loader.header(*offset);
            if !matches!(found, Ok(Some(_))) && *offset > from {
                self.skipped.add(Reason::NoBuffer, from, (*offset).min(loader.len) - from);
            }
            match found {
                Ok(Some(buffer)) => {
                    *offset = buffer.end();
                    return Some(buffer);
                }
                Ok(None) => return None,
                Err(()) => {
                    // Where buffers are not packed, the next one begins a buffer's size further.
                    let step = self.log.map_or(0, |log| u64::from(log.buffer_size)).max(HEADER as u64);
                    *offset = (*offset).checked_add(step)?;
                }
            }
        }
    }

    fn buffer(&mut self, buffer: &Buffer, records: &[u8]) {
        let mut at = 0;
        loop {
            match record::next(records, at) {
                Ok(Some((record, size))) => {
                    self.counts.add(record.source);
                    if self.record(&record).is_none() {
                        self.damaged += 1;
                    }
                    at += size;
                }
                Ok(None) => return,
                Err(record::Damaged) => {
                    let offset = buffer.offset + HEADER as u64 + if buffer.is_packed() { 0 } else { at as u64 };
                    return self.skipped.add(Reason::Record, offset, (records.len() - at) as u64);
                }
            }
        }
    }

    /// Takes in what is of use later; `None` if the record is damaged.
    #[inline]
    fn record(&mut self, record: &Record) -> Option<()> {
        let Some(ticks) = record.time else { return Some(()) };
        if self.log.is_none() && record.source == Source::Hook(hook::HEADER) {
            self.log = Some(LogHeader::parse(record)?);
        }
        let time = self.log?.clock.time(ticks)?;
        let (from, to) = self.span.unwrap_or((time, time));
        self.span = Some((from.min(time), to.max(time)));
        let Source::Hook(hook) = record.source else { return self.existing.see(record) };
        match hook {
            hook::CPU => self.machine(record),
            _ if hook::INTERVAL.contains(&hook) => {
                let mut at = Fields::new(record.body, record.wide);
                let (source, interval) = (at.u32()?, at.u32()?);
                if source == 0 {
                    self.interval = interval;
                }
                Some(())
            }
            _ if hook::KEYS.contains(&hook) => self.keys.define(record),
            _ => self.existing.see(record),
        }
    }

    fn machine(&mut self, record: &Record) -> Option<()> {
        const NAMES: usize = 512 + 268;
        let mut at = Fields::new(record.body, record.wide);
        at.skip(20)?;
        self.computer = Fields::new(record.body.get(20..20 + 512)?, record.wide).wide_text();
        if record.version < 3 {
            self.arch = if record.wide { Arch::X86_64 } else { Arch::X86 };
            return Some(());
        }
        at.skip(NAMES + 4)?;
        let _highest_address = at.pointer()?;
        self.arch = match at.u8()? {
            0 => Arch::X86,
            12 => Arch::Arm64,
            _ => Arch::X86_64,
        };
        Some(())
    }
}
