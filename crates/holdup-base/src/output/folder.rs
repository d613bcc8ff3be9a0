//! A folder of files that appears when it is complete.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{explain, folder_of, give_to_caller, hidden};

/// A folder that takes its place when it is complete, for its owner alone. It is filled under a hidden name beside its target; dropped
/// before [`commit`](Folder::commit), it is removed. A process that is killed leaves the hidden one behind.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    beside: OwnedFd,
    name: OsString,
    temporary: OsString,
    inside: OwnedFd,
    files: Vec<String>,
    done: bool,
}

impl Folder {
    /// Prepares to fill `path`, where there must be nothing yet, or an empty folder: what others put there is not taken away.
    ///
    /// # Errors
    /// A sentence that names the path.
    pub fn create(path: &Path) -> io::Result<Folder> {
        prepare(path).map_err(|e| explain(path, &e))
    }

    /// A new file in it.
    ///
    /// # Errors
    /// What the file system says; `AlreadyExists` if there is one of that name.
    pub fn file(&mut self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.inside, name, flags, Mode::from_raw_mode(0o600))?);
        give_to_caller(&file);
        self.files.push(name.to_owned());
        Ok(file)
    }

    /// Puts the folder in its place, in one step.
    ///
    /// # Errors
    /// As [`create`](Folder::create), if meanwhile somebody put something there.
    pub fn commit(mut self) -> io::Result<()> {
        match rustix::fs::renameat(&self.beside, &self.temporary, &self.beside, &self.name) {
            Ok(()) => {
                self.done = true;
                Ok(())
            }
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Err(explain(&self.path, &occupied())),
            Err(error) => Err(explain(&self.path, &error.into())),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.done {
            for name in &self.files {
                let _ = rustix::fs::unlinkat(&self.inside, name, AtFlags::empty());
            }
            let _ = rustix::fs::unlinkat(&self.beside, &self.temporary, AtFlags::REMOVEDIR);
        }
    }
}

fn prepare(path: &Path) -> io::Result<Folder> {
    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let (beside, name) = folder_of(path)?;
    if let Ok(there) = rustix::fs::statat(&beside, &name, AtFlags::SYMLINK_NOFOLLOW) {
        let is_folder = FileType::from_raw_mode(there.st_mode) == FileType::Directory;
        if !is_folder || !is_empty(rustix::fs::openat(&beside, &name, FOLDER, Mode::empty())?)? {
            return Err(occupied());
        }
    }
    let (made, temporary) = hidden(&name, |name| rustix::fs::mkdirat(&beside, name, Mode::from_raw_mode(0o700)))?;
    let () = made;
    let inside = rustix::fs::openat(&beside, &temporary, FOLDER, Mode::empty())?;
    give_to_caller(&inside);
    Ok(Folder { path: path.to_owned(), beside, name, temporary, inside, files: Vec::new(), done: false })
}

fn is_empty(folder: OwnedFd) -> io::Result<bool> {
    let mut names = rustix::fs::Dir::new(folder)?;
    names.try_fold(true, |empty, entry| {
        let entry = entry?;
        Ok(empty && [c".", c".."].contains(&entry.file_name()))
    })
}

fn occupied() -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        "there is something; name a folder that does not exist, or an empty one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn names(folder: &Path) -> Vec<String> {
        let all = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            all.map(|e| e.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn it_appears_when_it_is_complete() {
        let root = tempfile::tempdir().expect("a folder");
        for target in ["new", "empty"] {
            let path = root.path().join(target);
            if target == "empty" {
                std::fs::create_dir(&path).expect("a folder");
            }
            let mut folder = Folder::create(&path).expect("a free place");
            folder.file("a").expect("a file").write_all(b"x").expect("room");
            assert!(folder.file("a").is_err());
            assert!(!path.exists() || names(&path).is_empty());
            folder.commit().expect("a free place");
            assert_eq!(names(&path), ["a"]);
            let mode = |p: &Path| std::fs::metadata(p).expect("it is there").permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
        }
    }

    #[test]
    fn what_is_there_stays_and_what_is_not_complete_goes() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("out");
        let mut folder = Folder::create(&path).expect("a free place");
        folder.file("a").expect("a file");
        drop(folder);
        assert_eq!(names(root.path()), Vec::<String>::new());

        let late = Folder::create(&path).expect("a free place");
        std::fs::create_dir(&path).expect("a folder");
        std::fs::write(path.join("mine"), "x").expect("a file");
        assert!(late.commit().expect_err("occupied").to_string().contains("there is something"));
        assert!(Folder::create(&path).expect_err("occupied").to_string().contains("there is something"));
        assert_eq!((names(root.path()), names(&path)), (vec!["out".to_owned()], vec!["mine".to_owned()]));

        let link = root.path().join("link");
        std::os::unix::fs::symlink("out", &link).expect("a link");
        assert!(Folder::create(&link).is_err());
    }
}
