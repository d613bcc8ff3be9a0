//! Call chains become stacks: each is resolved once for each address space that its process has in its time.

use rustc_hash::FxHashMap;

use super::raw::RawStacks;
use super::spaces::Spaces;
use crate::dict::{Chains, StackInterner};
use crate::{ChainId, Leaf, SpaceId, StackId, Unwinder};

/// Leaves that are remembered, at 40 bytes each; beyond, all are forgotten.
const LEAVES: usize = 1 << 20;

/// What a chain was resolved to last.
#[derive(Debug, Clone, Copy)]
struct Resolved {
    stack: StackId,
    /// Whether the outermost function was reached.
    complete: bool,
    space: SpaceId,
    /// The process in whose space it was.
    pid: u32,
    /// [`Spaces::changes`] when `space` was last seen to be that of the chain's process; 0 for never.
    as_of: u32,
}

const NEVER: Resolved = Resolved { stack: StackId::NONE, complete: false, space: SpaceId(u32::MAX), pid: 0, as_of: 0 };

/// Call chains as the source gave them, and the stacks that they are.
#[derive(Default)]
pub(super) struct CallStacks {
    chains: Chains,
    pub raw: RawStacks,
    pub interner: StackInterner,
    pub unwinder: Option<Box<dyn Unwinder>>,
    /// The last resolution of each chain. Nearly every event has one that was there before, in the same space.
    last: Vec<Resolved>,
    last_raw: Vec<Resolved>,
    /// Resolutions in other spaces than the last.
    others: FxHashMap<(ChainId, SpaceId), Resolved>,
    /// Samples whose leaf has other callers than the stack that they share.
    leaves: FxHashMap<(StackId, Leaf), StackId>,
    /// Events whose stack never came.
    pub unresolved: u64,
    /// Events with a stack, and those of them whose outermost function was reached.
    pub counts: (u64, u64),
}

impl CallStacks {
    /// Interns a complete chain.
    pub fn chain(&mut self, pid: u32, kernel: &[u64], user: &[u64]) -> ChainId {
        self.chains.intern(pid, kernel, user)
    }

    /// Resolves a chain in the address space that its process has now. A copied stack may be that of another process that was
    /// forked from the same one, and is at the same addresses: it is resolved in the space of `pid`, whose event it is.
    #[inline]
    pub fn resolve(&mut self, chain: ChainId, pid: u32, spaces: &mut Spaces) -> StackId {
        if chain == ChainId::NONE {
            return StackId::NONE;
        }
        let known = match self.last.get(chain.index()) {
            Some(known) if known.as_of == spaces.changes() => Some(*known),
            _ => self.look_up(chain, pid, spaces),
        };
        let Some(known) = known else {
            self.unresolved += 1;
            return StackId::NONE;
        };
        self.counts.0 += 1;
        self.counts.1 += u64::from(known.complete);
        known.stack
    }

    /// A copied stack serves all samples with the same callers: the leaf is the sample's own. That stacks are equally deep and hold the same
    /// return addresses does not tell that the callers are the same: some may be left from calls that are over. What of them counts is
    /// for the leaf's function to say.
    pub fn with_leaf(&mut self, chain: ChainId, stack: StackId, leaf: Leaf, pid: u32, spaces: &mut Spaces) -> StackId {
        let Some(number) = self.raw.number(chain).filter(|_| stack != StackId::NONE) else { return stack };
        if let Some(&known) = self.leaves.get(&(stack, leaf)) {
            return known;
        }
        let unwinder = self.unwinder.as_deref_mut().filter(|_| spaces.has_images(pid));
        let space = spaces.of(pid);
        let images = spaces.images(space);
        let Some(user) = unwinder.and_then(|unwinder| self.raw.frames_from(number, leaf, images, unwinder)) else {
            return self.interner.replace_leaf(stack, leaf.ip);
        };
        let found = self.interner.intern(self.interner.space(stack), &[], &user);
        if self.leaves.len() >= LEAVES {
            self.leaves.clear();
        }
        self.leaves.insert((stack, leaf), found);
        found
    }

    /// `None` if the chain's stack has not come.
    fn look_up(&mut self, chain: ChainId, pid: u32, spaces: &mut Spaces) -> Option<Resolved> {
        let raw = self.raw.number(chain);
        let pid = match (raw, self.chains.get(chain)) {
            (Some(number), _) => {
                let known = self.last_raw.get(number).filter(|k| k.pid == pid && k.as_of == spaces.changes());
                if known.is_some() {
                    return known.copied();
                }
                let of_copy = self.raw.get(number)?.pid;
                // Of a thread that nobody announced, not even the process is known.
                if spaces.has_images(pid) { pid } else { of_copy }
            }
            (None, Some((pid, _, _))) => pid,
            // Nobody has made such a chain.
            (None, None) => return Some(NEVER),
        };
        let space = spaces.of(pid);
        let mut found = *self.slot(chain, raw);
        if found.space != space {
            if found.as_of != 0 {
                self.others.insert((chain, found.space), found);
            }
            found = match self.others.get(&(chain, space)) {
                Some(&other) => other,
                None => self.resolve_new(chain, raw, space, spaces),
            };
        }
        (found.pid, found.as_of) = (pid, spaces.changes());
        *self.slot(chain, raw) = found;
        Some(found)
    }

    /// Where the last resolution of a chain is kept.
    fn slot(&mut self, chain: ChainId, raw: Option<usize>) -> &mut Resolved {
        let (slots, at) = match raw {
            Some(number) => (&mut self.last_raw, number),
            None => (&mut self.last, chain.index()),
        };
        if at >= slots.len() {
            slots.resize(at + 1, NEVER);
        }
        &mut slots[at]
    }

    fn resolve_new(&mut self, chain: ChainId, raw: Option<usize>, space: SpaceId, spaces: &Spaces) -> Resolved {
        let (stack, complete) = match raw {
            Some(number) => {
                let (user, complete) = self.raw.user_frames(number, spaces.images(space), self.unwinder.as_deref_mut());
                let kernel = self.raw.get(number).map_or(&[][..], |raw| &raw.kernel);
                let stack = self.interner.intern(space, kernel, &user);
                self.raw.drop_bytes(number);
                (stack, complete)
            }
            None => match self.chains.get(chain) {
                Some((_, kernel, user)) => (self.interner.intern(space, kernel, user), true),
                None => (StackId::NONE, false),
            },
        };
        Resolved { stack, complete, space, pid: 0, as_of: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, RawStack};

    struct LeafOnly;

    impl Unwinder for LeafOnly {
        fn unwind(&mut self, _: &[std::sync::Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
            (vec![raw.ip], true)
        }
    }

    #[test]
    fn a_chain_is_another_stack_in_another_program() {
        let (mut stacks, mut spaces) = (CallStacks::default(), Spaces::default());
        let chain = stacks.chain(7, &[], &[0x10, 0x20]);
        let before = stacks.resolve(chain, 7, &mut spaces);
        assert_eq!(stacks.resolve(chain, 7, &mut spaces), before);
        spaces.exec(9);
        assert_eq!(stacks.resolve(chain, 7, &mut spaces), before, "another process has changed");
        spaces.exec(7);
        let after = stacks.resolve(chain, 7, &mut spaces);
        assert_ne!(after, before);
        assert_eq!((stacks.counts, stacks.unresolved), ((4, 4), 0));
    }

    #[test]
    fn a_copied_stack_serves_what_was_forked_from_the_same_process() {
        let (mut stacks, mut spaces) = (CallStacks::default(), Spaces::default());
        let chain = stacks.raw.chain(11);
        stacks.unwinder = Some(Box::new(LeafOnly));
        stacks.raw.define(11, RawStack { pid: 7, kernel: vec![0x99], ip: 0x1100, ..RawStack::default() });
        let image = spaces.announce(Image { start: 0x1000, end: 0x2000, pid: 7, ..Image::default() });
        spaces.map(7, image);
        spaces.fork(7, 8);
        let [own, sibling] = [7, 8].map(|pid| stacks.resolve(chain, pid, &mut spaces));
        assert_ne!(own, sibling, "each has a space of its own");
        // The one whose stack was copied becomes another program; the other one is what it was.
        spaces.exec(7);
        assert_eq!(stacks.resolve(chain, 8, &mut spaces), sibling);
        assert_ne!(stacks.resolve(chain, 7, &mut spaces), own);
        // Of a thread that nobody announced, the process is not known.
        assert_ne!(stacks.resolve(chain, 404, &mut spaces), StackId::NONE);
        assert_eq!(stacks.unresolved, 0);
    }

    #[test]
    fn a_copied_stack_may_come_late_or_never() {
        let (mut stacks, mut spaces) = (CallStacks::default(), Spaces::default());
        let [early, never] = [11, 12].map(|hash| stacks.raw.chain(hash));
        assert_eq!(stacks.resolve(early, 7, &mut spaces), StackId::NONE);
        stacks.raw.define(11, RawStack { pid: 7, kernel: vec![0x99], ..RawStack::default() });
        let stack = stacks.resolve(early, 7, &mut spaces);
        assert_ne!(stack, StackId::NONE);
        assert_eq!(
            (stacks.resolve(never, 7, &mut spaces), stacks.resolve(early, 7, &mut spaces)),
            (StackId::NONE, stack)
        );
        assert_eq!((stacks.counts, stacks.unresolved), ((2, 2), 2));
        let leaf = Leaf { ip: 0x77, bp: 0 };
        assert_ne!(stacks.with_leaf(early, stack, leaf, 7, &mut spaces), stack);
    }

    /// Whose callers are at its own address and 1, and 2, and so on, up to as many as its frame pointer says.
    struct Counting;

    impl Unwinder for Counting {
        fn unwind(&mut self, _: &[std::sync::Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
            ((0..=raw.bp).map(|up| raw.ip + up).collect(), true)
        }

        fn shares_callers(&mut self, _: &[std::sync::Arc<Image>], raw: &RawStack, leaf: Leaf) -> bool {
            raw.bp == leaf.bp
        }
    }

    #[test]
    fn a_sample_whose_function_is_another_has_callers_of_its_own() {
        let (mut stacks, mut spaces) = (CallStacks::default(), Spaces::default());
        stacks.unwinder = Some(Box::new(Counting));
        let image = spaces.announce(Image { start: 0x1000, end: 0x2000, pid: 7, ..Image::default() });
        spaces.map(7, image);
        let [user, kernel] = [11, 12].map(|hash| {
            let frames = if hash == 12 { vec![0x99] } else { Vec::new() };
            let bytes = vec![1; 8];
            stacks
                .raw
                .define(hash, RawStack { pid: 7, kernel: frames, ip: 0x1100, bp: 2, bytes, ..RawStack::default() });
            stacks.raw.chain(hash)
        });
        let mut frames = |chain, leaf: Leaf| {
            let stack = stacks.resolve(chain, 7, &mut spaces);
            let found = stacks.with_leaf(chain, stack, leaf, 7, &mut spaces);
            assert_eq!(stacks.with_leaf(chain, stack, leaf, 7, &mut spaces), found);
            let all = &stacks.interner.stacks;
            all.frames(found).map(|frame| all.frame(frame).map_or(0, |f| f.address)).collect::<Vec<u64>>()
        };
        assert_eq!(frames(user, Leaf { ip: 0x1200, bp: 2 }), [0x1200, 0x1100, 0x1101], "the same function");
        assert_eq!(frames(user, Leaf { ip: 0x1200, bp: 0 }), [0x1200, 0x1100, 0x1101], "it is not known");
        assert_eq!(frames(user, Leaf { ip: 0x1200, bp: 1 }), [0x1200, 0x1200], "another one");
        assert_eq!(frames(kernel, Leaf { ip: 0x98, bp: 1 })[0], 0x98, "an instruction of the kernel");
    }
}
