//! Names of Go's functions: its runtime needs them for its own stack traces, so that they are in stripped programs, too.
//!
//! ```text
//!   magic  0 0 quantum pointer-size │ functions  files  text  names  units  files  pcs  table   (pointers wide)
//!   table: (where the function begins in the text, where its record lies in the table) …, where the last one ends
//!   record: (where it begins, where its name lies behind `names`, …)
//! ```
//!
//! Source: the Go toolchain's `debug/gosym` and `runtime/symtab.go`, versions 1.18 to 1.26.

use crate::bytes::{u32_at, u64_at};

/// Go 1.18 and 1.19; Go 1.20 and newer.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Functions that are looked at: the largest programs have a tenth of that.
const LIMIT: usize = 4 << 20;
/// Where the sum of all functions ends this near to the end of the text, the text is theirs alone.
const PADDING: u64 = 64;

/// A function: where it begins, its length, where its name lies in `names`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoFunction {
    pub addr: u64,
    pub size: u64,
    pub name: u32,
}

/// The functions of a table, and where their names lie in it. `text` is the address and size of the section of code. None if
/// it is damaged, of another version, or does not tell where the code is. O(functions).
pub(crate) fn parse(table: &[u8], text: (u64, u64)) -> Option<(Vec<GoFunction>, std::ops::Range<usize>)> {
    if !MAGICS.contains(&u32_at(table, 0)?) || table.get(4..6)? != [0, 0] || *table.get(7)? != 8 {
        return None;
    }
    let header = |i: usize| u64_at(table, 8 + 8 * i);
    let place = |i: usize| usize::try_from(header(i)?).ok().filter(|at| *at < table.len());
    let (names, units, pairs) = (place(3)?, place(4)?, place(7)?);
    let room = (table.len() - pairs) / 8;
    let count = usize::try_from(header(0)?).ok().filter(|n| *n <= room.min(LIMIT) && *n > 0)?;
    let begin = |i: usize| u32_at(table, pairs + 8 * i).map(u64::from);
    let end = begin(count)?;
    // Programs that can be loaded anywhere have the place filled in later.
    let start = match header(2)? {
        0 if end <= text.1 && text.1 - end < PADDING => text.0,
        0 => return None,
        start => start,
    };
    let function = |i: usize| {
        let record = pairs.checked_add(u32_at(table, pairs + 8 * i + 4)? as usize)?;
        let (from, to) = (begin(i)?, begin(i + 1)?);
        Some(GoFunction {
            addr: start.checked_add(from)?,
            size: to.checked_sub(from)?,
            name: u32_at(table, record + 4)?,
        })
    };
    (names <= units).then(|| ((0..count).filter_map(function).collect(), names..units))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions, `main.a` of 32 bytes and `main.b` of 16.
    fn table(text: u64) -> Vec<u8> {
        let mut bytes = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
        for word in [2, 0, text, 72, 88, 88, 88, 88] {
            bytes.extend(u64::to_le_bytes(word));
        }
        bytes.extend(b"\0main.a\0main.b\0\0");
        // Pairs, the end, and padding; then the records.
        for word in [0, 28, 32, 36, 48, 0, 0, 0, 1, 32, 8] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes
    }

    #[test]
    fn functions_have_their_places_and_names() {
        let all = vec![GoFunction { addr: 0x1000, size: 32, name: 1 }, GoFunction { addr: 0x1020, size: 16, name: 8 }];
        assert_eq!(parse(&table(0x1000), (0, 0)), Some((all.clone(), 72..88)));
        assert_eq!(parse(&table(0), (0x1000, 60)), Some((all, 72..88)));
        // C's code is in the text, too: nobody knows where Go's begins.
        assert_eq!(parse(&table(0), (0x1000, 4096)), None);
        assert_eq!(parse(&table(0), (0x1000, 16)), None);
    }

    #[test]
    fn damaged_tables_are_no_tables() {
        let whole = table(0x1000);
        for end in 0..whole.len() {
            if let Some((all, names)) = parse(&whole[..end], (0, 0)) {
                assert!(all.len() <= 2 && names.end <= end);
            }
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                if let Some((all, names)) = parse(&bytes, (0, 0)) {
                    assert!(all.len() <= 2 && names.end <= bytes.len(), "{at}");
                }
            }
        }
        assert_eq!(parse(&[], (0, 0)), None);
    }
}
