//! Dictionaries: strings, call chains, stacks, locks, address spaces and their images.

use std::{hash::Hasher, sync::Arc};

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};

use crate::run_time::is_interpreted;
use crate::tables::{Frame, Frames, StackNode, StackNodes};
use crate::{ChainId, FrameId, LockKind, SpaceId, StackId, StringId, Table};

/// Strings, each once. Id 0 is the empty string.
#[derive(Debug, Clone)]
pub struct Dictionary {
    strings: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, StringId>,
}

impl Default for Dictionary {
    fn default() -> Self {
        let mut empty = Dictionary { strings: Vec::new(), ids: FxHashMap::default() };
        empty.intern("");
        empty
    }
}

impl Dictionary {
    /// The id of `text`, new or not.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = StringId(u32::try_from(self.strings.len()).expect("fewer than 2^32 strings"));
        let text: Arc<str> = text.into();
        self.strings.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    /// The string; empty for an unknown id.
    pub fn get(&self, id: StringId) -> &str {
        self.strings.get(id.index()).map_or("", |s| s)
    }

    /// The id of `text`, if it is there.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.ids.get(text).copied()
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.strings.iter().map(|s| &**s)
    }

    /// Appends `text` under the next id even if it is there already, so that ids of a file stay what they were.
    pub(crate) fn append(&mut self, text: &str) {
        let id = StringId(self.strings.len() as u32);
        let text: Arc<str> = text.into();
        self.strings.push(text.clone());
        self.ids.entry(text).or_insert(id);
    }

    pub(crate) fn empty_for_reading() -> Self {
        Dictionary { strings: Vec::new(), ids: FxHashMap::default() }
    }
}

/// A file mapped as code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Where in the file the mapping begins, in bytes.
    pub file_offset: u64,
    /// The file's path as the process saw it; `[kernel]`, `[vdso]` and the like for what is no file.
    pub path: String,
    /// The file's build id, if the source tells it.
    pub build_id: Option<Vec<u8>>,
    /// The process that mapped it; 0 for the kernel.
    pub pid: u32,
}

/// Build id bytes from hexadecimal digits; `None` if it is empty or not hexadecimal.
pub fn decode_build_id(hex: &str) -> Option<Vec<u8>> {
    if hex.is_empty() || !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).ok()).collect()
}

/// What an address is called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// The function, demangled, without argument list.
    pub function: String,
    /// The file that holds the code; `[kernel]` for the kernel.
    pub module: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The source line; 0 if unknown.
    pub line: u32,
    /// Distance of the address from the start of the outermost function here, in bytes.
    pub offset: u64,
}

/// Where a stretch of code comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLine {
    /// Distance of its first instruction from the start that was asked for, in bytes.
    pub offset: u32,
    /// The function inlined there; empty if none is.
    pub inlined: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The source line; 0 if unknown.
    pub line: u32,
}

/// Names addresses.
pub trait Symbolizer {
    /// What lies at `address`, the innermost inlined function first; empty if nothing is known.
    /// `images` are those of the address space, sorted by start; `kernel` tells the kernel's space.
    fn locate(&mut self, kernel: bool, images: &[Arc<Image>], address: u64) -> Vec<Location>;

    /// The code bytes of the function around `address`, and the address of the first one; at most `limit` bytes.
    fn code(&mut self, kernel: bool, images: &[Arc<Image>], address: u64, limit: usize) -> Option<(u64, Vec<u8>)>;

    /// A function's name, which may be mangled, as [`locate`](Self::locate) gives names.
    fn demangle(&self, name: &str) -> String {
        name.to_owned()
    }

    /// The source lines of `length` bytes of user code from `start` on, by offset; each holds up to the next one.
    /// Empty if nothing is known.
    fn lines(&mut self, _images: &[Arc<Image>], _start: u64, _length: usize) -> Vec<SourceLine> {
        Vec::new()
    }
}

/// What identifies a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockKey {
    /// What kind of lock.
    pub kind: LockKind,
    /// The process whose address it is; 0 for kernel locks and shared futexes.
    pub pid: u32,
    /// Its address.
    pub address: u64,
}

/// Call chains as producers see them, each once: process, kernel frames, user frames.
#[derive(Default)]
pub(crate) struct Chains {
    index: HashTable<u32>,
    /// (pid, start in `frames`, kernel frames, all frames)
    chains: Vec<(u32, usize, u32, u32)>,
    frames: Vec<u64>,
}

impl Chains {
    pub(crate) fn intern(&mut self, pid: u32, kernel: &[u64], user: &[u64]) -> ChainId {
        if kernel.is_empty() && user.is_empty() {
            return ChainId::NONE;
        }
        let hash = hash_chain(pid, kernel, user);
        let Chains { index, chains, frames } = self;
        let same = |&i: &u32| {
            let (p, start, k, n) = chains[i as usize];
            p == pid && k as usize == kernel.len() && n as usize == kernel.len() + user.len() && {
                let (a, b) = frames[start..start + n as usize].split_at(kernel.len());
                a == kernel && b == user
            }
        };
        if let Some(&i) = index.find(hash, same) {
            return ChainId(i + 1);
        }
        let i = chains.len() as u32;
        chains.push((pid, frames.len(), kernel.len() as u32, (kernel.len() + user.len()) as u32));
        frames.extend_from_slice(kernel);
        frames.extend_from_slice(user);
        index.insert_unique(hash, i, |&j| {
            let (p, start, k, n) = chains[j as usize];
            let (a, b) = frames[start..start + n as usize].split_at(k as usize);
            hash_chain(p, a, b)
        });
        ChainId(i + 1)
    }

    /// (pid, kernel frames, user frames)
    pub(crate) fn get(&self, id: ChainId) -> Option<(u32, &[u64], &[u64])> {
        let &(pid, start, kernel, all) = self.chains.get(id.index().checked_sub(1)?)?;
        let (kernel, user) = self.frames[start..start + all as usize].split_at(kernel as usize);
        Some((pid, kernel, user))
    }
}

fn hash_chain(pid: u32, kernel: &[u64], user: &[u64]) -> u64 {
    let mut h = FxHasher::default();
    h.write_u32(pid);
    h.write_usize(kernel.len());
    kernel.iter().chain(user).for_each(|&f| h.write_u64(f));
    h.finish()
}

/// Interned stacks: a tree whose nodes are (caller's stack, frame).
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    nodes: StackNodes,
    frames: Frames,
}

impl Stacks {
    pub(crate) fn from_tables(nodes: StackNodes, frames: Frames) -> Self {
        Stacks { nodes, frames }
    }

    /// The frames of `stack`, the leaf first. Empty for [`StackId::NONE`] and for unknown ids.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let node = |id: StackId| (id.0 != 0).then(|| id.index() - 1).filter(|&i| i < self.nodes.len());
        // A parent always has the smaller id: a damaged file cannot make this endless.
        std::iter::successors(node(stack), move |&i| node(self.nodes.parent[i]).filter(|&p| p < i))
            .map(|i| self.nodes.frame[i])
    }

    /// The frame's address space and address.
    pub fn frame(&self, frame: FrameId) -> Option<Frame> {
        (frame.index() < self.frames.len()).then(|| self.frames.row(frame.index()))
    }

    /// Gives frames other addresses.
    pub(crate) fn set_addresses(&mut self, mut address: impl FnMut(FrameId, Frame) -> u64) {
        for i in 0..self.frames.len() {
            self.frames.address[i] = address(FrameId(i as u32), self.frames.row(i));
        }
    }

    /// How many stacks there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn tables(&self) -> (&StackNodes, &Frames) {
        (&self.nodes, &self.frames)
    }
}

/// Interns stacks while a trace is built.
#[derive(Default)]
pub(crate) struct StackInterner {
    pub(crate) stacks: Stacks,
    nodes: FxHashMap<(StackId, FrameId), StackId>,
    frames: FxHashMap<(SpaceId, u64), FrameId>,
}

impl StackInterner {
    /// Interns a chain given leaf first; callers' return addresses are moved into the call instruction.
    pub(crate) fn intern(&mut self, space: SpaceId, kernel: &[u64], user: &[u64]) -> StackId {
        let mut stack = self.intern_part(StackId::NONE, space, user, true);
        if !kernel.is_empty() {
            stack = self.intern_part(stack, SpaceId::KERNEL, kernel, true);
        }
        stack
    }

    fn intern_part(&mut self, below: StackId, space: SpaceId, part: &[u64], leaf_is_exact: bool) -> StackId {
        let mut stack = below;
        for (depth, &address) in part.iter().enumerate().rev() {
            let exact = depth == 0 && leaf_is_exact || is_interpreted(address);
            let frame = self.frame(space, if exact { address } else { address.saturating_sub(1) });
            stack = self.node(stack, frame);
        }
        stack
    }

    /// The address space of a stack's innermost frame.
    pub(crate) fn space(&self, stack: StackId) -> SpaceId {
        let node = stack.index().checked_sub(1).map(|i| self.stacks.nodes.row(i));
        node.and_then(|node| self.stacks.frame(node.frame)).map_or(SpaceId::KERNEL, |frame| frame.space)
    }

    /// The stack with another address as its innermost frame.
    pub(crate) fn replace_leaf(&mut self, stack: StackId, address: u64) -> StackId {
        let Some(StackNode { parent, frame }) = stack.index().checked_sub(1).map(|i| self.stacks.nodes.row(i)) else {
            return stack;
        };
        let Some(old) = self.stacks.frame(frame).filter(|f| f.address != address) else { return stack };
        // The instruction is the interpreter's; what it ran there is the frame.
        if is_interpreted(old.address) {
            return stack;
        }
        let frame = self.frame(old.space, address);
        self.node(parent, frame)
    }

    pub(crate) fn frame(&mut self, space: SpaceId, address: u64) -> FrameId {
        *self.frames.entry((space, address)).or_insert_with(|| {
            self.stacks.frames.push(Frame { space, address });
            FrameId(self.stacks.frames.len() as u32 - 1)
        })
    }

    fn node(&mut self, parent: StackId, frame: FrameId) -> StackId {
        *self.nodes.entry((parent, frame)).or_insert_with(|| {
            self.stacks.nodes.push(StackNode { parent, frame });
            StackId(self.stacks.nodes.len() as u32)
        })
    }
}
