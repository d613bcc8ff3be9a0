//! The changes of a part in time order, each with what a thread does from then on.

use holdup_trace::ThreadIdx;

use crate::intervals::{Chunk, State, Step};

/// A thread ceases to do one thing and begins another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    pub(super) t: u64,
    pub(super) thread: ThreadIdx,
    pub(super) before: State,
    pub(super) after: State,
}

/// The changes of a part, in the memory of an older list, and what each thread does where the part begins. O(changes + threads).
pub(super) fn of(chunk: &Chunk, moves: &mut Vec<Move>) -> Vec<State> {
    moves.clear();
    let (mut steps, mut late) = (chunk.steps().iter().peekable(), chunk.inserted().iter().peekable());
    let whole = |step: &Step| Move { t: step.t, thread: step.thread, before: step.before(), after: State::Unknown };
    loop {
        // What was learned late lies behind all steps of its time.
        let next = match (steps.peek(), late.peek()) {
            (Some(step), Some(insert)) if insert.t < step.t => late.next(),
            (Some(_), _) => steps.next(),
            (None, _) => late.next(),
        };
        match next {
            Some(step) => moves.push(whole(step)),
            None => break,
        }
    }
    let mut now = chunk.last.clone();
    for step in moves.iter_mut().rev() {
        if let Some(state) = now.get_mut(step.thread.index()) {
            step.after = std::mem::replace(state, step.before);
        }
    }
    now
}
