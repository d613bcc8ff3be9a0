//! A copy of what can be read only once, for readers that go back and forth.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Room that a copy leaves to others.
const RESERVE: u64 = 64 << 20;
/// How much is copied between two looks at the room that is left.
const STEP: u64 = 16 << 20;

/// Copies `from` to its end into a file without a name, for this user alone, in the folder for temporary files; its
/// position is the beginning.
///
/// # Errors
/// If `from` cannot be read, or if the copy would take the last of the folder's free space: the sentence says how
/// much there was, and what to do.
pub fn copy(from: impl Read) -> io::Result<File> {
    let folder = std::env::temp_dir();
    let file = nameless(&folder)?;
    copy_into(file, from, &folder, |file| {
        let there = rustix::fs::fstatvfs(file)?;
        // Of a small file system a twentieth is left.
        let reserve = RESERVE.min(there.f_blocks.saturating_mul(there.f_frsize) / 20);
        Ok(there.f_bavail.saturating_mul(there.f_frsize).saturating_sub(reserve))
    })
}

/// Nothing else can open it, and nothing is left of it when this process ends, whatever ends it.
fn nameless(folder: &Path) -> io::Result<File> {
    let failed = |e: Errno| io::Error::other(format!("no temporary file can be made in {}: {e}", folder.display()));
    let mode = Mode::from_raw_mode(0o600);
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
        made => return made.map(File::from).map_err(failed),
    }
    // The file system knows no such files: one whose name is taken away at once.
    let path =
        folder.join(format!(".holdup.{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: OwnedFd = rustix::fs::open(&path, flags, mode).map_err(failed)?;
    rustix::fs::unlinkat(CWD, &path, AtFlags::empty()).map_err(failed)?;
    Ok(file.into())
}

fn copy_into(
    mut file: File,
    mut from: impl Read,
    folder: &Path,
    room: impl Fn(&File) -> io::Result<u64>,
) -> io::Result<File> {
    let full = |copied: u64| {
        let folder = folder.display();
        io::Error::other(format!(
            "it has to be copied to be read, and after {copied} bytes there is no room left in {folder}: write it to a \
             file and name that, or set TMPDIR to a folder with more room"
        ))
    };
    let mut copied = 0;
    loop {
        let step = STEP.min(room(&file)?);
        let n = match io::copy(&mut (&mut from).take(step), &mut file) {
            Err(e) if e.kind() == io::ErrorKind::StorageFull => return Err(full(copied)),
            n => n?,
        };
        copied += n;
        if n < step {
            break;
        }
        if step < STEP {
            // It may have ended exactly where the room did.
            match from.read(&mut [0])? {
                0 => break,
                _ => return Err(full(copied)),
            }
        }
    }
    file.flush()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_copy_has_no_name_and_one_reader() {
        let mut file = copy(&b"content"[..]).unwrap();
        let there = file.metadata().unwrap();
        assert_eq!((there.nlink(), there.mode() & 0o777), (0, 0o600));
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
    }

    #[test]
    fn what_never_ends_ends_with_the_room() {
        let folder = std::env::temp_dir();
        let most = STEP + 1000;
        let room = |file: &File| Ok(most - file.metadata()?.len());
        let error = copy_into(nameless(&folder).unwrap(), io::repeat(7), &folder, room).unwrap_err().to_string();
        assert!(error.contains("after 16778216 bytes") && error.contains("TMPDIR"), "{error}");
        // What just fits is no failure.
        let exact = io::repeat(7).take(most);
        let file = copy_into(nameless(&folder).unwrap(), exact, &folder, room).unwrap();
        assert_eq!(file.metadata().unwrap().len(), most);
    }
}
