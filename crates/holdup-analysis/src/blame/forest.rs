//! The forest of waiting threads.
//!
//! Threads and *queues* alternate: a thread waits in a queue, and the queue waits for a thread. All that wait for one
//! lock are one queue, whoever holds it; those that wait for a thread without a lock are queues by the kind of their
//! wait. So what a queue's thread does next concerns one queue, not thousands of threads.
//!
//! ```text
//!   threads  a b c ──▶ queue of lock 7 ──▶ thread d ──▶ queue at disk ──▶ thread e (runs: the root)
//!                                                        └ the root's queue: where charges are collected
//! ```

use holdup_trace::{LockId, StackId, ThreadIdx};

use super::key::Key;
use crate::classify::WaitKind;
use crate::intervals::State;

pub(super) const NONE: u32 = u32::MAX;
/// Cells of which a thread remembers that they have counted it.
pub(super) const COUNTED_IN: usize = 16;

/// The integrals of what one thread is charged, up to an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) t: u64,
    pub(super) cpu: f64,
    pub(super) rank: f64,
    pub(super) idle: f64,
}

impl Mark {
    pub(super) fn add(&mut self, other: &Mark) {
        self.t = self.t.wrapping_add(other.t);
        self.cpu += other.cpu;
        self.rank += other.rank;
        self.idle += other.idle;
    }

    /// What has come since `earlier`. Times may be below zero in between: they wrap.
    pub(super) fn since(&self, earlier: &Mark) -> Mark {
        Mark {
            t: self.t.wrapping_sub(earlier.t),
            cpu: self.cpu - earlier.cpu,
            rank: self.rank - earlier.rank,
            idle: self.idle - earlier.idle,
        }
    }
}

/// How a waiting thread counts, whatever its chain ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Not at all: a join, or out of focus.
    None,
    /// Held up if the end of its chain holds it up.
    ByEnd,
    /// Held up whatever the chain ends at: in the middle of its work, or by the user's word.
    HeldUp,
    /// Idle by design.
    Idle,
}

/// How many threads of each class are in a queue and behind its members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) by_end: u32,
    /// Of those, the ones that the world outside may end.
    pub(super) by_end_outside: u32,
    pub(super) held: u32,
    pub(super) idle: u32,
    pub(super) idle_outside: u32,
}

impl Counts {
    pub(super) fn one(class: Class, outside: bool) -> Self {
        let out = u32::from(outside);
        match class {
            Class::None => Counts::default(),
            Class::ByEnd => Counts { by_end: 1, by_end_outside: out, ..Counts::default() },
            Class::HeldUp => Counts { held: 1, ..Counts::default() },
            Class::Idle => Counts { idle: 1, idle_outside: out, ..Counts::default() },
        }
    }

    /// The same behind a thread that is held up whatever its chain ends at: so are all that wait for it.
    pub(super) fn behind_held(self) -> Self {
        Counts { by_end: 0, by_end_outside: 0, held: self.held + self.by_end, ..self }
    }

    /// How many are held up, if the end of their chain holds somebody up, or not.
    pub(super) fn held_up(&self, by_end: bool) -> u32 {
        self.held + if by_end { self.by_end } else { 0 }
    }

    pub(super) fn add(&mut self, other: &Counts) {
        self.by_end += other.by_end;
        self.by_end_outside += other.by_end_outside;
        self.held += other.held;
        self.idle += other.idle;
        self.idle_outside += other.idle_outside;
    }

    pub(super) fn subtract(&mut self, other: &Counts) {
        self.by_end -= other.by_end;
        self.by_end_outside -= other.by_end_outside;
        self.held -= other.held;
        self.idle -= other.idle;
        self.idle_outside -= other.idle_outside;
    }
}

/// What a thread counts as by itself: while it waits in no queue.
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

/// A thread in the sweep.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub(super) state: State,
    /// The queue in which it waits, or [`NONE`].
    pub(super) queue: u32,
    /// The first of the queues that wait for it.
    pub(super) first_queue: u32,
    /// Threads behind it that are held up; kept for roots alone.
    pub(super) behind: u32,
    /// What it counts as by itself, and where that is charged.
    pub(super) role: Role,
    pub(super) cell: u32,
    pub(super) mark: Mark,
    /// In a queue: how it counts there.
    pub(super) class: Class,
    /// In a queue: what the chain's ends that hold nobody up had come to when it joined.
    pub(super) joined: Mark,
    pub(super) joined_at: u64,
    /// In a queue: how it would count there if it were in focus.
    pub(super) anywhere: Class,
    /// The wait that comes next in time: its lock is what a running thread is about to need.
    pub(super) coming: u32,
    /// The last keys of its own charges and their cells, by terminal: mostly the next ones too.
    pub(super) last_keys: [Option<(Key, u32)>; 4],
    /// The last keys and cells of queues that wait for it: of a lock's, too, which waits for another thread each time.
    pub(super) led_keys: [Option<(Key, u32)>; 2],
    /// Cells that have counted it.
    pub(super) counted_in: [(u32, bool); COUNTED_IN],
    /// Whether its wait goes on behind the end of the part.
    pub(super) crossing: bool,
}

impl Thread {
    /// Whether those who wait for it are held up with it, whatever its chain ends at.
    pub(super) fn holds(&self) -> bool {
        self.anywhere == Class::HeldUp
    }
}

/// What makes a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) kind: WaitKind,
    /// For locks.
    pub(super) lock: LockId,
    /// Where user threads wait for one of the kernel: its disk is theirs.
    pub(super) site: StackId,
    /// Whether they are a server's, at home: clients that wait for the same thread are held up where these are not.
    pub(super) at_home: bool,
}

/// Threads that wait for one thread, for one reason.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) kind: Kind,
    /// The thread for which they wait, or [`NONE`].
    pub(super) parent: u32,
    next: u32,
    prev: u32,
    pub(super) members: u32,
    /// Its first member, and where that waits.
    pub(super) member: u32,
    pub(super) member_site: StackId,
    pub(super) counts: Counts,
    /// Next to a root: what is charged at present.
    pub(super) edge: Option<Edge>,
    /// Integrals of the time in which the chain's end held nobody up, while this was next to a root.
    pub(super) off: Mark,
    /// Cells that were charged here, the latest last, and when that ended.
    pub(super) charged: Vec<(u32, u64)>,
    /// When it was attached to its parent.
    pub(super) attached_at: u64,
    /// Whether its parent is the creator of a thread that was not there yet.
    pub(super) passed_on: bool,
    /// The last keys and their cells: mostly the next ones too.
    pub(super) last_keys: [Option<(Key, u32)>; 2],
}

/// A charge under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) key: Key,
    pub(super) cell: u32,
    pub(super) holds: bool,
    pub(super) mark: Mark,
}

impl Queue {
    /// The next one in its parent's list.
    pub(super) fn next(&self) -> u32 {
        self.next
    }
}

#[derive(Debug)]
pub(super) struct Forest {
    pub(super) threads: Vec<Thread>,
    queues: Vec<Queue>,
    free: Vec<u32>,
}

impl Forest {
    pub(super) fn new(threads: usize) -> Self {
        let thread = Thread {
            state: State::Unknown,
            queue: NONE,
            first_queue: NONE,
            behind: 0,
            role: Role::None,
            cell: NONE,
            mark: Mark::default(),
            class: Class::None,
            joined: Mark::default(),
            joined_at: 0,
            anywhere: Class::None,
            coming: NONE,
            last_keys: [None; 4],
            led_keys: [None; 2],
            counted_in: [(NONE, false); COUNTED_IN],
            crossing: false,
        };
        Forest { threads: vec![thread; threads], queues: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn at(&self, i: u32) -> &Thread {
        &self.threads[i as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, i: u32) -> &mut Thread {
        &mut self.threads[i as usize]
    }

    #[inline]
    pub(super) fn queue(&self, q: u32) -> &Queue {
        &self.queues[q as usize]
    }

    #[inline]
    pub(super) fn queue_mut(&mut self, q: u32) -> &mut Queue {
        &mut self.queues[q as usize]
    }

    /// How many queues there are, those that were given up included: they have no edge.
    pub(super) fn queue_count(&self) -> u32 {
        self.queues.len() as u32
    }

    /// A new queue that waits for nobody.
    pub(super) fn add_queue(&mut self, kind: Kind) -> u32 {
        let queue = Queue {
            kind,
            parent: NONE,
            next: NONE,
            prev: NONE,
            members: 0,
            member: NONE,
            member_site: StackId::NONE,
            counts: Counts::default(),
            edge: None,
            off: Mark::default(),
            charged: Vec::new(),
            attached_at: 0,
            passed_on: false,
            last_keys: [None; 2],
        };
        if let Some(q) = self.free.pop() {
            let charged = std::mem::take(&mut self.queue_mut(q).charged);
            *self.queue_mut(q) = Queue { charged, ..queue };
            self.queue_mut(q).charged.clear();
            return q;
        }
        self.queues.push(queue);
        self.queues.len() as u32 - 1
    }

    /// Gives up an empty queue.
    pub(super) fn remove_queue(&mut self, q: u32) {
        self.free.push(q);
    }

    /// Puts a queue into its parent's list.
    pub(super) fn hang(&mut self, q: u32, parent: u32) {
        let first = std::mem::replace(&mut self.at_mut(parent).first_queue, q);
        let queue = self.queue_mut(q);
        (queue.parent, queue.next, queue.prev) = (parent, first, NONE);
        if first != NONE {
            self.queue_mut(first).prev = q;
        }
    }

    /// Takes a queue out of its parent's list.
    pub(super) fn unhang(&mut self, q: u32) {
        let Queue { parent, next, prev, .. } = *self.queue(q);
        match prev {
            NONE => self.at_mut(parent).first_queue = next,
            _ => self.queue_mut(prev).next = next,
        }
        if next != NONE {
            self.queue_mut(next).prev = prev;
        }
        let queue = self.queue_mut(q);
        (queue.parent, queue.next, queue.prev) = (NONE, NONE, NONE);
    }

    /// The queue behind `q` in its parent's list.
    pub(super) fn next_queue(&self, q: u32) -> u32 {
        self.queue(q).next
    }

    /// The queues that wait for thread `i`.
    pub(super) fn queues_of(&self, i: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |q: u32| (q != NONE).then_some(q);
        std::iter::successors(some(self.at(i).first_queue), move |&q| some(self.queue(q).next))
    }

    /// The queue `q`, the one in which its parent waits, and so on to the last one before a root.
    pub(super) fn path(&self, q: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |q: u32| (q != NONE).then_some(q);
        std::iter::successors(some(q), move |&q| {
            let parent = self.queue(q).parent;
            if parent == NONE { None } else { some(self.at(parent).queue) }
        })
    }

    /// The same up to the first parent that holds up those who wait for it, whatever its own chain ends at.
    pub(super) fn path_by_end(&self, q: u32) -> impl Iterator<Item = u32> + '_ {
        let mut over = false;
        self.path(q).take_while(move |&q| {
            let parent = self.queue(q).parent;
            !std::mem::replace(&mut over, parent != NONE && self.at(parent).holds())
        })
    }

    /// Whether the chain of thread `i` comes to thread `to`.
    pub(super) fn leads_to(&self, i: u32, to: u32) -> bool {
        i == to || self.path(self.at(i).queue).any(|q| self.queue(q).parent == to)
    }

    /// The threads on the chain of thread `i` from there to thread `to`, which is on it.
    pub(super) fn circle(&self, i: u32, to: u32) -> impl Iterator<Item = ThreadIdx> + '_ {
        let parents = self.path(self.at(i).queue).map(|q| self.queue(q).parent);
        let before = std::iter::once(i).chain(parents).take_while(move |&thread| thread != to && thread != NONE);
        before.chain(std::iter::once(to)).map(ThreadIdx)
    }

    /// Whether the chain of thread `i` comes through the queue `q`.
    pub(super) fn leads_through(&self, i: u32, q: u32) -> bool {
        self.path(self.at(i).queue).any(|on_path| on_path == q)
    }
}
