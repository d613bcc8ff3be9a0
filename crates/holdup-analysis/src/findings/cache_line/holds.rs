//! What is on a cache line, as the functions around the instructions that change it tell.

use holdup_trace::{StackId, Trace};
use rustc_hash::FxHashMap;

use crate::classify::Classifier;

/// What a line may hold.
pub(super) struct Holds {
    /// Parts of names of functions, in small letters, each of nothing else.
    functions: &'static [&'static str],
    /// What it is, as the object of a sentence.
    pub(super) what: &'static str,
    /// What to do about it.
    pub(super) advice: &'static str,
}

/// The table.
const ALL: &[Holds] = &[
    Holds {
        functions: &["rwlock", "rwmutex", "readwritelock", "shared_mutex"],
        what: "the count of a reader-writer lock",
        advice: "Readers change the lock's count, too: take it for more at a time, let readers have a copy that is replaced as a whole (RCU, \
                 an atomic pointer), or give each part of the data a lock of its own.",
    },
    Holds {
        functions: &["_sp_counted", "shared_ptr", "__shared_count", "sync::arc<", "intrusive_ptr"],
        what: "a reference count",
        advice: "Hand it on by reference instead of copying it each time, or give each thread a copy of what it points to, with a count of its \
                 own on a cache line of its own (the crate holdup-sync has such counts).",
    },
];

/// What most of the time, by stack, is about. O(depth of the stacks).
pub(super) fn of(trace: &Trace, classifier: &Classifier, stacks: &FxHashMap<StackId, f64>) -> Option<&'static Holds> {
    let (mut all, mut told) = (0.0, [0.0; ALL.len()]);
    for (stack, ns) in stacks {
        all += ns;
        if let Some(at) = at(trace, classifier, *stack) {
            told[at] += ns;
        }
    }
    told.iter().position(|ns| 2.0 * ns > all).map(|at| &ALL[at])
}

/// Which of the table a stack is about, by the functions below the program's own.
fn at(trace: &Trace, classifier: &Classifier, stack: StackId) -> Option<usize> {
    let locations = trace.stacks.frames(stack).flat_map(|frame| trace.names.locations(frame));
    let mut inner = locations.take_while(|location| !classifier.is_application(location));
    inner.find_map(|location| told_by(trace.text(location.function)))
}

fn told_by(function: &str) -> Option<usize> {
    let name = function.to_ascii_lowercase();
    ALL.iter().position(|holds| holds.functions.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_tell_what_is_on_a_line() {
        let what = |function| told_by(function).map(|at| ALL[at].what);
        for function in [
            "__pthread_rwlock_rdlock",
            "sync.(*RWMutex).RLock",
            "std::shared_mutex::lock_shared",
            "java.util.concurrent.locks.ReentrantReadWriteLock$Sync.tryAcquireShared",
        ] {
            assert_eq!(what(function), Some("the count of a reader-writer lock"), "{function}");
        }
        for function in [
            "<alloc::sync::Arc<T,A> as core::clone::Clone>::clone",
            "core::ptr::drop_in_place<alloc::sync::Arc<app::Settings>>",
            "std::_Sp_counted_base<2>::_M_release",
        ] {
            assert_eq!(what(function), Some("a reference count"), "{function}");
        }
        assert_eq!(what("core::sync::atomic::AtomicU64::fetch_add"), None);
    }
}
