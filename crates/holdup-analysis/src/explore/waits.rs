//! All waits in the order of their starts: from memory, or part by part from a timeline.

use crate::intervals::{Chunk, OwnerSpan, Reader, Timeline, Wait};

use super::{Explorer, Result};

/// All waits in the order of their starts.
pub(super) struct Waits<'e> {
    source: Source<'e>,
    /// The number of the next one in the whole trace.
    number: usize,
    /// Its place in what is in memory.
    at: usize,
}

enum Source<'e> {
    Whole(&'e [Wait], &'e [OwnerSpan]),
    Parts(Box<Parts<'e>>),
}

struct Parts<'e> {
    timeline: &'e Timeline<'e>,
    reader: Reader<'e, 'e>,
    next: usize,
    chunk: Option<Chunk>,
    /// Owners known in the parts that are over.
    owners: Vec<OwnerSpan>,
}

impl<'a> Explorer<'a> {
    /// All waits.
    pub(super) fn waits(&self) -> Result<Waits<'_>> {
        let source = match self.timeline {
            Some(timeline) => {
                let (reader, owners) = (timeline.reader(), Vec::new());
                Source::Parts(Box::new(Parts { timeline, reader, next: 0, chunk: None, owners }))
            }
            None => {
                let whole = self.intervals()?;
                Source::Whole(&whole.waits, &whole.owners)
            }
        };
        Ok(Waits { source, number: 0, at: 0 })
    }
}

impl Waits<'_> {
    /// The next one, which stays the next one.
    pub(super) fn peek(&mut self) -> Result<Option<Wait>> {
        loop {
            let found = match &self.source {
                Source::Whole(waits, _) => return Ok(waits.get(self.at).copied()),
                Source::Parts(parts) => parts.chunk.as_ref().and_then(|c| c.waits_begun().get(self.at).copied()),
            };
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
        let Source::Parts(parts) = &mut self.source else { return Ok(false) };
        if parts.next >= parts.timeline.len() {
            return Ok(false);
        }
        let mut memory = parts.chunk.take();
        if let Some(chunk) = &mut memory {
            parts.owners.append(&mut chunk.owners);
        }
        let mut chunk = parts.reader.chunk(parts.next, memory)?;
        parts.next += 1;
        if parts.next == parts.timeline.len() {
            parts.owners.append(&mut chunk.owners_at_end);
        }
        parts.chunk = Some(chunk);
        self.at = 0;
        Ok(true)
    }

    /// Who is known to own which lock when, as far as the waits were told.
    pub(super) fn owners(self) -> Vec<OwnerSpan> {
        match self.source {
            Source::Whole(_, owners) => owners.to_vec(),
            Source::Parts(mut parts) => {
                if let Some(chunk) = &mut parts.chunk {
                    parts.owners.append(&mut chunk.owners);
                }
                parts.owners
            }
        }
    }
}
