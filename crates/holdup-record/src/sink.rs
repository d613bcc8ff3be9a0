//! Where a recording goes: one spool, or in a flight recorder the last few segments of one.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdup_trace::Result;
use holdup_trace::spool::{Header, SpoolWriter};

/// Segments that cover the time to keep; one more is being written.
const SEGMENTS: u32 = 2;

/// A spool, perhaps in segments.
pub(crate) struct Sink {
    pub writer: SpoolWriter,
    path: PathBuf,
    ring: Option<Ring>,
}

struct Ring {
    keep: u64,
    /// When the current segment began.
    began: u64,
    count: usize,
    /// Complete segments, and when each ended.
    complete: VecDeque<(PathBuf, u64)>,
}

impl Sink {
    pub(crate) fn create(path: &Path, keep: Option<Duration>, header: &Header) -> Result<Sink> {
        let ring = keep.map(|keep| Ring {
            keep: keep.as_nanos() as u64,
            began: header.start_ns,
            count: 0,
            complete: VecDeque::new(),
        });
        let first = if ring.is_some() { segment(path, 0) } else { path.to_owned() };
        let mut writer = create_owned(&first)?;
        writer.header(header).map_err(|e| holdup_trace::Error::input(path, format_args!("cannot be written: {e}")))?;
        Ok(Sink { writer, path: path.to_owned(), ring })
    }

    /// Whether the current segment is long enough at time `t`.
    pub(crate) fn is_segment_full(&self, t: u64) -> bool {
        self.ring.as_ref().is_some_and(|r| t.saturating_sub(r.began) > r.keep / u64::from(SEGMENTS))
    }

    /// Begins a new segment and removes those that ended too long ago. Returns the segment's number.
    pub(crate) fn rotate(&mut self, header: &Header) -> Result<usize> {
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let t = header.start_ns;
        ring.complete.push_back((segment(&self.path, ring.count), t));
        while ring.complete.front().is_some_and(|&(_, ended)| ended + ring.keep < t) {
            if let Some((old, _)) = ring.complete.pop_front() {
                let _ = fs::remove_file(old);
            }
        }
        (ring.count, ring.began) = (ring.count + 1, t);
        self.writer = create_owned(&segment(&self.path, ring.count))?;
        let written = self.writer.header(header);
        written.map_err(|e| holdup_trace::Error::input(&self.path, format_args!("cannot be written: {e}")))?;
        Ok(ring.count)
    }

    /// Puts the segments together.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let Some(ring) = self.ring.take() else { return Ok(self.writer.bytes()) };
        let last = segment(&self.path, ring.count);
        let segments: Vec<PathBuf> = ring.complete.into_iter().map(|(path, _)| path).chain([last]).collect();
        let mut whole = create_owned(&self.path)?;
        for path in &segments {
            let copied: io::Result<()> = File::open(path).and_then(|mut part| whole.append(&mut part));
            copied.map_err(|e| holdup_trace::Error::input(path, format_args!("cannot be copied: {e}")))?;
        }
        segments.iter().for_each(|path| drop(fs::remove_file(path)));
        Ok(whole.bytes())
    }
}

fn segment(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".segment{number}"));
    name.into()
}

/// A spool that belongs to whoever called sudo.
fn create_owned(path: &Path) -> Result<SpoolWriter> {
    let writer = SpoolWriter::create(path)?;
    let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    // SAFETY: no arguments, always succeeds.
    let root = unsafe { libc::geteuid() } == 0;
    if let (true, Some(uid), Some(gid)) = (root, id("SUDO_UID"), id("SUDO_GID")) {
        // A file that stays root's is a nuisance, not a failure.
        let _ = std::os::unix::fs::fchown(writer.file(), Some(uid), Some(gid));
    }
    Ok(writer)
}
