//! What the instruction does at which a sample was taken.

use std::rc::Rc;

use holdup_trace::{FrameId, StackId, StringId, Trace};
use rustc_hash::FxHashMap;

use crate::code::{CodeLoop, Decoded, Disassembler, code_of};

/// One sampled instruction.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    /// Whether it lies in a loop that waits for another CPU.
    pub(super) in_spin: bool,
    /// Whether it is a `pause` or follows one: the time of an instruction shows at the next.
    pub(super) behind_pause: bool,
    /// Whether it is atomic or follows an atomic one.
    pub(super) behind_atomic: bool,
    /// Whether it reads or writes memory, or follows such a one.
    pub(super) behind_memory: bool,
    /// The function whose code it is: of the application or of a library.
    pub(super) code: StringId,
    /// Distance from the start of the code in bytes.
    pub(super) offset: u64,
    /// The instruction, where its code is known.
    pub(super) text: Option<Rc<str>>,
}

/// Looks at leaves, each once.
pub(super) struct Leaves<'a> {
    trace: &'a Trace,
    disassembler: &'a dyn Disassembler,
    known: FxHashMap<FrameId, Leaf>,
    decoded: FxHashMap<u64, Rc<Function>>,
}

struct Function {
    code: Vec<Decoded>,
    spins: Vec<CodeLoop>,
}

impl<'a> Leaves<'a> {
    pub(super) fn new(trace: &'a Trace, disassembler: &'a dyn Disassembler) -> Self {
        Leaves { trace, disassembler, known: FxHashMap::default(), decoded: FxHashMap::default() }
    }

    /// The leaf of `stack`.
    pub(super) fn of(&mut self, stack: StackId) -> Leaf {
        let Some(frame) = self.trace.stacks.frames(stack).next() else { return Leaf::default() };
        if let Some(leaf) = self.known.get(&frame) {
            return leaf.clone();
        }
        let leaf = self.examine(frame).unwrap_or_default();
        self.known.insert(frame, leaf.clone());
        leaf
    }

    fn examine(&mut self, frame: FrameId) -> Option<Leaf> {
        let address = self.trace.stacks.frame(frame)?.address;
        let (code, bytes) = code_of(self.trace, frame)?;
        let function = self.function(code.start, &bytes);
        let at = function.code.iter().position(|i| i.address == address)?;
        let behind = |is: fn(&Decoded) -> bool| function.code[at.saturating_sub(1)..=at].iter().any(is);
        Some(Leaf {
            in_spin: function.spins.iter().any(|l| l.contains(address)),
            behind_pause: behind(|i| i.pause),
            behind_atomic: behind(|i| i.atomic),
            behind_memory: behind(|i| i.memory),
            code: code.function,
            offset: address - code.start,
            text: Some(function.code[at].text.as_str().into()),
        })
    }

    fn function(&mut self, start: u64, bytes: &[u8]) -> Rc<Function> {
        // Functions of different modules may begin at one address: then the bytes differ, too.
        let key = start ^ (bytes.len() as u64) << 48 ^ u64::from(crc(bytes));
        let (arch, disassembler) = (&self.trace.meta.host.arch, self.disassembler);
        let decode = || {
            let code = disassembler.disassemble(arch, bytes, start);
            let spins = disassembler.loops(arch, bytes, start).into_iter().filter(|l| l.is_spin(&code)).collect();
            Rc::new(Function { code, spins })
        };
        self.decoded.entry(key).or_insert_with(decode).clone()
    }
}

/// Tells code apart; no protection against anybody.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, b| (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}
