//! The instruction at which a running culprit was found most often, and the loop around it.

use holdup_trace::{FrameId, StackId, StringId, Trace};
use rustc_hash::FxHashMap;

use crate::code::{Decoded, Decoding, Disassembler, code_of};
use crate::idiom;
use crate::report::{Instruction, Neighbour};

/// Instructions shown before and after the hot one where there is no loop.
const NEIGHBOURS: usize = 3;
/// Longest loop that is shown whole.
const LOOP: usize = 32;

/// The hottest leaf of `samples`, preferably inside `function`.
pub(crate) fn hottest(
    trace: &Trace,
    disassembler: &dyn Disassembler,
    samples: &FxHashMap<StackId, f64>,
    function: StringId,
) -> Option<Instruction> {
    let mut leaves: FxHashMap<FrameId, f64> = FxHashMap::default();
    let mut inside = false;
    for (&stack, &weight) in samples {
        let Some(leaf) = trace.stacks.frames(stack).next() else { continue };
        let here = trace.names.locations(leaf).any(|l| l.function == function);
        if here && !inside {
            leaves.clear();
            inside = true;
        }
        if here || !inside {
            *leaves.entry(leaf).or_default() += weight;
        }
    }
    let total: f64 = samples.values().sum();
    let (&frame, &weight) = leaves.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))?;
    let address = trace.stacks.frame(frame)?.address;
    let mut found = Instruction {
        address: format!("{address:#x}"),
        share: weight / total.max(f64::MIN_POSITIVE),
        ..Instruction::default()
    };
    let shares = shares_by_address(trace, &leaves, total);
    if let Some((code, bytes)) = code_of(trace, frame) {
        let code = Decoding::of(trace, disassembler, bytes, code.start);
        let text = |at| code.text(trace, disassembler, at);
        describe(&code.found.instructions, text, address, &shares, &mut found);
        found.idiom = idiom::around(&code.found.loops, address, |at| shares.get(&at).copied().unwrap_or(0.0));
    }
    Some(found)
}

fn shares_by_address(trace: &Trace, leaves: &FxHashMap<FrameId, f64>, total: f64) -> FxHashMap<u64, f64> {
    let mut shares: FxHashMap<u64, f64> = FxHashMap::default();
    for (&frame, &weight) in leaves {
        if let Some(f) = trace.stacks.frame(frame) {
            *shares.entry(f.address).or_default() += weight / total.max(f64::MIN_POSITIVE);
        }
    }
    shares
}

fn describe(
    decoded: &[Decoded],
    text: impl Fn(u64) -> String,
    address: u64,
    shares: &FxHashMap<u64, f64>,
    found: &mut Instruction,
) {
    let Ok(at) = decoded.binary_search_by_key(&address, |i| i.address) else { return };
    found.text = text(address);
    let (range, is_loop) = surroundings(decoded, at);
    found.around = decoded[range]
        .iter()
        .map(|i| Neighbour {
            address: format!("{:#x}", i.address),
            text: text(i.address),
            share: shares.get(&i.address).copied().unwrap_or(0.0),
            in_loop: is_loop,
        })
        .collect();
}

/// The innermost short loop around `at`, else a few instructions on both sides.
fn surroundings(code: &[Decoded], at: usize) -> (std::ops::Range<usize>, bool) {
    let loops = code.iter().enumerate().skip(at).take(LOOP).filter_map(|(end, i)| {
        let target = i.target.filter(|&t| t <= code[at].address)?;
        let start = code.iter().position(|c| c.address == target)?;
        (end - start < LOOP).then_some(start..end + 1)
    });
    match loops.min_by_key(|r| r.len()) {
        Some(range) => (range, true),
        None => (at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(code.len()), false),
    }
}
