//! What the CPUs that were idle are charged to.

use holdup_analysis::blame::{self, Cell, Key};
use holdup_analysis::label;
use holdup_trace::{Amount, StackId};

use super::{NameId, Paths, Weighing};
use crate::Result;

impl Weighing<'_> {
    /// The charges by which findings are ranked, each under the thread that others waited for.
    pub(super) fn blame(&mut self) -> Result<Paths> {
        let found = blame::blame(self.study, |_| (), |()| ())?;
        let mut paths = Paths::default();
        for (key, cell) in found.cells.iter().filter(|(_, cell)| cell.rank_ns >= 1.0) {
            let thread = self.per_thread.then_some(key.thread);
            let begin = self.culprit(key);
            for (stack, share) in did(key, cell) {
                let mut path = begin.clone();
                self.names.frames(stack, &mut path);
                let sum = paths.entry((thread, path)).or_default();
                *sum = sum.saturating_add((Amount(cell.rank_ns) * share).0.round() as u64);
            }
        }
        Ok(paths)
    }

    /// Process, thread, and what one waits for.
    fn culprit(&mut self, key: &Key) -> Vec<NameId> {
        let trace = self.study.trace;
        let lock = label::lock(trace, key.lock).map(|lock| match lock.name.as_str() {
            "" => format!("lock: {} {}", lock.kind.name(), lock.address),
            name => format!("lock: {name}"),
        });
        let what = lock.unwrap_or_else(|| format!("waits: {}", key.kind.name()));
        let [process, thread] = match key.thread.is_real() {
            true => self.names.of_thread(key.thread),
            false => ["(no process)", "(no thread)"].map(|name| self.names.plain(name, "")),
        };
        vec![process, thread, self.names.plain(&what, "")]
    }
}

/// The stacks of what the thread did meanwhile, each with its share: those of its samples, or where it waited itself.
fn did(key: &Key, cell: &Cell) -> Vec<(StackId, f64)> {
    let ran: f64 = cell.samples.values().sum();
    if ran > 0.0 {
        return cell.samples.iter().map(|(stack, ns)| (*stack, ns / ran)).collect();
    }
    vec![(key.site, 1.0)]
}
