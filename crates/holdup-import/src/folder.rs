//! Traces that are folders: their files, on a disk or in memory.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use holdup_trace::{Error, Result};

/// Random access.
pub trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// A folder has no more files than this.
const MAX_FILES: usize = 1 << 16;
/// A session of a tracer is nested no deeper than this, and has no more folders: what goes beyond is searched no further.
const MAX_DEPTH: usize = 6;
const MAX_FOLDERS: usize = 1 << 9;
/// The file that makes a folder a CTF trace.
pub const METADATA: &str = "metadata";
/// What LTTng calls the kernel's part of a session.
const KERNEL: &str = "kernel";

/// A file of a folder.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name in the folder.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Path(PathBuf),
    Bytes(Rc<[u8]>),
}

impl Member {
    /// A file in memory.
    pub fn in_memory(name: String, bytes: Vec<u8>) -> Self {
        Member { name, size: bytes.len() as u64, content: Content::Bytes(bytes.into()) }
    }

    /// Its name in messages.
    pub fn path(&self) -> &Path {
        match &self.content {
            Content::Path(path) => path,
            Content::Bytes(_) => Path::new(&self.name),
        }
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Box<dyn ReadSeek>> {
        match &self.content {
            Content::Path(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(e) => Err(Error::input(path, format!("cannot be read: {e}"))),
            },
            Content::Bytes(bytes) => Ok(Box::new(Cursor::new(Rc::clone(bytes)))),
        }
    }
}

/// The folder at or below `path` that holds a CTF trace. The error names several, of which none is the kernel's.
pub fn find_trace(path: &Path) -> Result<Option<PathBuf>> {
    let (mut found, mut level, mut seen) = (Vec::new(), vec![path.to_owned()], 0);
    for _ in 0..MAX_DEPTH {
        seen += level.len();
        if seen > MAX_FOLDERS {
            break;
        }
        let mut deeper = Vec::new();
        for folder in level {
            if folder.join(METADATA).is_file() {
                found.push(folder);
            } else {
                deeper.extend(folders_in(&folder));
            }
        }
        level = deeper;
    }
    let is_kernel = |folder: &&PathBuf| folder.file_name().is_some_and(|name| name == KERNEL);
    let kernels: Vec<_> = found.iter().filter(is_kernel).cloned().collect();
    match (kernels.as_slice(), found.as_slice()) {
        ([only], _) | ([], [only]) => Ok(Some(only.clone())),
        ([], []) => Ok(None),
        (several, all) => {
            let names = if several.is_empty() { all } else { several };
            let names: Vec<_> = names.iter().take(4).map(|f| f.display().to_string()).collect();
            Err(Error::input(path, format!("holds several traces; name one of them: {}", names.join(", "))))
        }
    }
}

/// The folders in a folder; those that cannot be read are not searched.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_FILES).flatten();
    // No link is followed: it may lead around in a circle.
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// The files of a folder, by name. Those in folders of it, empty and hidden ones are left out.
pub fn members(folder: &Path) -> Result<Vec<Member>> {
    let failed = |e: io::Error| Error::input(folder, format!("cannot be read: {e}"));
    let mut members = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)?.take(MAX_FILES) {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // Through links: a trace's files may lie elsewhere.
        let Ok(there) = fs::metadata(&path) else { continue };
        if there.is_file() && there.len() > 0 && !name.starts_with('.') {
            members.push(Member { name, size: there.len(), content: Content::Path(path) });
        }
    }
    members.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(members)
}
