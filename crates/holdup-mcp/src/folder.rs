//! The one folder whose traces may be opened.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Entries that are looked at when the folder is listed.
const MOST_ENTRIES: usize = 2000;
/// Folders below it that are looked into.
const DEPTH: usize = 2;

/// A folder, by its path without links.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

/// A file that may be a trace.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its path below the folder.
    pub name: String,
    pub bytes: u64,
    pub modified: SystemTime,
}

impl Folder {
    pub fn new(path: &Path) -> io::Result<Folder> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let real = path.canonicalize().map_err(named)?;
        if !real.is_dir() {
            return Err(io::Error::other(format!("{} is not a folder", path.display())));
        }
        Ok(Folder(real))
    }

    /// The file or folder called `name` in here. Links are followed as long as they stay in here; devices and pipes are refused,
    /// as opening one can block.
    pub fn find(&self, name: &str) -> Result<PathBuf, String> {
        let outside =
            || format!("{name:?} is not below the folder that this server was given; list_traces says what is there");
        let path = Path::new(name);
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(outside());
        }
        let real = self
            .0
            .join(path)
            .canonicalize()
            .map_err(|_| format!("there is no trace {name:?}; list_traces says what is there"))?;
        if !real.starts_with(&self.0) {
            return Err(outside());
        }
        let there = real.metadata().map_err(|e| format!("{name:?}: {e}"))?;
        if !there.is_file() && !there.is_dir() {
            return Err(format!("{name:?} is neither a file nor a folder"));
        }
        Ok(real)
    }

    /// Where a new file called `name` goes: directly in here, and nothing is there yet.
    pub fn place(&self, name: &str) -> Result<PathBuf, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err("name: letters, digits, - _ and . alone, at most 64".into());
        }
        let name = if name.ends_with(".holdup") { name.to_owned() } else { format!("{name}.holdup") };
        let path = self.0.join(name);
        match path.symlink_metadata() {
            Ok(_) => Err("there is a file of that name; choose another".into()),
            Err(_) => Ok(path),
        }
    }

    /// What is in here and in folders below, the newest first; and whether that is all.
    pub fn list(&self) -> (Vec<Entry>, bool) {
        let mut found = Vec::new();
        let mut left = MOST_ENTRIES;
        self.look_into(&self.0, DEPTH, &mut found, &mut left);
        found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
        (found, left > 0)
    }

    fn look_into(&self, folder: &Path, depth: usize, found: &mut Vec<Entry>, left: &mut usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let path = entry.path();
            // Of the link itself: one that leads outside is not looked at.
            let Ok(there) = path.symlink_metadata() else { continue };
            let Some(name) = path.strip_prefix(&self.0).ok().and_then(Path::to_str) else { continue };
            if there.is_file() || is_ctf(&path, &there) {
                let modified = there.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push(Entry { name: name.to_owned(), bytes: there.len(), modified });
            } else if there.is_dir() && depth > 0 {
                self.look_into(&path, depth - 1, found, left);
            }
        }
    }
}

fn is_ctf(path: &Path, there: &Metadata) -> bool {
    there.is_dir() && path.join("metadata").is_file()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_outside_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("traces");
        fs::create_dir_all(inner.join("below")).unwrap();
        fs::write(outer.path().join("secret"), "x").unwrap();
        fs::write(inner.join("below/a.holdup"), "x").unwrap();
        symlink(outer.path().join("secret"), inner.join("link")).unwrap();
        symlink("below/a.holdup", inner.join("inside")).unwrap();
        let folder = Folder::new(&inner).unwrap();
        let absolute = outer.path().join("secret").display().to_string();
        for name in ["../secret", "link", "below/../../secret", absolute.as_str(), "none", "", "a\0b"] {
            let refused = folder.find(name);
            // An empty name is the folder itself.
            assert!(refused.is_err() || name.is_empty(), "{name:?}: {refused:?}");
        }
        assert!(folder.find("below/a.holdup").is_ok() && folder.find("./inside").is_ok());
        let (found, all) = folder.list();
        assert_eq!((found.len(), found[0].name.as_str(), all), (1, "below/a.holdup", true));
    }

    #[test]
    fn a_pipe_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/dev/null", folder.path().join("null")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let inside = Folder::new(folder.path()).unwrap();
        assert!(inside.find("pipe").unwrap_err().contains("neither"));
        assert!(inside.find("null").is_err());
    }

    #[test]
    fn new_files_have_plain_names_and_replace_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path()).unwrap();
        assert!(folder.place("run-1").unwrap().ends_with("run-1.holdup"));
        fs::write(dir.path().join("old.holdup"), "x").unwrap();
        for name in ["", ".x", "a/b", "../a", "old", "a b", &"x".repeat(65)] {
            assert!(folder.place(name).is_err(), "{name:?}");
        }
    }
}
