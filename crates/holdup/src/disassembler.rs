//! Lends the disassembler of holdup-symbols to the analysis.

use holdup_analysis::{Decoded, Disassembler};
use holdup_symbols::disasm;

/// Decodes x86-64 and aarch64.
pub struct Machine;

impl Disassembler for Machine {
    fn disassemble(&self, arch: &str, code: &[u8], start: u64) -> Vec<Decoded> {
        let Some(arch) = disasm::Arch::from_name(arch) else { return Vec::new() };
        let decoded = disasm::disassemble(arch, code, start);
        decoded.into_iter().map(|i| Decoded { address: i.address, target: target(i.kind), text: i.text }).collect()
    }
}

fn target(kind: disasm::Kind) -> Option<u64> {
    match kind {
        disasm::Kind::Branch { target, .. } => target,
        _ => None,
    }
}
