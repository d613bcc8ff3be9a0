//! From events to intervals: what every thread did at every instant, and who ended each of its waits.
//!
//! ```text
//!   thread  ──Running(cpu)──┐ switch-out          ┌ wake        ┌ switch-in
//!                           └──────Waiting(i)─────┴──Woken(i)───┴──Running(cpu)──…
//! ```
//!
//! The result is a list of [`Step`]s in time order, each with the state that *ends* there, so that a reader going
//! backwards always knows what was before: part by part from a [`Timeline`], in bounded memory, or all at once.

mod borders;
mod carriers;
mod crossing;
mod cursor;
mod every;
mod facts;
mod families;
mod homes;
mod losses;
mod machine;
mod made;
mod now;
mod origin;
mod output;
mod owners;
mod part;
mod place;
mod prepare;
mod range;
mod releases;
mod requests;
mod sites;
mod standing;
mod state;
mod streams;
mod stretches;
mod tally;
mod timeline;
mod trie;
mod wait;
mod whole;

use holdup_trace::{LossKind, Trace};

pub(crate) use families::{descends, is_child, starter};
pub use owners::OwnerSpan;
pub use part::{Chunk, Extra};
pub(crate) use place::LONGEST_NAP_NS;
pub use place::Place;
pub use state::{State, Step};
pub use stretches::Stretch;
pub use timeline::{Reader, Timeline};
pub use wait::Wait;
pub use whole::{Intervals, build};

/// A wake traced this long before the switch-out that it ends still belongs to it, in nanoseconds.
const RACE_NS: u64 = 50_000;
/// The longest tail of a lock wait that counts as hand-off, in nanoseconds.
pub(crate) const HANDOFF_NS: u64 = 1_000_000;

/// What was wrong with the events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Health {
    /// Events that the source says were lost.
    pub lost_events: u64,
    /// Stacks that found no room.
    pub lost_stacks: u64,
    /// Mappings of code that are missing: functions without names.
    pub lost_mappings: u64,
    /// Waits whose waker is unknown.
    pub unknown_wakers: u64,
    /// Switches that contradict the previous state.
    pub unmatched: u64,
    /// Switch-ins that the trace does not have and that were inferred.
    pub inferred: u64,
    /// Waits that were open when the trace began.
    pub censored: u64,
    /// Parent pointers that closed a circle.
    pub cycles: u64,
}

/// A stack that is missing is no event, and one that was left out to limit their rate is no loss.
fn count_losses(trace: &Trace, health: &mut Health) {
    for loss in trace.losses.iter().flatten() {
        match loss.kind {
            LossKind::Events | LossKind::Unknown => health.lost_events += loss.count,
            LossKind::Stacks => health.lost_stacks += loss.count,
            LossKind::Mappings => health.lost_mappings += loss.count,
            LossKind::LimitedStacks | LossKind::Spans => {}
        }
    }
}

/// The greatest n with which at least 1 % of the time that any ran was spent; `parallelism` is by n, in nanoseconds.
fn peak(parallelism: &[u64]) -> usize {
    let active: u128 = parallelism.iter().skip(1).map(|&t| u128::from(t)).sum();
    let mut above: u128 = 0;
    for (n, time) in parallelism.iter().enumerate().skip(1).rev() {
        above += u128::from(*time);
        if above * 100 >= active && above > 0 {
            return n;
        }
    }
    0
}
