//! Some parts of the trace as one: for questions about single waits.

use std::ops::Range;

use holdup_trace::{Result, ThreadIdx};
use rustc_hash::FxHashMap;

use super::part::Chunk;
use super::state::Step;
use super::timeline::Timeline;
use super::wait::{GOES_ON_BEYOND, Wait};
use super::whole::Intervals;

impl Timeline<'_> {
    /// The intervals of some parts, about 60 bytes for each event. Waits that begin earlier come first.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn range(&self, parts: Range<usize>) -> Result<Intervals> {
        let mut all = Intervals {
            cpus: self.cpus,
            from: self.span(parts.start).0,
            end: self.end,
            health: self.health,
            first_wait: self.first_wait(parts.start),
            ..Intervals::default()
        };
        let (mut leaving, mut late) = (Vec::new(), Vec::new());
        let mut reader = self.reader();
        for index in parts.clone() {
            let mut chunk = reader.chunk(index, None)?;
            let place = add_waits(&mut all.waits, &chunk, leaving);
            leaving = chunk.leaving.iter().map(|i| place[*i as usize]).collect();
            if index == parts.start {
                all.carried = chunk.waits().len() - chunk.waits_begun().len();
            }
            let placed = |s: &Step| Step::new(s.t, s.thread, s.before().with_wait(|i| place[i as usize]));
            all.steps.extend(chunk.steps().iter().map(placed));
            late.extend(chunk.inserted().iter().map(placed));
            all.last = chunk.last.iter().map(|state| state.with_wait(|i| place[i as usize])).collect();
            all.owners.append(&mut chunk.owners);
            if index + 1 == parts.end {
                all.owners.append(&mut chunk.owners_at_end);
                all.end = chunk.to;
            }
        }
        if !late.is_empty() {
            // Each behind the steps of its time: the sort is stable.
            all.steps.append(&mut late);
            all.steps.sort_by_key(|s| s.t);
        }
        join(&mut all.waits);
        Ok(all)
    }
}

/// Adds the waits of a part to `all`; says where each of them is now. Those that came over its border, if it is not the first, are
/// at `place`.
fn add_waits(all: &mut Vec<Wait>, chunk: &Chunk, mut place: Vec<u32>) -> Vec<u32> {
    let known = place.len();
    place.extend((known..chunk.waits().len()).map(|i| (all.len() + i - known) as u32));
    let own = chunk.waits().iter().map(|wait| {
        let goes_on = match wait.goes_on {
            0 | GOES_ON_BEYOND => wait.goes_on,
            next => place[next as usize - 1] + 1,
        };
        Wait { goes_on, ..*wait }
    });
    for (wait, &at) in own.zip(&place) {
        match all.get_mut(at as usize) {
            // Where it ends more is known of it.
            Some(known) => *known = wait,
            None => all.push(wait),
        }
    }
    place
}

/// Waits that go on in one of a later part.
fn join(waits: &mut [Wait]) {
    let mut later: FxHashMap<ThreadIdx, u32> = FxHashMap::default();
    for i in (0..waits.len()).rev() {
        let next = later.insert(waits[i].thread, i as u32 + 1);
        if waits[i].goes_on == GOES_ON_BEYOND {
            waits[i].goes_on = next.unwrap_or(0);
        }
    }
}
