//! Lazy charging: what was waited for up to now, and what is waited for from here on.

use holdup_trace::ThreadIdx;

use super::super::Study;
use super::super::cells::{As, Counted};
use super::super::forest::{COUNTED_IN, Class, Counts, Edge, Mark, NONE, Role};
use super::super::key::{Key, Terminal};
use super::Sweep;
use crate::intervals::{Place, State, Wait};

/// Cells remembered for a queue, so that each wait is counted where it was charged: the latest.
const REMEMBERED: usize = 8;

/// Notes that `cell` was charged up to `until`, going backwards.
pub(super) fn note(charged: &mut Vec<(u32, u64)>, cell: u32, until: u64) {
    if let Some(last) = charged.last_mut().filter(|last| last.0 == cell) {
        last.1 = last.1.max(until);
        return;
    }
    charged.retain(|c| c.0 != cell || c.1 > until);
    if charged.iter().any(|c| c.0 == cell) {
        return;
    }
    let at = charged.partition_point(|c| c.1 <= until);
    charged.insert(at, (cell, until));
    if charged.len() > REMEMBERED {
        charged.remove(0);
    }
}

impl Sweep<'_> {
    /// Charges what a queue next to a root was waiting for up to this instant.
    #[inline]
    pub(super) fn flush(&mut self, q: u32) {
        let total = self.clock.total;
        let queue = self.forest.queue_mut(q);
        let Some(edge) = &mut queue.edge else { return };
        if edge.mark.t == total.t {
            return;
        }
        let passed = total.since(&edge.mark);
        let mark = std::mem::replace(&mut edge.mark, total);
        if !edge.holds {
            queue.off.add(&passed);
        }
        let held = queue.counts.held_up(edge.holds);
        if held > 0 {
            // Wake-ups are counted by those that are woken, not by those that wait for them.
            if edge.key.terminal != Terminal::Waking {
                note(&mut queue.charged, edge.cell, total.t);
            }
            let n = f64::from(held);
            if let Some(recorder) = &mut self.recorder {
                recorder.charge(edge.cell, &self.cells.keys, &mark, &total, n);
            }
            let cell = self.cells.at(edge.cell);
            cell.thread_ns = cell.thread_ns.saturating_add(u64::from(held).saturating_mul(passed.t));
            cell.cpu_ns += n * passed.cpu;
            cell.rank_ns += n * passed.rank;
        }
    }

    /// Counts the threads of a queue next to a root among those that are held up or idle at present, or no longer.
    #[inline]
    pub(super) fn count_edge(&mut self, q: u32, counts: bool) {
        let queue = self.forest.queue(q);
        let (c, parent) = (queue.counts, queue.parent);
        let Some(edge) = queue.edge else { return };
        let (held, idle, outside) = match edge.holds {
            true => (c.by_end + c.held, c.idle, c.idle_outside),
            false => (c.held, c.idle + c.by_end, c.idle_outside + c.by_end_outside),
        };
        self.clock.present.change(held, edge.holds && edge.key.is_for_thread(), idle, outside, counts);
        if held > 0 {
            let t = self.clock.time();
            if counts { self.cells.enter(edge.cell, t) } else { self.cells.leave(edge.cell, t) }
        }
        if parent != NONE {
            let behind = &mut self.forest.at_mut(parent).behind;
            *behind = if counts { *behind + held } else { *behind - held };
        }
    }

    /// Threads come to a queue next to a root, or go; it is charged up to now.
    #[inline]
    pub(super) fn change_edge(&mut self, q: u32, by: &Counts, come: bool) {
        let queue = self.forest.queue_mut(q);
        let Some(edge) = queue.edge else { return };
        let of = |c: &Counts| c.held_up(edge.holds);
        let before = of(&queue.counts);
        if come {
            queue.counts.add(by);
        } else {
            queue.counts.subtract(by);
        }
        let (after, parent) = (of(&queue.counts), queue.parent);
        let (held, mut idle, mut outside) = (of(by), by.idle, by.idle_outside);
        if !edge.holds {
            (idle, outside) = (idle + by.by_end, outside + by.by_end_outside);
        }
        self.clock.present.change(held, edge.holds && edge.key.is_for_thread(), idle, outside, come);
        if (before == 0) != (after == 0) {
            let t = self.clock.time();
            if come { self.cells.enter(edge.cell, t) } else { self.cells.leave(edge.cell, t) }
        }
        if parent != NONE && held > 0 {
            let behind = &mut self.forest.at_mut(parent).behind;
            *behind = if come { *behind + held } else { *behind - held };
            self.review(parent);
        }
    }

    /// The queue comes next to a root.
    pub(super) fn activate(&mut self, q: u32) {
        self.activate_with(q, self.edge_key(q));
    }

    fn activate_with(&mut self, q: u32, key: Key) {
        let holds = key.terminal.holds_up();
        // Who is held up wherever its chain ends, is so by the one at the end, whatever that one waits for.
        let charged = if holds { key } else { Key { terminal: self.end_at(q), ..key } };
        let cell = self.cell_of(q, charged);
        let edge = Edge { key, cell, holds, mark: self.clock.total };
        self.forest.queue_mut(q).edge = Some(edge);
        self.count_edge(q, true);
    }

    /// The queue is next to a root no longer, if it was.
    pub(super) fn retire(&mut self, q: u32) {
        self.flush(q);
        self.count_edge(q, false);
        self.forest.queue_mut(q).edge = None;
    }

    /// What the queues of root `i` wait for may be something else now.
    pub(super) fn rekey_all(&mut self, i: u32) {
        let mut q = self.forest.at(i).first_queue;
        while q != NONE {
            let next = self.forest.next_queue(q);
            match self.forest.queue(q).edge {
                None if self.forest.queue(q).members == 0 => {}
                None => self.activate(q),
                Some(edge) => {
                    let key = self.edge_key(q);
                    if edge.key != key {
                        self.retire(q);
                        self.activate_with(q, key);
                    }
                }
            }
            q = next;
        }
        self.review(i);
    }

    fn cell_of(&mut self, q: u32, key: Key) -> u32 {
        let slot = usize::from(matches!(self.forest_state(q), Some(State::Running(_))));
        let queue = self.forest.queue(q);
        if let Some((last, cell)) = queue.last_keys[slot]
            && last == key
        {
            return cell;
        }
        let parent = queue.parent;
        let led = if parent == NONE { None } else { self.forest.at(parent).led_keys[slot] };
        let cell = match led.filter(|(last, _)| *last == key) {
            Some((_, cell)) => return cell,
            None => self.cells.id(key),
        };
        self.forest.queue_mut(q).last_keys[slot] = Some((key, cell));
        if parent != NONE {
            self.forest.at_mut(parent).led_keys[slot] = Some((key, cell));
        }
        cell
    }

    fn forest_state(&self, q: u32) -> Option<State> {
        let parent = self.forest.queue(q).parent;
        (parent != NONE).then(|| self.forest.at(parent).state)
    }

    /// Begins to charge a thread that waits in no queue.
    pub(super) fn charge_self(&mut self, i: u32) {
        let Some((key, role)) = self.judge(i) else { return };
        if role == Role::None {
            return;
        }
        let cell = if role == Role::Queued { NONE } else { self.own_cell(i, key) };
        let (t, outside) = (self.clock.time(), self.waits_for_outside(i));
        let present = &mut self.clock.present;
        match role {
            Role::HeldUp => {
                present.held += 1;
                present.held_by_work += usize::from(key.is_for_thread());
                self.cells.enter(cell, t);
            }
            Role::Queued => {
                present.queued += 1;
                self.begin_queued(i);
            }
            Role::Idle => {
                present.idle += 1;
                present.outside += usize::from(outside);
            }
            Role::None => {}
        }
        let mark = self.clock.total;
        let thread = self.forest.at_mut(i);
        (thread.cell, thread.role, thread.mark) = (cell, role, mark);
    }

    /// The cell of a thread's own charge: mostly one of the last.
    pub(super) fn own_cell(&mut self, i: u32, key: Key) -> u32 {
        let slot = key.terminal as usize % 4;
        if let Some((last, cell)) = self.forest.at(i).last_keys[slot]
            && last == key
        {
            return cell;
        }
        let cell = self.cells.id(key);
        self.forest.at_mut(i).last_keys[slot] = Some((key, cell));
        cell
    }

    /// Charges such a thread up to this instant.
    pub(super) fn discharge(&mut self, i: u32) {
        let thread = self.forest.at_mut(i);
        let (cell, role, mark) = (thread.cell, thread.role, thread.mark);
        (thread.cell, thread.role) = (NONE, Role::None);
        if role == Role::None {
            return;
        }
        let passed = self.clock.total.since(&mark);
        if role == Role::Queued {
            return self.end_queued(i);
        }
        let (t, outside) = (self.clock.time(), self.waits_for_outside(i));
        let key = self.cells.keys[cell as usize];
        if let Some(recorder) = self.recorder.as_mut().filter(|_| role == Role::HeldUp) {
            recorder.charge(cell, &self.cells.keys, &mark, &self.clock.total, 1.0);
        }
        let charged = self.cells.at(cell);
        charged.thread_ns = charged.thread_ns.saturating_add(passed.t);
        let present = &mut self.clock.present;
        if role == Role::HeldUp {
            charged.cpu_ns += passed.cpu;
            charged.rank_ns += passed.rank;
            present.held -= 1;
            present.held_by_work -= usize::from(key.is_for_thread());
            self.cells.leave(cell, t);
        } else {
            charged.idle_ns += passed.idle;
            present.idle -= 1;
            present.outside -= usize::from(outside);
        }
        let waited = role == Role::HeldUp || matches!(self.forest.at(i).state, State::Waiting(_));
        if passed.t > 0 && waited {
            self.scratch.push(cell);
            self.count_wait(i);
        }
    }

    /// Charges a thread that leaves its queue what was its own: the time in which its chain's end held nobody up, and what
    /// the user's word says. `off` is what such ends have come to since it joined.
    pub(super) fn charge_own(&mut self, i: u32, wait: &Wait, off: &Mark) {
        let thread = self.forest.at(i);
        let all = self.clock.total.since(&thread.mark);
        let (key, own) = match thread.class {
            Class::None | Class::HeldUp => return,
            Class::ByEnd => (self.idle_key(i, wait), *off),
            Class::Idle => (self.idle_key(i, wait), all),
        };
        if own.t == 0 {
            return;
        }
        let id = self.own_cell(i, key);
        let cell = self.cells.at(id);
        cell.thread_ns = cell.thread_ns.saturating_add(own.t);
        cell.idle_ns += own.idle;
        self.scratch.push(id);
    }

    /// Counts the present wait of `i` in the cells of `scratch`; a wait that goes on behind the part's end is counted later.
    pub(super) fn count_wait(&mut self, i: u32) {
        let thread = self.forest.at(i);
        let Some(wait) = thread.state.wait().map(|w| self.wait(w)) else { return self.scratch.clear() };
        let counted = counted(wait, self.study);
        if thread.crossing {
            let begins = matches!(thread.state, State::Waiting(_)) && wait.start >= self.chunk.from;
            let keys = self.scratch.drain(..).map(|cell| self.cells.keys[cell as usize]).collect();
            self.out.crossing.push((ThreadIdx(i), keys, begins.then_some(counted)));
            return;
        }
        let scratch = std::mem::take(&mut self.scratch);
        for (at, &cell) in scratch.iter().enumerate() {
            let counted_in = &mut self.forest.at_mut(i).counted_in;
            let counting = (cell, counted.at_work);
            let known = std::mem::replace(&mut counted_in[cell as usize % COUNTED_IN], counting) == counting;
            let keys = scratch[..at].iter().map(|&c| self.cells.keys[c as usize]);
            let how = As { new: !known, ..counted.counts_as(self.cells.keys[cell as usize], keys) };
            self.cells.at(cell).count(&counted, how);
        }
        self.scratch = scratch;
        self.scratch.clear();
    }

    /// A runnable root counts as queued while nobody is held up behind it, and starves otherwise.
    pub(super) fn review(&mut self, root: u32) {
        let thread = self.forest.at(root);
        let (state, behind) = (thread.state, thread.behind);
        if !matches!(state, State::Runnable(_) | State::Yields(_) | State::Woken(_)) {
            return;
        }
        if self.is_ready(root, state) && (thread.role == Role::Queued) != (behind == 0) {
            self.discharge(root);
            self.charge_self(root);
        }
        if let State::Runnable(cpu) | State::Yields(cpu) = state {
            self.processors.set_starving(cpu, root, behind > 0, self.clock.total.t);
        }
    }
}

/// As long as it lies in the window.
pub(in crate::blame) fn counted(wait: &Wait, study: &Study) -> Counted {
    let window = study.window;
    let length = wait.woken.min(window.to).saturating_sub(wait.start.max(window.from));
    let Wait { thread, stack, lock, waker, waker_stack, .. } = *wait;
    let at_work = wait.place != Place::Home && !study.classifier.facts(stack).parked;
    Counted { thread, length, at_work, stack, lock, waker, waker_stack }
}
