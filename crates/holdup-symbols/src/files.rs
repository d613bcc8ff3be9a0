//! Opening files that others chose.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

/// Opens a regular file for reading, and nothing else: the mere opening of a FIFO waits, and that of a device can have
/// effects. So the name is looked up without opening, and what was found is opened only if it is a file.
///
/// Below `/proc/PID/root` links are followed as that process follows them. `links`: whether the last part of the path
/// may be one.
pub(crate) fn open_regular(path: &Path, links: bool) -> io::Result<(File, Metadata)> {
    let found = File::from(look_up(path, links)?);
    let meta = found.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    Ok((file, meta))
}

fn look_up(path: &Path, links: bool) -> io::Result<OwnedFd> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if !links {
        flags |= OFlags::NOFOLLOW;
    }
    if let Some((root, inside)) = process_root(path) {
        let root = openat(CWD, &root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        match openat2(&root, &inside, flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS) {
            // Before Linux 5.6.
            Err(rustix::io::Errno::NOSYS) => {}
            found => return Ok(found?),
        }
    }
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// `/proc/12/root/usr/bin/x` → (`/proc/12/root`, `usr/bin/x`)
fn process_root(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut parts = path.strip_prefix("/proc").ok()?.components();
    let pid = parts.next()?.as_os_str().to_str().filter(|p| p.bytes().all(|b| b.is_ascii_digit()))?;
    let root = parts.next().filter(|part| part.as_os_str() == "root").map(|_| format!("/proc/{pid}/root"))?;
    Some((root.into(), parts.as_path().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, fifo, link) = (dir.path().join("file"), dir.path().join("fifo"), dir.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&file, false).is_ok());
        assert!(open_regular(&link, true).is_ok());
        assert!(open_regular(&link, false).is_err());
        // Without care this waits for a writer.
        assert!(open_regular(&fifo, true).unwrap_err().to_string().contains("regular"));
        assert!(open_regular(Path::new("/dev/null"), true).is_err());
        assert!(open_regular(dir.path(), true).is_err());
        assert_eq!(open_regular(&dir.path().join("none"), true).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn links_below_the_root_of_a_process_stay_there() {
        let split = |path: &str| process_root(Path::new(path)).map(|(_, inside)| inside);
        assert_eq!(split("/proc/12/root/usr/bin/x"), Some("usr/bin/x".into()));
        assert_eq!(split("/proc/12/exe"), None);
        assert_eq!(split("/usr/proc/12/root/x"), None);
        let path = format!("/proc/{}/root{}", std::process::id(), std::env::current_exe().unwrap().display());
        assert!(open_regular(Path::new(&path), true).is_ok());
    }
}
