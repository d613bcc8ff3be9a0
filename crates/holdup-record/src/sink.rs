//! Where a recording goes: one spool, or in a flight recorder the last few segments of one.

use std::fs::File;
use std::io;
use std::path::Path;

use holdup_base::Claim;
use holdup_spool::{Header, SpoolWriter};
use holdup_trace::Result;

use crate::options::Ring as Limits;
use crate::segments::{Segments, unwritable};

/// A spool, perhaps in segments.
pub(crate) struct Sink {
    pub writer: SpoolWriter,
    ring: Option<Segments>,
}

/// What is left of a recording: a spool, and the segments of a flight recorder's.
///
/// They stay until [`remove`](Recorded::remove): what nobody could convert is not lost.
#[derive(Debug)]
pub struct Recorded {
    spool: Claim,
    segments: Option<Segments>,
}

impl Recorded {
    /// The spool's path. Reading it reads its segments as well.
    pub fn path(&self) -> &Path {
        self.spool.path()
    }

    /// The files that hold the recording, in their order, each open at its begin: names may be anybody's by then.
    ///
    /// # Errors
    /// What the system says: too many open files.
    pub fn parts(&self) -> io::Result<Vec<File>> {
        match &self.segments {
            Some(segments) => segments.files(),
            None => Ok(vec![holdup_spool::reopen(&self.spool.file()?)?]),
        }
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// What the file system says of the spool.
    pub fn remove(self) -> io::Result<()> {
        if let Some(segments) = self.segments {
            segments.remove();
        }
        self.spool.remove()
    }
}

impl Sink {
    pub(crate) fn create(spool: &Claim, limits: Option<Limits>, header: &Header) -> Result<Sink> {
        let path = spool.path();
        let bad = |e: io::Error| unwritable(path, &e);
        let whole = spool.file().and_then(SpoolWriter::new).map_err(bad)?;
        let (ring, mut writer) = match limits {
            None => (None, whole),
            Some(limits) => {
                let (ring, writer) = Segments::begin(path, limits, header.start_ns, whole)?;
                (Some(ring), writer)
            }
        };
        let written = writer.header(header);
        let sink = Sink { writer, ring };
        written.map_err(bad)?;
        Ok(sink)
    }

    /// From now on what is written is kept, whatever happens.
    pub(crate) fn begin(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.keep();
        }
    }

    /// Bytes of all that is kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes() + self.ring.as_ref().map_or(0, Segments::bytes)
    }

    /// Removes what is too much, and says whether the current segment is long enough at time `t`.
    pub(crate) fn is_segment_full(&mut self, t: u64) -> bool {
        let current = self.writer.bytes();
        self.ring.as_mut().is_some_and(|ring| {
            ring.trim(current);
            ring.is_full(t, current)
        })
    }

    /// Begins a new segment and removes those that ended too long ago. Returns the segment's number.
    pub(crate) fn rotate(&mut self, header: &Header) -> Result<u64> {
        let Some(ring) = &mut self.ring else { return Ok(0) };
        ring.rotate(header, &mut self.writer)
    }

    /// The number of the oldest segment that is kept.
    pub(crate) fn oldest(&self) -> u64 {
        self.ring.as_ref().map_or(0, Segments::oldest)
    }

    /// The complete segments, each open at its begin.
    pub(crate) fn complete(&self) -> io::Result<Vec<File>> {
        self.ring.as_ref().map_or(Ok(Vec::new()), Segments::complete)
    }

    /// What was recorded.
    pub(crate) fn finish(self, spool: Claim) -> Recorded {
        Recorded { spool, segments: self.ring }
    }
}
