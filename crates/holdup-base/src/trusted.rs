//! Reading settings that nobody else may set.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// What came of looking for settings.
#[derive(Debug, PartialEq, Eq)]
pub enum Settings {
    /// There is no such file.
    Absent,
    /// Its text.
    Text(String),
    /// It is left alone, for this reason.
    Refused(String),
}

/// Longest file of settings, in bytes.
const LONGEST: u64 = 64 << 10;

/// Reads a small file of settings, unless somebody else could have written it: a user reads what is theirs or root's, and
/// root what is root's alone and is no symbolic link. So root's settings are not those of the user who called sudo, even
/// where sudo keeps that user's `HOME`.
pub fn settings(path: &Path) -> Settings {
    let is_root = rustix::process::geteuid().is_root();
    match open(path, is_root) {
        Ok(Some(file)) => read(file, is_root),
        Ok(None) => Settings::Absent,
        Err(Errno::LOOP) => Settings::Refused("it is a symbolic link, which root does not follow".into()),
        Err(e) => Settings::Refused(format!("it cannot be opened: {e}")),
    }
}

fn open(path: &Path, is_root: bool) -> Result<Option<File>, Errno> {
    // Without NONBLOCK a pipe would wait for somebody to write into it.
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if is_root {
        flags |= OFlags::NOFOLLOW;
    }
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(e) => Err(e),
    }
}

fn read(file: File, is_root: bool) -> Settings {
    let there = match rustix::fs::fstat(&file) {
        Ok(there) => there,
        Err(e) => return Settings::Refused(format!("it cannot be read: {e}")),
    };
    let me = rustix::process::geteuid().as_raw();
    let others = if is_root { 0o022 } else { 0o002 };
    if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile {
        return Settings::Refused("it is not a file".into());
    }
    if there.st_uid != me && there.st_uid != 0 {
        let whose = if is_root { "it is not root's own" } else { "it belongs to another user" };
        return Settings::Refused(whose.into());
    }
    if there.st_mode & others != 0 {
        return Settings::Refused("others may write it (chmod go-w mends that)".into());
    }
    let mut text = String::new();
    match file.take(LONGEST + 1).read_to_string(&mut text) {
        Ok(n) if n as u64 > LONGEST => Settings::Refused(format!("it is longer than {LONGEST} bytes")),
        Ok(_) => Settings::Text(text),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Settings::Refused("it is not UTF-8 text".into()),
        Err(e) => Settings::Refused(format!("it cannot be read: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use holdup_testing::{Need, has};

    use super::*;

    fn refused(path: &Path) -> String {
        match settings(path) {
            Settings::Refused(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_nobody_else_wrote_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holdup.toml");
        assert_eq!(settings(&path), Settings::Absent);
        std::fs::write(&path, "freq = 1").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(settings(&path), Settings::Text("freq = 1".into()));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(refused(&path).contains("others may write it"));
        std::fs::write(&path, vec![b' '; 70_000]).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(refused(&path).contains("longer than"));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(refused(&path).contains("UTF-8"));
        assert!(refused(dir.path()).contains("not a file"));
    }

    #[test]
    fn root_reads_what_is_roots() {
        if !has(Need::Root) {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("theirs"), dir.path().join("link"));
        std::fs::write(&path, "freq = 1").unwrap();
        symlink(&path, &link).unwrap();
        assert!(refused(&link).contains("symbolic link"));
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        assert!(refused(&path).contains("not root's own"));
    }
}
