//! Who ended a wait: a peer of the same program, or somebody from outside of it.

use holdup_trace::WakeContext;

use super::prepare::Dictionary;
use super::wait::Wait;

/// Who ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// A device, or a thread of another program.
    Outside,
    /// A thread of the same program.
    Peer,
    /// A time-out, or nobody.
    Nobody,
}

pub(super) fn origin(wait: &Wait, dictionary: &Dictionary) -> Origin {
    if wait.open {
        return Origin::Nobody;
    }
    if wait.waker.is_real() {
        let same = dictionary.families.are_one(dictionary.trace, wait.waker, wait.thread);
        return if same { Origin::Peer } else { Origin::Outside };
    }
    match wait.context {
        WakeContext::SoftIrq | WakeContext::HardIrq => Origin::Outside,
        _ => Origin::Nobody,
    }
}
