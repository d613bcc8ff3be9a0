//! Frames of code that a Java virtual machine (HotSpot) compiled: it keeps no frame pointer and has no call frame information, but every
//! method moves the stack pointer once, at its entry:
//!
//! ```text
//!   mov %eax,-0x14000(%rsp)      where calls follow: touches the stack's end (a jump stands here once the method is discarded)
//!   push %rbp                            sub $F,%rsp
//!   [mov %rsp,%rbp]             or       mov %rbp,F-8(%rsp)
//!   sub $F,%rsp
//! ```
//!
//! The distance from there to the return address holds for the whole body.

use holdup_disasm::Arch;
use rustc_hash::FxHashMap;

use crate::step::{Registers, Stack};

/// So much of a method's beginning is looked at, in bytes.
pub const PROLOGUE: usize = 160;
/// Larger frames are not believed.
const LARGEST: u32 = 1 << 20;

/// The frame of a piece of compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompiledFrame {
    /// Its first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// How its callers are found.
    pub layout: Layout,
}

/// Where the caller's registers lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Compiled: everything lies at fixed distances from the stack pointer.
    Fixed {
        /// The offset of the first instruction after `push %rbp`; 0 where the register is stored later.
        pushed: u16,
        /// The offset of the first instruction for which all is in its place.
        ready: u16,
        /// From the stack pointer to the return address, in bytes. The caller's frame pointer lies below it.
        size: u32,
    },
    /// The interpreter: it keeps a frame pointer, and the caller's stack pointer below it, as a compiled caller's arguments were moved.
    Interpreter,
}

impl Layout {
    /// What the beginning of a method's code tells; `None` where it is none of the known ones.
    pub fn of(code: &[u8]) -> Option<Layout> {
        let code = &code[..code.len().min(PROLOGUE)];
        (0..code.len()).find_map(|at| touched(code, at).or_else(|| untouched(code, at)))
    }
}

/// `sub $F,%rsp` at `at`: F, and where it ends.
fn sub(code: &[u8], at: usize) -> Option<(u32, usize)> {
    match code.get(at..)? {
        [0x48, 0x83, 0xec, size, ..] if *size < 0x80 => Some((u32::from(*size), at + 4)),
        [0x48, 0x81, 0xec, a, b, c, d, ..] => Some((u32::from_le_bytes([*a, *b, *c, *d]), at + 7)),
        _ => None,
    }
    .filter(|(size, _)| *size <= LARGEST && size.is_multiple_of(8))
}

/// The entry that touches the stack's end, of which a jump leaves the last two bytes.
fn touched(code: &[u8], at: usize) -> Option<Layout> {
    let is_touch = match code.get(at..at + 7)? {
        [0x89, 0x84, 0x24, _, _, _, 0xff] => true,
        [0xe9, _, _, _, _, end, 0xff] => *end >= 0xf0,
        _ => false,
    };
    let push = at + 7;
    if !is_touch || *code.get(push)? != 0x55 {
        return None;
    }
    let linked = code.get(push + 1..push + 4) == Some(&[0x48, 0x8b, 0xec]);
    let (size, ready) = sub(code, push + 1 + if linked { 3 } else { 0 })?;
    Some(Layout::Fixed { pushed: (push + 1) as u16, ready: ready as u16, size: size + 8 })
}

/// The entry of methods that call nobody, and of the stubs through which methods call the machine: one to wait for a monitor has a frame
/// of one word.
fn untouched(code: &[u8], at: usize) -> Option<Layout> {
    // A discarded method's jump has five of the seven bytes.
    let jump = matches!(code.get(at..at + 7)?, [0xe9, _, _, _, _, 0, 0]).then_some((None, at + 7));
    let (subtracted, end) = sub(code, at).map(|(size, end)| (Some(size), end)).or(jump)?;
    let (slot, ready) = stores_frame_pointer(code, end)?;
    let size = slot + 8;
    let fixed = Layout::Fixed { pushed: 0, ready: ready as u16, size };
    (size <= LARGEST && subtracted.is_none_or(|subtracted| subtracted == size)).then_some(fixed)
}

/// `mov %rbp,S(%rsp)` at `at`: S, and where it ends.
fn stores_frame_pointer(code: &[u8], at: usize) -> Option<(u32, usize)> {
    match code.get(at..)? {
        [0x48, 0x89, 0x2c, 0x24, ..] => Some((0, at + 4)),
        [0x48, 0x89, 0x6c, 0x24, slot, ..] if *slot < 0x80 => Some((u32::from(*slot), at + 5)),
        [0x48, 0x89, 0xac, 0x24, a, b, c, 0, ..] => Some((u32::from_le_bytes([*a, *b, *c, 0]), at + 8)),
        _ => None,
    }
}

/// Where a frame of the interpreter has the method that runs there, below its frame pointer.
pub const METHOD: u64 = 24;

/// What is known of one process.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    /// Sorted.
    pieces: Vec<CompiledFrame>,
    /// The numbers of methods, by where they lie.
    methods: FxHashMap<u64, u32>,
}

impl Compiled {
    pub fn new(mut pieces: Vec<CompiledFrame>, methods: FxHashMap<u64, u32>) -> Compiled {
        pieces.sort_by_key(|frame| frame.start);
        Compiled { pieces, methods }
    }

    /// The number of the method that the interpreter runs in the frame at `regs`, if it is such a frame and the method is known.
    pub fn interpreted(&self, regs: &Registers, stack: &Stack, leaf: bool) -> Option<u32> {
        let address = if leaf { regs.ip } else { regs.ip.wrapping_sub(1) };
        self.at(address).filter(|piece| piece.layout == Layout::Interpreter)?;
        self.methods.get(&stack.read(regs.bp.checked_sub(METHOD)?)?).copied()
    }

    fn at(&self, address: u64) -> Option<&CompiledFrame> {
        let after = self.pieces.partition_point(|frame| frame.start <= address);
        self.pieces[..after].last().filter(|frame| address < frame.end)
    }

    /// Whether frames with their leaf at `a` and at `b` are equally large; without frames that are known, the frame pointer decides.
    pub fn frames_alike(&self, a: u64, b: u64, same_pointer: bool) -> bool {
        let size = |address: u64| match self.at(address) {
            None => Some(None),
            Some(&CompiledFrame { start, layout: Layout::Fixed { ready, size, .. }, .. }) => {
                (address - start >= ready.into()).then_some(Some(size))
            }
            Some(_) => None,
        };
        match (size(a), size(b)) {
            (Some(Some(a)), Some(Some(b))) => a == b,
            (Some(None), Some(None)) => same_pointer,
            _ => false,
        }
    }

    /// Who can be the caller of code at `regs`, the likeliest first; `leaf`: the address is that of an instruction, not of the one after a call.
    pub fn callers(&self, regs: &Registers, stack: &Stack, leaf: bool) -> [Option<Registers>; 3] {
        let address = if leaf { regs.ip } else { regs.ip.wrapping_sub(1) };
        let Some(frame) = self.at(address).filter(|_| regs.arch == Arch::X86_64) else { return [None; 3] };
        let Layout::Fixed { pushed, ready, size } = frame.layout else { return [interpreted(regs, stack), None, None] };
        let fixed = |size: u32| at_distance(regs, stack, size.into());
        let offset = address - frame.start;
        match leaf {
            false => [fixed(size), None, None],
            _ if offset < u64::from(pushed) => [fixed(0), None, None],
            _ if offset < u64::from(ready) => [fixed(if pushed > 0 { 8 } else { 0 }), None, None],
            // At its end the method gives its frame back, and then the caller's frame pointer.
            true => [fixed(size), fixed(0), fixed(8)],
        }
    }
}

/// The caller whose return address lies so far from the stack pointer; its frame pointer lies below that, or is untouched.
fn at_distance(regs: &Registers, stack: &Stack, size: u64) -> Option<Registers> {
    let ra = regs.sp.checked_add(size)?;
    let bp = if size > 0 { stack.read(ra.checked_sub(8)?)? } else { regs.bp };
    Some(Registers { ip: stack.read(ra)?, sp: ra.checked_add(8)?, bp, linked: false, lr: None, ..*regs })
}

/// A frame pointer of 0 is not the end here: compiled callers use the register for anything.
fn interpreted(regs: &Registers, stack: &Stack) -> Option<Registers> {
    let linked = regs.by_frame_pointer(stack)?;
    let sender = stack.read(regs.bp.checked_sub(8)?).filter(|&sp| sp >= linked.sp && sp.is_multiple_of(8));
    Some(Registers { sp: sender.unwrap_or(linked.sp), linked: false, ..linked })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    }

    /// Entries as OpenJDK 17 wrote them.
    const CHECKED: &str = "448b560849bb000000675c7f00004d03d34c3bd00f85c603acff660f1f440000";
    const TOUCHED: &str = "89842400c0feff554883ec308b460c4883c4305d493ba7400300000f87010000";
    const LARGE: &str = "89842400c0feff554881ece000000048bfa87440635c7f0000";
    const DISCARDED: &str = "e9fb2f5507feff554881ecc00000004889742478";
    const LINKED: &str = "89842400c0feff55488bec4883ec50488934244883fe00";
    const UNTOUCHED: &str = "4881ec1800000048896c24104883c4105d493ba7400300000f8701000000c349";
    const DISCARDED_LEAF: &str = "e9fb2f5507000048896c24104883c4105d";
    /// `_complete_monitor_locking_Java`, `UncommonTrapBlob`.
    const LOCKING: &str = "4881ec0800000048892c244989a790020000488bfe488bf2498bd7";
    const TRAP: &str = "4883ec0848892c248bf6c5f8774989a790020000";
    const WIDE: &str = "4881ece00000004889ac24d80000004989a790020000";

    #[test]
    fn entries_of_a_real_machine_are_known() {
        let fixed = |pushed, ready, size| Some(Layout::Fixed { pushed, ready, size });
        assert_eq!(Layout::of(&bytes(TOUCHED)), fixed(8, 12, 0x38));
        assert_eq!(Layout::of(&bytes(&format!("{CHECKED}{TOUCHED}"))), fixed(40, 44, 0x38));
        assert_eq!(Layout::of(&bytes(LARGE)), fixed(8, 15, 0xe8));
        assert_eq!(Layout::of(&bytes(DISCARDED)), fixed(8, 15, 0xc8));
        assert_eq!(Layout::of(&bytes(LINKED)), fixed(8, 15, 0x58));
        assert_eq!(Layout::of(&bytes(UNTOUCHED)), fixed(0, 12, 0x18));
        assert_eq!(Layout::of(&bytes(DISCARDED_LEAF)), fixed(0, 12, 0x18));
        assert_eq!(Layout::of(&bytes(LOCKING)), fixed(0, 11, 8));
        assert_eq!(Layout::of(&bytes(TRAP)), fixed(0, 8, 8));
        assert_eq!(Layout::of(&bytes(WIDE)), fixed(0, 15, 0xe0));
    }

    #[test]
    fn other_code_has_no_frame() {
        let adapter = "488b04244c8bdc4883e4f050498bc34c8b5b40488b7018c5fa104010c5fa10480849899fe0020000";
        // Without its push; with an odd size; with one that nobody has; and what ends too soon.
        for code in
            [adapter, "89842400c0feff4883ec30", "89842400c0feff554883ec31", "89842400c0feff554881ec00000070", ""]
        {
            assert_eq!(Layout::of(&bytes(code)), None, "{code}");
        }
        for end in 0..bytes(LARGE).len() {
            let _ = Layout::of(&bytes(LARGE)[..end]);
        }
    }

    const CODE: u64 = 0x7f00_0000_1000;
    const STACK: u64 = 0x7ffc_0000_0000;

    /// Where the return address is looked for, as words above the stack pointer, at an offset in a method with 0x38 bytes.
    fn places(offset: u64, leaf: bool) -> Vec<(u64, u64)> {
        let layout = Layout::of(&bytes(TOUCHED)).unwrap();
        let pieces = vec![CompiledFrame { start: CODE, end: CODE + 0x100, layout }];
        let all = Compiled::new(pieces, FxHashMap::default());
        let words: Vec<u8> = (0..32_u64).flat_map(u64::to_le_bytes).collect();
        let stack = Stack { pid: 1, start: STACK, bytes: &words, below: None };
        let ip = CODE + offset;
        let regs = Registers { arch: Arch::X86_64, ip, sp: STACK, bp: 99, linked: false, lr: None, mask: u64::MAX };
        let found = all.callers(&regs, &stack, leaf).into_iter().flatten();
        found.inspect(|next| assert_eq!(next.sp, STACK + 8 * next.ip + 8)).map(|next| (next.ip, next.bp)).collect()
    }

    #[test]
    fn the_return_address_moves_away_at_the_entry_and_comes_back() {
        assert_eq!(places(0, true), [(0, 99)], "nothing is pushed yet");
        assert_eq!(places(7, true), [(0, 99)]);
        assert_eq!(places(8, true), [(1, 0)], "the frame pointer is");
        assert_eq!(places(12, true), [(7, 6), (0, 99), (1, 0)], "all is in its place, or given back");
        assert_eq!(places(40, false), [(7, 6)], "after a call it is");
        assert_eq!(places(0x100, false), [(7, 6)], "a call was the last instruction");
        assert_eq!((places(0x100, true), places(0x101, false)), (vec![], vec![]), "behind it");
    }

    #[test]
    fn leaves_share_callers_where_their_frames_are_equally_large() {
        let piece = |at: u64, size: u32| CompiledFrame {
            start: CODE + at,
            end: CODE + at + 0x100,
            layout: Layout::Fixed { pushed: 0, ready: 12, size },
        };
        let interpreter = CompiledFrame { start: CODE + 0x300, end: CODE + 0x400, layout: Layout::Interpreter };
        let all = vec![piece(0, 0x18), piece(0x100, 0x18), piece(0x200, 0x28), interpreter];
        let all = Compiled::new(all, FxHashMap::default());
        let alike = |a: u64, b: u64, same_pointer| all.frames_alike(CODE + a, CODE + b, same_pointer);
        assert!(alike(0x20, 0x40, false), "one method");
        assert!(alike(0x20, 0x120, false) && alike(0x120, 0x20, true), "two of the same size");
        assert!(!alike(0x20, 0x220, true), "of two sizes");
        assert!(!alike(0x20, 4, true) && !alike(4, 4, true), "at the entry the frame is smaller");
        assert!(!alike(0x320, 0x330, true), "where the interpreter came from is told by more than its frame pointer");
        assert!(alike(0x420, 0x430, true) && !alike(0x420, 0x430, false), "code whose frames are not known");
        assert!(!alike(0x20, 0x420, true) && !alike(0x420, 0x20, true));
    }

    #[test]
    fn a_frame_of_the_interpreter_tells_its_method() {
        let pieces = vec![CompiledFrame { start: CODE, end: CODE + 0x100, layout: Layout::Interpreter }];
        let all = Compiled::new(pieces, [(0x7f00_1234, 5)].into_iter().collect());
        let bytes: Vec<u8> =
            [1, 0x7f00_1234_u64, 2, 3, STACK + 64, CODE + 9].into_iter().flat_map(u64::to_le_bytes).collect();
        let stack = Stack { pid: 1, start: STACK, bytes: &bytes, below: None };
        let regs =
            |ip, bp| Registers { arch: Arch::X86_64, ip, sp: STACK, bp, linked: false, lr: None, mask: u64::MAX };
        assert_eq!(all.interpreted(&regs(CODE, STACK + 32), &stack, true), Some(5));
        assert_eq!(all.interpreted(&regs(CODE + 0x100, STACK + 32), &stack, false), Some(5), "behind a call");
        assert_eq!(all.interpreted(&regs(CODE + 0x100, STACK + 32), &stack, true), None, "no interpreter");
        for bp in [0, 8, STACK, STACK + 40, STACK + 4000, u64::MAX] {
            assert_eq!(all.interpreted(&regs(CODE, bp), &stack, true), None, "{bp:#x}");
        }
    }
}
