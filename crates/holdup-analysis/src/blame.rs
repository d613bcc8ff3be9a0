//! Charges every CPU second once: the backward sweep.
//!
//! Going backwards in time, a wait begins where its thread was woken, and there its waker is known: link. It ends
//! where the thread had left its CPU: cut. In between the waiting threads form a forest whose roots run, could run,
//! or wait for something that is no thread.
//!
//! ```text
//!      C ──waits for──▶ B ──waits for──▶ A (runs)        terminal of C and B: A, running
//! ```
//!
//! Charging is lazy: two running integrals tell how much one held-up thread is charged up to now, and a thread is
//! charged the difference whenever its terminal changes. A change costs the size of the subtree behind it; time
//! without a change costs nothing. O(steps + changes of terminals), O(threads) memory beside the intervals.

mod cells;
mod forest;
mod sweep;
mod terminal;

pub use cells::{Cell, Key, Terminal};
pub use sweep::{Blame, CpuSeconds, Window, sweep};
