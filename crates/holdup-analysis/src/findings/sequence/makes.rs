//! What several processes of one program start one after another: `make`, which calls itself for each folder.

use std::collections::BTreeMap;

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::FxHashSet;

use super::super::context::Context;
use super::{FEWEST, Row, Started};
use crate::servers::Processes;

/// What several processes of one program start, for each such program, if each starts some and is not for the client of a server. One below which another of
/// these starts something is no part of it, but all that comes of that. O(threads · programs).
pub(super) fn of_several(context: &Context, processes: &Processes, started: &[(ThreadIdx, Started)]) -> Vec<Row> {
    let mut of: BTreeMap<StringId, BTreeMap<ThreadIdx, Vec<Started>>> = BTreeMap::new();
    for (starter, life) in started {
        of.entry(context.program(*starter)).or_default().entry(*starter).or_default().push(*life);
    }
    let row = |starters: BTreeMap<ThreadIdx, Vec<Started>>| {
        let below = processes.below(&starters.values().flatten().map(|life| life.process).collect());
        let above: FxHashSet<ThreadIdx> = starters.keys().filter_map(|starter| below[starter.index()]).collect();
        let own = |lives: &Vec<Started>| lives.iter().filter(|life| !above.contains(&life.process)).copied().collect();
        let own: Vec<(ThreadIdx, Vec<Started>)> =
            starters.iter().map(|(starter, lives)| (*starter, own(lives))).collect();
        let most = own.iter().max_by_key(|(_, lives)| lives.iter().map(Started::ns).sum::<u64>());
        most.map(|(starter, _)| Row::of(*starter, own.iter().flat_map(|(_, lives)| lives.iter().copied()).collect()))
    };
    for starters in of.values_mut() {
        starters.retain(|starter, lives| {
            lives.len() >= FEWEST[0] && !context.starters(*starter).any(|above| context.is_server(above))
        });
    }
    of.into_values().filter(|starters| starters.len() > 1).filter_map(row).collect()
}
