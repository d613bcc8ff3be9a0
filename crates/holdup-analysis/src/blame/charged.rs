//! What one part of a trace comes to.

use std::collections::BTreeSet;

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::CpuSeconds;
use super::cells::{Cell, Counted};
use super::census::Looks;
use super::key::Key;
use super::latency::Latency;
use super::spans::BySubject;

/// What one part of the trace comes to.
#[derive(Debug, Default)]
pub(super) struct Charged {
    pub(super) cpu: CpuSeconds,
    pub(super) cells: Vec<(Key, Cell)>,
    pub(super) spans: BySubject,
    pub(super) looks: Looks,
    pub(super) profile: FxHashMap<(ThreadIdx, StackId), f64>,
    pub(super) at_work: FxHashMap<(usize, ThreadIdx, StackId), (f64, f64)>,
    pub(super) waiting: FxHashMap<(usize, usize), f64>,
    pub(super) instead: FxHashMap<(ThreadIdx, ThreadIdx), u64>,
    pub(super) latencies: FxHashMap<StringId, Latency>,
    pub(super) neighbours: FxHashMap<ThreadIdx, f64>,
    pub(super) cycles: u64,
    /// Threads that wait for each other's locks, and will for ever.
    pub(super) deadlocked: BTreeSet<ThreadIdx>,
    /// Where waits were charged that go on behind the part's end; with what is counted of them if they begin here.
    pub(super) crossing: Vec<(ThreadIdx, Vec<Key>, Option<Counted>)>,
    /// Where waits were charged that began before the part.
    pub(super) open: Vec<(ThreadIdx, Vec<Key>)>,
}
