//! Who waits for whom: threads join and leave queues, queues change the thread for which they wait.

use holdup_trace::{Cpu, LockId, StackId, ThreadIdx};

use super::super::forest::{Class, Counts, Kind, Mark, NONE, Queue};
use super::Sweep;
use super::charge::note;
use super::judge::lock_of;
use crate::classify::WaitKind;
use crate::intervals::{Place, Wait, is_child};

impl Sweep<'_> {
    /// Going backwards, thread `i` begins to wait at this instant: for whom?
    pub(super) fn start_waiting(&mut self, i: u32, w: u32) {
        self.forest.at_mut(i).coming = w;
        let wait = self.wait(w);
        let waker = wait.waker;
        let real = waker.is_real() && waker.index() < self.forest.threads.len() && waker.0 != i;
        let queue = if wait.kind == WaitKind::Lock && self.locks.has(wait.lock) {
            self.lock_queue(i, wait, real)
        } else if !real {
            self.holder_by_running(i, wait).map(|holder| self.queue_for(i, wait, holder))
        } else if self.is_input(wait) || self.comes_home(i, wait) {
            self.relay(i, wait);
            None
        } else if self.forest.leads_to(waker.0, i) {
            self.out.cycles += 1;
            None
        } else {
            Some(self.queue_for(i, wait, waker.0))
        };
        match queue {
            Some(q) => self.join(i, q, wait),
            None => self.charge_self(i),
        }
    }

    /// Whether it waits for its client while others wait for what it has begun: the chain ends here, whatever the client does. A server
    /// that ends the wait is no client, but one that was asked for something, and a process that it has started itself is none either.
    fn comes_home(&self, i: u32, wait: &Wait) -> bool {
        let program = |thread: ThreadIdx| self.study.trace.threads.process.get(thread.index());
        // What is read from a pipe is the next piece of the same work; a poll may be for anything.
        let serves = self.study.timeline.is_server(wait.thread);
        let may_be_client = wait.kind == WaitKind::Input && serves.is_none() || serves == Some(true);
        wait.place == Place::Home
            && wait.kind.is_for_input()
            && may_be_client
            && self.study.timeline.is_server(wait.waker) != Some(true)
            && program(wait.waker) != program(wait.thread)
            && self.forest.queues_of(i).any(|q| self.forest.queue(q).counts.held > 0)
            && !is_child(self.study.trace, wait.waker, wait.thread)
    }

    /// All that wait for one lock wait for its holder: the owner where one is known, else who releases it next.
    fn lock_queue(&mut self, i: u32, wait: &Wait, has_waker: bool) -> Option<u32> {
        let lock = wait.lock;
        if has_waker {
            // A wait that goes on was ended by its time-out: its last part has the waker. And where the part ends the
            // waker of one that goes on is not the next to release it.
            if wait.goes_on == 0 && !self.starting {
                self.locks.set_releaser(lock, wait.waker.0);
            }
        } else if wait.is_timed_out() && !self.study.timeline.is_owned(lock) {
            let holder = self.holder_by_running(i, wait)?;
            self.locks.set_releaser(lock, holder);
        }
        if self.locks.owner(lock) == i {
            // Who waits for a lock does not own it.
            self.locks.set_owner(lock, NONE);
        }
        if self.locks.queue(lock) == NONE {
            let q = self.forest.add_queue(Kind { kind: WaitKind::Lock, lock, site: StackId::NONE, at_home: false });
            self.locks.set_queue(lock, q);
        }
        let q = self.locks.queue(lock);
        if self.forest.queue(q).members == 0 {
            let queue = self.forest.queue_mut(q);
            (queue.member, queue.member_site) = (i, wait.stack);
        }
        self.find_holder(lock);
        let parent = self.forest.queue(q).parent;
        if parent != NONE && self.forest.leads_to(parent, i) {
            self.out.cycles += 1;
            if wait.open {
                self.out.deadlocked.extend(self.forest.circle(parent, i));
            }
            self.drop_if_empty(q);
            return None;
        }
        Some(q)
    }

    /// Who has what a thread waits for until a time is over: nobody's release ends that, and nobody is known to hold it; but some locks are
    /// kept by whoever runs.
    fn holder_by_running(&self, i: u32, wait: &Wait) -> Option<u32> {
        let kept_by_runner = wait.is_timed_out() && self.study.classifier.facts(wait.stack).kept_by_runner;
        kept_by_runner.then(|| self.runs_beside(i)).flatten()
    }

    /// The only other thread of its process that runs at this instant.
    fn runs_beside(&self, i: u32) -> Option<u32> {
        let pid = |thread: u32| self.study.trace.threads.pid.get(thread as usize);
        let cpus = (0..self.study.timeline.cpus).filter_map(|cpu| self.processors.running(Cpu(cpu as u16)));
        let mut others = cpus.filter(|&other| other != NONE && other != i && pid(other) == pid(i));
        others.next().filter(|_| others.next().is_none())
    }

    /// The queue of those that wait for thread `parent` for the same reason.
    fn queue_for(&mut self, i: u32, wait: &Wait, parent: u32) -> u32 {
        let focus = self.study.focus;
        let proxy = focus.is_kernel(ThreadIdx(parent)) && !focus.is_kernel(ThreadIdx(i));
        let site = if proxy { wait.stack } else { StackId::NONE };
        let kind = Kind { kind: wait.kind, lock: lock_of(wait), site, at_home: self.serves_at_home(wait) };
        let fits = |q: &Queue| q.kind == kind && !q.passed_on;
        let known = self.forest.queues_of(parent).find(|&q| fits(self.forest.queue(q)));
        if let Some(q) = known.filter(|&q| self.forest.queue(q).members > 0) {
            return q;
        }
        let q = known.unwrap_or_else(|| {
            let q = self.forest.add_queue(kind);
            self.forest.hang(q, parent);
            q
        });
        let now = self.clock.total.t;
        let queue = self.forest.queue_mut(q);
        (queue.member, queue.member_site, queue.attached_at) = (i, wait.stack, now);
        queue.off = Mark::default();
        queue.charged.clear();
        if self.forest.at(parent).queue == NONE {
            self.activate(q);
        }
        q
    }

    /// The owner of a lock is known from here on, going backwards, or no longer.
    pub(super) fn own(&mut self, lock: LockId, owner: u32) {
        self.locks.set_owner(lock, owner);
        if self.locks.has(lock) {
            let q = self.locks.queue(lock);
            if q != NONE && self.forest.queue(q).members > 0 {
                self.find_holder(lock);
            }
        }
    }

    /// Lets the queue of a lock wait for the lock's present holder.
    fn find_holder(&mut self, lock: LockId) {
        let q = self.locks.queue(lock);
        let old = self.forest.queue(q).parent;
        let known = [self.locks.owner(lock), self.locks.releaser(lock)];
        let fits = |&i: &u32| i != NONE && (i == old || !self.forest.leads_through(i, q));
        let holder = known.into_iter().find(fits).unwrap_or(NONE);
        if holder == old && (holder != NONE || self.forest.queue(q).edge.is_some()) {
            return;
        }
        if old != NONE {
            self.detach(q);
        } else {
            self.retire(q);
        }
        if holder != NONE {
            self.attach(q, holder);
        } else {
            self.activate(q);
        }
    }

    /// Thread `i`, until now a root, waits in queue `q`.
    fn join(&mut self, i: u32, q: u32, wait: &Wait) {
        let mut own = self.forest.at(i).first_queue;
        let mut counts = Counts::default();
        let off = self.off(q);
        let anywhere = self.class_anywhere(wait);
        self.forest.at_mut(i).anywhere = anywhere;
        let behind = self.off_behind(i, off);
        while own != NONE {
            self.retire(own);
            let queue = self.forest.queue_mut(own);
            queue.off = queue.off.since(&behind);
            counts.add(&queue.counts);
            own = queue.next();
        }
        counts = self.seen_behind(i, counts);
        let class = self.in_focus(i, anywhere);
        counts.add(&Counts::one(class, self.is_for_outside(wait)));
        let total = self.clock.total;
        let thread = self.forest.at_mut(i);
        (thread.queue, thread.class) = (q, class);
        (thread.mark, thread.joined, thread.joined_at) = (total, off, total.t);
        self.forest.queue_mut(q).members += 1;
        self.change_counts(q, &counts, true);
    }

    /// Thread `i` waits no longer, going backwards: it is a root again.
    pub(super) fn leave(&mut self, i: u32) {
        let thread = self.forest.at(i);
        let (q, joined, joined_at) = (thread.queue, thread.joined, thread.joined_at);
        let off = self.off(q);
        let wait = thread_wait(self, i);
        let behind = self.off_behind(i, off);
        let mut counts = Counts::default();
        let mut passed = std::mem::take(&mut self.passed);
        self.charged_since(q, joined_at, &mut passed);
        let mut own = self.forest.at(i).first_queue;
        while own != NONE {
            self.inherit(own, &behind, &passed);
            counts.add(&self.forest.queue(own).counts);
            own = self.forest.next_queue(own);
        }
        counts = self.seen_behind(i, counts);
        counts.add(&Counts::one(self.forest.at(i).class, self.is_for_outside(wait)));
        self.change_counts(q, &counts, false);
        let thread = self.forest.at_mut(i);
        (thread.queue, thread.anywhere) = (NONE, Class::None);
        self.forest.queue_mut(q).members -= 1;
        self.count_in(i, wait, &off.since(&joined), &passed);
        self.passed = passed;
        self.drop_if_empty(q);
    }

    /// Charges and counts the wait that thread `i` has in a queue.
    pub(super) fn count_in(&mut self, i: u32, wait: &Wait, off: &Mark, passed: &[(u32, u64)]) {
        if self.forest.at(i).class != Class::None {
            let held = self.forest.at(i).class != Class::Idle;
            self.scratch.extend(passed.iter().filter(|_| held).map(|(cell, _)| *cell));
            self.charge_own(i, wait, off);
            self.count_wait(i);
        }
    }

    fn drop_if_empty(&mut self, q: u32) {
        if self.forest.queue(q).members > 0 {
            return;
        }
        // Who waited for somebody will mostly do so again: the queue stays, but for those of which there may be many.
        let Queue { kind, passed_on, .. } = *self.forest.queue(q);
        let stays = kind.site == StackId::NONE && !passed_on && !self.is_of_lock(q);
        if stays || self.forest.queue(q).parent == NONE {
            self.retire(q);
        } else {
            self.detach(q);
        }
        if stays {
            return;
        }
        if self.is_of_lock(q) {
            self.forest.queue_mut(q).charged.clear();
            // Who releases it the next time that threads wait for it need not hold it now.
            let lock = self.forest.queue(q).kind.lock;
            self.locks.set_releaser(lock, NONE);
        } else {
            self.forest.remove_queue(q);
        }
    }

    fn is_of_lock(&self, q: u32) -> bool {
        let Kind { kind, lock, .. } = self.forest.queue(q).kind;
        kind == WaitKind::Lock && self.locks.has(lock)
    }

    /// The queue `q`, which waits for nobody, waits for thread `parent`.
    fn attach(&mut self, q: u32, parent: u32) {
        self.forest.hang(q, parent);
        self.forest.queue_mut(q).attached_at = self.clock.total.t;
        let above = self.forest.at(parent).queue;
        if above == NONE {
            self.activate(q);
            self.review(parent);
            return;
        }
        let off = self.off(above);
        let off = self.off_behind(parent, off);
        let queue = self.forest.queue_mut(q);
        queue.off = queue.off.since(&off);
        let counts = queue.counts;
        self.change_counts(above, &self.seen_behind(parent, counts), true);
    }

    /// Thread `i` is not there before this instant: who waited for it waits for its creator to begin it.
    pub(super) fn pass_on(&mut self, i: u32) {
        let creator = self.study.trace.threads.parent.get(i as usize).copied().unwrap_or_default();
        if !creator.is_real() || creator.index() >= self.forest.threads.len() || creator.0 == i {
            return;
        }
        let waits = |q: &u32| self.forest.queue(*q).members > 0 && !self.is_of_lock(*q);
        let own: Vec<u32> = self.forest.queues_of(i).filter(waits).collect();
        self.move_to(own, creator.0);
    }

    /// A server that was at home when a client sent it something, and then woke others of its clients, which had waited meanwhile, was but
    /// the way to them (a broker, a channel, a store that is watched): they waited for the sender.
    fn relay(&mut self, i: u32, wait: &Wait) {
        let is_server = |thread: ThreadIdx| self.study.timeline.is_server(thread) == Some(true);
        if wait.place != Place::Home || !is_server(wait.thread) {
            return;
        }
        let pid = |thread: ThreadIdx| self.study.trace.threads.pid.get(thread.index());
        let asks = |q: u32| {
            let queue = self.forest.queue(q);
            queue.members > 0 && queue.kind.kind.is_for_input() && !is_server(ThreadIdx(queue.member))
        };
        // Another of its threads may do what has come, and answer.
        let answers = |q: u32| {
            let queue = self.forest.queue(q);
            let is_own = queue.members > 0 && pid(ThreadIdx(queue.member)) == pid(wait.thread);
            is_own && self.forest.queues_of(queue.member).any(asks)
        };
        let own: Vec<u32> = self.forest.queues_of(i).filter(|&q| asks(q) || answers(q)).collect();
        self.move_to(own, wait.waker.0);
    }

    /// Who waits in these queues waits for thread `to` instead.
    fn move_to(&mut self, mut queues: Vec<u32>, to: u32) {
        queues.retain(|q| !self.forest.leads_through(to, *q));
        for q in queues {
            self.detach(q);
            self.forest.queue_mut(q).passed_on = true;
            self.attach(q, to);
        }
    }

    /// The queue waits for nobody.
    fn detach(&mut self, q: u32) {
        let queue = self.forest.queue(q);
        let (parent, counts, since) = (queue.parent, queue.counts, queue.attached_at);
        let above = self.forest.at(parent).queue;
        if above == NONE {
            self.retire(q);
        } else {
            let off = self.off(above);
            let off = self.off_behind(parent, off);
            let mut passed = std::mem::take(&mut self.passed);
            self.charged_since(above, since, &mut passed);
            self.inherit(q, &off, &passed);
            self.passed = passed;
            self.change_counts(above, &self.seen_behind(parent, counts), false);
        }
        self.forest.unhang(q);
        if above == NONE {
            self.review(parent);
        }
    }

    /// What was charged above a queue that is cut off stays true of its members.
    fn inherit(&mut self, q: u32, off: &Mark, passed: &[(u32, u64)]) {
        let queue = self.forest.queue_mut(q);
        queue.off.add(off);
        passed.iter().for_each(|&(cell, until)| note(&mut queue.charged, cell, until));
    }

    /// Threads come to queue `q`, or go. To be asked after [`off`](Self::off), which has charged up to now.
    fn change_counts(&mut self, q: u32, by: &Counts, come: bool) {
        let (mut at, mut by) = (q, *by);
        while self.forest.queue(at).edge.is_none() {
            let queue = self.forest.queue_mut(at);
            if come {
                queue.counts.add(&by);
            } else {
                queue.counts.subtract(&by);
            }
            let parent = queue.parent;
            by = self.seen_behind(parent, by);
            at = self.forest.at(parent).queue;
        }
        self.change_edge(at, &by, come);
    }
}

fn thread_wait<'a>(sweep: &Sweep<'a>, i: u32) -> &'a Wait {
    let wait = sweep.forest.at(i).state.wait().expect("only waiting threads are in queues");
    sweep.wait(wait)
}
