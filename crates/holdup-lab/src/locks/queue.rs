//! Locks whose waiters each spin on a line of their own. Nodes are named by number + 1; 0 is nobody.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdup_sync::Padded;

use super::Lock;
use crate::topology;

const NOBODY: usize = 0;

#[derive(Default)]
struct Node {
    next: AtomicUsize,
    go: AtomicUsize,
    /// NUMA node of the waiter, in [`Cna`].
    home: AtomicUsize,
    /// In [`Cna`], of the first in the second queue: its last.
    last: AtomicUsize,
}

fn nodes(threads: usize) -> Vec<Padded<Node>> {
    (0..threads).map(|_| Padded::default()).collect()
}

/// Spins until somebody stands there.
fn await_some(place: &AtomicUsize) -> usize {
    loop {
        match place.load(Ordering::Acquire) {
            NOBODY => spin_loop(),
            some => return some,
        }
    }
}

/// A queue in which each waiter spins on its own node (Mellor-Crummey and Scott 1991).
pub struct Mcs {
    tail: Padded<AtomicUsize>,
    nodes: Vec<Padded<Node>>,
}

impl Mcs {
    /// A lock for this many threads.
    pub fn new(threads: usize) -> Self {
        Mcs { tail: Padded::default(), nodes: nodes(threads) }
    }
}

impl Lock for Mcs {
    #[inline]
    fn with<R>(&self, who: usize, section: impl FnOnce() -> R) -> R {
        let node = &self.nodes[who];
        node.next.store(NOBODY, Ordering::Relaxed);
        node.go.store(0, Ordering::Relaxed);
        let before = self.tail.swap(who + 1, Ordering::AcqRel);
        if before != NOBODY {
            self.nodes[before - 1].next.store(who + 1, Ordering::Release);
            await_some(&node.go);
        }
        let result = section();
        let alone = node.next.load(Ordering::Acquire) == NOBODY
            && self.tail.compare_exchange(who + 1, NOBODY, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if !alone {
            let next = await_some(&node.next);
            self.nodes[next - 1].go.store(1, Ordering::Release);
        }
        result
    }
}

/// Handed over with [`Node::go`]: no second queue. Larger values are its first node + 1.
const GO: usize = 1;
/// After so many hand-overs within a NUMA node the second queue has its turn.
const LOCAL_TURNS: usize = 256;

/// MCS with a second queue for waiters of other NUMA nodes (Dice and Kogan, "Compact NUMA-aware locks", 2019).
pub struct Cna {
    tail: Padded<AtomicUsize>,
    nodes: Vec<Padded<Node>>,
    /// Hand-overs; only the holder counts.
    turns: AtomicUsize,
}

impl Cna {
    /// A lock for this many threads.
    pub fn new(threads: usize) -> Self {
        Cna { tail: Padded::default(), nodes: nodes(threads), turns: AtomicUsize::new(0) }
    }

    fn node(&self, name: usize) -> &Node {
        &self.nodes[name - 1]
    }

    fn acquire(&self, me: usize) {
        let node = self.node(me);
        node.next.store(NOBODY, Ordering::Relaxed);
        node.go.store(0, Ordering::Relaxed);
        node.home.store(topology::current_node(), Ordering::Relaxed);
        match self.tail.swap(me, Ordering::AcqRel) {
            NOBODY => node.go.store(GO, Ordering::Relaxed),
            before => {
                self.node(before).next.store(me, Ordering::Release);
                await_some(&node.go);
            }
        }
    }

    fn release(&self, me: usize) {
        let node = self.node(me);
        if node.next.load(Ordering::Acquire) == NOBODY {
            if self.leave_empty(me) {
                return;
            }
            await_some(&node.next);
        }
        let turns = self.turns.load(Ordering::Relaxed) + 1;
        self.turns.store(turns, Ordering::Relaxed);
        let local = if turns.is_multiple_of(LOCAL_TURNS) { None } else { self.local_successor(me) };
        let go = node.go.load(Ordering::Relaxed);
        match local {
            Some(next) => self.node(next).go.store(go, Ordering::Release),
            None if go > GO => {
                let first = self.node(go - 1);
                let last = self.node(first.last.load(Ordering::Relaxed));
                last.next.store(node.next.load(Ordering::Relaxed), Ordering::Release);
                first.go.store(GO, Ordering::Release);
            }
            None => self.node(node.next.load(Ordering::Relaxed)).go.store(GO, Ordering::Release),
        }
    }

    /// Nobody seems to wait in the main queue: the second takes its place, or the lock is free. Fails if somebody came.
    fn leave_empty(&self, me: usize) -> bool {
        let go = self.node(me).go.load(Ordering::Relaxed);
        let new_tail = if go > GO { self.node(go - 1).last.load(Ordering::Relaxed) } else { NOBODY };
        let left = self.tail.compare_exchange(me, new_tail, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if left && go > GO {
            self.node(go - 1).go.store(GO, Ordering::Release);
        }
        left
    }

    /// The next waiter of the holder's NUMA node; those before it move to the second queue.
    fn local_successor(&self, me: usize) -> Option<usize> {
        let home = self.node(me).home.load(Ordering::Relaxed);
        let first = self.node(me).next.load(Ordering::Acquire);
        let (mut before, mut at) = (NOBODY, first);
        while at != NOBODY && self.node(at).home.load(Ordering::Relaxed) != home {
            (before, at) = (at, self.node(at).next.load(Ordering::Acquire));
        }
        if at != NOBODY && before != NOBODY {
            self.set_aside(me, first, before);
        }
        (at != NOBODY).then_some(at)
    }

    /// Appends the waiters from `first` to `last` to the second queue.
    fn set_aside(&self, me: usize, first: usize, last: usize) {
        let go = &self.node(me).go;
        if go.load(Ordering::Relaxed) > GO {
            let head = self.node(go.load(Ordering::Relaxed) - 1);
            self.node(head.last.load(Ordering::Relaxed)).next.store(first, Ordering::Release);
        } else {
            go.store(first + 1, Ordering::Relaxed);
        }
        self.node(last).next.store(NOBODY, Ordering::Relaxed);
        self.node(go.load(Ordering::Relaxed) - 1).last.store(last, Ordering::Relaxed);
    }
}

impl Lock for Cna {
    #[inline]
    fn with<R>(&self, who: usize, section: impl FnOnce() -> R) -> R {
        self.acquire(who + 1);
        let result = section();
        self.release(who + 1);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_of_another_node_are_set_aside_and_served_later() {
        let lock = Cna::new(4);
        lock.acquire(1);
        // Waiters 2 (far), 3 (far) and 4 (near) in this order, as they would have queued themselves.
        for (waiter, home) in [(2, 9), (3, 9), (4, lock.node(1).home.load(Ordering::Relaxed))] {
            lock.node(waiter).home.store(home, Ordering::Relaxed);
            let before = lock.tail.swap(waiter, Ordering::AcqRel);
            lock.node(before).next.store(waiter, Ordering::Release);
        }
        let served = |waiter: usize| lock.node(waiter).go.load(Ordering::Relaxed) != 0;
        lock.release(1);
        assert!(served(4) && !served(2) && !served(3));
        lock.release(4);
        assert!(served(2) && !served(3));
        lock.release(2);
        assert!(served(3));
        lock.release(3);
        assert_eq!(lock.tail.load(Ordering::Relaxed), NOBODY);
    }
}
