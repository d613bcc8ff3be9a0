//! What is read again and again, because it does not stay in memory.

use rustc_hash::FxHashSet;

use super::requests::{Request, SECTOR};
use crate::findings::context::Context;
use crate::report::{DiskFacts, Finding};

/// How large a place is, in bytes.
const PLACE: u64 = 1 << 20;
/// From so many times each on, it is no chance.
const AGAIN: f64 = 3.0;
/// From this share of the CPU time on, the kernel is busy with taking memory away.
const SHORT: f64 = 0.05;

/// So many places of a device are remembered: a quarter of a terabyte,
const MOST_PLACES: usize = 1 << 18;
/// and of one request so many: no device takes larger ones.
const MOST_OF_ONE: usize = 64;

/// The places of a device that requests concern.
#[derive(Debug, Default)]
pub(super) struct Places(FxHashSet<u64>);

impl Places {
    /// O(places of the request).
    pub(super) fn add(&mut self, request: &Request) {
        let from = request.sector.saturating_mul(SECTOR);
        let to = from.saturating_add(u64::from(request.bytes).saturating_sub(1));
        let room = MOST_PLACES.saturating_sub(self.0.len()).min(MOST_OF_ONE);
        self.0.extend((from / PLACE..=to / PLACE).take(room));
    }

    /// How often each of them was read or written on average, at least, if that was `bytes` in all; 0 where they are too many to tell.
    pub(super) fn times_each(&self, bytes: u64) -> f64 {
        if self.0.is_empty() || self.0.len() >= MOST_PLACES {
            return 0.0;
        }
        bytes as f64 / (PLACE as f64 * self.0.len() as f64)
    }
}

/// How short of memory those in focus are.
pub(super) struct Shortage {
    /// The share of the CPU samples in which the kernel looks for memory that it can take away.
    pub(super) share: f64,
    /// Whether mostly because a control group may have no more.
    pub(super) is_limit: bool,
}

impl Shortage {
    /// `None` where the kernel hardly looks for memory. O(samples).
    pub(super) fn of(context: &Context) -> Option<Self> {
        let (mut all, mut frees, mut at_limit) = (0.0, 0.0, 0.0);
        for (_, stack, ns) in context.profile() {
            let facts = context.classifier.facts(stack);
            all += ns;
            frees += if facts.frees_memory { ns } else { 0.0 };
            at_limit += if facts.frees_memory && facts.at_memory_limit { ns } else { 0.0 };
        }
        (frees > 0.0 && frees >= SHORT * all).then(|| Self { share: frees / all, is_limit: 2.0 * at_limit > frees })
    }

    /// Says so where the same places are read again and again.
    pub(super) fn add(&self, finding: &mut Finding, disk: &DiskFacts) {
        let most = disk.devices.iter().map(|d| d.times_each).fold(0.0, f64::max);
        if most < AGAIN {
            return;
        }
        finding.evidence.push(format!(
            "each place of the device was read or written {most:.0} times, and {:.0} % of the CPU samples are where the kernel looks for \
             memory to take away",
            100.0 * self.share
        ));
        finding.title.add(", again and again for the same, as memory was short");
        let whose = if self.is_limit {
            "Its control group may have no more memory (memory.max; memory.limit_in_bytes), so that what was read is dropped and read \
             again: allow it more, or let it need less at a time."
        } else {
            "The machine is short of memory, so that what was read is dropped and read again: add some, or let fewer need it at a time."
        };
        finding.advice = format!("{whose} {}", finding.advice);
    }
}
