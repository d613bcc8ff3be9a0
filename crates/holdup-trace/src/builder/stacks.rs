//! Call chains become stacks: each is resolved once for each address space that its process has in its time.

use rustc_hash::FxHashMap;

use super::raw::RawStacks;
use super::spaces::Spaces;
use crate::dict::{Chains, StackInterner};
use crate::{ChainId, SpaceId, StackId, Unwinder};

/// What a chain was resolved to last.
#[derive(Debug, Clone, Copy)]
struct Resolved {
    stack: StackId,
    /// Whether the outermost function was reached.
    complete: bool,
    space: SpaceId,
    /// [`Spaces::changes`] when `space` was last seen to be that of the chain's process; 0 for never.
    as_of: u32,
}

const NEVER: Resolved = Resolved { stack: StackId::NONE, complete: false, space: SpaceId(u32::MAX), as_of: 0 };

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

    /// Resolves a chain in the address space that its process has now.
    #[inline]
    pub fn resolve(&mut self, chain: ChainId, spaces: &mut Spaces) -> StackId {
        if chain == ChainId::NONE {
            return StackId::NONE;
        }
        let known = match self.last.get(chain.index()) {
            Some(known) if known.as_of == spaces.changes() => Some(*known),
            _ => self.look_up(chain, spaces),
        };
        let Some(known) = known else {
            self.unresolved += 1;
            return StackId::NONE;
        };
        self.counts.0 += 1;
        self.counts.1 += u64::from(known.complete);
        known.stack
    }

    /// A copied stack serves all samples with the same callers: the leaf is the sample's own.
    pub fn with_leaf(&mut self, chain: ChainId, stack: StackId, ip: u64) -> StackId {
        if stack == StackId::NONE || self.raw.number(chain).is_none() {
            return stack;
        }
        self.interner.replace_leaf(stack, ip)
    }

    /// `None` if the chain's stack has not come.
    fn look_up(&mut self, chain: ChainId, spaces: &mut Spaces) -> Option<Resolved> {
        let raw = self.raw.number(chain);
        let pid = match (raw, self.chains.get(chain)) {
            (Some(number), _) => self.raw.get(number)?.pid,
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
        found.as_of = spaces.changes();
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
        Resolved { stack, complete, space, as_of: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawStack;

    #[test]
    fn a_chain_is_another_stack_in_another_program() {
        let (mut stacks, mut spaces) = (CallStacks::default(), Spaces::default());
        let chain = stacks.chain(7, &[], &[0x10, 0x20]);
        let before = stacks.resolve(chain, &mut spaces);
        assert_eq!(stacks.resolve(chain, &mut spaces), before);
        spaces.exec(9);
        assert_eq!(stacks.resolve(chain, &mut spaces), before, "another process has changed");
        spaces.exec(7);
        let after = stacks.resolve(chain, &mut spaces);
        assert_ne!(after, before);
        assert_eq!((stacks.counts, stacks.unresolved), ((4, 4), 0));
    }

    #[test]
    fn a_copied_stack_may_come_late_or_never() {
        let (mut stacks, mut spaces) = (CallStacks::default(), Spaces::default());
        let [early, never] = [11, 12].map(|hash| stacks.raw.chain(hash));
        assert_eq!(stacks.resolve(early, &mut spaces), StackId::NONE);
        stacks.raw.define(11, RawStack { pid: 7, kernel: vec![0x99], ..RawStack::default() });
        let stack = stacks.resolve(early, &mut spaces);
        assert_ne!(stack, StackId::NONE);
        assert_eq!((stacks.resolve(never, &mut spaces), stacks.resolve(early, &mut spaces)), (StackId::NONE, stack));
        assert_eq!((stacks.counts, stacks.unresolved), ((2, 2), 2));
        assert_ne!(stacks.with_leaf(early, stack, 0x77), stack);
    }
}
