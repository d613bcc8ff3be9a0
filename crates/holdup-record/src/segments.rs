//! The segments of a flight recorder: spools that stand each for itself, of which the oldest are removed.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use holdup_spool::{Header, SpoolWriter, reopen, segment_name};
use holdup_trace::Result;

use crate::options::Ring;

/// Segments that cover the time to keep; one more is being written.
const BY_TIME: u64 = 2;
/// Segments that fill the bytes to keep, the one that is being written among them. More of them would keep more of the
/// bytes, but each begins with all names and mappings of the machine.
const BY_BYTES: u64 = 4;

/// Segments; the last one is being written.
#[derive(Debug)]
pub(crate) struct Segments {
    spool: PathBuf,
    limits: Ring,
    /// A part of the segments' names that nobody can foresee: none is there before it is made.
    mark: u64,
    count: u64,
    /// When the current segment began.
    began: u64,
    current: Segment,
    complete: VecDeque<Complete>,
    /// Whether there is anything in them.
    is_kept: bool,
}

/// A segment's name, and the file for reading: the name may be anybody's by then.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
}

#[derive(Debug)]
struct Complete {
    segment: Segment,
    ended: u64,
    bytes: u64,
}

impl Segment {
    fn create(spool: &Path, mark: u64, number: u64) -> Result<(Segment, SpoolWriter)> {
        let path = segment_name(spool, mark, number);
        let writer = SpoolWriter::create(&path)?;
        let file = writer.file().try_clone().map_err(|e| unwritable(&path, &e))?;
        Ok((Segment { path, file }, writer))
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Segments {
    /// The first segment at time `t`. The spool itself says where its segments are: whoever finds it finds them.
    pub(crate) fn begin(spool: &Path, limits: Ring, t: u64, mut whole: SpoolWriter) -> Result<(Segments, SpoolWriter)> {
        let mark = std::hash::RandomState::new().build_hasher().finish();
        whole.ring(mark).map_err(|e| unwritable(spool, &e))?;
        let (current, writer) = Segment::create(spool, mark, 0)?;
        let complete = VecDeque::new();
        let spool = spool.to_owned();
        Ok((Segments { spool, limits, mark, count: 0, began: t, current, complete, is_kept: false }, writer))
    }

    /// From now on they stay until they are removed.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// The number of the oldest that is kept.
    pub(crate) fn oldest(&self) -> u64 {
        self.count - self.complete.len() as u64
    }

    /// Bytes of the complete ones.
    pub(crate) fn bytes(&self) -> u64 {
        self.complete.iter().map(|c| c.bytes).sum()
    }

    /// Removes the oldest as long as all of them, with the `current` one's bytes, are too many.
    pub(crate) fn trim(&mut self, current: u64) {
        let Some(most) = self.limits.bytes else { return };
        while self.bytes() + current > most
            && let Some(old) = self.complete.pop_front()
        {
            old.segment.remove();
        }
    }

    /// Whether the current segment, of `bytes`, is long enough at time `t`.
    pub(crate) fn is_full(&self, t: u64, bytes: u64) -> bool {
        let long = self.limits.nanos().is_some_and(|keep| t.saturating_sub(self.began) > keep / BY_TIME);
        long || self.limits.bytes.is_some_and(|most| bytes > most / BY_BYTES)
    }

    /// Begins a new segment, with its writer in the place of the one before, and removes those that ended too long ago.
    pub(crate) fn rotate(&mut self, header: &Header, writer: &mut SpoolWriter) -> Result<u64> {
        let t = header.start_ns;
        let (segment, mut next) = Segment::create(&self.spool, self.mark, self.count + 1)?;
        if let Err(e) = next.header(header) {
            segment.remove();
            return Err(unwritable(&self.spool, &e));
        }
        let bytes = std::mem::replace(writer, next).bytes();
        let segment = std::mem::replace(&mut self.current, segment);
        self.complete.push_back(Complete { segment, ended: t, bytes });
        if let Some(keep) = self.limits.nanos() {
            while self.complete.front().is_some_and(|c| c.ended.saturating_add(keep) < t)
                && let Some(old) = self.complete.pop_front()
            {
                old.segment.remove();
            }
        }
        (self.count, self.began) = (self.count + 1, t);
        Ok(self.count)
    }

    /// The complete ones, each open at its begin.
    pub(crate) fn complete(&self) -> io::Result<Vec<File>> {
        self.complete.iter().map(|c| reopen(&c.segment.file)).collect()
    }

    /// All of them, each open at its begin.
    pub(crate) fn files(&self) -> io::Result<Vec<File>> {
        let mut files = self.complete()?;
        files.push(reopen(&self.current.file)?);
        Ok(files)
    }

    pub(crate) fn remove(self) {
        self.complete.iter().for_each(|c| c.segment.remove());
        self.current.remove();
    }
}

impl Drop for Segments {
    /// A recording that never began leaves nothing.
    fn drop(&mut self) {
        if !self.is_kept {
            self.current.remove();
        }
    }
}

/// The sentence for a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> holdup_trace::Error {
    holdup_trace::Error::input(path, format_args!("cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn header(t: u64) -> Header {
        Header { start_ns: t, ..Header::default() }
    }

    /// Segments with these limits in a folder, and a writer.
    fn begin(folder: &Path, limits: Ring) -> (Segments, SpoolWriter) {
        let spool = folder.join("a.spool");
        let whole = SpoolWriter::create(&spool).unwrap();
        let (mut segments, mut writer) = Segments::begin(&spool, limits, 0, whole).unwrap();
        segments.keep();
        writer.header(&header(0)).unwrap();
        (segments, writer)
    }

    fn files_in(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn bytes_are_bounded_and_the_end_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let most = 400_000;
        let (mut segments, mut writer) = begin(folder.path(), Ring { time: None, bytes: Some(most) });
        let mut state = 1_u64;
        let mut t = 0;
        for _ in 0..300 {
            t += 1;
            let words = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                state
            });
            let noise: Vec<u8> = words.take(1000).flat_map(u64::to_le_bytes).collect();
            writer.stacks(&noise).unwrap();
            segments.trim(writer.bytes());
            assert!(segments.bytes() + writer.bytes() <= most, "{} and {}", segments.bytes(), writer.bytes());
            if segments.is_full(t, writer.bytes()) {
                segments.rotate(&header(t), &mut writer).unwrap();
            }
        }
        assert!(segments.count > 10 && segments.bytes() + writer.bytes() > most / 2);
        assert_eq!(files_in(folder.path()), segments.complete.len() + 2);
        segments.remove();
        assert_eq!(files_in(folder.path()), 1);
    }

    #[test]
    fn time_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let (mut segments, mut writer) =
            begin(folder.path(), Ring { time: Some(Duration::from_nanos(100)), bytes: None });
        for t in 1..1000 {
            if segments.is_full(t, u64::MAX) {
                segments.rotate(&header(t), &mut writer).unwrap();
            }
        }
        assert_eq!(segments.complete.len(), 2, "and the one that is written");
        assert_eq!(segments.oldest(), segments.count - 2);
        drop(segments);
        assert_eq!(files_in(folder.path()), 4, "they are kept");
    }
}
