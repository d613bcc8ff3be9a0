//! AArch64. The text is yaxpeax-arm's; what an instruction does is read from its encoding (Arm ARM, C4.1), which is
//! as short as a list of mnemonics would be and does not depend on their spelling.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::{Atomic, Instruction, Kind, Memory, Operation, Register, Registers};

pub(super) fn disassemble(code: &[u8], start: u64) -> Vec<Instruction> {
    let words = code.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let at = |i: usize| start.wrapping_add(4 * i as u64);
    words.enumerate().map(|(i, word)| instruction(word, at(i))).collect()
}

fn instruction(word: u32, address: u64) -> Instruction {
    let kind = kind(word, address);
    let (load, store, atomic) = accesses(word);
    let (reads, writes) = registers(word, load, store);
    let memory = memory(word);
    Instruction {
        address,
        len: 4,
        kind,
        operation: operation(word),
        atomic,
        load,
        store,
        memory,
        reads,
        writes,
        width: 0,
        step: None,
        on_stack: memory.is_some_and(|m| matches!(m.base, Some(Register::General(29 | 31)))),
    }
}

fn operation(word: u32) -> Operation {
    let is = |mask: u32, value: u32| word & mask == value;
    if word == 0xd503_201f {
        Operation::Nothing
    } else if is(0x7fe0_f800, 0x1ac0_0800) {
        Operation::Divide // udiv, sdiv
    } else if is(0x3f20_fc00, 0x3820_8000) {
        Operation::Exchange // swp
    } else if is(0x7fe0_ffe0, 0x2a00_03e0)      // mov of a register
        || is(0x3f80_0000, 0x1280_0000)         // mov of a constant
        || is(0xbfc0_0000, 0xb940_0000)         // ldr
        || is(0xbfe0_0000, 0xb840_0000)
    {
        Operation::Move
    } else if is(0x3f00_0000, 0x1100_0000) {
        Operation::Add // add, sub of a constant
    } else {
        Operation::Other
    }
}

pub(super) fn text(code: &[u8], address: u64) -> String {
    let Some(&bytes) = code.first_chunk::<4>() else { return "(bad)".to_owned() };
    let word = u32::from_le_bytes(bytes);
    let kind = kind(word, address);
    let decode = || InstDecoder::default().decode(&mut U8Reader::new(&bytes)).map(|i| i.to_string());
    // Its printer panics for a few encodings.
    let Ok(Ok(text)) = std::panic::catch_unwind(decode) else { return format!("(bad) {word:08x}") };
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

/// The registers read and written; 31 is the stack pointer or zero.
fn registers(word: u32, load: bool, store: bool) -> (Registers, Registers) {
    let is = |mask: u32, value: u32| word & mask == value;
    let field = |low: u32| (word >> low & 31) as u8;
    let general = |low: u32| if field(low) == 31 { Registers::NONE } else { Registers::general(field(low)) };
    let (d, n, t2, m) = (general(0), general(5), general(10), general(16));
    if is(0x1c00_0000, 0x1400_0000) {
        // Branches and system: the compare-and-branch ones and those to a register look at one.
        let looks = is(0x7c00_0000, 0x3400_0000);
        let jumps = is(0xfe00_0000, 0xd600_0000);
        let read = if looks {
            d
        } else if jumps {
            n
        } else {
            Registers::NONE
        };
        let call = is(0xfc00_0000, 0x9400_0000) || is(0xffe0_0000, 0xd620_0000);
        return (read, if call { Registers::general(30) } else { Registers::NONE });
    }
    let vector = |low: u32| Registers::other(field(low));
    if is(0x0a00_0000, 0x0800_0000) {
        let value = if is(1 << 26, 1 << 26) { vector(0) } else { d };
        let pair = is(0x3a00_0000, 0x2800_0000);
        let values = if pair { value.with(if is(1 << 26, 1 << 26) { vector(10) } else { t2 }) } else { value };
        let exclusive = is(0x3f00_0000, 0x0800_0000);
        let swaps = load && store; // cas and ldadd: the old value lands in one, the new comes from the other
        let indexed = is(0x3b20_0c00, 0x3820_0800);
        let back = (is(0x3b20_0400, 0x3800_0400)) || (pair && is(0x0080_0000, 0x0080_0000));
        let mut reads = if indexed { n.with(m) } else { n };
        let mut writes = if back { n } else { Registers::NONE };
        if swaps {
            reads = reads.with(d).with(m);
            writes = writes.with(if exclusive { m } else { d });
        } else if store {
            reads = reads.with(values);
            writes = writes.with(if exclusive { m } else { Registers::NONE });
        } else if load {
            writes = writes.with(values);
        }
        return (reads, writes);
    }
    if is(0x0e00_0000, 0x0e00_0000) {
        return (vector(5).with(vector(16)).with(n), vector(0).with(d));
    }
    let immediate = is(0x1c00_0000, 0x1000_0000);
    let constant = immediate && (is(0x1f00_0000, 0x1000_0000) || is(0x7f80_0000, 0x5280_0000));
    match (constant, immediate) {
        (true, _) => (Registers::NONE, d),
        (_, true) => (n, d),
        _ => (n.with(m), d),
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
