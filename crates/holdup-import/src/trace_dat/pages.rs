//! The kernel's ring buffer: pages, and events in them.
//!
//! An event begins with a word: 5 bits of kind or length, 27 bits of time since the event before (`events/header_event`).

use std::ops::Range;

use super::description::PageLayout;
use crate::bytes::{u32_at, u64_at};

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// Absolute times have 59 bits; the others are those of the time before.
const STAMP_BITS: u32 = 59;
/// Flags in the upper half of the number of bytes in use.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// The bits of that number itself.
const COMMIT: u64 = (1 << 20) - 1;

/// Events that the kernel could not keep before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// None.
    Nothing,
    /// It is not known how many.
    Some,
    /// So many.
    Count(u64),
}

/// A page that is being read.
#[derive(Debug, Clone)]
pub struct Page {
    /// Where the next event begins.
    at: usize,
    end: usize,
    /// The time of the last event.
    time: u64,
    /// What is missing before it.
    pub missed: Missed,
}

/// An event: its time, and where its bytes are in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// By the buffer's clock.
    pub time: u64,
    /// Its bytes.
    pub bytes: Range<usize>,
}

impl Page {
    /// Begins to read the page in `bytes`. `None` if it is damaged.
    pub fn new(bytes: &[u8], layout: PageLayout) -> Option<Self> {
        let time = u64_at(bytes, 0)?;
        let commit = match layout.commit_size {
            8 => u64_at(bytes, layout.commit)?,
            _ => u32_at(bytes, layout.commit)?.into(),
        };
        let end = layout.data.checked_add((commit & COMMIT) as usize).filter(|&end| end <= bytes.len())?;
        let missed = match commit & (MISSED | MISSED_STORED) {
            0 => Missed::Nothing,
            MISSED => Missed::Some,
            _ => u64_at(bytes, end).map_or(Missed::Some, Missed::Count),
        };
        Some(Page { at: layout.data, end, time, missed })
    }

    /// When it was begun.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The next event in `bytes`, which is the same page; `None` at its end. The error is where it is damaged.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Record>, usize> {
        let bytes = bytes.get(..self.end).unwrap_or(bytes);
        while self.at < self.end {
            let at = self.at;
            let word = u32_at(bytes, at).ok_or(at)?;
            let (kind, delta) = (word & 31, u64::from(word >> 5));
            let (start, len) = match kind {
                PADDING if delta == 0 => break,
                TIME_EXTEND | TIME_STAMP => {
                    let high = u64::from(u32_at(bytes, at + 4).ok_or(at)?) << DELTA_BITS;
                    self.time = match kind {
                        TIME_EXTEND => self.time.wrapping_add(high | delta),
                        _ => (self.time >> STAMP_BITS) << STAMP_BITS | high | delta,
                    };
                    self.at += 8;
                    continue;
                }
                // The length counts its own word.
                0 | PADDING => (at + 8, (u32_at(bytes, at + 4).ok_or(at)? as usize).checked_sub(4).ok_or(at)?),
                words => (at + 4, words as usize * 4),
            };
            self.time = self.time.wrapping_add(delta);
            let end = start.checked_add(len).filter(|&end| end <= bytes.len()).ok_or(at)?;
            self.at = end.next_multiple_of(4);
            if kind != PADDING {
                return Ok(Some(Record { time: self.time, bytes: start..end }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(events: &[u32], flags: u64) -> Vec<u8> {
        let mut bytes = 1000_u64.to_le_bytes().to_vec();
        bytes.extend(((events.len() as u64 * 4) | flags).to_le_bytes());
        bytes.extend(events.iter().flat_map(|w| w.to_le_bytes()));
        bytes.extend(7_u64.to_le_bytes());
        bytes
    }

    fn times(bytes: &[u8]) -> Vec<(u64, usize)> {
        let mut page = Page::new(bytes, PageLayout::usual(8)).expect("a page");
        std::iter::from_fn(|| page.next(bytes).expect("sound")).map(|r| (r.time, r.bytes.len())).collect()
    }

    #[test]
    fn times_are_added_up() {
        let words =
            [1 | 5 << 5, 0, TIME_EXTEND | 3 << 5, 1, 2 | 4 << 5, 0, 0, TIME_STAMP | 9 << 5, 2, 0, 8, 0xffff_ffff];
        let late = (2 << 27) + 9;
        assert_eq!(times(&page(&words, 0)), [(1005, 4), (1005 + 3 + (1 << 27) + 4, 8), (late, 4)]);
    }

    #[test]
    fn padding_is_skipped_or_ends_the_page() {
        let words = [PADDING | 2 << 5, 8, 0, 1 | 1 << 5, 0, PADDING, 1];
        assert_eq!(times(&page(&words, 0)), [(1003, 4)]);
    }

    #[test]
    fn what_is_missing_is_told() {
        let missed = |flags| Page::new(&page(&[1, 0], flags), PageLayout::usual(8)).expect("a page").missed;
        assert_eq!(
            [missed(0), missed(MISSED), missed(MISSED | MISSED_STORED)],
            [Missed::Nothing, Missed::Some, Missed::Count(7)]
        );
    }

    #[test]
    fn lengths_that_lie_are_damage() {
        for words in [&[0, 3, 0][..], &[0, 1 << 30], &[28], &[TIME_EXTEND]] {
            let bytes = page(words, 0);
            let mut page = Page::new(&bytes, PageLayout::usual(8)).expect("a page");
            assert_eq!(page.next(&bytes), Err(16), "{words:?}");
        }
        assert!(Page::new(&page(&[0; 4], 4096), PageLayout::usual(8)).is_none());
    }
}
