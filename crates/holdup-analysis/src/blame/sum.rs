//! Adds up what the parts of a trace come to, the latest first.

use std::collections::BTreeSet;

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::callers;
use super::cells::{Cell, Counted};
use super::census::Looks;
use super::charged::Charged;
use super::key::Key;
use super::latency::Latency;
use super::spans::{BySubject, finished};
use super::study::Study;
use super::{Blame, CpuSeconds};

#[derive(Default)]
pub(super) struct Sum {
    cpu: CpuSeconds,
    index: FxHashMap<Key, u32>,
    cells: Vec<(Key, Cell)>,
    spans: BySubject,
    looks: Looks,
    profile: FxHashMap<(ThreadIdx, StackId), f64>,
    at_work: FxHashMap<(usize, ThreadIdx, StackId), (f64, f64)>,
    waiting: FxHashMap<(usize, usize), f64>,
    instead: FxHashMap<(ThreadIdx, ThreadIdx), u64>,
    latencies: FxHashMap<StringId, Latency>,
    neighbours: FxHashMap<ThreadIdx, f64>,
    cycles: u64,
    deadlocked: BTreeSet<ThreadIdx>,
    /// Where the waits were charged up to now that began earlier than all parts added.
    open: FxHashMap<ThreadIdx, Vec<Key>>,
    gap: u64,
}

impl Sum {
    /// Spans closer than `gap` are one.
    pub(super) fn new(gap: u64) -> Self {
        Sum { gap, ..Sum::default() }
    }

    /// Adds the part before those that were added.
    pub(super) fn add(&mut self, part: Charged) {
        add_seconds(&mut self.cpu, &part.cpu);
        self.cycles += part.cycles;
        self.deadlocked.extend(part.deadlocked);
        for (key, cell) in part.cells {
            self.cell(key).absorb(cell);
        }
        part.spans.into_iter().for_each(|(key, spans)| self.spans.entry(key).or_default().absorb(spans, self.gap));
        self.looks.absorb(part.looks);
        part.profile.into_iter().for_each(|(key, ns)| *self.profile.entry(key).or_default() += ns);
        part.waiting.into_iter().for_each(|(key, ns)| *self.waiting.entry(key).or_default() += ns);
        part.instead.into_iter().for_each(|(key, ns)| *self.instead.entry(key).or_default() += ns);
        part.latencies.into_iter().for_each(|(key, l)| self.latencies.entry(key).or_default().absorb(&l));
        part.neighbours.into_iter().for_each(|(key, ns)| *self.neighbours.entry(key).or_default() += ns);
        for (key, (ran, elapsed)) in part.at_work {
            let sum = self.at_work.entry(key).or_default();
            (sum.0, sum.1) = (sum.0 + ran, sum.1 + elapsed);
        }
        for (thread, keys, counted) in part.crossing {
            self.remember(thread, keys);
            if let Some(counted) = counted {
                let keys = self.open.remove(&thread).unwrap_or_default();
                self.count(&counted, &keys);
            }
        }
        part.open.into_iter().for_each(|(thread, keys)| self.remember(thread, keys));
    }

    /// Counts the waits of these threads that are known to have been charged.
    pub(super) fn count_open(&mut self, waits: &FxHashMap<ThreadIdx, Counted>) {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_unstable_by_key(|(thread, _)| *thread);
        for (thread, keys) in open {
            if let Some(wait) = waits.get(&thread) {
                self.count(wait, &keys);
            }
        }
    }

    fn count(&mut self, wait: &Counted, keys: &[Key]) {
        for (at, key) in keys.iter().enumerate() {
            let how = wait.counts_as(*key, keys[..at].iter().copied());
            self.cell(*key).count(wait, how);
        }
    }

    fn remember(&mut self, thread: ThreadIdx, keys: Vec<Key>) {
        let known = self.open.entry(thread).or_default();
        for key in keys {
            if !known.contains(&key) {
                known.push(key);
            }
        }
    }

    fn cell(&mut self, key: Key) -> &mut Cell {
        let Sum { index, cells, .. } = self;
        let at = *index.entry(key).or_insert_with(|| {
            cells.push((key, Cell::default()));
            cells.len() as u32 - 1
        });
        &mut cells[at as usize].1
    }

    pub(super) fn finish(mut self, study: &Study) -> Blame {
        self.cells.iter_mut().for_each(|(_, cell)| cell.flush_stacks());
        let mut profile: Vec<_> = self.profile.into_iter().collect();
        profile.sort_unstable_by_key(|(key, _)| *key);
        let mut instead: Vec<_> = self.instead.into_iter().collect();
        instead.sort_unstable();
        let mut neighbours: Vec<_> = self.neighbours.into_iter().filter(|(_, ns)| *ns > 0.0).collect();
        neighbours.sort_unstable_by_key(|(thread, _)| *thread);
        let cpu = CpuSeconds { spin: self.cpu.spin.min(self.cpu.running), ..self.cpu };
        let mut blame = Blame {
            cpu,
            cells: self.cells,
            spans: finished(self.spans),
            askers: self.looks.askers,
            resting: self.looks.resting,
            instants: self.looks.instants,
            profile,
            at_work: self.at_work,
            waiting: self.waiting,
            instead,
            latencies: self.latencies,
            neighbours,
            cycles: self.cycles,
            deadlocked: self.deadlocked,
            window: (study.window.from, study.window.to),
        };
        callers::share_out(&mut blame, study);
        blame
    }
}

fn add_seconds(sum: &mut CpuSeconds, part: &CpuSeconds) {
    sum.total += part.total;
    sum.running += part.running;
    sum.other += part.other;
    sum.held_up += part.held_up;
    sum.runnable_idle += part.runnable_idle;
    sum.no_work += part.no_work;
    sum.lost += part.lost;
    sum.spin += part.spin;
}
