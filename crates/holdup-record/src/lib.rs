//! Linux recorder of holdup: BPF CO-RE.
//!
//! Programs in the kernel (`bpf/`, compiled and committed) write 24-byte records of every switch and wake-up into one
//! ring per CPU, and the stacks of long waits, of their wakers and of CPU samples into a common buffer; every 20 ms
//! one thread empties both into a [spool](holdup_spool), which the rest of holdup reads.
//!
//! What this crate is *not* for: understanding what it records. Nothing is decoded here but its own buffers.

mod asking;
mod attach;
mod background;
mod bpf;
mod breakpoint;
mod budget;
mod caps;
mod child;
mod clock;
mod costs;
mod drain;
mod flight;
mod holding;
mod hooks;
mod interpreters;
mod kernel;
mod layout;
mod limits;
mod listening;
mod live;
mod mappings;
mod met;
mod namespace;
mod online;
mod options;
mod perf;
mod placement;
mod privilege;
mod probes;
mod proc;
mod quota;
mod rings;
mod said;
mod sampling;
mod segments;
mod session;
mod setup;
mod signals;
mod sink;
mod subjects;
mod trigger;

pub use attach::{processes, processes_in_cgroup};
pub use background::step_back;
pub use caps::{Raised, give_up, give_up_all, give_up_recording, lower, owner_sees_kernel_addresses};
pub use flight::{Kept, Observer};
pub use holdup_spool::Argument;
pub use live::{LiveProcess, LiveThread, live_threads};
pub use options::{
    AFTER, BUDGET, BUFFER_MB, CompiledCode, FREQ, Keep, Left, MIN_WAIT, Options, Outcome, Ring, Sockets, Status, Target,
};
pub use probes::{ArgumentAt, MOST_PROBES, Place as ArgumentPlace, Probe};
pub use session::{record, record_and_keep};
pub use signals::Farewell;
pub use sink::Recorded;
pub use trigger::{Condition, Resource};
