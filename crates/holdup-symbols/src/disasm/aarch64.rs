//! AArch64. The text is yaxpeax-arm's; what an instruction does is read from its encoding (Arm ARM, C4.1), which is
//! as short as a list of mnemonics would be and does not depend on their spelling.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::{Atomic, Instruction, Kind, Memory, Register};

pub(super) fn disassemble(code: &[u8], start: u64) -> Vec<Instruction> {
    let words = code.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let at = |i: usize| start.wrapping_add(4 * i as u64);
    words.enumerate().map(|(i, word)| instruction(word, at(i))).collect()
}

fn instruction(word: u32, address: u64) -> Instruction {
    let kind = kind(word, address);
    let (load, store, atomic) = accesses(word);
    Instruction { address, len: 4, text: text(word, address, kind), kind, atomic, load, store, memory: memory(word) }
}

fn text(word: u32, address: u64, kind: Kind) -> String {
    let bytes = word.to_le_bytes();
    let decode = || InstDecoder::default().decode(&mut U8Reader::new(&bytes)).map(|i| i.to_string());
    let Some(Ok(text)) = crate::guarded(decode) else { return format!("(bad) {word:08x}") };
    // `$+0x10` is the distance; people look for the address.
    let (Kind::Branch { target: Some(target), .. } | Kind::Call { target: Some(target) }) = kind else { return text };
    debug_assert_ne!(address, u64::MAX);
    text.find('$').map_or_else(|| text.clone(), |at| format!("{}0x{target:x}", &text[..at]))
}

/// The signed field of `bits` bits at `low`, in bytes from `address`.
fn target(word: u32, address: u64, low: u32, bits: u32) -> Option<u64> {
    let field = (word >> low) << (32 - bits);
    let words = i64::from(field.cast_signed() >> (32 - bits));
    Some(address.wrapping_add_signed(words * 4))
}

fn kind(word: u32, address: u64) -> Kind {
    let is = |mask: u32, value: u32| word & mask == value;
    if is(0xfc00_0000, 0x1400_0000) {
        Kind::Branch { target: target(word, address, 0, 26), conditional: false }
    } else if is(0xfc00_0000, 0x9400_0000) {
        Kind::Call { target: target(word, address, 0, 26) }
    } else if is(0xff00_0000, 0x5400_0000) || is(0x7e00_0000, 0x3400_0000) {
        // b.cond; cbz, cbnz
        Kind::Branch { target: target(word, address, 5, 19), conditional: true }
    } else if is(0x7e00_0000, 0x3600_0000) {
        // tbz, tbnz
        Kind::Branch { target: target(word, address, 5, 14), conditional: true }
    } else if is(0xfe00_0000, 0xd600_0000) {
        match word >> 21 & 7 {
            0 => Kind::Branch { target: None, conditional: false },
            1 => Kind::Call { target: None },
            _ => Kind::Return,
        }
    } else if matches!(word, 0xd503_203f | 0xd503_205f) || is(0xffff_f0ff, 0xd503_30df) {
        // yield, wfe; isb, which Rust's and others' spin loops use for its longer delay
        Kind::Pause
    } else if is(0xffe0_001f, 0xd420_0000) || is(0xffff_0000, 0) {
        // brk; udf
        Kind::Trap
    } else {
        Kind::Plain
    }
}

/// (load, store, atomic)
fn accesses(word: u32) -> (bool, bool, Option<Atomic>) {
    let bit = |n: u32| word >> n & 1 == 1;
    let is = |mask: u32, value: u32| word & mask == value;
    let plain = |load: bool| (load, !load, None);
    if is(0x3f00_0000, 0x0800_0000) {
        return match (bit(23), bit(21), bit(31)) {
            (true, false, _) => plain(bit(22)),                                  // stlr, ldar
            (true, true, _) => (true, true, Some(Atomic::CompareExchange)),      // cas
            (false, true, false) => (true, true, Some(Atomic::CompareExchange)), // casp
            _ => (bit(22), !bit(22), Some(Atomic::Exclusive)),                   // ldxr, stxr, ldxp, stxp
        };
    }
    if is(0x3fff_fc00, 0x38bf_c000) {
        return plain(true); // ldapr
    }
    if is(0x3f20_0c00, 0x3820_0000) {
        return (true, true, Some(Atomic::ReadModifyWrite)); // ldadd, swp …
    }
    if !is(0x0a00_0000, 0x0800_0000) {
        return (false, false, None);
    }
    match (word >> 28 & 3, bit(24), bit(26)) {
        (1, false, simd) => (simd || !is(0xc000_0000, 0xc000_0000), false, None), // ldr literal, prfm
        (1, true, _) | (3, _, false) => match word >> 22 & 3 {
            0 => plain(false),
            2 if is(0xc000_0000, 0xc000_0000) && word >> 28 & 3 == 3 => (false, false, None), // prfm
            _ => plain(true),
        },
        _ => plain(bit(22)), // pairs, SIMD
    }
}

fn memory(word: u32) -> Option<Memory> {
    let is = |mask: u32, value: u32| word & mask == value;
    let atomic = is(0x3f00_0000, 0x0800_0000) || is(0x3f20_0c00, 0x3820_0000);
    // ldr, str with an unsigned offset, of a general register
    let offset = is(0x3f00_0000, 0x3900_0000).then(|| i64::from(word >> 10 & 0xfff) << (word >> 30));
    let displacement = if atomic { 0 } else { offset? };
    let base = Some(Register::General((word >> 5 & 31) as u8));
    Some(Memory { base, index: None, scale: 1, displacement, thread_local: false })
}
