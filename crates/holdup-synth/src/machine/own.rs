//! What the machine knows of the processes and threads that are on every machine.

use holdup_trace::StringId;

use crate::cast::Who;

/// What the machine knows of its own threads.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// The loss, in words.
    pub(super) lost: StringId,
    pub(super) job: StringId,
    pub(super) first_site: usize,
    pub(super) pids: Vec<u32>,
    pub(super) next_tid: u32,
    /// Jobs that have ended: their places are free.
    pub(super) free: Vec<Who>,
    /// Whether the main thread comes from its sleep.
    pub(super) slept: bool,
}
