//! Texts: of one byte or two for a character, in one piece, in two, elsewhere.

use super::{kind, number, object};
use crate::memory::Memory;

/// What is no text has a type from here on.
const NO_TEXT: u16 = 128;
/// The bits of a text's type that say how it is kept, and that its characters have one byte.
const KEPT: u16 = 7;
const ONE_BYTE: u16 = 8;
/// How it is kept: its characters follow; it has two parts; they lie outside; it is a part; it is another one.
const HERE: u16 = 0;
const JOINED: u16 = 1;
const OUTSIDE: u16 = 2;
const PART: u16 = 3;
const OTHER: u16 = 5;
/// Texts in texts are followed so far.
const DEPTH: usize = 6;

/// Where characters lie.
struct Characters {
    at: u64,
    count: usize,
    width: usize,
}

/// The first `limit` characters of a text. `None` if it is none, or cannot be read.
pub(super) fn read(memory: &Memory, text: u64, limit: usize) -> Option<String> {
    let mut out = String::new();
    append(memory, text, limit, &mut out, DEPTH)?;
    Some(out)
}

fn append(memory: &Memory, text: u64, limit: usize, out: &mut String, depth: usize) -> Option<()> {
    let kind = kind(memory, text).filter(|kind| *kind < NO_TEXT && depth > 0)?;
    if kind & KEPT == JOINED {
        for part in [16, 24] {
            append(memory, object(memory, text, part)?, limit, out, depth - 1)?;
        }
        return Some(());
    }
    let characters = characters(memory, text, depth)?;
    let room = limit.saturating_sub(out.len());
    let bytes = memory.read(characters.at, characters.count.min(room) * characters.width)?;
    match characters.width {
        1 => out.extend(bytes.iter().map(|&byte| char::from(byte))),
        _ => out.push_str(&String::from_utf16_lossy(&pairs(&bytes).collect::<Vec<_>>())),
    }
    if characters.count > room && !out.ends_with('…') {
        out.push('…');
    }
    Some(())
}

/// The line, from 1 on, of a place in a text that lies in one piece; `None` further in than `limit` characters.
pub(super) fn line(memory: &Memory, text: u64, place: usize, limit: usize) -> Option<u32> {
    let characters = characters(memory, text, DEPTH).filter(|all| place <= all.count && place <= limit)?;
    let bytes = memory.read(characters.at, place * characters.width)?;
    let breaks = match characters.width {
        1 => bytes.iter().filter(|&&byte| byte == b'\n').count(),
        _ => pairs(&bytes).filter(|&pair| pair == u16::from(b'\n')).count(),
    };
    Some(breaks as u32 + 1)
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

fn characters(memory: &Memory, text: u64, depth: usize) -> Option<Characters> {
    let kind = kind(memory, text).filter(|kind| *kind < NO_TEXT && depth > 0)?;
    let width = if kind & ONE_BYTE != 0 { 1 } else { 2 };
    let count = (memory.word(text.wrapping_add(7))? >> 32) as usize;
    match kind & KEPT {
        HERE => Some(Characters { at: text.wrapping_add(15), count, width }),
        OUTSIDE => Some(Characters { at: memory.word(text.wrapping_add(23))?, count, width }),
        OTHER => characters(memory, object(memory, text, 16)?, depth - 1),
        // What was joined lies in the first part once somebody has read it.
        JOINED => characters(memory, object(memory, text, 16)?, depth - 1).filter(|all| all.count == count),
        PART => {
            let whole = characters(memory, object(memory, text, 16)?, depth - 1)?;
            let from = number(memory.word(text.wrapping_add(23))?)?;
            let is_inside = from.checked_add(count).is_some_and(|end| end <= whole.count);
            is_inside.then(|| Characters {
                at: whole.at.wrapping_add((from * whole.width) as u64),
                count,
                width: whole.width,
            })
        }
        _ => None,
    }
}
