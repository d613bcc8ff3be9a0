//! Threads of a real-time kernel in which that does what interrupts do elsewhere: whom they wake has not waited for them.

use holdup_trace::{ThreadIdx, Trace, WakeContext};
use rustc_hash::FxHashMap;

/// Ends sleeps; only real-time kernels have it.
const TIMERS: &str = "ktimers/";
/// What else such threads are called there, by how that begins.
const OTHERS: [(&str, WakeContext); 2] = [("ksoftirqd/", WakeContext::SoftIrq), ("irq/", WakeContext::HardIrq)];

/// For what each of them wakes others.
#[derive(Debug, Default)]
pub(super) struct Carriers(FxHashMap<ThreadIdx, WakeContext>);

impl Carriers {
    /// O(threads).
    pub(super) fn of(trace: &Trace) -> Self {
        let named = |begin: &'static str| {
            let names = trace.threads.name.iter().zip(0..);
            names.filter(move |(name, _)| trace.text(**name).starts_with(begin)).map(|(_, i)| ThreadIdx(i))
        };
        let mut found: FxHashMap<_, _> = named(TIMERS).map(|thread| (thread, WakeContext::Timer)).collect();
        if !found.is_empty() {
            for (begin, context) in OTHERS {
                found.extend(named(begin).map(|thread| (thread, context)));
            }
        }
        Carriers(found)
    }

    /// For what the thread wakes others, if that is not for itself.
    #[inline]
    pub(super) fn context(&self, waker: ThreadIdx) -> Option<WakeContext> {
        if self.0.is_empty() { None } else { self.0.get(&waker).copied() }
    }
}
