//! What is shared with the programs in the kernel; `bpf/recorder.h` is the other half, and `cargo xtask tidy`
//! compares them.

use holdup_runtime::interpreter::{Listed, Place};

/// Where the slots of a CPU's ring begin, behind its header.
pub(crate) const SLOTS_AT: usize = 24576;
/// Most kernel frames of a stack.
pub(crate) const MAX_KERNEL: usize = 128;
/// Unit of copies of user stacks.
pub(crate) const CHUNK: usize = 1024;
/// Most chunks of a copy: 64 KB and the part of a chunk below the stack pointer.
pub(crate) const MAX_CHUNKS: usize = 65;

/// The thread of an interpreter has its frame itself.
const NOT_THROUGH: u32 = 0xffff_ffff;
/// With the number of an interpreter's frames: the outermost one is among them.
const INTERPRETED_ENDED: u32 = 1 << 16;

/// Words of a ring's header, by index.
pub(crate) mod word {
    pub(crate) const HEAD: usize = 0;
    pub(crate) const LOST: usize = 1;
    pub(crate) const LOST_STACKS: usize = 2;
    pub(crate) const LIMITED_STACKS: usize = 3;
    pub(crate) const CAPTURED_STACKS: usize = 4;
    pub(crate) const SIDE_HEAD: usize = 12;
    pub(crate) const TAIL: usize = 14;
    pub(crate) const SIDE_TAIL: usize = 15;
    pub(crate) const STACK_NS: usize = 20;
    pub(crate) const BASE_NS: usize = 21;
    pub(crate) const LOOKS: usize = 22;
    pub(crate) const SIGHTS: usize = 23;
    pub(crate) const SKIPPED: usize = 24;
    pub(crate) const CALLS: usize = 25;
    pub(crate) const SAMPLE_NS: usize = 27;
    pub(crate) const SAMPLES: usize = 28;
    pub(crate) const BARE_SAMPLES: usize = 31;
    pub(crate) const SEEN_NS: usize = 32;
    pub(crate) const SKIPPED_NS: usize = 33;
    pub(crate) const SPAN_EDGES: usize = 35;
    pub(crate) const SPAN_NS: usize = 36;
    pub(crate) const SPAN_RECORDS: usize = 37;
}

/// Declares a structure of the other half: fields in the same order, wide ones first, so that there is no gap.
macro_rules! shared {
    ($(#[doc = $doc:literal])* struct $struct:ident { $($name:ident: $type:ty,)+ }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub(crate) struct $struct { $(pub $name: $type,)+ }

        impl $struct {
            /// Its bytes in the other half.
            pub(crate) fn bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                $(bytes.extend(self.$name.to_ne_bytes());)+
                bytes
            }
        }
    };
}

shared! {
    /// The programs' configuration, constant once they are loaded.
    struct Config {
        slot_mask: u64,
        side_mask: u64,
        min_wait: u64,
        stack_rate: u64,
        stack_burst: u64,
        late_ack: u64,
        preempt_delta: i64,
        namespace: u32,
        own: u32,
        chunks: u32,
        has_state_argument: u32,
        skip_frames: u32,
        no_storage: u32,
        no_stacks: u32,
        no_interpreters: u32,
        sockets: u32,
        markers: u32,
    }
}

shared! {
    /// What may change while the programs run.
    struct Control {
        epoch: u64,
        allowance: u64,
        sample_allowance: u64,
        always: u64,
        span_shift: u32,
        round: u32,
        interpreters: u64,
        self_tgid: u32,
        level: u32,
    }
}

/// What the iterator over all tasks is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Round {
    /// Looks for the recorder, and tells of nobody.
    Itself = 0,
    /// Tells of the waits that threads are in.
    Waits = 1,
    /// And of all else that is open.
    End = 2,
}

impl Control {
    /// What the programs found, in their bytes.
    pub(crate) fn place(bytes: &[u8]) -> crate::namespace::Place {
        // They are its last two.
        let at = Control::default().bytes().len() - 8;
        let number = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
        crate::namespace::Place { tgid: number(at), level: number(at + 4) }
    }
}

/// Where the parts of a raw stack begin, in bytes.
mod raw_stack {
    pub(super) const HASH: usize = 0;
    pub(super) const IP: usize = 8;
    pub(super) const SP: usize = 16;
    pub(super) const BP: usize = 24;
    pub(super) const BASE: usize = 32;
    pub(super) const TGID: usize = 40;
    pub(super) const INTERPRETED_FRAMES: usize = 44;
    pub(super) const KERNEL_FRAMES: usize = 48;
    pub(super) const FILLED: usize = 52;
    pub(super) const USER: usize = 56;
    pub(super) const LAYOUT: usize = 64;
    pub(super) const KERNEL: usize = 72;
}

shared! {
    /// Where an interpreter keeps its frames: `struct interpreter`.
    struct InterpreterWords {
        runtime: u64,
        interpreters: u32,
        next_interpreter: u32,
        threads: u32,
        next_thread: u32,
        thread_id: u32,
        current: u32,
        through: u32,
        previous: u32,
        code: u32,
        entry: u32,
        entries: u32,
        size: u32,
        flag: u32,
        single: u32,
        shared: u32,
        shared_type: u32,
        instruction: u32,
        bytecode: u32,
        id_through: u32,
        stride: u32,
    }
}

impl InterpreterWords {
    pub(crate) fn of(place: &Place) -> InterpreterWords {
        match place {
            Place::OnStack(at) => InterpreterWords {
                shared: at.shared,
                shared_type: at.shared_type.into(),
                ..InterpreterWords::default()
            },
            Place::Listed(at) => InterpreterWords::of_lists(at),
        }
    }

    fn of_lists(at: &Listed) -> InterpreterWords {
        let f = &at.frames;
        InterpreterWords {
            runtime: at.runtime,
            interpreters: f.interpreters,
            next_interpreter: f.next_interpreter.unwrap_or(NOT_THROUGH),
            threads: f.threads,
            next_thread: f.next_thread,
            thread_id: f.thread_id,
            current: f.current,
            through: f.through.unwrap_or(NOT_THROUGH),
            previous: f.previous,
            code: f.code,
            entry: f.entry,
            entries: f.entries as u32,
            size: f.size,
            flag: f.flag.into(),
            single: f.single.into(),
            instruction: f.instruction,
            bytecode: f.bytecode,
            id_through: f.id_through.unwrap_or(NOT_THROUGH),
            stride: f.stride,
            ..InterpreterWords::default()
        }
    }
}

/// A raw stack as it lies in the ring buffer, borrowed.
pub(crate) struct KernelStack<'a> {
    bytes: &'a [u8],
}

impl<'a> KernelStack<'a> {
    const COPY_AT: usize = raw_stack::KERNEL + MAX_KERNEL * 8;

    /// `None` if `bytes` are too few.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= Self::COPY_AT).then_some(KernelStack { bytes })
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    fn half(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    pub(crate) fn hash(&self) -> u64 {
        self.word(raw_stack::HASH)
    }

    /// The stack with its copy cut to what was filled, beginning at the stack pointer.
    pub(crate) fn to_raw(&self) -> holdup_trace::RawStack {
        let [ip, sp, bp, base] = [raw_stack::IP, raw_stack::SP, raw_stack::BP, raw_stack::BASE].map(|at| self.word(at));
        let [frames, filled] = [raw_stack::KERNEL_FRAMES, raw_stack::FILLED].map(|at| self.half(at) as usize);
        let kernel = (0..frames.min(MAX_KERNEL)).map(|i| self.word(raw_stack::KERNEL + i * 8)).collect();
        let copy = &self.bytes[Self::COPY_AT..];
        let copy = &copy[..copy.len().min(filled * CHUNK)];
        let below = (sp.saturating_sub(base) as usize).min(copy.len());
        let (copied_below, bytes) = copy.split_at(below);
        let below = copied_below.last_chunk().map(|word| u64::from_ne_bytes(*word));
        let (pid, user) = (self.half(raw_stack::TGID), self.word(raw_stack::USER));
        holdup_trace::RawStack { pid, kernel, ip, sp, bp, bytes: bytes.to_vec(), below, user, ..Default::default() }
    }

    /// The frames of an interpreter as they were found, the innermost first, in an address space with a layout, and whether the outermost
    /// one is among them. They lie behind the copy, in a chunk of their own.
    pub(crate) fn interpreted(&self) -> Option<(u64, Vec<u64>, bool)> {
        let said = self.half(raw_stack::INTERPRETED_FRAMES);
        let count = (said & (INTERPRETED_ENDED - 1)) as usize;
        let at = self.bytes.len().checked_sub(CHUNK).filter(|&at| at >= Self::COPY_AT && count > 0)?;
        let words = (0..count.min(CHUNK / 8)).map(|i| self.word(at + i * 8)).collect();
        Some((self.word(raw_stack::LAYOUT), words, said & INTERPRETED_ENDED != 0))
    }
}
