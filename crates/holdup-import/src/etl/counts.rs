//! How many records of each kind a log has, used or not, and what could not be read.

use holdup_trace::TraceBuilder;
use rustc_hash::FxHashMap;

use super::names;
use super::record::{Source, spell};

/// Kinds of providers' events that are told apart; the rest is one.
const KINDS: usize = 4096;

/// Counts of records.
#[derive(Debug, Default)]
pub struct Counts {
    hooks: Vec<u64>,
    others: FxHashMap<Source, u64>,
    rest: u64,
}

impl Counts {
    /// A record.
    #[inline]
    pub fn add(&mut self, source: Source) {
        if let Source::Hook(hook) = source {
            if self.hooks.is_empty() {
                self.hooks = vec![0; 1 << 16];
            }
            if let Some(count) = self.hooks.get_mut(usize::from(hook)) {
                *count += 1;
            }
            return;
        }
        let is_full = self.others.len() >= KINDS;
        match self.others.get_mut(&source) {
            Some(count) => *count += 1,
            None if is_full => self.rest += 1,
            None => drop(self.others.insert(source, 1)),
        }
    }

    /// Records of a hook.
    pub fn of(&self, hook: u16) -> u64 {
        self.hooks.get(usize::from(hook)).copied().unwrap_or(0)
    }

    /// Tells the builder.
    pub fn push(&self, builder: &mut TraceBuilder) {
        for (hook, &count) in (0..=u16::MAX).zip(&self.hooks).filter(|(_, count)| **count > 0) {
            match names::of_hook(hook) {
                Some(name) => builder.count_native(name, count),
                None => builder.count_native(&format!("{hook:#06X}").replace('X', "x"), count),
            }
        }
        for (source, &count) in &self.others {
            builder.count_native(&name(source), count);
        }
        if self.rest > 0 {
            builder.count_native("other providers", self.rest);
        }
    }
}

fn name(source: &Source) -> String {
    match source {
        Source::Hook(hook) => format!("{hook:#06x}"),
        Source::Classic(guid, opcode) => match super::image::name_of(guid, *opcode) {
            Some(name) => name.to_owned(),
            None => format!("{}/opcode {opcode}", spell(guid)),
        },
        Source::Event(guid, id) => format!("{}/{id}", spell(guid)),
        Source::Other(kind) => format!("header {kind:#04x}"),
    }
}

/// Why bytes of a log were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No buffer begins where one should.
    NoBuffer,
    /// The file ends within a buffer.
    Cut,
    /// A packed buffer cannot be unpacked.
    Packed,
    /// Something within a buffer is no record.
    Record,
    /// Too many CPUs have too large buffers.
    Crowd,
    /// Records of a CPU that the machine does not have.
    Cpu,
}

impl Reason {
    const ALL: [Reason; 6] =
        [Reason::NoBuffer, Reason::Cut, Reason::Packed, Reason::Record, Reason::Crowd, Reason::Cpu];

    fn sentence(self) -> &'static str {
        match self {
            Reason::NoBuffer => "no buffer begins there",
            Reason::Cut => "the file ends within a buffer",
            Reason::Packed => "packed records that neither Xpress nor Xpress-Huffman can unpack",
            Reason::Record => "what stands there is no record",
            Reason::Crowd => "more CPUs with larger buffers than the file's size justifies",
            Reason::Cpu => "records of a CPU that the machine does not have",
        }
    }
}

/// Skipped bytes by reason: how many, how often, and where first.
#[derive(Debug, Default)]
pub struct Skipped([Option<(u64, u64, u64)>; Reason::ALL.len()]);

impl Skipped {
    /// `bytes` at `offset` of the file were skipped.
    pub fn add(&mut self, reason: Reason, offset: u64, bytes: u64) {
        if let Some(slot) = self.0.get_mut(reason as usize) {
            let (sum, times, _) = slot.get_or_insert((0, 0, offset));
            *sum = sum.saturating_add(bytes);
            *times += 1;
        }
    }

    /// A sentence for each reason.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        Reason::ALL.into_iter().zip(&self.0).filter_map(|(reason, slot)| {
            let (bytes, times, first) = (*slot)?;
            let places = if times == 1 { "place" } else { "places" };
            Some(format!(
                "{bytes} bytes in {times} {places} were skipped, the first at byte {first}: {}",
                reason.sentence()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_bytes_are_told_by_reason() {
        let mut skipped = Skipped::default();
        skipped.add(Reason::Record, 100, 28);
        skipped.add(Reason::Record, 900, 2);
        skipped.add(Reason::Cut, 1000, 5);
        let wanted = [
            "5 bytes in 1 place were skipped, the first at byte 1000: the file ends within a buffer",
            "30 bytes in 2 places were skipped, the first at byte 100: what stands there is no record",
        ];
        assert_eq!(skipped.sentences().collect::<Vec<_>>(), wanted);
    }
}
