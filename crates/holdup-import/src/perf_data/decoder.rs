//! What an import knows while it turns samples into events.

use holdup_trace::TraceBuilder;

use super::chain::Splitter;
use super::lost::Losses;
use crate::linux::kernel::Kernel;

/// What is known while records are read: everything but the events' descriptions.
pub struct Decoder<'b> {
    /// What the machine did.
    pub kernel: Kernel<'b>,
    /// What was lost.
    pub losses: Losses,
    /// For call chains.
    pub splitter: Splitter,
    /// Whether perf and the scheduler call the same thread by different numbers.
    pub other_namespace: bool,
}

impl<'b> Decoder<'b> {
    /// Nothing is known yet; events go to `builder`.
    pub fn new(builder: &'b mut TraceBuilder) -> Self {
        Decoder {
            kernel: Kernel::new(builder),
            losses: Losses::default(),
            splitter: Splitter::default(),
            other_namespace: false,
        }
    }
}
