//! Code as the analysis sees it: decoded instructions and short loops, from a disassembler that is lent to it.

use holdup_trace::tables::Code;
use holdup_trace::{FrameId, SpaceId, Trace};

/// Turns code bytes into instructions. Implemented outside, so that analysis knows no instruction set.
pub trait Disassembler: Sync {
    /// What the `code` of one function does, which begins at `start`, on a machine of architecture `arch`; nothing if that
    /// architecture is not known.
    fn disassemble(&self, arch: &str, code: &[u8], start: u64) -> Disassembly;

    /// The text of the first instruction of `code`, which lies at `address`.
    fn text(&self, arch: &str, code: &[u8], address: u64) -> String;
}

/// What the code of a function does.
#[derive(Debug, Clone, Default)]
pub struct Disassembly {
    /// Its instructions, by address.
    pub instructions: Vec<Decoded>,
    /// Its short loops, by start and end.
    pub loops: Vec<CodeLoop>,
}

/// A decoded instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Its address.
    pub address: u64,
    /// Where it jumps to, if it is a direct branch.
    pub target: Option<u64>,
    /// Whether it lets the other hardware thread go first: `pause`, `yield`, `isb`, `wfe`, `tpause`.
    pub pause: bool,
    /// Whether its access to memory is atomic.
    pub atomic: bool,
    /// The address that it reads or writes, where that does not depend on registers: a variable of the program.
    pub variable: Option<u64>,
    /// Whether it reads or writes memory that is not the stack.
    pub memory: bool,
    /// Whether it calls another function.
    pub call: bool,
}

/// A short loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeLoop {
    /// Addresses of its instructions, sorted.
    pub instructions: Vec<u64>,
    /// Whether it has a `pause` or the like.
    pub has_pause: bool,
    /// Whether it has an atomic instruction.
    pub has_atomic: bool,
    /// Whether it only reads memory: neither stores, nor atomics, nor calls.
    pub load_only: bool,
    /// Whether it pauses itself, not only in a loop within it, or does nothing beside.
    pub pauses: bool,
    /// Whether it reads the same places again and again, and goes on as long as it finds the same there.
    pub looks: bool,
    /// Whether it tries again and again to put one value where another one is.
    pub acquires: bool,
    /// What could be done faster in it, where that is certain.
    pub idiom: Option<Idiom>,
}

/// Something that a loop does, and that could be done faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idiom {
    /// Divides whole numbers.
    Divides {
        /// Whether the divisor is the same in every turn.
        by_same: bool,
    },
    /// Reads from an address that it read in the turn before.
    Chases,
    /// Looks at elements of so many bytes, one in each turn, until one is found.
    Scans {
        /// 1, 2, 4 or 8.
        bytes: u16,
    },
    /// Moves on by a cache line or more in each turn, and uses little of it.
    Strides {
        /// From turn to turn.
        bytes: u64,
        /// How many of them are used.
        used: u64,
    },
    /// Copies a byte in each turn.
    CopiesBytes,
    /// Counts the ones or the zeros of a word, one in each turn.
    CountsBits,
    /// Reads one place in memory in each turn, and changes it.
    Updates,
}

/// Longest loop in which a thread only waits, in instructions.
const LONGEST: usize = 32;

impl CodeLoop {
    /// Whether the instruction at `address` is part of the loop.
    pub fn contains(&self, address: u64) -> bool {
        self.instructions.binary_search(&address).is_ok()
    }

    /// Whether a thread in it waits for another CPU: it pauses, tries an exchange again, or does nothing but look at
    /// one place in memory. (A loop that sums or searches goes from place to place.)
    pub fn is_spin(&self) -> bool {
        self.instructions.len() <= LONGEST && (self.pauses || self.looks || self.acquires)
    }
}

/// For traces whose code nobody can decode.
pub struct NoDisassembler;

impl Disassembler for NoDisassembler {
    fn disassemble(&self, _: &str, _: &[u8], _: u64) -> Disassembly {
        Disassembly::default()
    }

    fn text(&self, _: &str, _: &[u8], _: u64) -> String {
        String::new()
    }
}

/// Code that a trace has, decoded.
pub(crate) struct Decoding {
    bytes: Vec<u8>,
    start: u64,
    /// What it does.
    pub(crate) found: Disassembly,
}

impl Decoding {
    /// Decodes `bytes`, which begin at `start`.
    pub(crate) fn of(trace: &Trace, disassembler: &dyn Disassembler, bytes: Vec<u8>, start: u64) -> Self {
        let found = disassembler.disassemble(&trace.meta.host.arch, &bytes, start);
        Decoding { bytes, start, found }
    }

    /// The text of the instruction at `address`.
    pub(crate) fn text(&self, trace: &Trace, disassembler: &dyn Disassembler, address: u64) -> String {
        let from = usize::try_from(address.wrapping_sub(self.start)).ok();
        let code = from.and_then(|from| self.bytes.get(from..));
        code.map_or_else(String::new, |code| disassembler.text(&trace.meta.host.arch, code, address))
    }
}

/// The code of the (outer) function that holds `frame`'s address, with its bytes, if the trace has it.
pub fn code_of(trace: &Trace, frame: FrameId) -> Option<(Code, Vec<u8>)> {
    let address = trace.stacks.frame(frame).filter(|f| f.space != SpaceId::KERNEL)?.address;
    let outer = trace.names.locations(frame).last()?;
    let code = trace.names.code(|c| {
        let length = trace.text(c.bytes).len() as u64 / 2;
        c.function == outer.function && c.module == outer.module && (c.start..c.start + length).contains(&address)
    })?;
    let bytes = holdup_trace::decode_build_id(trace.text(code.bytes))?;
    Some((code, bytes))
}
