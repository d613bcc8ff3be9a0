//! Waits for the disk that no call asks for: memory that was taken away has to be fetched when it is touched.

use super::context::Context;
use super::lock;
use super::tally::{Group, Tally};
use crate::classify::StackFacts;
use crate::report::Finding;

/// What is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// What the kernel wrote to its swap space, as memory was short.
    Swapped,
    /// A part of a file that the program has mapped.
    Mapped,
}

impl Fault {
    fn of(facts: &StackFacts) -> Option<Self> {
        match (facts.swaps, facts.maps) {
            (true, _) => Some(Fault::Swapped),
            (_, true) => Some(Fault::Mapped),
            _ => None,
        }
    }

    /// What it is, behind what was done.
    fn words(self) -> &'static str {
        match self {
            Fault::Swapped => ", for memory that was swapped out",
            Fault::Mapped => ", for parts of files that it has mapped",
        }
    }

    /// What to do about it in `function`.
    fn advice(self, function: &str) -> String {
        match self {
            Fault::Swapped => format!(
                "Memory is too short, on the machine (free -m) or in the control group (memory.max, memory.limit_in_bytes): allow more, or let \
                 {function} need less at a time."
            ),
            Fault::Mapped => format!(
                "Fetch what {function} will need ahead of time (MADV_WILLNEED, MADV_POPULATE_READ, larger reads; MADV_RANDOM where little around \
                 it is needed), or see that it stays in memory."
            ),
        }
    }
}

/// What most of the time at the disk is for, if a group is about that. O(stacks of the group).
fn mostly(context: &Context, group: &Group, tally: &Tally) -> Option<Fault> {
    if !matches!(group, Group::Disk(..)) {
        return None;
    }
    let share = |fault| tally.share_of_sites(|stack| Fault::of(&context.classifier.facts(stack)) == Some(fault));
    [Fault::Swapped, Fault::Mapped].into_iter().find(|fault| share(*fault) > 0.5)
}

/// Whether it is for memory that was swapped out: with enough of it, the work that this takes would go, too.
pub(super) fn is_swap(context: &Context, group: &Group, tally: &Tally) -> bool {
    mostly(context, group, tally) == Some(Fault::Swapped)
}

/// Says so of a finding.
pub(super) fn add(context: &Context, group: &Group, tally: &Tally, finding: &mut Finding) {
    let Some(fault) = mostly(context, group, tally) else { return };
    let function = match finding.culprit.function.as_str() {
        "" => "this code",
        function => function,
    };
    let advice = fault.advice(function);
    // Whoever keeps a lock meanwhile lets that go first.
    let keeps_lock = lock::is_kept_meanwhile(context, group, tally);
    finding.advice = if keeps_lock { format!("{} {advice}", finding.advice) } else { advice };
    finding.title.add(fault.words());
}
