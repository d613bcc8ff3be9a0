//! A file that one process at a time writes, and that is found where that process was killed.
//!
//! It is locked before it has its name, so that nobody takes it for one that was left behind. A file of that name which
//! nobody holds any more *was* left behind: it is set aside under another name, and never lost. What is there and was not
//! made by this user (a link, a pipe, a folder, a file of somebody else) is a reason to stop, not to follow.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::output::{explain, folder_of, give_to_caller, nameless, owner};

/// So often others may put a file in the way before this gives up.
const TRIES: u32 = 16;
/// Names with numbers that are tried for what is set aside, before one that nobody can foresee.
const NUMBERED: u32 = 99;

/// A file that is this process's alone until the claim is dropped. Its name stays.
#[derive(Debug)]
pub struct Claim {
    file: File,
    /// Its folder and its name there, if it has one.
    place: Option<(OwnedFd, OsString)>,
    path: PathBuf,
}

impl Claim {
    /// A file in `folder` that nobody finds: it has no name, and is gone when it is closed.
    ///
    /// # Errors
    /// A sentence that names the folder.
    pub fn nameless(folder: &Path) -> io::Result<Claim> {
        let file = crate::output::temporary(folder).map_err(|e| explain(folder, &e))?;
        Ok(Claim { file, place: None, path: folder.to_owned() })
    }

    /// Makes `path`, for its owner alone and open for appending. Also returns where a file that was there is now, if a
    /// process that was ended left one behind.
    ///
    /// # Errors
    /// A sentence that names the path: another process holds it, it is not this user's or no file, or the folder cannot
    /// be written.
    pub fn take(path: &Path) -> io::Result<(Claim, Option<PathBuf>)> {
        let fail = |e: io::Error| explain(path, &e);
        let (folder, name) = folder_of(path).map_err(fail)?;
        let mut aside = None;
        for _ in 0..TRIES {
            match make(&folder, &name).map_err(fail)? {
                Some(file) => {
                    return Ok((Claim { file, place: Some((folder, name)), path: path.to_owned() }, aside));
                }
                None => aside = clear(&folder, &name).map_err(fail)?.map(|new| path.with_file_name(new)).or(aside),
            }
        }
        Err(fail(io::Error::other("others keep making a file of that name")))
    }

    /// The path, or the folder of a file without a name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another handle of the file.
    ///
    /// # Errors
    /// What the system says: too many open files.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Removes the file, if its name still stands for it.
    ///
    /// # Errors
    /// What the file system says, with the path.
    pub fn remove(self) -> io::Result<()> {
        let fail = |e: Errno| explain(&self.path, &e.into());
        let Some((folder, name)) = &self.place else { return Ok(()) };
        let mine = rustix::fs::fstat(&self.file).map_err(fail)?;
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if is_same(&there, &mine) => rustix::fs::unlinkat(folder, name, AtFlags::empty()).map_err(fail),
            _ => Ok(()),
        }
    }
}

/// Whether a process holds `file`, which is open here.
pub fn is_held(file: impl AsFd) -> bool {
    let held = !lock(&file, FlockOperation::NonBlockingLockShared);
    if !held {
        let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
    }
    held
}

/// Whether the lock was to be had; file systems without locks have it for everybody.
fn lock(file: impl AsFd, operation: FlockOperation) -> bool {
    rustix::fs::flock(file, operation) != Err(Errno::WOULDBLOCK)
}

/// The new file, locked; `None` if something has the name already.
fn make(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<File>> {
    let (access, mode) = (OFlags::RDWR | OFlags::APPEND, Mode::from_raw_mode(0o600));
    let taken = |result: rustix::io::Result<()>| match result {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(io::Error::from(error)),
    };
    if let Some(file) = nameless(folder, access, mode)? {
        lock(&file, FlockOperation::NonBlockingLockExclusive);
        give_to_caller(&file);
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let named = rustix::fs::linkat(CWD, &open, folder, name, AtFlags::SYMLINK_FOLLOW);
        return Ok(taken(named)?.then(|| file.into()));
    }
    let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, name, flags, mode) {
        Err(Errno::EXIST) => return Ok(None),
        file => file?,
    };
    if !lock(&file, FlockOperation::NonBlockingLockExclusive) {
        return Err(io::Error::other("another process took it"));
    }
    give_to_caller(&file);
    Ok(Some(file.into()))
}

/// Gets what has the name out of the way. Returns its new name; `None` if it is gone, or was empty and is removed.
fn clear(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<OsString>> {
    let there = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        there => there?,
    };
    if let Some(what) = foreign(&there) {
        return Err(io::Error::other(format!("there is {what} of that name: remove it, or write elsewhere")));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let left = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        left => left?,
    };
    let opened = rustix::fs::fstat(&left)?;
    if !is_same(&opened, &there) {
        return Ok(None);
    }
    if !lock(&left, FlockOperation::NonBlockingLockExclusive) {
        let error = "another holdup is at work on it: wait until it has ended, or write elsewhere";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, error));
    }
    // Who held it may just have removed it, or set it aside.
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(now) if is_same(&now, &opened) => {}
        _ => return Ok(None),
    }
    if opened.st_size == 0 {
        rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
        return Ok(None);
    }
    set_aside(folder, name).map(Some)
}

/// What somebody else put there, in words; `None` for a file of this user.
fn foreign(there: &Stat) -> Option<String> {
    let what = match FileType::from_raw_mode(there.st_mode) {
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::RegularFile if there.st_nlink > 1 => "a file with a second name",
        FileType::RegularFile => {
            let ours = [owner(), rustix::process::geteuid().as_raw()].contains(&there.st_uid);
            return (!ours).then(|| format!("a file of another user (uid {})", there.st_uid));
        }
        _ => "a device or socket",
    };
    Some(format!("{what} (uid {})", there.st_uid))
}

fn set_aside(folder: &OwnedFd, name: &OsStr) -> io::Result<OsString> {
    use std::hash::{BuildHasher, Hasher};
    for n in 1..=NUMBERED + TRIES {
        let mut new = name.to_owned();
        match n {
            1..=NUMBERED => new.push(format!(".{n}")),
            _ => new.push(format!(".{:016x}", std::hash::RandomState::new().build_hasher().finish())),
        }
        match rename_to_new(folder, name, &new) {
            Ok(()) => return Ok(new),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Renames, and never onto something.
fn rename_to_new(folder: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
            rustix::fs::unlinkat(folder, from, AtFlags::empty())
        }
        done => done,
    }
}

fn is_same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn refused(path: &Path) -> String {
        Claim::take(path).expect_err("refused").to_string()
    }

    #[test]
    fn one_process_at_a_time_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.spool");
        let (claim, aside) = Claim::take(&path).unwrap();
        assert_eq!(aside, None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(is_held(File::open(&path).unwrap()));
        assert!(refused(&path).contains("another holdup"), "{}", refused(&path));
        let second = claim.file().unwrap();
        drop(claim);
        assert!(refused(&path).contains("another holdup"), "a handle holds it as well");
        drop(second);
        assert!(!is_held(File::open(&path).unwrap()));
    }

    #[test]
    fn what_was_left_behind_is_set_aside_and_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.spool");
        fs::write(folder.path().join("a.spool.1"), "older").unwrap();
        fs::write(&path, "data").unwrap();
        let (claim, aside) = Claim::take(&path).unwrap();
        let aside = aside.expect("set aside");
        assert_eq!(aside, folder.path().join("a.spool.2"));
        assert_eq!(fs::read_to_string(aside).unwrap(), "data");
        assert_eq!(fs::read_to_string(folder.path().join("a.spool.1")).unwrap(), "older");
        claim.file().unwrap().write_all(b"new").unwrap();
        claim.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn an_empty_file_is_nothing_to_keep() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.spool");
        fs::write(&path, "").unwrap();
        let (_claim, aside) = Claim::take(&path).unwrap();
        assert_eq!(aside, None);
    }

    #[test]
    fn what_is_planted_is_neither_followed_nor_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("soft")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::hard_link(at("victim"), at("hard")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let fifo = rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0);
        fifo.unwrap();
        let planted = [
            ("soft", "symbolic link"),
            ("dangling", "symbolic link"),
            ("hard", "second name"),
            ("folder", "a folder"),
            ("pipe", "a pipe"),
        ];
        for (name, word) in planted {
            assert!(refused(&at(name)).contains(word), "{}", refused(&at(name)));
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn a_name_that_somebody_took_over_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.spool");
        let (claim, _) = Claim::take(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        claim.remove().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
    }
}
