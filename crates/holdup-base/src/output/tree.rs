//! A folder in which files are put by keys with slashes, as object stores have them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{Output, Readers, create_folder, explain, give_to_caller, prepare_in};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder. Everything happens below it: keys lead nowhere else, and what stands in their way as a link is followed by none of this.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    path: PathBuf,
}

impl Tree {
    /// Opens it, or makes it, with those above it.
    ///
    /// # Errors
    /// A sentence that names the path.
    pub fn create(path: &Path) -> io::Result<Tree> {
        create_folder(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| explain(path, &e.into()))?;
        Ok(Tree { root, path: path.to_owned() })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the folder for this process's own until the tree is dropped, among those that ask for it. Whether nobody else has it.
    ///
    /// # Errors
    /// A sentence that names the path.
    pub fn lock(&self) -> io::Result<bool> {
        match rustix::fs::flock(&self.root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(e) => Err(explain(&self.path, &e.into())),
        }
    }

    /// A file at `key`, which is there whole when it is committed, and before that not at all. The folders above it are made.
    ///
    /// # Errors
    /// A sentence that names the path: the key is none, or the file system refuses.
    pub fn output(&self, key: &str, readers: Readers) -> io::Result<Output> {
        let path = self.path.join(key);
        let (above, name) = self.above(key, true).map_err(|e| explain(&path, &e))?;
        prepare_in(above, name, &path, readers).map_err(|e| explain(&path, &e))
    }

    /// Puts `content` at `key`, in place of what is there, and on the disk before that. Returns its length.
    ///
    /// # Errors
    /// As [`output`](Tree::output), or what reading says.
    pub fn put(&self, key: &str, readers: Readers, mut content: impl Read) -> io::Result<u64> {
        let mut output = self.output(key, readers)?;
        let mut put = |output: &mut Output| {
            let length = io::copy(&mut content, output)?;
            output.flush()?;
            output.file().sync_data()?;
            io::Result::Ok(length)
        };
        let length = put(&mut output).map_err(|e| explain(&self.path.join(key), &e))?;
        output.commit()?;
        Ok(length)
    }

    /// Opens what is at `key`.
    ///
    /// # Errors
    /// A sentence that names the path; `NotFound` if nothing is there.
    pub fn open(&self, key: &str) -> io::Result<File> {
        let open = || {
            let (above, name) = self.above(key, false)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            Ok(File::from(rustix::fs::openat(above, &name, flags, Mode::empty())?))
        };
        open().map_err(|e| explain(&self.path.join(key), &e))
    }

    /// Removes what is at `key`; the folders above it stay.
    ///
    /// # Errors
    /// A sentence that names the path. Nothing there is none.
    pub fn remove(&self, key: &str) -> io::Result<()> {
        let remove = || -> io::Result<()> {
            let (above, name) = self.above(key, false)?;
            Ok(rustix::fs::unlinkat(above, &name, AtFlags::empty())?)
        };
        match remove() {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(explain(&self.path.join(key), &e)),
            _ => Ok(()),
        }
    }

    /// The folder in which `key` lies, and its last part.
    fn above(&self, key: &str, make: bool) -> io::Result<(OwnedFd, OsString)> {
        let is_name = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains('\0');
        let parts: Vec<&str> = key.split('/').collect();
        let (name, folders) = parts.split_last().filter(|_| parts.iter().all(is_name)).ok_or_else(no_key)?;
        let mut at = self.root.try_clone()?;
        for folder in folders {
            at = step(&at, folder, make)?;
        }
        Ok((at, OsString::from(name)))
    }
}

/// The folder `name` in `at`.
fn step(at: &OwnedFd, name: &str, make: bool) -> io::Result<OwnedFd> {
    match rustix::fs::openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) if make => {}
        opened => return Ok(opened?),
    }
    match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    let folder = rustix::fs::openat(at, name, FOLDER, Mode::empty())?;
    give_to_caller(&folder);
    Ok(folder)
}

fn no_key() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no key: names with / between are expected")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn tree() -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = Tree::create(&folder.path().join("a/b")).expect("a tree");
        (folder, tree)
    }

    #[test]
    fn what_is_put_is_there_and_its_owners_alone() {
        let (folder, tree) = tree();
        for content in ["one", "another"] {
            tree.put("t/date=1/x.parquet", Readers::Owner, content.as_bytes()).expect("is put");
            let at = folder.path().join("a/b/t/date=1/x.parquet");
            assert_eq!(std::fs::read_to_string(&at).expect("a file"), content);
            assert_eq!(std::fs::metadata(&at).expect("a file").permissions().mode() & 0o777, 0o600);
        }
        tree.remove("t/date=1/x.parquet").expect("is removed");
        tree.remove("t/date=1/x.parquet").expect("is no error");
        assert_eq!(tree.open("t/date=1/x.parquet").expect_err("is gone").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nothing_leads_out_of_it() {
        let (folder, tree) = tree();
        for key in ["../x", "a//b", "", "a/../x", "/etc/x", "a/"] {
            assert!(tree.put(key, Readers::Owner, &b"x"[..]).is_err(), "{key}");
        }
        symlink(folder.path(), folder.path().join("a/b/link")).expect("a link");
        assert!(tree.put("link/x", Readers::Owner, &b"x"[..]).is_err());
        assert!(!folder.path().join("x").exists());
        // A link in the file's own place is replaced.
        std::fs::write(folder.path().join("other"), "other").expect("a file");
        symlink(folder.path().join("other"), folder.path().join("a/b/y")).expect("a link");
        tree.put("y", Readers::Owner, &b"new"[..]).expect("is put");
        assert_eq!(std::fs::read_to_string(folder.path().join("other")).expect("a file"), "other");
    }

    #[test]
    fn what_fails_leaves_what_was_there() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("no more"))
            }
        }
        let (folder, tree) = tree();
        tree.put("x", Readers::Owner, &b"old"[..]).expect("is put");
        assert!(tree.put("x", Readers::Owner, (&b"ne"[..]).chain(Fails)).is_err());
        assert_eq!(std::fs::read_to_string(folder.path().join("a/b/x")).expect("a file"), "old");
        assert_eq!(std::fs::read_dir(folder.path().join("a/b")).expect("a folder").count(), 1);
    }
}
