//! Raw stacks in a spool.

use crate::side::{put, take};
use holdup_trace::RawStack;

/// Appends a stack that records name by `hash`.
pub fn encode_stack(out: &mut Vec<u8>, hash: u64, stack: &RawStack) {
    let ids = u64::from(stack.pid);
    let lengths = (stack.kernel.len() as u64) << 32 | stack.bytes.len() as u64;
    for word in [hash, ids, stack.ip, stack.sp, stack.bp, stack.lr, stack.user, lengths] {
        put(out, word);
    }
    stack.kernel.iter().for_each(|&frame| put(out, frame));
    out.extend_from_slice(&stack.bytes);
}

/// Takes a stack off the front of `bytes`; `None` at their end or if they are no stacks.
pub(crate) fn decode_stack(bytes: &mut &[u8]) -> Option<(u64, RawStack)> {
    let hash = take(bytes)?;
    let pid = take(bytes)? as u32;
    let (ip, sp, bp, lr) = (take(bytes)?, take(bytes)?, take(bytes)?, take(bytes)?);
    let user = take(bytes)?;
    let lengths = take(bytes)?;
    let frames = (lengths >> 32) as usize;
    if frames > bytes.len() / 8 {
        return None;
    }
    let kernel = (0..frames).map_while(|_| take(bytes)).collect();
    let (copy, rest) = bytes.split_at_checked((lengths & 0xffff_ffff) as usize)?;
    *bytes = rest;
    Some((hash, RawStack { pid, kernel, ip, sp, bp, lr, bytes: copy.to_vec(), user }))
}
