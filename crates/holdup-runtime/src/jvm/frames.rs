//! The frames of compiled code, read from the first instructions of each piece that the map names.

use std::time::Instant;

use holdup_symbols::{CompiledFrame, Layout, PROLOGUE, perf_map_line};

use super::Target;
use crate::memory::Memory;

/// What the map calls the interpreter.
const INTERPRETER: &[u8] = b"Interpreter";
/// So many pieces are looked at, and as many older ones kept: twice what the largest programs have, at 40 bytes each.
const PIECES: usize = 1 << 17;
/// Pieces between two looks at the time.
const AT_ONCE: usize = 256;

/// The frames of the pieces in `map`, by start, until the time is over; none where the process's memory may not be read. Whatever the
/// map says, only memory of the process is read, and of it no more than a few bytes a piece. Linear.
pub(super) fn of(target: &Target, map: &[u8], until: Instant) -> Vec<CompiledFrame> {
    // Not opened before it is known which process it is: the number may be another's by then.
    let Some(memory) = Memory::of(target.pid) else { return Vec::new() };
    let mut found: Vec<CompiledFrame> = Vec::new();
    for (i, (start, end, name)) in pieces(map).take(PIECES).enumerate() {
        if i % AT_ONCE == 0 && Instant::now() >= until {
            break;
        }
        let layout = if name == INTERPRETER { Some(Layout::Interpreter) } else { layout(&memory, start, end) };
        found.extend(layout.map(|layout| CompiledFrame { start, end, layout }));
    }
    if !target.is_alive() {
        return Vec::new();
    }
    found.sort_by_key(|frame| frame.start);
    found
}

fn layout(memory: &Memory, start: u64, end: u64) -> Option<Layout> {
    let mut code = [0; PROLOGUE];
    let len = (end - start).min(PROLOGUE as u64) as usize;
    Layout::of(memory.read_some(start, &mut code[..len])?)
}

/// The lines of a perf map: start, end, name.
fn pieces(map: &[u8]) -> impl Iterator<Item = (u64, u64, &[u8])> {
    map.split(|&b| b == b'\n').filter_map(|line| {
        let (start, len, name) = perf_map_line(line)?;
        Some((start, start.checked_add(len).filter(|&end| end > start && end >> 48 == 0)?, name))
    })
}

/// `new`, and of `old` what lies in none of its pieces: code that was thrown away meanwhile may have been sampled before. Both are sorted;
/// linear.
pub fn merge_frames(old: Vec<CompiledFrame>, new: Vec<CompiledFrame>) -> Vec<CompiledFrame> {
    let free = |frame: &CompiledFrame| {
        let after = new.partition_point(|n| n.start < frame.end);
        new[..after].last().is_none_or(|n| n.end <= frame.start)
    };
    let kept: Vec<CompiledFrame> = old.into_iter().filter(free).take(PIECES).collect();
    let mut both = new;
    both.extend(kept);
    both.sort_by_key(|frame| frame.start);
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u64, end: u64) -> CompiledFrame {
        CompiledFrame { start, end, layout: Layout::Interpreter }
    }

    #[test]
    fn lines_that_make_no_sense_are_no_pieces() {
        let map =
            b"7f00 20 int A.b()\n0x10 10 c\nx y z\n10\n10 0 d\n-1 5 e\nffffffffffffffff 2 f\nffffffffffff 20 g\n\n";
        let found: Vec<_> = pieces(map).collect();
        assert_eq!(found, [(0x7f00, 0x7f20, &b"int A.b()"[..]), (0x10, 0x20, &b"c"[..])]);
    }

    #[test]
    fn new_code_takes_the_place_of_old() {
        let both = merge_frames(vec![at(0, 8), at(10, 20), at(30, 40)], vec![at(8, 10), at(15, 31)]);
        assert_eq!(both, [at(0, 8), at(8, 10), at(15, 31)]);
        assert_eq!(merge_frames(vec![at(1, 2)], Vec::new()), [at(1, 2)]);
    }
}
