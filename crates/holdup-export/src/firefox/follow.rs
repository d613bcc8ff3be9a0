//! What each thread did, in the order of time: its samples, its waits, and how much CPU time it had used by then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use holdup_analysis::blame::Study;
use holdup_analysis::intervals::{Chunk, State, Wait};
use holdup_analysis::lanes::{Did, Doing};
use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashSet;

use crate::Result;
use crate::stacks::period;
use crate::study::look;

/// A row of a thread's samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// When, in nanoseconds.
    pub t: u64,
    /// Where.
    pub stack: StackId,
    /// What for, if it waits; it weighs nothing then.
    pub waits: Option<Doing>,
    /// CPU nanoseconds that the thread had used by then.
    pub ran: u64,
}

/// What was followed.
#[derive(Default)]
pub(super) struct Followed {
    /// By thread.
    pub rows: Vec<Vec<Row>>,
    /// By thread.
    pub waits: Vec<Vec<(Wait, Doing)>>,
    /// CPU nanoseconds by thread.
    pub ran: Vec<u64>,
    /// Waits for which there was no room.
    pub left_out: u64,
}

/// What happens to a thread at an instant.
#[derive(Clone, Copy)]
enum What {
    Runs(u64),
    Sample(StackId),
    Waited(usize),
}

/// One part of the trace.
struct Part {
    /// By thread, then by time.
    happened: Vec<(ThreadIdx, u64, What)>,
    waits: Vec<(Wait, Doing)>,
}

/// Follows the whole trace; keeps the `most` longest waits. O(events log events).
///
/// # Errors
/// If a table is damaged.
pub(super) fn follow(study: &Study, most: usize) -> Result<Followed> {
    let threads = study.trace.threads.tid.len();
    let mut all = Followed {
        rows: vec![Vec::new(); threads],
        waits: vec![Vec::new(); threads],
        ran: vec![0; threads],
        left_out: 0,
    };
    let mut longest = Longest { most, waits: BinaryHeap::new(), left_out: 0 };
    let (period, _) = period(study.trace);
    let timeline = study.timeline;
    timeline.each(0..timeline.len(), |chunk| part(study, chunk), |part: Part| all.add(&part, period, &mut longest))?;
    all.left_out = longest.left_out;
    for Reverse(Longer { wait, doing, .. }) in longest.waits {
        if let Some(waits) = all.waits.get_mut(wait.thread.index()) {
            waits.push((wait, doing));
        }
    }
    all.waits.iter_mut().for_each(|waits| waits.sort_by_key(|(wait, _)| wait.start));
    Ok(all)
}

fn part(study: &Study, chunk: &Chunk) -> Part {
    let look = look(study);
    let mut happened = Vec::new();
    look.follow(chunk, |did: Did| {
        if did.doing.has_cpu() && did.thread.is_real() {
            happened.push((did.thread, did.from, What::Runs(did.to)));
        }
    });
    for sample in chunk.samples().iter().filter(|s| s.thread.is_real()) {
        happened.push((sample.thread, sample.t.nanos(), What::Sample(sample.stack)));
    }
    // What goes on in the next part is told there.
    let open: FxHashSet<u32> = match chunk.to >= study.timeline.end {
        true => FxHashSet::default(),
        false => chunk.last.iter().filter_map(|state| waits_in(*state)).collect(),
    };
    let mut waits = Vec::new();
    for (_, wait) in chunk.waits().iter().enumerate().filter(|(i, _)| !open.contains(&(*i as u32))) {
        happened.push((wait.thread, wait.start, What::Waited(waits.len())));
        waits.push((*wait, look.at_wait(wait)));
    }
    // A wait begins where running ends, and is told behind it.
    happened.sort_by_key(|(thread, t, what)| (*thread, *t, matches!(what, What::Waited(_))));
    Part { happened, waits }
}

fn waits_in(state: State) -> Option<u32> {
    match state {
        State::Waiting(i) | State::Woken(i) => Some(i),
        _ => None,
    }
}

impl Followed {
    fn add(&mut self, part: &Part, period: u64, longest: &mut Longest) {
        let mut running: Option<(ThreadIdx, u64, u64)> = None;
        for &(thread, t, what) in &part.happened {
            if let Some((before, from, to)) = running.filter(|(of, _, _)| *of != thread) {
                self.ran(before, from, to);
                running = None;
            }
            match what {
                What::Runs(to) => {
                    if let Some((of, from, until)) = running.replace((thread, t, to)) {
                        self.ran(of, from, until);
                    }
                }
                What::Sample(stack) => self.row(thread, t, stack, None, running),
                What::Waited(i) => {
                    let Some((wait, doing)) = part.waits.get(i) else { continue };
                    // What is shorter is not seen between two samples.
                    if wait.length() >= period {
                        self.row(thread, t, wait.stack, Some(*doing), running);
                        self.row(thread, wait.woken, wait.stack, Some(*doing), running);
                    }
                    longest.add(*wait, *doing);
                }
            }
        }
        if let Some((thread, from, to)) = running {
            self.ran(thread, from, to);
        }
    }

    fn ran(&mut self, thread: ThreadIdx, from: u64, to: u64) {
        if let Some(ran) = self.ran.get_mut(thread.index()) {
            *ran = ran.saturating_add(to.saturating_sub(from));
        }
    }

    fn row(
        &mut self,
        thread: ThreadIdx,
        t: u64,
        stack: StackId,
        waits: Option<Doing>,
        running: Option<(ThreadIdx, u64, u64)>,
    ) {
        let now = running.map_or(0, |(_, from, to)| t.min(to).saturating_sub(from));
        let (Some(ran), Some(rows)) = (self.ran.get(thread.index()), self.rows.get_mut(thread.index())) else { return };
        // Clocks of CPUs may differ by less than the time between two samples.
        let t = rows.last().map_or(t, |last| t.max(last.t));
        rows.push(Row { t, stack, waits, ran: ran.saturating_add(now) });
    }
}

/// The longest waits seen so far.
struct Longest {
    most: usize,
    waits: BinaryHeap<Reverse<Longer>>,
    left_out: u64,
}

/// A wait, by its length, then by its place in time.
struct Longer {
    order: (u64, Reverse<u64>, Reverse<u32>),
    wait: Wait,
    doing: Doing,
}

impl Longest {
    fn add(&mut self, wait: Wait, doing: Doing) {
        let order = (wait.length(), Reverse(wait.start), Reverse(wait.thread.0));
        self.waits.push(Reverse(Longer { order, wait, doing }));
        if self.waits.len() > self.most {
            self.waits.pop();
            self.left_out += 1;
        }
    }
}

impl PartialEq for Longer {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Longer {}

impl PartialOrd for Longer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Longer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}
