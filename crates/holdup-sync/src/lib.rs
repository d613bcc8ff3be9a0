//! Counters, cells, handles and gates that remove contention on shared memory.
//!
//! A word that all threads write costs ten times more at two threads than at one, and more with every further one: its
//! cache line travels. Faster locks do not cure that; splitting the data does. Each type here is one way to split, or,
//! where that can't be, to let fewer threads in.
//!
//! | you have | and | take |
//! | --- | --- | --- |
//! | `AtomicU64`, added to by all | a few such counters | [`PerCpuCounter`] |
//! | `AtomicU64`, added to by all | many counters, or no Linux | [`StripedCounter`] |
//! | `Mutex<HashMap<…>>` that is filled and later read | parts can be put together | [`PerCpu`] |
//! | a locked table of times and sizes | threads come and go | [`OpStats`] |
//! | a locked table of times and sizes | few threads that live long | [`ThreadStats`] |
//! | `Arc`, cloned for each request | it can't be a reference, or one clone for each thread | [`PerCpuArc`] |
//! | an array with an element for each thread | elements are small | [`Padded`] |
//! | `while !ready() { spin_loop() }` | the wait is usually below 10 µs | [`SpinWait`] |
//! | `Mutex`, with more threads than CPUs | it can't be split | [`GatedMutex`], [`Gate`] |
//!
//! # Cost
//!
//! CPU nanoseconds per operation and thread, medians; `cargo bench -p holdup-sync` makes these for your machine. Here:
//! a virtual machine with 2 CPUs of an AMD EPYC, Linux 6.18, glibc 2.36, while other programs kept both CPUs busy; rounds with a
//! preempted thread left out, medians of three runs. The core's own speed changed by a factor of up to two between runs, so
//! compare rows, not columns.
//!
//! | | 1 thread | 2 threads |
//! | --- | --- | --- |
//! | plain add on a line of its own, for comparison | 0.33 | 0.34 |
//! | `PerCpuCounter::add` | 1.1 | 1.0 |
//! | `AtomicU64::fetch_add`, a line for each thread | 2.4 | 2.3 |
//! | `AtomicU64::fetch_add`, shared | 2.4 | 8.4 |
//! | two published sharded counters | 2.3–2.4 | 2.1 |
//! | `StripedCounter::add` | 2.7 | 3.2 |
//! | `Arc`, clone and drop, for comparison | 4.8 | 18 |
//! | `PerCpuRef`, clone and drop | 6.1 | 5.9 |
//! | `Mutex`, shared, for comparison | 4.9 | 29 |
//! | `PerCpu::with` | 6.8 | 6.0 |
//! | `ThreadStats::add` | 7.4 | 7.0 |
//! | `OpStats::add` | 9.7 | 8.4 |
//!
//! Reading, while nobody adds: `PerCpuCounter::drain` 8, `StripedCounter::drain` 2.4, `OpStats::report` of 4 operations 57.
//!
//! So none but `PerCpuCounter` is worth its place where one thread does the work. What the others buy is that the number stays
//! the same at any number of threads.
//!
//! # When not
//!
//! - First ask whether the sharing is needed: a local sum that each thread adds once at its end beats everything here.
//! - Everything per CPU is cheap to write and dear to read: O(possible CPUs). A limit or a sequence number that each
//!   operation must see can't be split.
//! - See "When not" at each type.
//!
//! # Migration
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use holdup_sync::PerCpuCounter;
//!
//! struct Before { requests: AtomicU64 }
//! impl Before {
//!     fn on_request(&self) { self.requests.fetch_add(1, Ordering::Relaxed); }
//!     fn scrape(&self) -> u64 { self.requests.swap(0, Ordering::Relaxed) }
//! }
//!
//! struct After { requests: PerCpuCounter }
//! impl After {
//!     fn on_request(&self) { self.requests.add(1); }
//!     fn scrape(&self) -> u64 { self.requests.drain() }
//! }
//!
//! let (before, after) = (Before { requests: AtomicU64::new(0) }, After { requests: PerCpuCounter::new() });
//! before.on_request();
//! after.on_request();
//! assert_eq!(before.scrape(), after.scrape());
//! ```
//!
//! # Features
//! - `std` (default): without it the crate is `no_std`, and [`Padded`] and [`Totals`] are left.
//! - `capi`: the counters for C, declared in `include/holdup_sync.h`.
//!
//! # How it is checked
//! Signal storms on four times as many threads as CPUs, with migrations and concurrent drains, beside a control without the
//! restartable section that must lose some (`tests/storm.rs`); drains beside one that empties the cells, which must miscount
//! (`src/rseq/mod.rs`); a filter that kills for any system call, `fork`, a child in borrowed memory (`tests/process.rs`); all of
//! these also with musl and with a static glibc; interleavings with up to three preemptions under loom (`src/models.rs`); the unit
//! tests under Miri, with both of its models of borrowing.
//!
//! ```sh
//! cargo test -p holdup-sync --target x86_64-unknown-linux-musl
//! RUSTFLAGS="-C target-feature=+crt-static" cargo test -p holdup-sync --target x86_64-unknown-linux-gnu
//! RUSTFLAGS="--cfg loom" cargo test --release -p holdup-sync --lib --target-dir target/loom models   # 3 s
//! MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p holdup-sync --lib                   # 30 s
//! ```

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "capi")]
pub mod capi;
#[cfg(feature = "std")]
mod cpu;
#[cfg(feature = "std")]
mod gate;
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
#[cfg(any(holdup_rseq, all(loom, test), all(test, feature = "std")))]
mod taken;
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
