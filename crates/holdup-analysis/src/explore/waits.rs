//! All waits in the order of their starts, one part of them in memory at a time.

use crate::intervals::{Chunk, OwnerSpan, Reader, Timeline, Wait};

use super::Result;

/// All waits in the order of their starts.
pub(super) struct Waits<'e> {
    timeline: &'e Timeline<'e>,
    reader: Reader<'e, 'e>,
    /// The part that comes next.
    part: usize,
    chunk: Option<Chunk>,
    /// Owners known in the parts that are over.
    owners: Vec<OwnerSpan>,
    /// The number of the next wait in the whole trace.
    number: usize,
    /// Its place in the part.
    at: usize,
}

impl<'e> Waits<'e> {
    /// From the beginning of the trace.
    pub(super) fn of(timeline: &'e Timeline<'e>) -> Self {
        let reader = timeline.reader();
        Waits { timeline, reader, part: 0, chunk: None, owners: Vec::new(), number: 0, at: 0 }
    }

    /// The next one, which stays the next one.
    pub(super) fn peek(&mut self) -> Result<Option<Wait>> {
        loop {
            let found = self.chunk.as_ref().and_then(|c| c.waits_begun().get(self.at).copied());
            if found.is_some() || !self.turn()? {
                return Ok(found);
            }
        }
    }

    /// The next one, with its number.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Wait)>> {
        let found = self.peek()?.map(|wait| (self.number, wait));
        if found.is_some() {
            (self.number, self.at) = (self.number + 1, self.at + 1);
        }
        Ok(found)
    }

    /// Goes on to the next part, if there is one.
    fn turn(&mut self) -> Result<bool> {
        if self.part >= self.timeline.len() {
            return Ok(false);
        }
        let mut memory = self.chunk.take();
        if let Some(chunk) = &mut memory {
            self.owners.append(&mut chunk.owners);
        }
        let mut chunk = self.reader.chunk(self.part, memory)?;
        self.part += 1;
        if self.part == self.timeline.len() {
            self.owners.append(&mut chunk.owners_at_end);
        }
        self.chunk = Some(chunk);
        self.at = 0;
        Ok(true)
    }

    /// Who is known to own which lock when, as far as the waits were told.
    pub(super) fn owners(mut self) -> Vec<OwnerSpan> {
        if let Some(chunk) = &mut self.chunk {
            self.owners.append(&mut chunk.owners);
        }
        self.owners
    }
}
