//! Lazy charging: what a thread waited for up to now, and what it waits for from here on.

use holdup_trace::ThreadIdx;

use super::super::forest::{NONE, Role};
use super::Sweep;

impl Sweep<'_> {
    /// Charges a node up to this instant and takes it out of its counters.
    pub(super) fn charge(&mut self, i: u32) {
        let total = self.total;
        let window_to = self.window.to;
        let node = self.forest.at_mut(i);
        let (cell, role, mark, counted_at) = (node.cell, node.role, node.mark, node.counted_at);
        (node.cell, node.role, node.counted_at) = (NONE, Role::None, NONE);
        if cell == NONE {
            return;
        }
        let charged = &mut self.cells.cells[cell as usize];
        // Who waits for all the others to be done, or is not in focus, is not held up.
        if role != Role::None {
            charged.thread_ns = charged.thread_ns.saturating_add(total.t - mark.t);
        }
        match role {
            Role::HeldUp | Role::Queued => {
                charged.cpu_ns += total.cpu - mark.cpu;
                charged.rank_ns += total.rank - mark.rank;
            }
            Role::Idle => charged.idle_ns += total.idle - mark.idle,
            Role::None => {}
        }
        if role == Role::HeldUp {
            self.cells.leave(cell, window_to - total.t);
            self.held -= 1;
            self.held_by_work -= usize::from(self.cells.keys[cell as usize].is_for_thread());
        }
        match role {
            Role::Queued => self.queued -= 1,
            Role::Idle => {
                self.idle_by_design -= 1;
                self.outside -= usize::from(self.cells.keys[cell as usize].kind.is_outside());
            }
            _ => {}
        }
        if counted_at != NONE {
            self.forest.at_mut(counted_at).behind -= 1;
        }
    }

    /// Gives each node of a subtree, in order, its cell and role.
    pub(super) fn assign(&mut self, subtree: &[u32]) {
        let top = subtree[0];
        let (mut depth, mut last) = (0, top);
        let mut i = top;
        while self.forest.at(i).parent != NONE {
            (last, i) = (i, self.forest.at(i).parent);
            depth += 1;
        }
        let root = i;
        for (n, &node) in subtree.iter().enumerate() {
            // The edge next to the root is the one that a finding is about.
            let edge = if depth > 0 { last } else { self.edge_to(root, node) };
            self.assign_one(node, root, edge, depth + usize::from(n > 0));
        }
    }

    pub(super) fn edge_to(&self, root: u32, mut node: u32) -> u32 {
        while node != root && self.forest.at(node).parent != root {
            node = self.forest.at(node).parent;
        }
        node
    }

    pub(super) fn assign_one(&mut self, i: u32, root: u32, edge: u32, hops: usize) {
        let (key, role, wait) = self.judge(i, root, edge, hops);
        let Some(key) = key else { return };
        let slot = key.terminal as usize % 4;
        let cell = match self.forest.at(i).last_keys[slot] {
            Some((last, cell)) if last == key => cell,
            _ => self.cells.id(key),
        };
        let node = self.forest.at_mut(i);
        node.last_keys[slot] = Some((key, cell));
        (node.cell, node.role, node.mark) = (cell, role, self.total);
        match role {
            Role::HeldUp => {
                self.held += 1;
                self.held_by_work += usize::from(key.is_for_thread());
                self.cells.enter(cell, self.window.to - self.total.t);
                if i != root {
                    self.forest.at_mut(i).counted_at = root;
                    self.forest.at_mut(root).behind += 1;
                }
            }
            Role::Queued => self.queued += 1,
            Role::Idle => {
                self.idle_by_design += 1;
                self.outside += usize::from(key.kind.is_outside());
            }
            Role::None => {}
        }
        if wait != NONE && role != Role::None {
            self.count_wait(i, cell, wait, slot);
        }
    }

    pub(super) fn count_wait(&mut self, i: u32, cell: u32, w: u32, slot: usize) {
        let inside = self.now > self.window.from && self.now <= self.window.to;
        if self.forest.at(i).seen[slot] == (cell, w) || !inside {
            return;
        }
        let same_cell = self.forest.at(i).seen[slot].0 == cell;
        self.forest.at_mut(i).seen[slot] = (cell, w);
        let wait = &self.intervals.waits[w as usize];
        let cell = &mut self.cells.cells[cell as usize];
        cell.waits += 1;
        cell.longest_ns = cell.longest_ns.max(wait.woken.saturating_sub(wait.start));
        if !same_cell {
            cell.threads.insert(ThreadIdx(i));
        }
        cell.count_stack(wait.stack);
    }

    /// A runnable root counts as queued while no held-up thread's chain ends at it.
    pub(super) fn review_root(&mut self, root: u32) {
        let node = self.forest.at(root);
        let queued = node.role == Role::Queued;
        if queued != (node.behind == 0) && self.is_ready(root, node.state) {
            self.charge(root);
            self.assign(&[root]);
        }
    }
}
