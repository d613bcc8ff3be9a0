//! What is written down at the borders between parts, in the first pass.

use holdup_trace::ThreadIdx;
use rustc_hash::{FxHashMap, FxHashSet};

use super::crossing::Crossing;
use super::facts::Facts;
use super::machine::Machine;
use super::now::Recent;
use super::part::{Part, carry, open_waits};
use super::prepare::{Dictionary, REWAIT_NS, join_rewaits};
use super::releases::{self, Releases};

/// All that a border takes.
pub(super) struct Borders<'t, 'a> {
    pub(super) dictionary: &'t Dictionary<'a>,
    pub(super) crossing: &'t mut Crossing,
    pub(super) facts: &'t mut Facts,
    pub(super) parts: &'t mut Vec<Part>,
    pub(super) releases: Releases,
}

impl Borders<'_, '_> {
    /// The machine comes to the border at `t`.
    pub(super) fn cross(&mut self, machine: &mut Machine, t: u64, places: super::streams::Places) {
        let open = open_set(machine);
        let mut numbers = self.settle_part(machine, &open);
        machine.recent = recent(machine, &numbers, &open, t);
        let crossing = &mut *self.crossing;
        let carried = carry(machine, |i, wait| *numbers.entry(i).or_insert_with(|| crossing.open(*wait)));
        for (i, recent) in std::mem::take(&mut machine.recent) {
            // A wait that is under way goes on, if it does; else the next one may.
            match machine.threads[i.index()].state.wait() {
                Some(wait) => {
                    let later = carried[wait as usize].1;
                    recent.same.iter().for_each(|&n| self.crossing.may_go_on(n, later, recent.resumed));
                }
                None => drop(machine.recent.insert(i, recent)),
            }
        }
        self.count_begun(machine);
        self.parts.push(Part::begin(machine, t, places, carried));
        machine.out.restart(t, false);
        let part = &self.parts[self.parts.len() - 1];
        machine.out.waits.extend(part.carried.iter().map(|(wait, _)| *wait));
    }

    pub(super) fn finish(&mut self, machine: &mut Machine) {
        machine.forget_early_wakes();
        self.settle_part(machine, &[]);
        self.count_begun(machine);
        let end = machine.out.end;
        machine.owners.present(end).iter().for_each(|span| self.facts.own(span, self.dictionary));
        self.crossing.settle();
    }

    fn count_begun(&mut self, machine: &Machine) {
        if let Some(part) = self.parts.last_mut() {
            part.begun = (machine.out.waits.len() - part.carried.len()) as u64;
        }
    }

    /// The numbers of the waits that came over the last border, by index.
    fn numbers(&self) -> FxHashMap<u32, u32> {
        let carried = &self.parts[self.parts.len() - 1].carried;
        carried.iter().enumerate().map(|(i, (_, number))| (i as u32, *number)).collect()
    }

    /// Learns from the waits that are over: all but `open`. Returns the numbers of waits that have one, by index.
    fn settle_part(&mut self, machine: &mut Machine, open: &[bool]) -> FxHashMap<u32, u32> {
        let mut numbers = self.numbers();
        let here = self.parts.len() - 1;
        for (thread, i, recent) in std::mem::take(&mut machine.followers) {
            let number = self.crossing.open(machine.out.waits[i as usize]);
            numbers.insert(i, number);
            recent.same.iter().for_each(|&n| self.crossing.may_go_on(n, number, recent.resumed));
            // It timed out in the part before this one.
            self.parts[here.saturating_sub(1)].beyond.push((thread, number));
        }
        let waits = &mut machine.out.waits;
        let is_over = |i: usize| !open.get(i).copied().unwrap_or(false);
        let mut may_go_on = false;
        for (_, wait) in waits.iter_mut().enumerate().filter(|(i, _)| is_over(*i)) {
            self.dictionary.prepare(wait);
            self.facts.learn(wait, self.dictionary);
            may_go_on |= wait.may_go_on();
            if let Some(release) = releases::of(wait) {
                let part = self.parts.partition_point(|p| p.from <= release.t).saturating_sub(1);
                if part == here {
                    self.releases.see(release);
                } else {
                    releases::add_to(&mut self.parts[part].releases, release);
                }
            }
        }
        self.parts[here].releases = self.releases.take();
        let over = waits.iter().enumerate().filter(|(i, _)| is_over(*i)).map(|(_, wait)| wait);
        self.facts.learn_requests(over, &std::mem::take(&mut machine.censored), self.dictionary);
        if may_go_on {
            let over = (0..waits.len()).filter(|i| is_over(*i));
            join_rewaits(waits, over, &FxHashMap::default());
        }
        for (i, number) in numbers.iter().filter(|(i, _)| is_over(**i as usize)) {
            self.crossing.close(*number, waits[*i as usize]);
        }
        self.note_late(machine, &numbers);
        machine.owners.take_ended().iter().for_each(|span| self.facts.own(span, self.dictionary));
        numbers
    }

    /// Tells earlier parts what was learned of them here.
    fn note_late(&mut self, machine: &mut Machine, numbers: &FxHashMap<u32, u32>) {
        let here = self.parts.len() - 1;
        for mut change in std::mem::take(&mut machine.out.late) {
            let first = self.parts.partition_point(|p| p.from <= change.t).saturating_sub(1);
            let number = |i: u32| numbers.get(&i).copied().unwrap_or(u32::MAX);
            change.before = change.before.with_wait(number);
            change.after = change.after.with_wait(number);
            self.parts[first..here].iter_mut().for_each(|part| part.late.push(change));
        }
    }
}

/// The threads whose last wait timed out so shortly before the border at `t` that it may go on behind it.
fn recent(machine: &Machine, numbers: &FxHashMap<u32, u32>, open: &[bool], t: u64) -> FxHashMap<ThreadIdx, Recent> {
    let waits = &machine.out.waits;
    let mut found: FxHashMap<ThreadIdx, Recent> = FxHashMap::default();
    if !waits.iter().any(super::Wait::may_go_on) {
        return found;
    }
    let mut later = FxHashSet::default();
    for (_, wait) in waits.iter().enumerate().rev().filter(|(i, _)| !open[*i]) {
        let is_last = later.insert(wait.thread);
        let waits_again = machine.threads[wait.thread.index()].state.wait().is_some();
        let near = t.saturating_sub(wait.resumed) < REWAIT_NS || waits_again;
        if is_last && wait.goes_on == 0 && wait.may_go_on() && near {
            found.insert(wait.thread, Recent { resumed: wait.resumed, same: Vec::new() });
        }
    }
    if found.is_empty() {
        return found;
    }
    for (&i, &number) in numbers.iter().filter(|(i, _)| !open[**i as usize]) {
        let mut last = i as usize;
        while let Some(next) = waits[last].goes_on.checked_sub(1) {
            last = next as usize;
        }
        // The last part timed out itself; those before it end as it does.
        if let Some(recent) = found.get_mut(&waits[last].thread)
            && recent.resumed == waits[last].resumed
        {
            recent.same.push(number);
        }
    }
    found.values_mut().for_each(|recent| recent.same.sort_unstable());
    found
}

/// Which waits are not over.
pub(super) fn open_set(machine: &Machine) -> Vec<bool> {
    let mut open = vec![false; machine.out.waits.len()];
    open_waits(&machine.threads).for_each(|i| open[i as usize] = true);
    open
}
