//! Where each version of CPython keeps what: offsets in bytes.
//!
//! Up to 3.12 they are those of its headers (`offsetof`, release builds; they did not change within a minor version). From 3.13
//! on the interpreter tells them itself, at the begin of `_PyRuntime`. Other builds (`--with-pydebug`, free-threaded) have
//! others: then what is taken for a code object does not say that it is one, and no function is named.

use std::fmt;

use crate::frames::{Entries, Frames};
use crate::memory::word;

/// Where a code object and its strings keep what names a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    /// The qualified name, or before 3.11 the plain one.
    pub name: usize,
    pub file: usize,
    pub line: usize,
    /// The lines of its instructions, since 3.11.
    pub lines: Option<usize>,
    /// Where the characters of a string begin: of an ASCII one, and of others.
    pub ascii: usize,
    pub other: usize,
}

impl Code {
    /// Bytes of a code object that have to be read.
    pub(super) fn size(&self) -> usize {
        self.name.max(self.file).max(self.line).max(self.lines.unwrap_or(0)) + 8
    }
}

/// A minor version of Python 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "3.{}", self.0)
    }
}

impl Version {
    /// From `PY_VERSION_HEX`, as 3.11 and newer keep it in `Py_Version`.
    pub(super) fn from_number(number: u32) -> Version {
        Version(number >> 16 & 0xff)
    }

    /// From the name of a file.
    pub(super) fn from_path(path: &str) -> Option<Version> {
        let base = path.rsplit('/').next()?;
        Version::after(base.strip_prefix("lib").unwrap_or(base).as_bytes(), b"python3.")
    }

    /// From the folder of its library.
    pub(super) fn from_constants(constants: &[u8]) -> Option<Version> {
        let key = b"lib/python3.";
        let at = constants.windows(key.len()).position(|window| window == key)?;
        Version::after(&constants[at..], key)
    }

    fn after(text: &[u8], key: &[u8]) -> Option<Version> {
        let digits: String = text.strip_prefix(key)?.iter().take(3).map(|&b| char::from(b)).collect();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok().map(Version)
    }
}

/// The layout of a version; `runtime` reads the first bytes of `_PyRuntime`.
pub(super) fn of(version: Version, runtime: impl FnOnce(usize) -> Option<Vec<u8>>) -> Option<(Frames, Code)> {
    match version.0 {
        8..=10 => Some((UP_TO_3_10, Code { name: 112, file: 104, line: 40, lines: None, ascii: 48, other: 72 })),
        11 => Some((IN_3_11, Code { line: 72, ascii: 48, other: 72, ..SINCE_3_11 })),
        12 => Some((IN_3_12, Code { line: 68, ascii: 40, other: 56, ..SINCE_3_11 })),
        13 => told(&runtime(TOLD)?),
        _ => None,
    }
}

const SINCE_3_11: Code = Code { name: 128, file: 112, line: 72, lines: Some(136), ascii: 48, other: 72 };

const UP_TO_3_10: Frames = Frames {
    interpreters: 32,
    next_interpreter: Some(0),
    threads: 8,
    next_thread: 8,
    thread_id: 176,
    id_through: None,
    current: 24,
    through: None,
    previous: 24,
    stride: 0,
    code: 32,
    instruction: 0,
    bytecode: 0,
    entry: 0,
    entries: Entries::Each,
    size: 40,
    flag: 0xff,
    single: false,
};

const IN_3_11: Frames = Frames {
    interpreters: 40,
    threads: 16,
    thread_id: 152,
    current: 56,
    through: Some(8),
    previous: 48,
    code: 32,
    instruction: 56,
    bytecode: 184,
    entry: 68,
    entries: Entries::Flagged,
    size: 72,
    ..UP_TO_3_10
};

const IN_3_12: Frames = Frames {
    threads: 72,
    thread_id: 136,
    through: Some(0),
    previous: 8,
    code: 0,
    bytecode: 192,
    entry: 70,
    entries: Entries::Shimmed,
    ..IN_3_11
};

/// Bytes of `_Py_DebugOffsets` that are read.
const TOLD: usize = 71 * 8;

/// What 3.13 says of itself: `_Py_DebugOffsets`, words in the order of `pycore_runtime.h`. Offsets that cannot be, as a
/// process may hold anything there, are none.
fn told(bytes: &[u8]) -> Option<(Frames, Code)> {
    let offset = |index: usize| word(bytes, index * 8).filter(|&offset| offset < 1 << 20).map(|offset| offset as u32);
    // In a free-threaded build threads have more than a frame.
    if !bytes.starts_with(b"xdebugpy") || offset(2)? != 0 {
        return None;
    }
    let (previous, code, instruction, entry) = (offset(29)?, offset(30)?, offset(31)?, offset(33)?);
    let size = previous.max(code).max(instruction).max(entry) + 8;
    let frames = Frames {
        interpreters: offset(5)?,
        next_interpreter: Some(offset(8)?),
        threads: offset(9)?,
        next_thread: offset(21)?,
        thread_id: offset(24)?,
        id_through: None,
        current: offset(23)?,
        through: None,
        previous,
        stride: 0,
        code,
        instruction,
        bytecode: offset(43)?,
        entry,
        entries: Entries::Shimmed,
        size,
        flag: 0xff,
        single: false,
    };
    let ascii = offset(70)?;
    let [file, name, lines, line] = [35, 37, 38, 39].map(|index| offset(index).map(|offset| offset as usize));
    let (name, file, line) = (name?, file?, line?);
    let code = Code { name, file, line, lines: Some(lines?), ascii: ascii as usize, other: ascii as usize + 16 };
    (size < 128 && code.size() < 1024).then_some((frames, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_by_number_name_and_folder() {
        assert_eq!(Version::from_number(0x030b_02f0), Version(11));
        let path = |path: &str| Version::from_path(path).map(|v| v.0);
        assert_eq!(path("/usr/bin/python3.11"), Some(11));
        assert_eq!(path("/usr/lib/libpython3.8.so.1.0"), Some(8));
        assert_eq!((path("/usr/bin/python3"), path("/x/libpython3.so"), path("")), (None, None, None));
        let constants = |text: &[u8]| Version::from_constants(text).map(|v| v.0);
        assert_eq!(constants(b"\0/opt\0lib/python3.10\0x"), Some(10));
        assert_eq!((constants(b"lib/python3."), constants(b"")), (None, None));
        assert_eq!(of(Version(7), |_| None), None);
        assert_eq!(of(Version(14), |_| None), None);
    }

    #[test]
    fn offsets_that_cannot_be_are_none() {
        let mut bytes = vec![0u8; TOLD];
        bytes[..8].copy_from_slice(b"xdebugpy");
        assert!(told(&bytes).is_some());
        for (word, value) in
            [(2, 1), (29, u64::MAX), (30, 120), (31, 120), (33, 1 << 19), (37, 4000), (70, 1 << 40), (0, 0)]
        {
            let mut hostile = bytes.clone();
            hostile[word * 8..word * 8 + 8].copy_from_slice(&u64::to_le_bytes(value));
            assert_eq!(told(&hostile), None, "{word}");
        }
        assert_eq!(told(&bytes[..100]), None);
    }
}
