//! The bytes of a file of tables: on a disk, or all in memory.

use std::fs::File;
use std::io;
use std::sync::Arc;

/// What is read by position, by many readers at once.
#[derive(Debug, Clone)]
pub(crate) enum Bytes {
    /// An open file.
    File(Arc<File>),
    /// A file that was read as a whole.
    Memory(Arc<[u8]>),
}

impl Bytes {
    /// How many there are.
    pub fn len(&self) -> io::Result<u64> {
        match self {
            Bytes::File(file) => Ok(file.metadata()?.len()),
            Bytes::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Reads from byte `at` on; 0 at the end.
    pub fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Bytes::File(file) => read_file(file, to, at),
            Bytes::Memory(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let n = rest.len().min(to.len());
                to[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
        }
    }
}

#[cfg(unix)]
fn read_file(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, at)
}

/// In a page of a browser no file can be opened.
#[cfg(not(unix))]
fn read_file(_file: &File, _to: &mut [u8], _at: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
