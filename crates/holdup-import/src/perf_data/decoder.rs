//! What an import knows while it turns samples into events. How each kind is decoded stands in a file of its own.

use holdup_trace::{LockId, TraceBuilder};
use rustc_hash::FxHashMap;

use super::chain::Splitter;
use super::irq::Contexts;
use super::lost::Losses;
use super::sink::Sink;
use super::syscalls::Calls;
use super::threads::Threads;

/// What is known while records are read: everything but the events' descriptions.
pub struct Decoder<'b> {
    /// Where events go.
    pub sink: Sink<'b>,
    /// Which threads are known.
    pub threads: Threads,
    /// What was lost.
    pub losses: Losses,
    /// Which handlers run.
    pub contexts: Contexts,
    /// Which system calls run.
    pub calls: Calls,
    /// For call chains.
    pub splitter: Splitter,
    /// The kernel lock that each thread contends for.
    pub contended: FxHashMap<u32, (u64, LockId)>,
    /// Whether perf and the scheduler call the same thread by different numbers.
    pub other_namespace: bool,
}

impl<'b> Decoder<'b> {
    /// Nothing is known yet; events go to `builder`.
    pub fn new(builder: &'b mut TraceBuilder) -> Self {
        Decoder {
            sink: Sink::new(builder),
            threads: Threads::new(),
            losses: Losses::default(),
            contexts: Contexts::default(),
            calls: Calls::default(),
            splitter: Splitter::default(),
            contended: FxHashMap::default(),
            other_namespace: false,
        }
    }
}
