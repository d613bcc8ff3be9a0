//! Stacks that were copied, and who walks them.

use std::sync::Arc;

use crate::Image;

/// A copy of the top of a thread's user stack with the registers to unwind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawStack {
    /// The process.
    pub pid: u32,
    /// Kernel frames, the leaf first; callers as return addresses.
    pub kernel: Vec<u64>,
    /// User instruction pointer; 0 if there is no user part.
    pub ip: u64,
    /// User stack pointer.
    pub sp: u64,
    /// User frame pointer.
    pub bp: u64,
    /// Link register, where the machine has one.
    pub lr: u64,
    /// The stack's bytes from `sp` upwards.
    pub bytes: Vec<u8>,
    /// The word below `sp`, where a function that moves its stack may keep where that was; `None` if it was not copied.
    pub below: Option<u64>,
    /// Names the user part: a stack without bytes has the same as an earlier one of that name. 0 for none.
    pub user: u64,
    /// What an interpreter ran there.
    pub interpreted: Interpreted,
}

/// Where a thread was in user code, with a stack that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// The instruction.
    pub ip: u64,
    /// The frame pointer.
    pub bp: u64,
}

/// Functions that an interpreter runs, by its own account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interpreted {
    /// First address of the function that evaluates them, and the first one behind it.
    pub evaluation: (u64, u64),
    /// The frames, the innermost first; empty for a stack without any.
    pub frames: Vec<InterpretedFrame>,
    /// Whether the outermost one is among them.
    pub complete: bool,
    /// Functions whose frames are the machine's own, in no order.
    pub pointed: Vec<PointedFrame>,
}

/// A frame on the machine's stack that leads to its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointedFrame {
    /// Its frame pointer.
    pub pointer: u64,
    /// The function's number, as in [`InterpretedFrame`].
    pub function: u32,
}

/// A frame of an interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterpretedFrame {
    /// The function's number, by which [`TraceBuilder::interpreted`](crate::TraceBuilder::interpreted) names it; 0 if it
    /// could not be read.
    pub function: u32,
    /// Whether a call of the evaluation began with it: frames that it made itself lie further in.
    pub entry: bool,
}

/// Recovers user frames from a copied stack.
pub trait Unwinder {
    /// The user addresses of `raw`, the leaf (= `raw.ip`) first, callers as return addresses, and whether the
    /// outermost function was reached. `images` are those of the process at that time, sorted by start.
    fn unwind(&mut self, images: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool);

    /// Whether `leaf` certainly has the callers of `raw`, with whose stack pointer it was seen; what lies on both stacks is the same.
    fn shares_callers(&mut self, _images: &[Arc<Image>], raw: &RawStack, leaf: Leaf) -> bool {
        raw.ip == leaf.ip && raw.bp == leaf.bp
    }

    /// What was left out, in sentences.
    fn notes(&self) -> Vec<crate::Note> {
        Vec::new()
    }
}
