//! The forest of waiting threads: parent pointers with lists of children, all by index.

use super::cells::Key;
use crate::intervals::State;

pub(super) const NONE: u32 = u32::MAX;

/// A thread in the sweep.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) state: State,
    pub(super) parent: u32,
    pub(super) first_child: u32,
    next: u32,
    prev: u32,
    /// The cell that is charged at present, or [`NONE`].
    pub(super) cell: u32,
    /// Which counter it is in at present.
    pub(super) role: Role,
    /// Held-up threads whose chain ends at this one.
    pub(super) behind: u32,
    /// The root to whose `behind` it was counted.
    pub(super) counted_at: u32,
    pub(super) mark: Mark,
    /// The last cells and waits that were counted, by terminal, so that each wait counts once in a cell.
    pub(super) seen: [(u32, u32); 4],
    /// The last keys and their cells, by terminal: mostly the next ones too.
    pub(super) last_keys: [Option<(Key, u32)>; 4],
    /// The wait that comes next in time: its lock is what a running thread is about to need.
    pub(super) coming: u32,
}

/// What a thread counts as at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Neither.
    None,
    /// Held up.
    HeldUp,
    /// Runnable, and nobody waits for it.
    Queued,
    /// Idle by design.
    Idle,
}

/// The integrals at the last charge.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) t: u64,
    pub(super) cpu: f64,
    pub(super) rank: f64,
    pub(super) idle: f64,
}

#[derive(Debug)]
pub(super) struct Forest {
    pub(super) nodes: Vec<Node>,
}

impl Forest {
    pub(super) fn new(threads: usize) -> Self {
        let node = Node {
            state: State::Unknown,
            parent: NONE,
            first_child: NONE,
            next: NONE,
            prev: NONE,
            cell: NONE,
            role: Role::None,
            behind: 0,
            counted_at: NONE,
            mark: Mark::default(),
            seen: [(NONE, NONE); 4],
            last_keys: [None; 4],
            coming: NONE,
        };
        Forest { nodes: vec![node; threads] }
    }

    pub(super) fn at(&self, i: u32) -> &Node {
        &self.nodes[i as usize]
    }

    pub(super) fn at_mut(&mut self, i: u32) -> &mut Node {
        &mut self.nodes[i as usize]
    }

    /// Makes `parent` the one for whom `child` waits. False if that would close a circle.
    pub(super) fn link(&mut self, child: u32, parent: u32) -> bool {
        if self.root(parent) == child {
            return false;
        }
        let first = self.at(parent).first_child;
        let node = self.at_mut(child);
        (node.parent, node.next, node.prev) = (parent, first, NONE);
        if first != NONE {
            self.at_mut(first).prev = child;
        }
        self.at_mut(parent).first_child = child;
        true
    }

    pub(super) fn unlink(&mut self, child: u32) {
        let (parent, next, prev) = (self.at(child).parent, self.at(child).next, self.at(child).prev);
        if parent == NONE {
            return;
        }
        if prev == NONE {
            self.at_mut(parent).first_child = next;
        } else {
            self.at_mut(prev).next = next;
        }
        if next != NONE {
            self.at_mut(next).prev = prev;
        }
        let node = self.at_mut(child);
        (node.parent, node.next, node.prev) = (NONE, NONE, NONE);
    }

    /// The end of the chain that begins at `i`. O(depth).
    pub(super) fn root(&self, mut i: u32) -> u32 {
        while self.at(i).parent != NONE {
            i = self.at(i).parent;
        }
        i
    }

    /// The children of `i`.
    pub(super) fn children(&self, i: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |c: u32| (c != NONE).then_some(c);
        std::iter::successors(some(self.at(i).first_child), move |&c| some(self.at(c).next))
    }

    /// `i` and all behind it, each after the one it waits for.
    pub(super) fn subtree(&self, i: u32, into: &mut Vec<u32>) {
        into.clear();
        into.push(i);
        let mut at = 0;
        while at < into.len() {
            let node = into[at];
            into.extend(self.children(node));
            at += 1;
        }
    }
}
