//! Opens a path or standard input, looks at its first bytes, and takes gzip off.

mod gzip;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use holdup_base::scratch;
use holdup_trace::{Error, Result};

pub(crate) use crate::folder::ReadSeek;
use crate::folder::{self, Member};
pub(crate) use gzip::peek;
pub use gzip::{is_gzip, unpack};

/// As many first bytes of a file tell its kind, even inside gzip.
pub const HEAD_BYTES: usize = 4096;

/// A trace that was opened and whose kind can be told.
pub struct Input {
    path: PathBuf,
    head: Vec<u8>,
    stream: Stream,
}

enum Stream {
    /// A plain file: read by position.
    File(File),
    /// What follows the head: standard input, a pipe, or gzip's content.
    Pipe(Box<dyn Read>),
    /// The files of a folder.
    Folder(Vec<Member>),
}

/// Opens `path`; `-` is standard input. Of a folder, the trace in it or below it.
///
/// Fails if it cannot be read, or is a folder without a CTF trace.
pub fn open(path: &Path) -> Result<Input> {
    let failed = |e: io::Error| Error::input(path, format!("cannot be read: {e}"));
    if path == Path::new("-") {
        return from_reader(Path::new("standard input"), Box::new(io::stdin()));
    }
    from_file(path, File::open(path).map_err(failed)?)
}

/// A trace in a file that is open already, from the file's beginning; `path` is its name in messages, or the folder's.
///
/// Fails if it cannot be read, or is a folder without a CTF trace.
pub fn from_file(path: &Path, file: File) -> Result<Input> {
    let failed = |e: io::Error| Error::input(path, format!("cannot be read: {e}"));
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return from_folder(path);
    }
    if !kind.is_file() {
        return from_reader(path, Box::new(file));
    }
    (&file).seek(SeekFrom::Start(0)).map_err(failed)?;
    let head = read_head(&mut &file).map_err(failed)?;
    if !is_gzip(&head) {
        return Ok(Input { path: path.to_owned(), head, stream: Stream::File(file) });
    }
    (&file).seek(SeekFrom::Start(0)).map_err(failed)?;
    from_reader(path, Box::new(file))
}

fn from_folder(path: &Path) -> Result<Input> {
    let Some(folder) = folder::find_trace(path)? else {
        let what = "is a folder, and none with a CTF trace (a file \"metadata\"); of perf's folders (perf record --threads) only \
                    single files can be read: record without --threads";
        return Err(Error::input(path, what));
    };
    let members = folder::members(&folder)?;
    Ok(Input { path: folder, head: Vec::new(), stream: Stream::Folder(members) })
}

/// A trace that comes from anywhere, to be read once; `path` is its name in messages.
///
/// Fails if it cannot be read.
pub fn from_reader(path: &Path, mut from: Box<dyn Read>) -> Result<Input> {
    let failed = |e: io::Error| Error::input(path, format!("cannot be read: {e}"));
    let mut head = read_head(&mut from).map_err(failed)?;
    if is_gzip(&head) {
        from = gzip::unpack(io::Cursor::new(head).chain(from));
        head = read_head(&mut from).map_err(|e| Error::input(path, format!("is damaged gzip: {e}")))?;
    }
    Ok(Input { path: path.to_owned(), head, stream: Stream::Pipe(from) })
}

impl Input {
    /// A trace in memory. For tests and fuzzing.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        from_reader(path, Box::new(io::Cursor::new(bytes)))
    }

    /// A trace of several files in memory: their names, and what is in them.
    pub fn from_files(path: &Path, files: Vec<(String, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(name, bytes)| Member::in_memory(name, bytes)).collect();
        Input { path: path.to_owned(), head: Vec::new(), stream: Stream::Folder(files) }
    }

    /// Whether it consists of several files.
    pub(crate) fn is_folder(&self) -> bool {
        matches!(self.stream, Stream::Folder(_))
    }

    /// The folder and its files; no files if it is none.
    pub(crate) fn into_members(self) -> (PathBuf, Vec<Member>) {
        match self.stream {
            Stream::Folder(members) => (self.path, members),
            Stream::File(_) | Stream::Pipe(_) => (self.path, Vec::new()),
        }
    }

    /// Where it came from, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first bytes, unpacked.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The whole content from its first byte on, as a stream.
    pub(crate) fn into_stream(self) -> Result<Box<dyn Read>> {
        match self.stream {
            Stream::File(mut file) => {
                file.seek(SeekFrom::Start(0)).map_err(|e| Error::input(&self.path, e))?;
                Ok(Box::new(file))
            }
            Stream::Pipe(rest) => Ok(Box::new(io::Cursor::new(self.head).chain(rest))),
            Stream::Folder(_) => Err(Error::input(&self.path, "is a folder, not a file")),
        }
    }

    /// The whole content with random access. What is no file is first copied: small ones into memory, others into
    /// an unnamed file in the folder for temporary files.
    pub(crate) fn into_seekable(self) -> Result<Box<dyn ReadSeek>> {
        if let Stream::File(file) = self.stream {
            return Ok(Box::new(file));
        }
        let path = self.path.clone();
        let mut stream = self.into_stream()?;
        let mut small = Vec::new();
        let read = stream.by_ref().take(SPOOL_IN_MEMORY + 1).read_to_end(&mut small);
        read.map_err(|e| Error::input(&path, format!("cannot be read: {e}")))?;
        if small.len() as u64 <= SPOOL_IN_MEMORY {
            return Ok(Box::new(io::Cursor::new(small)));
        }
        match scratch::copy(io::Cursor::new(small).chain(stream)) {
            Ok(copy) => Ok(Box::new(copy)),
            Err(e) => Err(Error::input(&path, format!("cannot be unpacked: {e}"))),
        }
    }
}

/// Spooled input up to this size stays in memory: all of it where there are no files.
const SPOOL_IN_MEMORY: u64 = if cfg!(unix) { 4 << 20 } else { u64::MAX - 1 };

fn read_head(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    from.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}
