//! Control groups whose CPU time is limited.

use holdup_trace::tables::Quota;
use holdup_trace::{StringId, Trace};
use rustc_hash::FxHashMap;

/// The limits of control groups, and how often they were reached.
#[derive(Debug, Default)]
pub struct Quotas(FxHashMap<String, Quota>);

impl Quotas {
    /// What the trace tells last of each group. O(rows).
    pub fn new(trace: &Trace) -> Self {
        let mut groups: FxHashMap<String, Quota> = FxHashMap::default();
        for row in trace.quotas.iter().flatten() {
            let known = groups.entry(trace.text(row.group).to_owned()).or_insert(row);
            // A limit that was taken off did what it did.
            let quota_us = if row.quota_us > 0 { row.quota_us } else { known.quota_us };
            *known = Quota { quota_us, ..row };
        }
        Quotas(groups)
    }

    /// The limit that was reached longest, of `group` and those above it; none if none was.
    pub fn throttled(&self, trace: &Trace, group: StringId) -> Option<&Quota> {
        let name = trace.text(group);
        let above = std::iter::successors(Some(name), |n| match n.rfind('/')? {
            _ if *n == "/" => None,
            0 => Some("/"),
            at => Some(&n[..at]),
        });
        let limits = above.filter_map(|name| self.0.get(name));
        limits.filter(|q| q.throttled > 0 && q.quota_us > 0).max_by_key(|q| q.throttled_us)
    }
}
