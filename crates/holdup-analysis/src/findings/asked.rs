//! Whom processes ask, by how many connections, and where in their code: what a thread does when it wakes a server of another process that waits
//! for input.
//!
//! An event loop waits for all that it has asked in one place, at which neither tells. A connection mostly carries one request at a time, so
//! that few connections are few requests.

use holdup_trace::{StackId, StringId, WakeContext};
use rustc_hash::FxHashMap;

use crate::blame::Study;
use crate::intervals::{Place, Wait};

/// More connections, or places, of one process to one program are not told apart.
const ROOM: usize = 64;
/// This share of what was asked went by the connections that are counted: now and then there is one more, as to see whether the server is
/// well.
const NEARLY_ALL: f64 = 0.95;

/// What one process asked of a program.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    count: u32,
    /// How often by each file; of what others wrote nothing is known.
    files: FxHashMap<u16, u32>,
    /// How often in which place.
    places: FxHashMap<StackId, u32>,
}

/// By process, and by the program of which it asked.
#[derive(Debug, Default)]
pub(crate) struct AllAsked(FxHashMap<(u32, StringId), Asked>);

impl AllAsked {
    /// Counts a wait of a server for what it is asked.
    pub(super) fn add(&mut self, wait: &Wait, study: &Study) {
        let is_asked = wait.context == WakeContext::Task && wait.place == Place::Home && wait.kind.is_for_bytes();
        // Who answers nobody is not asked: a client of the same program as the server has been answered.
        let is_client = || study.timeline.is_server(wait.thread) == Some(false);
        if !is_asked || !wait.waker.is_real() || is_client() {
            return;
        }
        let (pids, programs) = (&study.trace.threads.pid, &study.trace.threads.process);
        let [Some(pid), Some(server)] = [wait.waker, wait.thread].map(|thread| pids.get(thread.index())) else {
            return;
        };
        if pid != server {
            let program = programs.get(wait.thread.index()).copied().unwrap_or_default();
            let asked = self.0.entry((*pid, program)).or_default();
            asked.count += 1;
            add(&mut asked.files, wait.source, 1);
            add(&mut asked.places, wait.waker_stack, 1);
        }
    }

    /// Adds what an earlier part tells.
    pub(super) fn absorb(&mut self, earlier: AllAsked) {
        for (of, earlier) in earlier.0 {
            let asked = self.0.entry(of).or_default();
            asked.count += earlier.count;
            earlier.files.into_iter().for_each(|(file, n)| add(&mut asked.files, file, n));
            earlier.places.into_iter().for_each(|(place, n)| add(&mut asked.places, place, n));
        }
    }

    /// What a process asked of a program.
    pub(super) fn of(&self, pid: u32, program: StringId) -> Option<&Asked> {
        self.0.get(&(pid, program))
    }
}

impl Asked {
    /// By how many connections at a time nearly all of it went, if that can be told: one that is opened for each request has the number of the
    /// one before. O(places).
    pub(super) fn connections(&self, opens_or_closes: impl Fn(StackId) -> bool) -> Option<usize> {
        let mut counts: Vec<u32> = self.files.iter().filter(|(file, _)| **file != 0).map(|(_, n)| *n).collect();
        counts.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
        // To open a connection, and to close it, wakes a server, too, and writes nothing. Each was at least once.
        let known: u32 = self.places().filter(|(place, _)| opens_or_closes(*place)).map(|(_, n)| n).sum();
        let opened_and_closed = known.max(2 * counts.len() as u32).min(self.files.get(&0).copied().unwrap_or(0));
        let mut seen = 0.0;
        let reached = counts.iter().position(|n| {
            seen += f64::from(*n);
            seen >= NEARLY_ALL * f64::from(self.count - opened_and_closed)
        });
        reached.map(|last| last + 1).filter(|n| *n < ROOM)
    }

    /// How often it asked who waited for that.
    pub(super) fn times(&self) -> u64 {
        self.count.into()
    }

    /// Where it asked, how often.
    pub(super) fn places(&self) -> impl Iterator<Item = (StackId, u32)> + '_ {
        self.places.iter().filter(|(place, _)| **place != StackId::NONE).map(|(place, n)| (*place, *n))
    }
}

fn add<K: Eq + std::hash::Hash>(to: &mut FxHashMap<K, u32>, key: K, n: u32) {
    if to.len() < ROOM || to.contains_key(&key) {
        *to.entry(key).or_default() += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_what_is_written_to_them() {
        let connect = StackId(7);
        let with = |files: &[(u16, u32)], places: &[(StackId, u32)]| {
            let count = files.iter().map(|(_, n)| n).sum();
            let (files, places) = (files.iter().copied().collect(), places.iter().copied().collect());
            Asked { count, files, places }.connections(|stack| stack == connect)
        };
        let connections = |files: &[(u16, u32)]| with(files, &[]);
        assert_eq!(connections(&[(8, 100), (9, 90)]), Some(2));
        assert_eq!(connections(&[(8, 100), (9, 1)]), Some(1), "one more to see whether it is well");
        assert_eq!(connections(&[(8, 3), (0, 2)]), Some(1), "opened and closed");
        assert_eq!(connections(&[(8, 3), (0, 9)]), None, "most of it is by nobody knows what");
        assert_eq!(with(&[(8, 3), (0, 9)], &[(connect, 9)]), Some(1), "one for each request");
    }
}
