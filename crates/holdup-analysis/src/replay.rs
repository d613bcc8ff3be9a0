//! How much shorter the run could have been: the trace is followed once more, with what belongs to a finding taken out.
//!
//! Each thread has a virtual clock for each finding, and one for the unchanged run. What it does moves its clock on; a thread
//! that is woken, or created, goes on no earlier than the one that did it:
//!
//! ```text
//!   producer  ██3██──wakes──▶██3██──wakes──▶…     clock: 3, 6, …      without the producer's work: 0, 0, …
//!   consumer         █1█            █1█           clock: 4, 7, …                                   1, 2, …
//! ```
//!
//! The greatest clock at the end is the longest path: no order of the remaining work is shorter, with however many CPUs. With
//! those that there are it is no shorter than the CPU time that remains, divided by their number.
//!
//! Who sleeps in one place again and again, and does nothing in between but look, waits for the work of somebody: if that is done sooner, it
//! sleeps less often. So its clocks without a finding stand still meanwhile.
//!
//! What moves a clock: running; a disk; being ready while the CPU is idle (the latency of waking up); a sleep or a wait for the
//! outside that holds others up, for as long as they wait. What does not: idleness by design, so that a program that runs for a
//! fixed time is measured by what it does meanwhile; and the queue for a CPU that the program uses itself, which the CPU time counts.

mod clocks;
mod cpus;
mod length;
mod moves;
mod part;
mod pieces;
mod settle;
mod taken;
mod waits;

use holdup_trace::{Result, StackId, StringId, ThreadIdx};
use rustc_hash::FxHashSet;

use crate::blame::{Blame, Study};
use crate::intervals::State;
use clocks::{Clocks, Set};
use cpus::Cpus;
use moves::Move;
use pieces::Pieces;
use waits::{Passes, Places};

pub use length::{Length, Lengths, bound};
pub use taken::{Taken, Work};

/// CPU time that it costs at most to go to sleep and to be woken, on both sides, on a virtual machine; the way to the CPU is counted where
/// a thread is ready.
const COST_NS: u64 = 30_000;

/// Findings that can be followed at once.
pub const AT_ONCE: usize = 32;

/// How long the run is, unchanged and without each of `taken`, of which there may be [`AT_ONCE`].
///
/// O(events × findings) time; O(threads × findings) memory, and one part of the trace.
///
/// # Errors
/// If a table is damaged.
pub fn replay(study: &Study, blame: &Blame, taken: &[Taken]) -> Result<Lengths> {
    let taken = &taken[..taken.len().min(AT_ONCE)];
    let mut replay = Replay::new(study, blame, taken);
    let touched = (0..study.timeline.len()).filter(|&index| study.touches(index));
    study.timeline.one_by_one(touched, |chunk| replay.part(chunk))?;
    Ok(replay.finish())
}

/// What is known of a thread at an instant.
#[derive(Debug, Clone, Copy)]
struct Now {
    state: State,
    /// Up to when its clocks have been moved on.
    since: u64,
    /// Whether it took its clocks from who created it.
    born: bool,
    /// Whether it works for the program, or is of it.
    ours: bool,
    /// How often it woke the program, or was woken by it.
    talks: u32,
    /// How many held up threads it will wake next.
    behind: u32,
    /// Whom it will be woken by, if it is one of those.
    waker: ThreadIdx,
    passes: Passes,
    /// Where it slept last, until when, unless it has woken somebody since.
    slept: Option<(StackId, u64)>,
    /// Whether it sleeps again, having done nothing but look.
    polls: bool,
    /// The findings without which its present wait would not be.
    gone: Set,
    /// Those without which it would not have to get its CPU back.
    relieved: Set,
}

/// The state of the second run.
struct Replay<'a> {
    study: &'a Study<'a>,
    taken: &'a [Taken],
    places: Places,
    pieces: Pieces,
    clocks: Clocks,
    cpus: Cpus,
    threads: Vec<Now>,
    /// CPU time by thread.
    ran: Vec<u64>,
    /// CPU time of the program by finding.
    saved: Vec<u64>,
    /// All that was taken out of any thread by finding, in nanoseconds of the run as it was.
    removed: Vec<u64>,
    /// What waits that are gone can have cost, of which no sample has been taken out yet, by finding.
    spared: Vec<u64>,
    /// When something of each finding was taken out last.
    last: Vec<Option<u64>>,
    /// The names of other programs that work for the program in focus.
    partners: FxHashSet<StringId>,
    moves: Vec<Move>,
    begun: bool,
}
