//! What a hot loop does that could be done faster: told only where its instructions leave no doubt, which the disassembler decides.

use holdup_base::named;
use serde::Serialize;

use crate::code::{CodeLoop, Idiom};

named! {
    /// What a loop does that could be done faster.
    pub enum IdiomKind {
        /// It divides whole numbers.
        Division = "division",
        /// Each address is what was read before.
        PointerChase = "pointer-chase",
        /// It looks for something, one element after another.
        Scan = "scan",
        /// It uses little of each cache line.
        Stride = "stride",
        /// It copies single bytes.
        ByteCopy = "byte-copy",
        /// It counts bits one by one.
        BitCount = "bit-count",
        /// It reads and changes one place in each turn.
        Update = "update",
    }
}

/// What the loop around a hot instruction does.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct IdiomFacts {
    /// Which.
    pub kind: IdiomKind,
    /// The loop's share of the culprit's samples.
    pub share: f64,
    /// How many instructions it has.
    pub instructions: usize,
    /// What it does, and what it could be.
    pub text: String,
}

impl IdiomFacts {
    /// `93 % of the samples are in a loop of 7 instructions: it looks at one element of 4 bytes in each turn; …`
    pub(crate) fn sentence(&self) -> String {
        let IdiomFacts { share, instructions, text, .. } = self;
        format!("{:.0} % of the samples are in a loop of {instructions} instructions: {text}", 100.0 * share)
    }
}

impl Idiom {
    /// Which it is, without its numbers.
    pub fn kind(self) -> IdiomKind {
        match self {
            Idiom::Divides { .. } => IdiomKind::Division,
            Idiom::Chases => IdiomKind::PointerChase,
            Idiom::Scans { .. } => IdiomKind::Scan,
            Idiom::Strides { .. } => IdiomKind::Stride,
            Idiom::CopiesBytes => IdiomKind::ByteCopy,
            Idiom::CountsBits => IdiomKind::BitCount,
            Idiom::Updates => IdiomKind::Update,
        }
    }

    /// What it does, and what it could be, as the end of a sentence.
    pub fn sentence(self) -> String {
        match self {
            Idiom::Divides { by_same: true } => "it divides by a value that stays the same; a multiplication with its inverse, computed \
                before the loop, takes a fraction of the cycles"
                .to_owned(),
            Idiom::Divides { by_same: false } => "it divides by a variable, which is slow".to_owned(),
            Idiom::Chases => "each address is what was read before, so no two reads overlap; elements that lie side by side, or several \
                chains at once, would let them"
                .to_owned(),
            Idiom::Scans { bytes: 1 } => "it looks at one byte in each turn; vector instructions compare many at once".to_owned(),
            Idiom::Scans { bytes } => {
                format!("it looks at one element of {bytes} bytes in each turn; vector instructions compare several at once")
            }
            Idiom::Strides { bytes, used } => {
                format!("it moves on by {bytes} bytes in each turn and uses {used} of them: a cache line or more for each turn")
            }
            Idiom::CopiesBytes => "it copies one byte in each turn; where the two areas do not overlap, memcpy does it faster".to_owned(),
            Idiom::CountsBits => "it counts the set or the clear bits of a word one by one; `popcnt` counts a word's at once".to_owned(),
            Idiom::Updates => "it reads one place in memory in each turn and changes it; a register, written once behind the loop, is faster, and \
                where other threads change what lies on the same cache line, each turn waits for them (false sharing: give each thread's a line \
                of its own)"
                .to_owned(),
        }
    }
}

/// Of `loops` the innermost around `address` that has an idiom; `share` tells which share of the samples an address has.
pub(crate) fn around(loops: &[CodeLoop], address: u64, share: impl Fn(u64) -> f64) -> Option<IdiomFacts> {
    let here = loops.iter().filter(|l| l.contains(address));
    let innermost = here.min_by_key(|l| l.instructions.len())?;
    let idiom = innermost.idiom?;
    Some(IdiomFacts {
        kind: idiom.kind(),
        share: innermost.instructions.iter().map(|&at| share(at)).sum(),
        instructions: innermost.instructions.len(),
        text: idiom.sentence(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(instructions: &[u64], idiom: Option<Idiom>) -> CodeLoop {
        CodeLoop { instructions: instructions.to_vec(), idiom, ..CodeLoop::default() }
    }

    #[test]
    fn the_innermost_loop_around_an_instruction_is_told_of() {
        let scan = Some(Idiom::Scans { bytes: 4 });
        let all = [of(&[1, 2, 3, 4, 5, 6], None), of(&[2, 3, 4], scan), of(&[5, 6], None)];
        let found = around(&all, 3, |at| if at == 3 { 0.5 } else { 0.125 }).unwrap();
        assert_eq!((found.kind, found.instructions, found.share), (IdiomKind::Scan, 3, 0.75));
        assert!(found.text.contains("element of 4 bytes"), "{}", found.text);
        assert!(around(&all, 5, |_| 1.0).is_none(), "what lies around an inner loop is not judged");
        assert!(around(&all, 1, |_| 1.0).is_none() && around(&all, 9, |_| 1.0).is_none());
    }
}
