//! What a breakpoint costs on this machine: a trap into the kernel and back, where that can do the instruction's work itself, and where it
//! has the processor step over it, another trap, which in a guest may go as far as to the host: a microsecond, or ten.

use std::arch::global_asm;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdup_trace::Nanos;

use crate::clock;

/// Where it cannot be measured: a stepped one of a guest with two CPUs, by a function that does nothing, called in a loop.
pub(crate) const USUAL: Nanos = Nanos(5_000);
/// Rounds, of which the shortest counts, and calls of each.
const ROUNDS: usize = 5;
const CALLS: u64 = 40;

// Functions that do nothing, and begin as others do.
global_asm!(
    ".pushsection .text",
    "holdup_begins_with_push: push rbp",
    "pop rbp",
    "ret",
    "holdup_begins_with_mark: endbr64",
    "ret",
    "holdup_begins_otherwise: test rdi, rdi",
    "ret",
    ".popsection",
);

// SAFETY: these are the three labels above; they take nothing and give nothing back.
unsafe extern "C" {
    fn holdup_begins_with_push();
    fn holdup_begins_with_mark();
    fn holdup_begins_otherwise();
}

// SAFETY: one of the three, which may be called at any time.
type Function = unsafe extern "C" fn();

/// How the instruction at a breakpoint is gone past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The kernel does its work.
    Done,
    /// It marks where a call may lead, which only some kernels know to be nothing.
    Mark,
    /// It is stepped over.
    Stepped,
}

impl Way {
    /// That of the instruction at `offset` of a file.
    pub(crate) fn at(path: &Path, offset: u64) -> Way {
        let mut code = [0; 4];
        // A file that ends there is not stopped at.
        let _ = File::open(path).and_then(|file| file.read_at(&mut code, offset));
        match code {
            // push, push of the other eight, nop, jumps, calls.
            [0x50..=0x57 | 0x70..=0x7f | 0x90 | 0xe8 | 0xe9 | 0xeb, ..]
            | [0x41, 0x50..=0x57, ..]
            | [0x0f, 0x1f | 0x80..=0x8f, ..] => Way::Done,
            [0xf3, 0x0f, 0x1e, 0xfa] => Way::Mark,
            _ => Way::Stepped,
        }
    }

    fn function(self) -> Function {
        match self {
            Way::Done => holdup_begins_with_push,
            Way::Mark => holdup_begins_with_mark,
            Way::Stepped => holdup_begins_otherwise,
        }
    }

    /// This program's file, and where in it a function begins so.
    pub(crate) fn place(self) -> Option<(&'static Path, usize)> {
        let address = self.function() as usize as u64;
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let offset = maps.lines().find_map(|line| offset_in(line, address))?;
        Some((Path::new("/proc/self/exe"), usize::try_from(offset).ok()?))
    }

    /// What one costs, while that function has one at its entry and one at its return.
    pub(crate) fn cost(self) -> Nanos {
        let function = self.function();
        let round = |_| {
            let from = clock::now();
            // SAFETY: the functions above take nothing, change nothing and return.
            (0..CALLS).for_each(|_| unsafe { function() });
            clock::now().saturating_sub(from) / (2 * CALLS)
        };
        Nanos((0..ROUNDS).map(round).min().unwrap_or(USUAL.0))
    }
}

/// The offset in its file of an address, if it lies in the mapping of this line of `maps`.
fn offset_in(line: &str, address: u64) -> Option<u64> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let (from, to, offset) = (hex(from)?, hex(to)?, hex(fields.nth(1)?)?);
    (from..to).contains(&address).then(|| address - from + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_functions_that_begin_so() {
        for way in [Way::Done, Way::Mark, Way::Stepped] {
            let (path, offset) = way.place().expect("a place");
            assert_eq!(Way::at(path, offset as u64), way);
            assert!(way.cost() < Nanos(USUAL.0), "a call without a breakpoint");
        }
        assert_eq!(Way::at(Path::new("/no/such/file"), 0), Way::Stepped);
    }

    #[test]
    fn lines_of_maps_tell_offsets() {
        let line = "55d0a000-55d0c000 r-xp 00002000 fd:01 77  /usr/bin/x";
        assert_eq!(offset_in(line, 0x55d0_a010), Some(0x2010));
        assert_eq!((offset_in(line, 0x55d0_c000), offset_in("", 1), offset_in("a-b", 10)), (None, None, None));
    }
}
