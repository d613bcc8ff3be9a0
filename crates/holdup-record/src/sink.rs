//! Where a recording goes: one spool, or in a flight recorder the last few segments of one.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdup_base::Claim;
use holdup_spool::{Header, SpoolWriter};
use holdup_trace::Result;

/// Segments that cover the time to keep; one more is being written.
const SEGMENTS: u32 = 2;

/// A spool, perhaps in segments.
pub(crate) struct Sink {
    pub writer: SpoolWriter,
    /// The spool; empty until the segments are put together.
    whole: File,
    path: PathBuf,
    ring: Option<Ring>,
}

struct Ring {
    keep: u64,
    /// When the current segment began.
    began: u64,
    count: usize,
    /// A part of the segments' names that nobody can foresee: none is there before it is made.
    mark: u64,
    current: Segment,
    /// Complete segments, and when each ended.
    complete: VecDeque<(Segment, u64)>,
    /// Whether there is anything in them.
    began_to_record: bool,
}

/// A segment's name, and the file for reading: the name may be anybody's by then.
struct Segment(PathBuf, File);

impl Segment {
    fn create(spool: &Path, mark: u64, number: usize) -> Result<(Segment, SpoolWriter)> {
        let mut name = spool.as_os_str().to_owned();
        name.push(format!(".segment{number}.{mark:016x}"));
        let path = PathBuf::from(name);
        let writer = SpoolWriter::create(&path)?;
        let file = writer.file().try_clone().map_err(|e| unwritable(&path, &e))?;
        Ok((Segment(path, file), writer))
    }

    fn remove(self) {
        let _ = fs::remove_file(self.0);
    }
}

impl Sink {
    pub(crate) fn create(spool: &Claim, keep: Option<Duration>, header: &Header) -> Result<Sink> {
        let path = spool.path();
        let whole = spool.file().map_err(|e| unwritable(path, &e))?;
        let (ring, mut writer) = match keep {
            None => (None, spool.file().and_then(SpoolWriter::new).map_err(|e| unwritable(path, &e))?),
            Some(keep) => {
                let mark = std::hash::RandomState::new().build_hasher().finish();
                let (current, writer) = Segment::create(path, mark, 0)?;
                let (keep, began) = (keep.as_nanos() as u64, header.start_ns);
                let complete = VecDeque::new();
                let ring = Ring { keep, began, count: 0, mark, current, complete, began_to_record: false };
                (Some(ring), writer)
            }
        };
        let written = writer.header(header);
        let sink = Sink { writer, whole, path: path.to_owned(), ring };
        written.map_err(|e| unwritable(path, &e))?;
        Ok(sink)
    }

    /// From now on what is written is kept, whatever happens.
    pub(crate) fn begin(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.began_to_record = true;
        }
    }

    /// Whether the current segment is long enough at time `t`.
    pub(crate) fn is_segment_full(&self, t: u64) -> bool {
        self.ring.as_ref().is_some_and(|r| t.saturating_sub(r.began) > r.keep / u64::from(SEGMENTS))
    }

    /// Begins a new segment and removes those that ended too long ago. Returns the segment's number.
    pub(crate) fn rotate(&mut self, header: &Header) -> Result<usize> {
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let t = header.start_ns;
        let (segment, mut writer) = Segment::create(&self.path, ring.mark, ring.count + 1)?;
        writer.header(header).map_err(|e| unwritable(&self.path, &e))?;
        ring.complete.push_back((std::mem::replace(&mut ring.current, segment), t));
        while ring.complete.front().is_some_and(|&(_, ended)| ended + ring.keep < t) {
            if let Some((old, _)) = ring.complete.pop_front() {
                old.remove();
            }
        }
        (ring.count, ring.began, self.writer) = (ring.count + 1, t, writer);
        Ok(ring.count)
    }

    /// Puts the segments together.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let Some(ring) = self.ring.take() else { return Ok(self.writer.bytes()) };
        let mut segments: Vec<Segment> = ring.complete.into_iter().map(|(s, _)| s).chain([ring.current]).collect();
        let file = self.whole.try_clone().map_err(|e| unwritable(&self.path, &e))?;
        let mut whole = SpoolWriter::new(file).map_err(|e| unwritable(&self.path, &e))?;
        for Segment(path, part) in &mut segments {
            let copied: io::Result<()> = part.rewind().and_then(|()| whole.append(part));
            copied.map_err(|e| holdup_trace::Error::input(path, format_args!("cannot be copied: {e}")))?;
        }
        segments.into_iter().for_each(Segment::remove);
        Ok(whole.bytes())
    }
}

impl Drop for Sink {
    /// A recording that never began leaves nothing.
    fn drop(&mut self) {
        if let Some(ring) = self.ring.take().filter(|r| !r.began_to_record) {
            ring.current.remove();
        }
    }
}

/// Segments beside `spool`, which this process holds: of flight recordings that were killed. Files of others are none.
pub fn segments_of(spool: &Path) -> Vec<PathBuf> {
    let folder = spool.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = spool.file_name() else { return Vec::new() };
    let begin = [name.as_bytes(), b".segment"].concat();
    let mine = |path: &Path| {
        let data = fs::symlink_metadata(path);
        data.is_ok_and(|d| d.is_file() && d.uid() == holdup_base::output::owner())
    };
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut found: Vec<PathBuf> = names
        .filter(|n| n.as_bytes().starts_with(&begin))
        .map(|n| spool.with_file_name(n))
        .filter(|p| mine(p))
        .collect();
    found.sort();
    found
}

fn unwritable(path: &Path, error: &io::Error) -> holdup_trace::Error {
    holdup_trace::Error::input(path, format_args!("cannot be written: {error}"))
}
