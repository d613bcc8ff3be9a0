//! What the short loops of a function do, in words.

use super::report::{InstructionRow, LoopFacts};
use crate::code::{CodeLoop, Decoded, Idiom};

/// Describes the loops, and tells every row of which it is part.
pub(super) fn describe(
    code: &[Decoded],
    loops: &[CodeLoop],
    rows: &mut [InstructionRow],
    total: u64,
) -> Vec<LoopFacts> {
    let mut found = Vec::new();
    for (index, l) in loops.iter().enumerate() {
        let mut samples = 0;
        for (instruction, row) in code.iter().zip(rows.iter_mut()) {
            if l.contains(instruction.address) {
                row.loops.push(index);
                samples += row.samples;
            }
        }
        let hex = |address: Option<&u64>| format!("{:#x}", address.copied().unwrap_or(0));
        found.push(LoopFacts {
            from: hex(l.instructions.first()),
            to: hex(l.instructions.last()),
            instructions: l.instructions.len(),
            samples,
            share: samples as f64 / total.max(1) as f64,
            spins: l.is_spin(),
            idiom: l.idiom.map(Idiom::kind),
            text: l
                .idiom
                .map_or_else(|| text(code, rows, l), |idiom| format!("{}: {}", text(code, rows, l), idiom.sentence())),
        });
    }
    found
}

fn text(code: &[Decoded], rows: &[InstructionRow], l: &CodeLoop) -> String {
    let n = l.instructions.len();
    let mut mine = code.iter().zip(rows).filter(|(i, _)| l.contains(i.address));
    let atomic = mine.clone().find(|(i, _)| i.atomic).map_or("", |(_, row)| operation(&row.text));
    let pause = mine.find(|(i, _)| i.pause).map_or("", |(_, row)| operation(&row.text));
    if l.has_pause && !atomic.is_empty() {
        format!("spins: `{pause}` and `{atomic}` in a loop of {n} instructions")
    } else if l.has_pause {
        format!("spins: `{pause}` in a loop of {n} instructions")
    } else if !atomic.is_empty() && l.is_spin() {
        format!("spins: `{atomic}`, tried again in a loop of {n} instructions")
    } else if !atomic.is_empty() {
        format!("`{atomic}` in a loop of {n} instructions: other CPUs lose the cache line at every turn")
    } else if l.load_only && l.is_spin() {
        format!("spins: {n} instructions that only look at memory")
    } else if l.load_only {
        format!("a loop of {n} instructions that only reads memory")
    } else {
        format!("a loop of {n} instructions")
    }
}

/// The instruction without its operands: `lock cmpxchg`.
pub(super) fn operation(text: &str) -> &str {
    let skip = if text.starts_with("lock ") { 5 } else { 0 };
    text[skip..].find(' ').map_or(text, |end| &text[..skip + end])
}

#[cfg(test)]
mod tests {
    use super::operation;

    #[test]
    fn operations_keep_their_prefix() {
        assert_eq!(operation("lock cmpxchg %ecx,(%rdx)"), "lock cmpxchg");
        assert_eq!(operation("mov %eax,%ebx"), "mov");
        assert_eq!(operation("pause"), "pause");
    }
}
