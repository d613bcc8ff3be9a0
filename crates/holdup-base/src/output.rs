//! The one way in which a file is made.
//!
//! A result appears whole or not at all: it is written beside its target and renamed onto it when it is complete, so
//! that a run that fails leaves an older result as it was. What is opened is never what somebody planted: the folder is
//! opened once and everything happens in it; the last part of the path is replaced and never followed, be it a symbolic
//! link or a hard one. While it is written the file has no name (`O_TMPFILE`), so that nothing remains of a process that
//! is killed; file systems without such files get a hidden name that is removed again.
//!
//! Who may read it: what runs as root writes for its owner alone, and under sudo the owner is who called it.

mod folder;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

pub use folder::Folder;
pub use tree::Tree;

/// Who may read what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The owner alone (0600): recordings, and all that is made from them as root.
    Owner,
    /// As the umask says for a user, the owner alone for root.
    Umask,
    /// Everybody, as the umask says, for root too: man pages, completions.
    Public,
}

impl Readers {
    /// The mode of a new file, before the umask.
    fn mode(self) -> Mode {
        let private = match self {
            Readers::Owner => true,
            Readers::Umask => rustix::process::geteuid().is_root(),
            Readers::Public => false,
        };
        Mode::from_raw_mode(if private { 0o600 } else { 0o666 })
    }
}

/// A file that replaces its target when it is complete. Dropped before [`commit`](Output::commit), it leaves no trace.
#[derive(Debug)]
pub struct Output {
    file: File,
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Written in place: a terminal, a pipe, `/dev/null`.
    Stream,
    /// In `folder`, without a name.
    Nameless { folder: OwnedFd, name: OsString },
    /// In `folder` as `temporary`, where the file system knows no nameless files.
    Hidden { folder: OwnedFd, name: OsString, temporary: OsString },
}

/// Folders whose entries are the open files of this process. They look like links, and are none.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];

impl Output {
    /// Prepares to write `path`, which is not touched before [`commit`](Output::commit). Call it before the work whose
    /// result goes there: it says then whether the result can be kept.
    ///
    /// # Errors
    /// A sentence that names the path: the folder does not exist or may not be written, or the path names a folder, a
    /// socket, or a pipe of somebody else.
    pub fn create(path: &Path, readers: Readers) -> io::Result<Output> {
        prepare(path, readers).map_err(|e| explain(path, &e))
    }

    /// The target.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it is written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether it is written as it comes, into a terminal, a pipe or a device: nothing can be written there in advance.
    pub fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream)
    }

    /// Puts the file in its place: whoever opens the path sees the old result or the new one, whole.
    ///
    /// # Errors
    /// What the file system says, with the path.
    pub fn commit(mut self) -> io::Result<()> {
        let done = self.place();
        done.map_err(|e| explain(&self.path, &e))
    }

    fn place(&mut self) -> io::Result<()> {
        self.file.flush()?;
        match std::mem::replace(&mut self.kind, Kind::Stream) {
            Kind::Stream => {}
            Kind::Nameless { folder, name } => {
                let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                let link = |hidden: &OsStr| rustix::fs::linkat(CWD, &open, &folder, hidden, AtFlags::SYMLINK_FOLLOW);
                let ((), temporary) = hidden(&name, link)?;
                rename(&folder, &temporary, &name)?;
            }
            Kind::Hidden { folder, name, temporary } => rename(&folder, &temporary, &name)?,
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Kind::Hidden { folder, temporary, .. } = &self.kind {
            let _ = rustix::fs::unlinkat(folder, temporary, AtFlags::empty());
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Writes `bytes` as the whole of `path`, in one step.
///
/// # Errors
/// As [`Output::create`] and [`Output::commit`].
pub fn write(path: &Path, readers: Readers, bytes: &[u8]) -> io::Result<()> {
    let mut output = Output::create(path, readers)?;
    output.write_all(bytes).map_err(|e| explain(path, &e))?;
    output.commit()
}

/// A new file that must not exist yet, for what has to be found even if this process is killed: it has its name from
/// the beginning, is for its owner alone, and is open for appending.
///
/// # Errors
/// `AlreadyExists` if there is anything of that name, a symbolic link included; else what the file system says.
pub fn create_new(path: &Path) -> io::Result<File> {
    let (folder, name) = folder_of(path)?;
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&folder, &name, flags, Mode::from_raw_mode(0o600))?);
    give_to_caller(&file);
    Ok(file)
}

/// A file in `folder` that has no name, for its owner alone: it is gone when it is closed, whatever ends this process.
///
/// # Errors
/// What the file system says.
pub fn temporary(folder: &Path) -> io::Result<File> {
    let folder = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mode = Readers::Owner.mode();
    if let Some(file) = nameless(&folder, OFlags::RDWR | OFlags::APPEND, mode)? {
        return Ok(file.into());
    }
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (file, name) = hidden(OsStr::new("tmp"), |name| rustix::fs::openat(&folder, name, flags, mode))?;
    rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?;
    Ok(file.into())
}

/// The kernel's `trace_marker`: what is written there, a recorder sees in time with all else.
///
/// # Errors
/// What the file system says: it may be root's alone.
pub fn trace_marker() -> io::Result<File> {
    let open = |path: &str| rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let file = open("/sys/kernel/tracing/trace_marker").or_else(|_| open("/sys/kernel/debug/tracing/trace_marker"))?;
    Ok(file.into())
}

/// A file in `folder` that has no name yet; `None` where the file system knows no such files.
pub(crate) fn nameless(folder: &OwnedFd, access: OFlags, mode: Mode) -> io::Result<Option<OwnedFd>> {
    match rustix::fs::openat(folder, ".", access | OFlags::TMPFILE | OFlags::CLOEXEC, mode) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes a folder and those above it; under sudo they belong to who called it.
///
/// # Errors
/// A sentence that names the path.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        create_folder(above)?;
    }
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(explain(path, &e)),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| explain(path, &e.into()))?;
    give_to_caller(&folder);
    Ok(())
}

/// Under sudo, hands what was made to who called it. What stays root's is a nuisance, not a failure.
pub fn give_to_caller(file: impl AsFd) {
    if let Some((user, group)) = caller() {
        let _ = rustix::fs::fchown(file, Some(user), Some(group));
    }
}

/// Whose the files are that this process makes: who called sudo, else the user it runs as.
pub fn owner() -> u32 {
    caller().map_or(rustix::process::geteuid(), |(user, _)| user).as_raw()
}

/// Who called sudo, if this runs under it.
fn caller() -> Option<(rustix::process::Uid, rustix::process::Gid)> {
    let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let (user, group) = (id("SUDO_UID")?, id("SUDO_GID")?);
    let root = rustix::process::geteuid().is_root();
    root.then(|| (rustix::process::Uid::from_raw(user), rustix::process::Gid::from_raw(group)))
}

fn prepare(path: &Path, readers: Readers) -> io::Result<Output> {
    if let Some(stream) = descriptor(path) {
        return Ok(Output { file: stream?.into(), path: path.to_owned(), kind: Kind::Stream });
    }
    let (folder, name) = folder_of(path)?;
    prepare_in(folder, name, path, readers)
}

/// The same of `name` in `folder`, which `path` names in sentences.
pub(crate) fn prepare_in(folder: OwnedFd, name: OsString, path: &Path, readers: Readers) -> io::Result<Output> {
    let made = |file: OwnedFd, kind| Output { file: file.into(), path: path.to_owned(), kind };
    if let Ok(there) = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
        let mine = there.st_uid == rustix::process::geteuid().as_raw();
        match FileType::from_raw_mode(there.st_mode) {
            FileType::RegularFile | FileType::Symlink => {}
            FileType::Directory => return Err(io::Error::other("it is a folder")),
            FileType::CharacterDevice => return stream(&folder, &name).map(|file| made(file, Kind::Stream)),
            FileType::Fifo if mine => return stream(&folder, &name).map(|file| made(file, Kind::Stream)),
            _ => return Err(io::Error::other("it is neither a file nor a pipe of yours")),
        }
    }
    let mode = readers.mode();
    let (file, kind) = match nameless(&folder, OFlags::RDWR, mode)? {
        Some(file) => (file, Kind::Nameless { folder, name }),
        None => {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let (file, temporary) = hidden(&name, |hidden| rustix::fs::openat(&folder, hidden, flags, mode))?;
            (file, Kind::Hidden { folder, name, temporary })
        }
    };
    give_to_caller(&file);
    Ok(made(file, kind))
}

/// What this process was started with, if `path` names that: `/dev/stdout`, or `/dev/fd/63` as shells write it for
/// `>(command)`.
fn descriptor(path: &Path) -> Option<io::Result<OwnedFd>> {
    let number = match path.to_str()? {
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        _ if DESCRIPTORS.iter().any(|folder| path.parent() == Some(Path::new(folder))) => path.file_name()?.to_str()?,
        _ => return None,
    };
    Some(match number {
        // The same open file, so that what is printed besides does not write over it.
        "1" => rustix::stdio::stdout().try_clone_to_owned(),
        "2" => rustix::stdio::stderr().try_clone_to_owned(),
        _ => {
            rustix::fs::open(path, OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).map_err(Into::into)
        }
    })
}

/// Opens what is written as it comes.
fn stream(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}

/// The folder, opened, and the name in it.
pub(crate) fn folder_of(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is a folder"))?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty()).map_err(|e| match e {
        Errno::NOENT => io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display())),
        e => e.into(),
    })?;
    Ok((opened, name.to_owned()))
}

/// Tries hidden names until `make` finds one that nobody has.
pub(crate) fn hidden<T>(name: &OsStr, make: impl Fn(&OsStr) -> rustix::io::Result<T>) -> io::Result<(T, OsString)> {
    use std::hash::{BuildHasher, Hasher};
    const TRIES: u32 = 100;
    for _ in 0..TRIES {
        let random = std::hash::RandomState::new().build_hasher().finish();
        let mut hidden = OsString::from(".");
        // A file's name has at most 255 bytes.
        hidden.push(name.to_string_lossy().chars().take(40).collect::<String>());
        hidden.push(format!(".{random:016x}"));
        match make(&hidden) {
            Ok(made) => return Ok((made, hidden)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

fn rename(folder: &OwnedFd, from: &OsStr, to: &OsStr) -> io::Result<()> {
    rustix::fs::renameat(folder, from, folder, to).map_err(|e| {
        let _ = rustix::fs::unlinkat(folder, from, AtFlags::empty());
        e.into()
    })
}

pub(crate) fn explain(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests;
