//! What is shared with the programs in the kernel; `bpf/recorder.h` is the other half.

/// Where the slots of a CPU's ring begin, behind its header.
pub(crate) const SLOTS_AT: usize = 24576;
/// Most kernel frames of a stack.
pub(crate) const MAX_KERNEL: usize = 128;
/// Unit of copies of user stacks.
pub(crate) const CHUNK: usize = 1024;
/// Most chunks of a copy: 64 KB and the part of a chunk below the stack pointer.
pub(crate) const MAX_CHUNKS: usize = 65;

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
}

/// The programs' configuration, constant once they are loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Config {
    pub slot_mask: u64,
    pub side_mask: u64,
    pub min_wait: u64,
    pub stack_rate: u64,
    pub stack_burst: u64,
    pub preempt_delta: i64,
    pub self_tgid: u32,
    pub chunks: u32,
    pub has_state_argument: u32,
    pub skip_frames: u32,
}

impl Config {
    /// The bytes of `struct config`.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let delta = self.preempt_delta as u64;
        for word in [self.slot_mask, self.side_mask, self.min_wait, self.stack_rate, self.stack_burst, delta] {
            bytes.extend(word.to_ne_bytes());
        }
        for half in [self.self_tgid, self.chunks, self.has_state_argument, self.skip_frames] {
            bytes.extend(half.to_ne_bytes());
        }
        bytes
    }
}

/// A raw stack as it lies in the ring buffer, borrowed.
pub(crate) struct KernelStack<'a> {
    bytes: &'a [u8],
}

impl<'a> KernelStack<'a> {
    const FIXED: usize = 64;
    const COPY_AT: usize = Self::FIXED + MAX_KERNEL * 8;

    /// `None` if `bytes` are too few.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= Self::COPY_AT).then_some(KernelStack { bytes })
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    pub(crate) fn hash(&self) -> u64 {
        self.word(0)
    }

    /// The stack with its copy cut to what was filled, beginning at the stack pointer.
    pub(crate) fn to_raw(&self) -> holdup_trace::RawStack {
        let (ip, sp, bp, base) = (self.word(8), self.word(16), self.word(24), self.word(32));
        let (frames, filled) = ((self.word(48) as u32) as usize, (self.word(48) >> 32) as usize);
        let kernel = (0..frames.min(MAX_KERNEL)).map(|i| self.word(Self::FIXED + i * 8)).collect();
        let copy = &self.bytes[Self::COPY_AT..];
        let copy = &copy[..copy.len().min(filled * CHUNK)];
        let below = (sp.saturating_sub(base) as usize).min(copy.len());
        let (pid, user) = (self.word(40) as u32, self.word(56));
        holdup_trace::RawStack { pid, kernel, ip, sp, bp, lr: 0, bytes: copy[below..].to_vec(), user }
    }
}
