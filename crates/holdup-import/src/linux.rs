//! What all traces of a Linux machine share, whoever wrote them: threads and their names, interrupts, system calls, states,
//! tracepoints and their formats. Importers decode bytes; [`Kernel`] makes events of what they say.

pub mod block;
pub mod cpus;
pub mod fields;
pub mod format;
pub mod irq;
pub mod kernel;
pub mod lifecycle;
pub mod lock;
pub mod sink;
pub mod state;
pub mod syscalls;
pub mod threads;
pub mod tracepoint;
pub mod tracing;
pub mod x86_64;

/// When and where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// Nanoseconds of the source's clock; 0 if it does not say.
    pub time: u64,
    /// The CPU; `u32::MAX` if the source does not say.
    pub cpu: u32,
}

impl Instant {
    /// For what has neither.
    pub const NONE: Instant = Instant { time: 0, cpu: u32::MAX };
}
