//! Raw stacks in a spool.

use crate::side::{put, take};
use holdup_trace::{Interpreted, InterpretedFrame, PointedFrame, RawStack};

/// In the word with the process: there is a word from below the stack.
const BELOW: u64 = 1 << 48;

/// Appends a stack that records name by `hash`.
pub fn encode_stack(out: &mut Vec<u8>, hash: u64, stack: &RawStack) {
    let ids = u64::from(stack.pid);
    let Interpreted { evaluation, frames, complete, pointed } = &stack.interpreted;
    // What is beyond the room that counts have is left out: there is room for 65,535 frames of each kind.
    let (kernel, frames, pointed) = (few(&stack.kernel), few(frames), few(pointed));
    let lengths = (frames.len() as u64) << 48 | (kernel.len() as u64) << 32 | stack.bytes.len() as u64;
    let ids = ids | (pointed.len() as u64) << 32 | if stack.below.is_some() { BELOW } else { 0 };
    let head = [hash, ids, stack.ip, stack.sp, stack.bp, stack.lr, stack.user, lengths];
    head.into_iter().chain(stack.below).for_each(|word| put(out, word));
    kernel.iter().for_each(|&frame| put(out, frame));
    if !frames.is_empty() {
        [evaluation.0, evaluation.1, u64::from(*complete)].into_iter().for_each(|word| put(out, word));
        frames.iter().for_each(|f| put(out, u64::from(f.function) << 1 | u64::from(f.entry)));
    }
    for frame in pointed {
        put(out, frame.pointer);
        put(out, frame.function.into());
    }
    out.extend_from_slice(&stack.bytes);
}

fn few<T>(all: &[T]) -> &[T] {
    &all[..all.len().min(u16::MAX.into())]
}

/// Takes a stack off the front of `bytes`; `None` at their end or if they are no stacks.
pub(crate) fn decode_stack(bytes: &mut &[u8]) -> Option<(u64, RawStack)> {
    let hash = take(bytes)?;
    let ids = take(bytes)?;
    let (pid, pointed) = (ids as u32, (ids >> 32 & 0xffff) as usize);
    let (ip, sp, bp, lr) = (take(bytes)?, take(bytes)?, take(bytes)?, take(bytes)?);
    let user = take(bytes)?;
    let lengths = take(bytes)?;
    let below = if ids & BELOW == 0 { None } else { Some(take(bytes)?) };
    let (kernel_frames, frames) = ((lengths >> 32 & 0xffff) as usize, (lengths >> 48) as usize);
    if kernel_frames + frames + 2 * pointed > bytes.len() / 8 {
        return None;
    }
    let kernel = (0..kernel_frames).map_while(|_| take(bytes)).collect();
    let mut interpreted = Interpreted::default();
    if frames > 0 {
        interpreted.evaluation = (take(bytes)?, take(bytes)?);
        interpreted.complete = take(bytes)? != 0;
        let frame = |word: u64| InterpretedFrame { function: (word >> 1) as u32, entry: word & 1 != 0 };
        interpreted.frames = (0..frames).map_while(|_| take(bytes)).map(frame).collect();
    }
    let frame = |bytes: &mut &[u8]| Some(PointedFrame { pointer: take(bytes)?, function: take(bytes)? as u32 });
    interpreted.pointed = (0..pointed).map_while(|_| frame(bytes)).collect();
    let (copy, rest) = bytes.split_at_checked((lengths & 0xffff_ffff) as usize)?;
    *bytes = rest;
    Some((hash, RawStack { pid, kernel, ip, sp, bp, lr, bytes: copy.to_vec(), below, user, interpreted }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_an_interpreter_are_read_back() {
        let frames = [(1, true), (u32::MAX, false), (0, true)];
        let frames = frames.map(|(function, entry)| InterpretedFrame { function, entry }).to_vec();
        let pointed = vec![PointedFrame { pointer: 0x7ffc_1000, function: 3 }];
        let interpreted = Interpreted { evaluation: (0x1000, 0x2000), frames, complete: true, pointed };
        let with =
            RawStack { pid: 7, kernel: vec![9, 8], ip: 5, bytes: vec![1; 24], interpreted, ..RawStack::default() };
        let without = RawStack { interpreted: Interpreted::default(), below: Some(3), ..with.clone() };
        let mut bytes = Vec::new();
        encode_stack(&mut bytes, 1, &with);
        encode_stack(&mut bytes, 2, &without);
        let mut rest = &bytes[..];
        assert_eq!(decode_stack(&mut rest), Some((1, with)));
        assert_eq!(decode_stack(&mut rest), Some((2, without)));
        assert!((0..bytes.len() / 2).all(|cut| decode_stack(&mut &bytes[..cut]).is_none()), "cut");
    }
}
