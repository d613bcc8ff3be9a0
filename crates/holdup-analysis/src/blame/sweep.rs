//! The sweep itself.

use holdup_trace::tables::Sample;
use holdup_trace::{Cpu, LockId, Result, StackId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::cells::{Cell, Cells, Key, Terminal};
use super::forest::{Forest, Mark, NONE, Role};
use super::terminal;
use crate::classify::{Classifier, Verdict, WaitKind};
use crate::focus::Focus;
use crate::intervals::{Extra, Intervals, State};

/// A part of the trace, in nanoseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// Where the CPU time went, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuSeconds {
    /// CPUs × duration.
    pub total: f64,
    /// Threads of the focus ran, spinning included.
    pub running: f64,
    /// Others ran.
    pub other: f64,
    /// Idle, and charged to what held threads up.
    pub held_up: f64,
    /// Idle although threads could run.
    pub runnable_idle: f64,
    /// Idle for want of work.
    pub no_work: f64,
    /// Not known.
    pub lost: f64,
    /// The part of `running` whose samples are in spin loops.
    pub spin: f64,
}

/// The result of the sweep.
#[derive(Debug, Default)]
pub struct Blame {
    /// The sum.
    pub cpu: CpuSeconds,
    /// The charges.
    pub cells: Vec<(Key, Cell)>,
    /// All samples of the window by thread and stack, in nanoseconds.
    pub profile: FxHashMap<(ThreadIdx, StackId), f64>,
    /// Circles of parent pointers.
    pub cycles: u64,
    /// The window.
    pub window: (u64, u64),
}

impl Blame {
    /// Thread seconds by the terminal rule, summed over the cells that `wanted` picks.
    pub fn thread_ns(&self, mut wanted: impl FnMut(&Key) -> bool) -> u64 {
        self.cells.iter().filter(|(k, _)| wanted(k)).map(|(_, c)| c.thread_ns).sum()
    }
}

/// Sweeps `intervals` backwards over `window`.
pub fn sweep(
    trace: &Trace,
    intervals: &Intervals,
    focus: &Focus,
    classifier: &Classifier,
    window: Window,
) -> Result<Blame> {
    let mut samples: Vec<Sample> = Vec::with_capacity(trace.samples.rows().min(1 << 24) as usize);
    for sample in trace.samples.iter() {
        samples.push(sample?);
    }
    let mut sweep = Sweep::new(trace, intervals, focus, classifier, window);
    sweep.start();
    let (mut step, mut extra, mut sample) = (intervals.steps.len(), intervals.extras.len(), samples.len());
    loop {
        let step_t = step.checked_sub(1).map_or(0, |i| intervals.steps[i].t);
        let extra_t = extra.checked_sub(1).map_or(0, |i| intervals.extras[i].0);
        let sample_t = sample.checked_sub(1).map_or(0, |i| samples[i].t.nanos());
        // Going backwards a sample at a switch belongs to what ran before it: steps first.
        if step > 0 && step_t >= extra_t && step_t >= sample_t {
            step -= 1;
            let s = intervals.steps[step];
            sweep.advance(s.t);
            sweep.set_state(s.thread.0, s.before());
        } else if extra > 0 && extra_t >= sample_t {
            extra -= 1;
            sweep.advance(extra_t);
            sweep.extra(intervals.extras[extra].1);
        } else if sample > 0 {
            sample -= 1;
            sweep.advance(sample_t);
            sweep.sample(&samples[sample]);
        } else {
            break;
        }
    }
    Ok(sweep.finish())
}

struct Sweep<'a> {
    intervals: &'a Intervals,
    focus: &'a Focus,
    classifier: &'a Classifier<'a>,
    window: Window,
    period: f64,
    forest: Forest,
    cells: Cells,
    out: Blame,
    now: u64,
    total: Mark,
    cpu_run: Vec<u32>,
    cpu_lost: Vec<bool>,
    running_focus: usize,
    running_other: usize,
    lost: usize,
    held: usize,
    queued: usize,
    idle_by_design: usize,
    peak: usize,
    /// Who is known to own a lock now, and who waits for it.
    owner: FxHashMap<LockId, u32>,
    waiters: FxHashMap<LockId, Vec<u32>>,
    owned: Vec<bool>,
    scratch: Vec<u32>,
}

impl<'a> Sweep<'a> {
    fn new(
        trace: &'a Trace,
        intervals: &'a Intervals,
        focus: &'a Focus,
        classifier: &'a Classifier<'a>,
        window: Window,
    ) -> Self {
        let locks = trace.locks.kind.len();
        let mut owned = vec![false; locks];
        for span in &intervals.owners {
            owned[span.lock.index()] = true;
        }
        Sweep {
            intervals,
            focus,
            classifier,
            window,
            period: trace.meta.sample_period_ns as f64,
            forest: Forest::new(intervals.last.len()),
            cells: Cells::new((window.to - window.from) / 500),
            out: Blame { window: (window.from, window.to), ..Blame::default() },
            now: intervals.end.max(window.to),
            total: Mark::default(),
            cpu_run: vec![NONE; intervals.cpus],
            cpu_lost: intervals.lost_at_end.clone(),
            running_focus: 0,
            running_other: 0,
            lost: 0,
            held: 0,
            queued: 0,
            idle_by_design: 0,
            peak: intervals.peak_parallelism(),
            owner: FxHashMap::default(),
            waiters: FxHashMap::default(),
            owned,
            scratch: Vec::new(),
        }
    }

    fn start(&mut self) {
        for i in 1..self.intervals.last.len() {
            self.set_state(i as u32, self.intervals.last[i]);
        }
    }

    /// Integrates from `now` back to `t`.
    fn advance(&mut self, t: u64) {
        if t >= self.now {
            return;
        }
        let (from, to) = (t.max(self.window.from), self.now.min(self.window.to));
        self.now = t;
        self.total.t = self.window.to.saturating_sub(t.clamp(self.window.from, self.window.to));
        if from >= to {
            return;
        }
        let dt = (to - from) as f64;
        let cpus = self.intervals.cpus;
        let idle = cpus.saturating_sub(self.running_focus + self.running_other + self.lost);
        let members = self.held + self.queued;
        let used = idle.min(members);
        let cpu = &mut self.out.cpu;
        cpu.total += cpus as f64 * dt;
        cpu.running += self.running_focus as f64 * dt;
        cpu.other += self.running_other as f64 * dt;
        cpu.lost += self.lost as f64 * dt;
        cpu.no_work += (idle - used) as f64 * dt;
        let mut foreign = idle + self.running_other;
        if members > 0 {
            let weight = used as f64 / members as f64 * dt;
            cpu.held_up += weight * self.held as f64;
            cpu.runnable_idle += weight * self.queued as f64;
            self.total.cpu += weight;
            let rank_used = foreign.min(members);
            self.total.rank += rank_used as f64 / members as f64 * dt;
            foreign -= rank_used;
        }
        if self.idle_by_design > 0 {
            let wanted = self.peak.saturating_sub(self.running_focus + members.min(self.peak));
            self.total.idle += wanted.min(foreign) as f64 / self.idle_by_design as f64 * dt;
        }
    }

    /// Weight of one held-up thread at this instant, in the ranking.
    fn rank_weight(&self) -> f64 {
        let members = self.held + self.queued;
        let idle = self.intervals.cpus.saturating_sub(self.running_focus + self.lost);
        if members == 0 { 0.0 } else { idle.min(members) as f64 / members as f64 }
    }

    fn extra(&mut self, extra: Extra) {
        match extra {
            Extra::HandoffEnds(thread, wait) => self.set_state(thread.0, State::Woken(wait)),
            Extra::Born(thread) => self.set_state(thread.0, State::Gone),
            Extra::Lost(cpu, before) => self.set_lost(cpu, before),
            Extra::OwnerEnds(i) => {
                let span = self.intervals.owners[i as usize];
                self.owner.insert(span.lock, span.owner.0);
                self.relink_waiters(span.lock);
            }
            Extra::OwnerBegins(i) => {
                let span = self.intervals.owners[i as usize];
                if self.owner.get(&span.lock) == Some(&span.owner.0) {
                    self.owner.remove(&span.lock);
                    self.relink_waiters(span.lock);
                }
            }
        }
    }

    fn relink_waiters(&mut self, lock: LockId) {
        let waiters = self.waiters.remove(&lock).unwrap_or_default();
        for &waiter in &waiters {
            if let State::Waiting(w) = self.forest.at(waiter).state {
                self.change(waiter, |sweep| {
                    sweep.forest.unlink(waiter);
                    sweep.find_parent(waiter, w);
                });
            }
        }
        self.waiters.insert(lock, waiters);
    }

    /// Changes what a thread does before this instant, and with it what all behind it wait for.
    fn set_state(&mut self, i: u32, state: State) {
        self.change(i, |sweep| {
            sweep.leave_state(i);
            sweep.forest.at_mut(i).state = state;
            sweep.enter_state(i, state);
        });
    }

    /// Runs `how`, which changes the state or the parent of `i`, between two charges of all behind it.
    fn change(&mut self, i: u32, how: impl FnOnce(&mut Self)) {
        let mut subtree = std::mem::take(&mut self.scratch);
        self.forest.subtree(i, &mut subtree);
        subtree.iter().for_each(|&n| self.charge(n));
        let old_root = self.forest.root(i);
        how(self);
        self.assign(&subtree);
        self.scratch = subtree;
        // Without those behind it, a runnable thread is merely queued, and the other way round.
        for root in [old_root, self.forest.root(i)] {
            self.review_root(root);
        }
    }

    fn leave_state(&mut self, i: u32) {
        match self.forest.at(i).state {
            State::Running(cpu) => self.set_running(cpu, i, false),
            State::Waiting(w) => {
                self.forest.unlink(i);
                let lock = self.intervals.waits[w as usize].lock;
                if self.is_owned(lock)
                    && let Some(waiters) = self.waiters.get_mut(&lock)
                {
                    waiters.retain(|&n| n != i);
                }
            }
            _ => {}
        }
    }

    fn enter_state(&mut self, i: u32, state: State) {
        match state {
            State::Running(cpu) => self.set_running(cpu, i, true),
            State::Waiting(w) => {
                self.forest.at_mut(i).coming = w;
                let lock = self.intervals.waits[w as usize].lock;
                if self.is_owned(lock) {
                    self.waiters.entry(lock).or_default().push(i);
                }
                self.find_parent(i, w);
            }
            _ => {}
        }
    }

    fn is_owned(&self, lock: LockId) -> bool {
        lock != LockId::NONE && self.owned.get(lock.index()).copied().unwrap_or(false)
    }

    /// Whom does `i` wait for: the lock's owner while it is known, else whoever will end the wait.
    fn find_parent(&mut self, i: u32, w: u32) {
        let wait = &self.intervals.waits[w as usize];
        let owner = if self.is_owned(wait.lock) { self.owner.get(&wait.lock).copied() } else { None };
        if let Some(owner) = owner.filter(|&o| o != i)
            && self.forest.link(i, owner)
        {
            return;
        }
        let waker = wait.waker;
        let real = waker.is_real() && waker.index() < self.forest.nodes.len() && waker.0 != i;
        if real && !self.forest.link(i, waker.0) {
            self.out.cycles += 1;
        }
    }

    fn set_running(&mut self, cpu: Cpu, i: u32, starts: bool) {
        let Some(&present) = self.cpu_run.get(cpu.index()) else { return };
        let lost = self.cpu_lost[cpu.index()];
        if starts {
            if present != NONE {
                self.count_running(present, lost, false);
            }
            self.cpu_run[cpu.index()] = i;
            self.count_running(i, lost, true);
        } else if present == i {
            self.cpu_run[cpu.index()] = NONE;
            self.count_running(i, lost, false);
        }
    }

    fn count_running(&mut self, i: u32, lost: bool, starts: bool) {
        if lost {
            return;
        }
        let focus = self.focus.contains(ThreadIdx(i));
        let count = if focus { &mut self.running_focus } else { &mut self.running_other };
        *count = if starts { *count + 1 } else { *count - 1 };
    }

    fn set_lost(&mut self, cpu: Cpu, lost: bool) {
        if self.cpu_lost[cpu.index()] == lost {
            return;
        }
        let running = self.cpu_run[cpu.index()];
        if running != NONE {
            self.count_running(running, false, !lost);
        }
        self.cpu_lost[cpu.index()] = lost;
        self.lost = if lost { self.lost + 1 } else { self.lost - 1 };
    }

    /// Charges a node up to this instant and takes it out of its counters.
    fn charge(&mut self, i: u32) {
        let total = self.total;
        let window_to = self.window.to;
        let node = self.forest.at_mut(i);
        let (cell, role, mark, counted_at) = (node.cell, node.role, node.mark, node.counted_at);
        (node.cell, node.role, node.counted_at) = (NONE, Role::None, NONE);
        if cell == NONE {
            return;
        }
        let charged = &mut self.cells.cells[cell as usize];
        charged.thread_ns += total.t - mark.t;
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
        }
        match role {
            Role::Queued => self.queued -= 1,
            Role::Idle => self.idle_by_design -= 1,
            _ => {}
        }
        if counted_at != NONE {
            self.forest.at_mut(counted_at).behind -= 1;
        }
    }

    /// Gives each node of a subtree, in order, its cell and role.
    fn assign(&mut self, subtree: &[u32]) {
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

    fn edge_to(&self, root: u32, mut node: u32) -> u32 {
        while node != root && self.forest.at(node).parent != root {
            node = self.forest.at(node).parent;
        }
        node
    }

    fn assign_one(&mut self, i: u32, root: u32, edge: u32, hops: usize) {
        let (key, role, wait) = self.judge(i, root, edge, hops);
        let Some(key) = key else { return };
        let cell = self.cells.id(key);
        let node = self.forest.at_mut(i);
        (node.cell, node.role, node.mark) = (cell, role, self.total);
        match role {
            Role::HeldUp => {
                self.held += 1;
                self.cells.enter(cell, self.window.to - self.total.t);
                if i != root {
                    self.forest.at_mut(i).counted_at = root;
                    self.forest.at_mut(root).behind += 1;
                }
            }
            Role::Queued => self.queued += 1,
            Role::Idle => self.idle_by_design += 1,
            Role::None => {}
        }
        if wait != NONE && role != Role::None {
            self.count_wait(i, cell, wait);
        }
    }

    fn count_wait(&mut self, i: u32, cell: u32, w: u32) {
        let inside = self.now > self.window.from && self.now <= self.window.to;
        if self.forest.at(i).seen == (cell, w) || !inside {
            return;
        }
        self.forest.at_mut(i).seen = (cell, w);
        let wait = &self.intervals.waits[w as usize];
        let cell = &mut self.cells.cells[cell as usize];
        cell.waits += 1;
        cell.longest_ns = cell.longest_ns.max(wait.woken - wait.start);
        cell.threads.insert(ThreadIdx(i));
        if wait.stack != StackId::NONE {
            *cell.wait_stacks.entry(wait.stack).or_default() += 1;
        }
    }

    /// A runnable root counts as queued while no held-up thread's chain ends at it.
    fn review_root(&mut self, root: u32) {
        let node = self.forest.at(root);
        let runnable =
            matches!(node.state, State::Runnable(_)) || matches!(node.state, State::Woken(w) if !self.is_handoff(w));
        let queued = node.role == Role::Queued;
        if runnable && queued != (node.behind == 0) && self.focus.contains(ThreadIdx(root)) {
            self.charge(root);
            self.assign(&[root]);
        }
    }

    fn is_handoff(&self, w: u32) -> bool {
        let wait = &self.intervals.waits[w as usize];
        wait.kind == WaitKind::Lock && !wait.exempt
    }

    /// Key, role and wait of a node whose chain ends at `root` over `edge`.
    fn judge(&mut self, i: u32, root: u32, edge: u32, hops: usize) -> (Option<Key>, Role, u32) {
        let thread = ThreadIdx(i);
        let inside = self.focus.contains(thread);
        match self.forest.at(i).state {
            State::Waiting(w) => {
                let key = self.key(root, edge, w, hops);
                let terminal = key.terminal;
                let wait = &self.intervals.waits[w as usize];
                let verdict = self.classifier.facts(wait.stack).verdict;
                let role = if !inside || wait.exempt {
                    Role::None
                } else if verdict == Some(Verdict::Idle) {
                    Role::Idle
                } else if verdict == Some(Verdict::Work) {
                    Role::HeldUp
                } else if terminal.holds_up() && !self.is_outside_input(i, w) {
                    Role::HeldUp
                } else {
                    Role::Idle
                };
                (Some(self.own_key(key, role, i, w)), role, w)
            }
            State::Woken(w) if self.is_handoff(w) => {
                let wait = &self.intervals.waits[w as usize];
                let (lock, kind) = (wait.lock, wait.kind);
                let key = Key { terminal: Terminal::Handoff, thread, lock, kind, site: StackId::NONE };
                (Some(key), if inside { Role::HeldUp } else { Role::None }, w)
            }
            State::Runnable(_) | State::Woken(_) if inside => {
                let queued = self.forest.at(i).behind == 0;
                let site = StackId::NONE;
                let key =
                    Key { terminal: Terminal::Runnable, thread, lock: LockId::NONE, kind: WaitKind::Unknown, site };
                (Some(key), if queued { Role::Queued } else { Role::None }, NONE)
            }
            _ => (None, Role::None, NONE),
        }
    }

    /// Waits that hold nobody up are told apart by where they are, not by what ends them.
    fn own_key(&self, key: Key, role: Role, i: u32, w: u32) -> Key {
        let wait = &self.intervals.waits[w as usize];
        match role {
            // Held up by the user's word: what for, only the place tells.
            Role::HeldUp if !key.terminal.holds_up() => {
                Key { terminal: Terminal::Timer, thread: ThreadIdx(i), site: wait.stack, ..key }
            }
            Role::Idle => Key {
                terminal: Terminal::IdleByDesign,
                thread: ThreadIdx(i),
                lock: LockId::NONE,
                kind: wait.kind,
                site: wait.stack,
            },
            _ => key,
        }
    }

    /// Input from outside the focus is awaited by design.
    fn is_outside_input(&self, i: u32, w: u32) -> bool {
        let parent = self.forest.at(i).parent;
        self.intervals.waits[w as usize].kind == WaitKind::Input
            && parent != NONE
            && !self.focus.contains(ThreadIdx(parent))
    }

    /// The cell of a chain from a wait `w` to `root`, whose last edge is that of the thread `edge`.
    fn key(&self, root: u32, edge: u32, w: u32, hops: usize) -> Key {
        let edge_wait = match self.forest.at(edge).state {
            State::Waiting(e) => &self.intervals.waits[e as usize],
            _ => &self.intervals.waits[w as usize],
        };
        let (lock, kind) = (edge_wait.lock, edge_wait.kind);
        let mut key = Key { terminal: Terminal::Unknown, thread: ThreadIdx(root), lock, kind, site: StackId::NONE };
        let proxy = hops > 0 && self.focus.is_kernel(ThreadIdx(root)) && !self.focus.is_kernel(ThreadIdx(edge));
        match self.forest.at(root).state {
            _ if proxy && kind == WaitKind::Disk => {
                (key.terminal, key.thread, key.site) = (Terminal::Disk, ThreadIdx(edge), edge_wait.stack);
            }
            State::Running(_) => key.terminal = Terminal::Running,
            State::Runnable(_) => key.terminal = Terminal::NotRunning,
            State::Woken(i) if self.is_handoff(i) => key.terminal = Terminal::Handoff,
            State::Woken(_) => key.terminal = Terminal::NotRunning,
            State::Waiting(end) => {
                let end = &self.intervals.waits[end as usize];
                (key.terminal, key.site) = (terminal::of_wait(end, hops), end.stack);
                if proxy && key.terminal == Terminal::Disk {
                    (key.thread, key.site) = (ThreadIdx(edge), edge_wait.stack);
                }
            }
            State::Unknown | State::Gone => {}
        }
        key
    }

    /// A CPU sample: whose blame is it at this instant?
    fn sample(&mut self, sample: &Sample) {
        let i = sample.thread.0;
        let inside = sample.t.nanos() >= self.window.from && sample.t.nanos() <= self.window.to;
        if !inside || sample.thread.index() >= self.forest.nodes.len() {
            return;
        }
        *self.out.profile.entry((sample.thread, sample.stack)).or_default() += self.period;
        let facts = self.classifier.facts(sample.stack);
        if self.focus.contains(sample.thread) {
            self.out.cpu.spin += if facts.kernel_spin { self.period } else { 0.0 };
            if facts.lock_overhead {
                self.charge_overhead(i, sample.stack);
            }
        }
        if self.forest.at(i).behind == 0 {
            return;
        }
        // Even where no CPU is idle the function is wanted: a small weight keeps it.
        let weight = self.rank_weight().max(1e-3) * self.period;
        let mut behind = Vec::new();
        self.forest.subtree(i, &mut behind);
        for &n in &behind[1..] {
            let node = self.forest.at(n);
            if node.role == Role::HeldUp {
                *self.cells.cells[node.cell as usize].samples.entry(sample.stack).or_default() += weight;
            }
        }
    }

    /// CPU time in the kernel's futex code belongs to the lock that the thread is about to wait for.
    fn charge_overhead(&mut self, i: u32, stack: StackId) {
        let coming = self.forest.at(i).coming;
        let Some(wait) = self.intervals.waits.get(coming as usize) else { return };
        if wait.kind != WaitKind::Lock {
            return;
        }
        let (thread, lock, kind) = (ThreadIdx(i), wait.lock, wait.kind);
        let id = self.cells.id(Key { terminal: Terminal::Overhead, thread, lock, kind, site: StackId::NONE });
        let cell = &mut self.cells.cells[id as usize];
        cell.rank_ns += self.period;
        *cell.samples.entry(stack).or_default() += self.period;
    }

    fn finish(mut self) -> Blame {
        self.advance(0);
        for i in 0..self.forest.nodes.len() {
            self.charge(i as u32);
        }
        self.out.cells = self.cells.keys.into_iter().zip(self.cells.cells).collect();
        self.out.cpu.spin = self.out.cpu.spin.min(self.out.cpu.running);
        self.out
    }
}
