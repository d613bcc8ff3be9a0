//! The text of the instruction at which a sample was taken, where the trace keeps the code.

use std::cell::RefCell;

use holdup_trace::tables::Code;
use holdup_trace::{FrameId, StackId, StringId, Trace, decode_build_id};
use rustc_hash::FxHashMap;

use crate::code::{Decoding, Disassembler};

/// A function with code of its own.
type Function = (StringId, StringId);

/// Instructions by place, each function's decoded when it is first asked for.
pub(super) struct Instructions<'a> {
    trace: &'a Trace,
    disassembler: &'a dyn Disassembler,
    /// The kept code of each function, and where the function began when that was read.
    codes: FxHashMap<Function, (Code, u64)>,
    decoded: RefCell<FxHashMap<Function, Decoding>>,
}

impl<'a> Instructions<'a> {
    /// O(frames + codes).
    pub(super) fn new(trace: &'a Trace, disassembler: &'a dyn Disassembler) -> Self {
        let mut kept: FxHashMap<Function, Vec<Code>> = FxHashMap::default();
        for code in trace.names.codes() {
            kept.entry((code.function, code.module)).or_default().push(code);
        }
        let mut codes: FxHashMap<Function, (Code, u64)> = FxHashMap::default();
        for frame in (0..trace.stacks.frame_count()).map(|i| FrameId(i as u32)) {
            let (Some(at), Some(outer)) = (trace.stacks.frame(frame), trace.names.locations(frame).last()) else {
                continue;
            };
            let function = (outer.function, outer.module);
            let holds = |c: &&Code| at.address.wrapping_sub(c.start) < trace.text(c.bytes).len() as u64 / 2;
            let code = kept.get(&function).and_then(|all| all.iter().find(holds));
            if let (Some(&code), Some(start)) = (code, at.address.checked_sub(outer.offset)) {
                codes.entry(function).or_insert((code, start));
            }
        }
        Instructions { trace, disassembler, codes, decoded: RefCell::default() }
    }

    /// The text of the instruction in which `stack` ends; empty if its code is not kept.
    pub(super) fn text(&self, stack: StackId) -> String {
        let frame = self.trace.stacks.frames(stack).next();
        let outer = frame.and_then(|f| self.trace.names.locations(f).last());
        let Some(outer) = outer else { return String::new() };
        let function = (outer.function, outer.module);
        let Some(&(code, start)) = self.codes.get(&function) else { return String::new() };
        let mut decoded = self.decoded.borrow_mut();
        let code = decoded.entry(function).or_insert_with(|| {
            let bytes = decode_build_id(self.trace.text(code.bytes)).unwrap_or_default();
            Decoding::of(self.trace, self.disassembler, bytes, code.start)
        });
        let address = start.wrapping_add(outer.offset);
        let begins = code.found.instructions.binary_search_by_key(&address, |i| i.address).is_ok();
        if begins { code.text(self.trace, self.disassembler, address) } else { String::new() }
    }
}
