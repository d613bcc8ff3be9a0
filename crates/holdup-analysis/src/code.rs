//! Code as the analysis sees it: decoded instructions and short loops, from a disassembler that is lent to it.

use holdup_trace::tables::Code;
use holdup_trace::{FrameId, SpaceId, Trace};

/// Turns code bytes into instructions. Implemented outside, so that analysis knows no instruction set.
pub trait Disassembler {
    /// The instructions of `code`, which begins at `start`, on a machine of architecture `arch`; empty if that
    /// architecture is not known.
    fn disassemble(&self, arch: &str, code: &[u8], start: u64) -> Vec<Decoded>;

    /// The short loops of one function's `code`, by start and end.
    fn loops(&self, arch: &str, code: &[u8], start: u64) -> Vec<CodeLoop>;
}

/// A decoded instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Its address.
    pub address: u64,
    /// Its text.
    pub text: String,
    /// Where it jumps to, if it is a direct branch.
    pub target: Option<u64>,
    /// Whether it lets the other hardware thread go first: `pause`, `yield`, `isb`, `wfe`, `tpause`.
    pub pause: bool,
    /// Whether its access to memory is atomic.
    pub atomic: bool,
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
    /// Whether it has a compare-and-exchange.
    pub has_compare_exchange: bool,
    /// Whether it only reads memory: neither stores, nor atomics, nor calls.
    pub load_only: bool,
}

/// Longest loop around a compare-and-exchange that only tries again.
const RETRY: usize = 16;
/// What a loop that waits for a word in memory consists of, besides pauses.
const LOOKS: [&str; 5] = ["mov", "test", "cmp", "j", "nop"];

impl CodeLoop {
    /// Whether the instruction at `address` is part of the loop.
    pub fn contains(&self, address: u64) -> bool {
        self.instructions.binary_search(&address).is_ok()
    }

    /// Whether a thread in it waits for another CPU: it pauses, tries an exchange again, or does nothing but look at
    /// one place in memory. (A loop that sums or searches moves a pointer, so it has other instructions, too.)
    /// `code` is the function's.
    pub fn is_spin(&self, code: &[Decoded]) -> bool {
        let looks = |i: &&Decoded| LOOKS.iter().any(|m| i.text.starts_with(m));
        let mine = || code.iter().filter(|i| self.contains(i.address));
        let exchanges = self.has_compare_exchange || mine().any(|i| i.text.starts_with("xchg"));
        self.has_pause
            || (exchanges && self.instructions.len() <= RETRY)
            || (self.load_only && mine().filter(looks).count() == self.instructions.len())
    }
}

/// For traces whose code nobody can decode.
pub struct NoDisassembler;

impl Disassembler for NoDisassembler {
    fn disassemble(&self, _: &str, _: &[u8], _: u64) -> Vec<Decoded> {
        Vec::new()
    }

    fn loops(&self, _: &str, _: &[u8], _: u64) -> Vec<CodeLoop> {
        Vec::new()
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
