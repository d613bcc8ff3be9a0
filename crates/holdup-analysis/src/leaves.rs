//! What the instruction does at which a sample was taken. Each one is looked at once, whoever asks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use holdup_trace::tables::Code;
use holdup_trace::{FrameId, SpaceId, StackId, StringId, Trace};
use rustc_hash::FxHashMap;

use crate::code::{CodeLoop, Decoded, Decoding, Disassembler, Disassembly};

/// One sampled instruction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaf {
    /// Whether it lies in a loop that waits for another CPU, or in a function that only pauses.
    pub(crate) in_spin: bool,
    /// Whether it is a `pause` or follows one: the time of an instruction shows at the next.
    pub(crate) behind_pause: bool,
    /// Whether it is atomic or follows an atomic one.
    pub(crate) behind_atomic: bool,
    /// The variable of the program that the atomic one changes, by address; `None` if its address is in a register.
    pub(crate) variable: Option<u64>,
    /// Whether it reads or writes memory, or follows such a one.
    pub(crate) behind_memory: bool,
    /// Whether it does so atomically, or in a function that changes memory atomically elsewhere: it may be the same line.
    pub(crate) beside_atomic: bool,
    /// Whether it is part of a function without loops so short that what it is for is told by its caller.
    pub(crate) is_helper: bool,
    /// The function whose code it is: of the application or of a library.
    pub(crate) code: StringId,
    /// Distance from the start of the code in bytes.
    pub(crate) offset: u64,
    /// The instruction, where its code is known.
    pub(crate) text: Option<Arc<str>>,
}

/// Functions of at most this many instructions may be helpers.
const SHORT: usize = 32;

/// Looks at leaves, each once; may be asked by several threads at once.
pub(crate) struct Leaves<'a> {
    trace: &'a Trace,
    disassembler: &'a dyn Disassembler,
    /// By frame id; small and dense.
    known: Vec<OnceLock<Leaf>>,
    /// What code there is, by function and module.
    codes: OnceLock<FxHashMap<(StringId, StringId), Vec<Code>>>,
    decoded: Mutex<FxHashMap<(u64, StringId), Arc<Decoding>>>,
}

impl<'a> Leaves<'a> {
    pub(crate) fn new(trace: &'a Trace, disassembler: &'a dyn Disassembler) -> Self {
        let known = (0..trace.stacks.frame_count()).map(|_| OnceLock::new()).collect();
        Leaves { trace, disassembler, known, codes: OnceLock::new(), decoded: Mutex::default() }
    }

    /// The leaf of `stack`.
    pub(crate) fn of(&self, stack: StackId) -> Leaf {
        self.trace.stacks.frames(stack).next().map_or_else(Leaf::default, |frame| self.of_frame(frame))
    }

    /// Whether the leaf of `stack` is atomic or follows an atomic instruction.
    pub(crate) fn is_behind_atomic(&self, stack: StackId) -> bool {
        self.asked(stack, |leaf| leaf.behind_atomic)
    }

    /// Whether the leaf of `stack` is such an instruction, or in a function with one and at some memory.
    pub(crate) fn is_beside_atomic(&self, stack: StackId) -> bool {
        self.asked(stack, |leaf| leaf.beside_atomic)
    }

    /// Something about the leaf of `stack`; `false` where its code is not known.
    fn asked(&self, stack: StackId, what: impl FnOnce(&Leaf) -> bool) -> bool {
        let frame = self.trace.stacks.frames(stack).next();
        let known = frame.and_then(|frame| Some((frame, self.known.get(frame.index())?)));
        known.is_some_and(|(frame, at)| what(at.get_or_init(|| self.examine(frame).unwrap_or_default())))
    }

    /// The instruction at `frame`: of a caller, the one to which a call comes back.
    pub(crate) fn of_frame(&self, frame: FrameId) -> Leaf {
        let examined = |at: &OnceLock<Leaf>| at.get_or_init(|| self.examine(frame).unwrap_or_default()).clone();
        self.known.get(frame.index()).map_or_else(Leaf::default, examined)
    }

    fn examine(&self, frame: FrameId) -> Option<Leaf> {
        let address = self.trace.stacks.frame(frame)?.address;
        let code = self.code_of(frame)?;
        let function = self.function(&code)?;
        // A caller's address may be the one before that to which the call comes back.
        let Disassembly { instructions, loops } = &function.found;
        let at = instructions.partition_point(|i| i.address <= address).checked_sub(1)?;
        let here = instructions[at].address;
        let near = &instructions[at.saturating_sub(1)..=at];
        let behind = |is: fn(&Decoded) -> bool| near.iter().any(is);
        let around = loops.iter().filter(|l| l.contains(here));
        let innermost = around.min_by_key(|l| l.instructions.len());
        let loopless = loops.is_empty() && instructions.len() <= SHORT;
        let only_pauses = loopless && instructions.iter().any(|i| i.pause);
        Some(Leaf {
            in_spin: innermost.is_some_and(CodeLoop::is_spin) || only_pauses,
            behind_pause: behind(|i| i.pause),
            behind_atomic: behind(|i| i.atomic),
            variable: near.iter().find(|i| i.atomic).and_then(|i| i.variable),
            behind_memory: behind(|i| i.memory),
            beside_atomic: behind(|i| i.atomic) || behind(|i| i.memory) && instructions.iter().any(|i| i.atomic),
            is_helper: loopless,
            code: code.function,
            offset: address - code.start,
            text: Some(function.text(self.trace, self.disassembler, here).into()),
        })
    }

    /// The code of the (outer) function that holds `frame`'s address, if the trace has it.
    fn code_of(&self, frame: FrameId) -> Option<Code> {
        let address = self.trace.stacks.frame(frame).filter(|f| f.space != SpaceId::KERNEL)?.address;
        let outer = self.trace.names.locations(frame).last()?;
        let codes = self.codes.get_or_init(|| {
            let mut by_name: FxHashMap<_, Vec<Code>> = FxHashMap::default();
            self.trace.names.codes().for_each(|c| by_name.entry((c.function, c.module)).or_default().push(c));
            by_name
        });
        let length = |c: &Code| self.trace.text(c.bytes).len() as u64 / 2;
        let holds = |c: &&Code| (c.start..c.start + length(c)).contains(&address);
        codes.get(&(outer.function, outer.module))?.iter().find(holds).copied()
    }

    fn function(&self, code: &Code) -> Option<Arc<Decoding>> {
        // Functions of different modules may begin at one address: then the bytes differ, too.
        let key = (code.start, code.bytes);
        let lock = || self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return Some(Arc::clone(known));
        }
        let bytes = holdup_trace::decode_build_id(self.trace.text(code.bytes))?;
        let function = Arc::new(Decoding::of(self.trace, self.disassembler, bytes, key.0));
        lock().insert(key, Arc::clone(&function));
        Some(function)
    }
}
