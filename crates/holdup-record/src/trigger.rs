//! Conditions under which a flight recorder keeps what it has: told from the records as they come, and from a few files.
//!
//! Nothing here looks at /proc more often than twice a second, and nothing grows but with the threads that there are.

mod cond;
mod files;
mod idle;
mod names;
mod pressure;
mod threads;

use std::collections::VecDeque;

use holdup_spool::{Happenings, Side};
use holdup_trace::Result;

pub use cond::{Condition, Resource};
use files::{Appearance, Log};
use names::Whose;
use pressure::Pressure;
use threads::Threads;

/// Files are looked at so often, in nanoseconds.
const LOOK_EVERY: u64 = 500_000_000;
/// Threads that still wait are looked at so often, in nanoseconds.
const SCAN_EVERY: u64 = 100_000_000;

/// A condition that held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fired {
    /// When, in nanoseconds of the recording's clock.
    pub t: u64,
    /// Which, and what was seen.
    pub why: String,
}

/// All conditions of a recording.
#[derive(Debug)]
pub(crate) struct Triggers {
    happenings: Happenings,
    /// What is told from records; nothing is decoded if no condition asks for it.
    threads: Option<Threads>,
    pressures: Vec<Pressure>,
    logs: Vec<Log>,
    files: Vec<Appearance>,
    fired: VecDeque<Fired>,
    looked: u64,
    scanned: u64,
    /// When the round before began: what is older is complete.
    before: u64,
}

impl Triggers {
    /// Conditions of a recording that begins at `t` on `cpus` CPUs. `focus` are the processes that it is about; none for all.
    ///
    /// # Errors
    /// `Error::Input` if a file cannot be read or the kernel tells nothing of pressure.
    pub(crate) fn new(conditions: &[Condition], focus: &[u32], cpus: usize, t: u64) -> Result<Triggers> {
        let (mut pressures, mut logs, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for condition in conditions {
            match condition {
                Condition::Pressure { of, full, share } => pressures.push(Pressure::new(*of, *full, *share)?),
                Condition::Log { path, text } => logs.push(Log::open(path, text)?),
                Condition::File { path } => files.push(Appearance::new(path)),
                Condition::Idle { .. } | Condition::Queue { .. } | Condition::Wait { .. } => {}
            }
        }
        let threads = Threads::new(conditions, Whose::new(focus, std::process::id()), cpus, t);
        Ok(Triggers {
            happenings: Happenings::default(),
            threads,
            pressures,
            logs,
            files,
            fired: VecDeque::new(),
            looked: t,
            scanned: t,
            before: t,
        })
    }

    /// Takes what the kernel left for a CPU.
    pub(crate) fn records(&mut self, cpu: u16, records: &[u8]) {
        if self.threads.is_some() {
            self.happenings.add(cpu, records);
        }
    }

    /// Takes what is told beside: names, losses.
    pub(crate) fn side(&mut self, items: &[Side]) {
        let Some(threads) = &mut self.threads else { return };
        for item in items {
            match item {
                Side::Name { pid, tid, name, .. } => threads.name(*pid, *tid, name),
                // Who waits, and for how long, is not known any more.
                Side::Lost { kind: holdup_trace::LossKind::Events, .. } => {
                    self.happenings.clear();
                    threads.forget();
                }
                _ => {}
            }
        }
    }

    /// The first condition that held and was not told yet, at the end of a round that began at `t`.
    pub(crate) fn check(&mut self, t: u64) -> Option<Fired> {
        let complete = std::mem::replace(&mut self.before, t);
        if let Some(threads) = &mut self.threads {
            for happening in self.happenings.until(complete) {
                threads.happen(&happening, &mut self.fired);
            }
            if t.saturating_sub(self.scanned) >= SCAN_EVERY {
                self.scanned = t;
                threads.scan(complete, &mut self.fired);
            }
        }
        if t.saturating_sub(self.looked) >= LOOK_EVERY {
            self.looked = t;
            let seen = self.pressures.iter_mut().map(Pressure::look).chain(self.logs.iter_mut().map(Log::look));
            let seen = seen.chain(self.files.iter_mut().map(Appearance::look));
            self.fired.extend(seen.flatten().map(|why| Fired { t, why }));
        }
        let first = self.fired.pop_front();
        // What held beside it is in the same trace.
        self.fired.clear();
        first
    }
}
