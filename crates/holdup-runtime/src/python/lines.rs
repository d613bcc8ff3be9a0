//! The line of an instruction: the table that code objects have since 3.11, as CPython's `Objects/locations.md` describes it.
//!
//! An entry is a byte with its top bit set, which says its form and how many instructions it is about, and bytes without that bit.

use crate::memory::Memory;

/// Bytes of a table that are read: many times what the longest functions of the standard library have.
const LONGEST: u64 = 1 << 16;
/// Where a bytes object has its length, and its bytes.
const LENGTH: u64 = 16;
const BYTES: u64 = 32;

/// Forms of entries, but for those of one line with short columns: they begin in the line before.
const ONE_LINE: std::ops::RangeInclusive<u8> = 10..=12;
const NO_COLUMNS: u8 = 13;
const LONG: u8 = 14;
const NO_LINE: u8 = 15;

/// The table at `address`, which may be anything.
pub(crate) fn read(memory: &Memory, address: u64) -> Option<Vec<u8>> {
    let length = memory.word(address.checked_add(LENGTH)?).filter(|&length| length <= LONGEST)?;
    memory.read(address.checked_add(BYTES)?, length as usize)
}

/// The line of the `instruction`-th unit of two bytes of a function that begins in line `first`. Time is linear in the table.
pub(crate) fn find(table: &[u8], first: u32, instruction: usize) -> Option<u32> {
    let (mut line, mut end) = (i64::from(first), 0);
    for entry in table.chunk_by(|_, next| next & 0x80 == 0) {
        let (head, rest) = entry.split_first()?;
        let form = head >> 3 & 15;
        line += match form {
            form if ONE_LINE.contains(&form) => i64::from(form - ONE_LINE.start()),
            NO_COLUMNS | LONG => signed(rest),
            _ => 0,
        };
        end += usize::from(head & 7) + 1;
        if instruction < end {
            return u32::try_from(line).ok().filter(|_| form != NO_LINE && head & 0x80 != 0);
        }
    }
    None
}

/// A number of six bits in each byte, the lowest first, of which bit 6 says that there are more; its sign is its lowest bit. Too many
/// bytes are cut.
fn signed(bytes: &[u8]) -> i64 {
    let count = bytes.iter().take_while(|&byte| byte & 0x40 != 0).count() + 1;
    let bytes = bytes.iter().take(count.min(5)).enumerate();
    let number = bytes.fold(0, |number, (index, &byte)| number | i64::from(byte & 0x3f) << (6 * index));
    if number & 1 == 0 { number >> 1 } else { -(number >> 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython 3.11 made of
    /// ```text
    /// def f(queue, done):        # line 1
    ///     while not done():
    ///         item = queue.get(
    ///             timeout=1)
    ///         print(item)
    ///     return 1
    /// ```
    const TABLE: &[u8] = &[
        0x80, 0x00, 0xd8, 0x0e, 0x12, 0x88, 0x64, 0x89, 0x66, 0x8c, 0x66, 0xf0, 0x00, 0x03, 0x05, 0x14, 0xd8, 0x0f,
        0x14, 0x8f, 0x79, 0x8a, 0x79, 0xd8, 0x14, 0x15, 0xf0, 0x03, 0x00, 0x10, 0x19, 0xf1, 0x00, 0x01, 0x10, 0x17,
        0xf4, 0x00, 0x01, 0x10, 0x17, 0x88, 0x04, 0xe5, 0x08, 0x0d, 0x88, 0x64, 0x89, 0x0b, 0x8c, 0x0b, 0x88, 0x0b,
        0xf0, 0x07, 0x00, 0x0f, 0x13, 0x88, 0x64, 0x89, 0x66, 0x8c, 0x66, 0xf0, 0x00, 0x03, 0x05, 0x14, 0xf0, 0x08,
        0x00, 0x0c, 0x0d, 0x88, 0x31,
    ];
    /// Its lines, and of how many instructions in turn: what `co_lines` says.
    const LINES: [(u32, usize); 8] = [(1, 1), (2, 10), (3, 12), (4, 1), (3, 9), (5, 15), (2, 10), (6, 2)];

    #[test]
    fn lines_are_those_that_cpython_tells() {
        let told: Vec<u32> = LINES.iter().flat_map(|&(line, count)| std::iter::repeat_n(line, count)).collect();
        let found: Vec<u32> = (0..).map_while(|instruction| find(TABLE, 1, instruction)).collect();
        assert_eq!(found, told);
    }

    #[test]
    fn tables_may_be_anything() {
        assert_eq!(find(&[], 1, 0), None);
        // A line that cannot be, none at all, and a number without an end.
        assert_eq!(find(&[0x80 | NO_COLUMNS << 3, 0b11], 0, 0), None);
        assert_eq!(find(&[0x80 | NO_LINE << 3], 7, 0), None);
        assert!(find(&[[0x80 | LONG << 3].as_slice(), &[0x7e; 30]].concat(), 1, 0).is_some());
        assert_eq!(find(&[0x7f; 30], 1, 100), None);
        let mut hostile = TABLE.to_vec();
        for at in 0..TABLE.len() {
            for byte in 0..=255 {
                hostile[at] = byte;
                let _ = find(&hostile, 1, usize::MAX);
            }
            hostile[at] = TABLE[at];
        }
    }
}
