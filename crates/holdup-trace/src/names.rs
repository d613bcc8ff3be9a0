//! Names of frames: which functions lie at an address, and where they come from.

use std::ops::Range;

use crate::tables::{Code, Codes, LineRow, Lines, LocationRow, Locations};
use crate::{FrameId, StringId, Table};

/// Locations by frame, and code and source lines of the functions that matter.
#[derive(Debug, Clone, Default)]
pub struct Names {
    locations: Locations,
    /// Where each frame's rows begin in `locations`.
    starts: Vec<u32>,
    codes: Codes,
    lines: Lines,
}

impl Names {
    /// `locations` must be sorted by frame, the innermost first.
    pub(crate) fn new(mut locations: Locations, codes: Codes, lines: Lines, frames: usize) -> Self {
        if !locations.frame.is_sorted() {
            let mut rows: Vec<LocationRow> = locations.rows().collect();
            rows.sort_by_key(|r| r.frame);
            locations = Locations::default();
            rows.into_iter().for_each(|r| locations.push(r));
        }
        let mut starts = Vec::with_capacity(frames + 1);
        let mut at = 0;
        for frame in 0..=frames {
            while at < locations.len() && locations.frame[at].index() < frame {
                at += 1;
            }
            starts.push(at as u32);
        }
        Names { locations, starts, codes, lines }
    }

    /// The functions at `frame`, the innermost inlined one first; empty if nothing is known.
    pub fn locations(&self, frame: FrameId) -> impl Iterator<Item = LocationRow> + '_ {
        self.rows(frame).map(|i| self.locations.row(i))
    }

    /// The numbers of these locations: below [`count`](Self::count), and each of one frame.
    pub fn rows(&self, frame: FrameId) -> Range<usize> {
        match (self.starts.get(frame.index()), self.starts.get(frame.index() + 1)) {
            (Some(&from), Some(&to)) => from as usize..to as usize,
            _ => 0..0,
        }
    }

    /// The location with this number. Panics if out of range.
    pub fn location(&self, number: usize) -> LocationRow {
        self.locations.row(number)
    }

    /// How many locations there are.
    pub fn count(&self) -> usize {
        self.locations.len()
    }

    /// The functions at `frame` alone.
    pub fn functions(&self, frame: FrameId) -> &[StringId] {
        &self.locations.function[self.rows(frame)]
    }

    /// The code of the function that holds `address`, if its bytes are in the trace.
    pub fn code(&self, mut is_same: impl FnMut(&Code) -> bool) -> Option<Code> {
        self.codes.rows().find(|c| is_same(c))
    }

    /// All code of which the bytes are in the trace.
    pub fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        self.codes.rows()
    }

    /// The source lines of `code`, by offset. O(lines of the trace).
    pub fn lines<'a>(&'a self, code: &Code) -> impl Iterator<Item = LineRow> + 'a {
        let Code { function, module, bytes, .. } = *code;
        self.lines.rows().filter(move |l| l.code == bytes && l.function == function && l.module == module)
    }

    pub(crate) fn refer(&mut self, to: &mut dyn crate::Refer) {
        self.locations.refer(to);
        self.codes.refer(to);
        self.lines.refer(to);
    }

    pub(crate) fn tables(&self) -> (&Locations, &Codes, &Lines) {
        (&self.locations, &self.codes, &self.lines)
    }
}
