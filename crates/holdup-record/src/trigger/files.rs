//! Lines that are added to a file, and files that appear. They are opened as the user, with no capability of the recorder.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdup_base::text::clean;
use holdup_trace::{Error, Result};
use rustix::fs::{Mode, OFlags};

/// So much of a log is read at a look; the rest at the next ones.
const AT_ONCE: u64 = 1 << 20;
/// Of a line that is not complete so much is kept.
const LONGEST_LINE: usize = 64 << 10;
/// So much of a line is told.
const TOLD: usize = 200;

/// A file to which lines are added. Another one may take its place.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    text: String,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Device and number.
    id: (u64, u64),
    at: u64,
    /// The last line, as long as it is not complete.
    line: Vec<u8>,
}

impl Log {
    /// From what is there now on; from its begin, where a file is yet to be made.
    ///
    /// # Errors
    /// If it is there and cannot be read, or is no file.
    pub(crate) fn open(path: &Path, text: &str) -> Result<Log> {
        let mut log = Log { path: path.to_owned(), text: text.to_owned(), open: None };
        match Open::new(path) {
            Ok(mut open) => {
                open.at = open.file.metadata().map_or(0, |m| m.len());
                log.open = Some(open);
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::input(path, format_args!("cannot be watched: {e}"))),
        }
        Ok(log)
    }

    /// What to say if a line came that has the text.
    pub(crate) fn look(&mut self) -> Option<String> {
        let mut found = self.open.as_mut().and_then(|open| open.read(&self.text));
        let there = fs::metadata(&self.path).map(|m| (m.dev(), m.ino())).ok();
        let is_same = self.open.as_ref().is_some_and(|open| there == Some(open.id));
        // The rest of the older file was read just now, if it was less than a look reads.
        if there.is_some() && !is_same {
            self.open = Open::new(&self.path).ok();
            found = found.or_else(|| self.open.as_mut()?.read(&self.text));
        }
        found.map(|line| format!("log {} {}: {}", self.path.display(), self.text, clean(&line)))
    }
}

impl Open {
    fn new(path: &Path) -> std::io::Result<Open> {
        // A pipe would wait for somebody to write.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(std::io::Error::other("it is no file"));
        }
        Ok(Open { file, id: (data.dev(), data.ino()), at: 0, line: Vec::new() })
    }

    /// Reads on; the first complete line with `text`.
    fn read(&mut self, text: &str) -> Option<String> {
        let length = self.file.metadata().ok()?.len();
        if length < self.at {
            // It was cut, and written anew.
            self.at = 0;
            self.line.clear();
        }
        self.file.seek(SeekFrom::Start(self.at)).ok()?;
        let mut new = Vec::new();
        let read = (&self.file).take(AT_ONCE).read_to_end(&mut new).ok()?;
        self.at += read as u64;
        let mut found = None;
        for part in new.split_inclusive(|&b| b == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.line);
                if found.is_none() && line.contains(text) {
                    found = Some(line.trim_end().chars().take(TOLD).collect());
                }
                self.line.clear();
            }
        }
        found
    }
}

/// A name that something may get.
#[derive(Debug)]
pub(crate) struct Appearance {
    path: PathBuf,
    was_there: bool,
}

impl Appearance {
    pub(crate) fn new(path: &Path) -> Appearance {
        Appearance { path: path.to_owned(), was_there: path.exists() }
    }

    /// What to say if it is there, and was not at the look before.
    pub(crate) fn look(&mut self) -> Option<String> {
        let is_there = self.path.exists();
        let was_there = std::mem::replace(&mut self.was_there, is_there);
        (is_there && !was_there).then(|| format!("file {}: it is there", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn add(path: &Path, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_that_are_added_are_seen_across_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        add(&path, "timeout of yesterday\n");
        let mut log = Log::open(&path, "timeout").unwrap();
        assert_eq!(log.look(), None, "it was there");
        add(&path, "fine\na time");
        assert_eq!(log.look(), None);
        add(&path, "out\x1b now\nfine\n");
        let said = log.look().unwrap();
        assert!(said.ends_with(": a timeout\\x1b now"), "{said}");
        assert_eq!(log.look(), None);
        // Renamed, with a line in the older file that was not read yet.
        add(&path, "timeout 1\n");
        fs::rename(&path, folder.path().join("a.log.1")).unwrap();
        add(&path, "timeout 2\n");
        assert!(log.look().unwrap().ends_with("timeout 1"));
        add(&path, "timeout 3\n");
        assert!(log.look().unwrap().ends_with("timeout 2"));
        // Cut and written anew.
        fs::write(&path, "").unwrap();
        log.look();
        add(&path, "timeout 4\n");
        assert!(log.look().unwrap().ends_with("timeout 4"));
        fs::remove_file(&path).unwrap();
        assert_eq!(log.look(), None);
        add(&path, "timeout 5\n");
        assert!(log.look().unwrap().ends_with("timeout 5"));
    }

    #[test]
    fn what_is_no_file_cannot_be_watched_and_what_is_not_there_can() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Log::open(folder.path(), "x").unwrap_err().to_string().contains("cannot be watched"));
        let path = folder.path().join("later");
        let mut log = Log::open(&path, "x").unwrap();
        assert_eq!(log.look(), None);
        add(&path, "x\n");
        assert!(log.look().is_some());
    }

    #[test]
    fn a_file_appears_each_time_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("go");
        let mut file = Appearance::new(&path);
        assert_eq!(file.look(), None);
        add(&path, "");
        assert!(file.look().is_some() && file.look().is_none());
        fs::remove_file(&path).unwrap();
        assert!(file.look().is_none());
        add(&path, "");
        assert!(file.look().is_some());
        assert!(Appearance::new(&path).look().is_none(), "it was there");
    }
}
