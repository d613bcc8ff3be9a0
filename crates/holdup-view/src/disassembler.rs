//! Lends the disassembler to the analysis.

use holdup_analysis::{CodeLoop, Decoded, Disassembler, Disassembly, Idiom};
use holdup_disasm as disasm;
use holdup_disasm::{Arch, Instruction, Kind, Register};

/// Decodes x86-64 and aarch64.
pub struct Machine;

impl Disassembler for Machine {
    fn disassemble(&self, arch: &str, code: &[u8], start: u64) -> Disassembly {
        let Some(arch) = Arch::from_name(arch) else { return Disassembly::default() };
        let all = disasm::disassemble(arch, code, start);
        let short = |l: disasm::Loop| CodeLoop {
            instructions: l.instructions,
            has_pause: l.has_pause,
            has_atomic: l.has_atomic,
            load_only: l.load_only,
            pauses: l.pauses,
            looks: l.looks,
            acquires: l.acquires,
            idiom: l.idiom.map(idiom),
        };
        let loops = disasm::loops(&all).into_iter().map(short).collect();
        Disassembly { instructions: all.iter().map(|i| decoded(arch, i)).collect(), loops }
    }

    fn text(&self, arch: &str, code: &[u8], address: u64) -> String {
        Arch::from_name(arch).map_or_else(String::new, |arch| disasm::text(arch, code, address))
    }
}

fn idiom(idiom: disasm::Idiom) -> Idiom {
    match idiom {
        disasm::Idiom::Divides { by_same } => Idiom::Divides { by_same },
        disasm::Idiom::Chases => Idiom::Chases,
        disasm::Idiom::Scans { bytes } => Idiom::Scans { bytes },
        disasm::Idiom::Strides { bytes, used } => Idiom::Strides { bytes, used },
        disasm::Idiom::CopiesBytes => Idiom::CopiesBytes,
        disasm::Idiom::CountsBits => Idiom::CountsBits,
        disasm::Idiom::Updates => Idiom::Updates,
    }
}

fn decoded(arch: Arch, i: &Instruction) -> Decoded {
    let target = match i.kind {
        Kind::Branch { target, .. } => target,
        _ => None,
    };
    let fixed = |m: &disasm::Memory| {
        m.base == Some(Register::InstructionPointer) && m.index.is_none() && !m.thread_local && (i.load || i.store)
    };
    Decoded {
        variable: i.memory.filter(fixed).map(|m| m.displacement.cast_unsigned()),
        address: i.address,
        target,
        pause: i.kind == Kind::Pause,
        atomic: i.atomic.is_some(),
        memory: (i.load || i.store) && i.memory.is_some_and(|m| m.base != Some(arch.stack_pointer())),
        call: matches!(i.kind, Kind::Call { .. }),
    }
}
