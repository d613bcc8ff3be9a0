//! The segments of a flight recorder's spool, beside it: how they are called, and which are there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::format::{Block, HEADER, Kind, MAGIC};

/// How a segment of `spool` is called: in the order of their names they follow each other. Nobody can foresee the `mark`.
pub fn segment_name(spool: &Path, mark: u64, number: u64) -> PathBuf {
    let mut name = spool.as_os_str().to_owned();
    name.push(format!(".segment{number:012}.{mark:016x}"));
    PathBuf::from(name)
}

/// The segments with that `mark` in the folder of `spool`, which may have another name by now. In their order.
pub fn segments(spool: &Path, mark: u64) -> Vec<PathBuf> {
    let folder = spool.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut found: Vec<(Vec<u8>, PathBuf)> = names
        .filter_map(|name| Some((number(&name, mark)?.to_owned(), spool.with_file_name(&name))))
        .filter(|(_, path)| fs::symlink_metadata(path).is_ok_and(|there| there.is_file()))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The digits of a segment's number.
fn number(name: &OsStr, mark: u64) -> Option<&[u8]> {
    let name = name.as_bytes().strip_suffix(format!(".{mark:016x}").as_bytes())?;
    let at = name.len().checked_sub(12)?;
    let (before, digits) = name.split_at(at);
    (before.ends_with(b".segment") && digits.iter().all(u8::is_ascii_digit)).then_some(digits)
}

/// The mark of the segments of the spool at `path`, if it is a flight recorder's.
pub fn ring_of(path: &Path) -> Option<u64> {
    let mut head = [0; MAGIC.len() + HEADER + 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
    let (magic, rest) = head.split_first_chunk::<{ MAGIC.len() }>()?;
    let (block, mark) = rest.split_first_chunk::<HEADER>()?;
    let block = Block::decode(block).filter(|block| *magic == MAGIC && block.kind == Kind::Ring)?;
    (block.stored == 8).then(|| u64::from_le_bytes(*mark.first_chunk().unwrap_or(&[0; 8])))
}

/// The file anew, for reading, from its begin on: another position than that of `file`, whatever became of its name.
///
/// # Errors
/// What the system says.
pub fn reopen(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_their_mark_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("a.spool");
        for number in [10, 9, 100] {
            fs::write(segment_name(&spool, 7, number), "").unwrap();
        }
        fs::write(segment_name(&spool, 8, 11), "").unwrap();
        fs::create_dir(segment_name(&spool, 7, 12)).unwrap();
        fs::write(folder.path().join("x.segment.0000000000000007"), "").unwrap();
        let expected: Vec<PathBuf> = [9, 10, 100].map(|n| segment_name(&spool, 7, n)).into();
        assert_eq!(segments(&spool, 7), expected);
        assert_eq!(segments(&folder.path().join("a.spool.1"), 7), expected, "the spool was set aside");
    }
}
