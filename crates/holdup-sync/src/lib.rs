//! Counters, cells, handles and gates that remove contention on shared memory.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "capi")]
pub mod capi;
#[cfg(feature = "std")]
mod cpu;
#[cfg(feature = "std")]
mod gate;
#[cfg(holdup_rseq)]
mod membarrier;
#[cfg(loom)]
mod models;
#[cfg(feature = "std")]
mod op_stats;
mod padded;
#[cfg(feature = "std")]
mod pause;
#[cfg(feature = "std")]
mod percpu;
#[cfg(feature = "std")]
mod percpu_arc;
#[cfg(feature = "std")]
mod percpu_counter;
#[cfg(holdup_rseq)]
mod rseq;
#[cfg(feature = "std")]
mod spin;
#[cfg(feature = "std")]
mod striped;
#[cfg(feature = "std")]
mod sync;
#[cfg(feature = "std")]
mod thread_stats;
mod totals;

#[cfg(feature = "std")]
pub use cpu::possible as possible_cpus;
#[cfg(feature = "std")]
pub use gate::{Gate, GatedGuard, GatedMutex, Permit};
#[cfg(feature = "std")]
pub use op_stats::OpStats;
pub use padded::Padded;
#[cfg(feature = "std")]
pub use pause::Calibration;
#[cfg(feature = "std")]
pub use percpu::PerCpu;
#[cfg(feature = "std")]
pub use percpu_arc::{PerCpuArc, PerCpuRef};
#[cfg(feature = "std")]
pub use percpu_counter::PerCpuCounter;
#[cfg(feature = "std")]
pub use spin::{SpinWait, Step};
#[cfg(feature = "std")]
pub use striped::StripedCounter;
#[cfg(feature = "std")]
pub use thread_stats::{ThreadReport, ThreadStats};
pub use totals::Totals;
