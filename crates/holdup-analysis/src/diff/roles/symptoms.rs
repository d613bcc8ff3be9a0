//! Waits: what they end at is the cause.

use holdup_trace::Amount;

use super::{Case, instead, seconds};
use crate::classify::WaitKind;
use crate::diff::change::{Change, Role, Subject};
use crate::diff::facts::Family;
use crate::diff::items::{HeldItem, HeldKey};

/// Locks, chains and places that wait longer or shorter.
pub(super) fn find(case: &mut Case, causes: &[Change]) -> Vec<Change> {
    let mut found = chains(case);
    found.extend(places(case, causes));
    found
}

/// Each lock, and each chain from those who wait to whom they wait for.
fn chains(case: &mut Case) -> Vec<Change> {
    let noise = case.wait_noise();
    let items: Vec<(HeldKey, HeldItem)> = case.held.iter().map(|(k, i)| (k.clone(), i.clone())).collect();
    let mut found = Vec::new();
    for (key, item) in items {
        // A lock whose hand-over takes the time is a cause already.
        if key.at.is_empty() || (key.family == Family::Lock && item.handed_over) || !case.shows(&item.wait, noise) {
            continue;
        }
        let lock = key.family == Family::Lock;
        let name = if lock {
            format!("{} taken in {}", lock_word(&key), key.at)
        } else {
            format!("{} → {}", key.at, item.function)
        };
        found.push(Change {
            what: if lock { Subject::Lock } else { Subject::Chain },
            name,
            process: key.process.to_string(),
            wait_s: seconds(&item.wait),
            delta_s: Amount(item.wait.delta()).seconds(),
            role: Role::Symptom,
            because: format!(
                "{:.0} waits instead of {:.0}; they end at `{}`",
                item.waits.now(),
                item.waits.was(),
                item.function
            ),
            significance: item.wait.p_value(),
            ..Change::default()
        });
    }
    found
}

fn lock_word(key: &HeldKey) -> &str {
    if key.lock.is_empty() { "lock" } else { &key.lock }
}

/// Functions in which threads wait.
fn places(case: &mut Case, causes: &[Change]) -> Vec<Change> {
    let noise = case.wait_noise();
    let mut found = Vec::new();
    for ((place, kind), (ns, count)) in case.sides.waits() {
        let is_cause = causes.iter().any(|c| c.what == Subject::WaitSite && *c.name == *place.function);
        if is_cause || !case.shows(&ns, noise) {
            continue;
        }
        let ends = case.held.iter().filter(|(k, i)| k.at == place.function && i.wait.delta() * ns.delta() > 0.0);
        let end = ends.max_by(|a, b| a.1.wait.delta().abs().total_cmp(&b.1.wait.delta().abs()));
        let (role, why) = match end {
            Some((_, item)) => (Role::Symptom, format!("what it waits for is `{}`", item.function)),
            None if matches!(kind, WaitKind::Input | WaitKind::Read | WaitKind::Write | WaitKind::Unknown) => {
                (Role::Unclear, "what it waits for is outside of the trace, or not known".to_owned())
            }
            None => (Role::Symptom, "it is idle by design there: nothing that works for it was charged".to_owned()),
        };
        found.push(Change {
            what: Subject::WaitSite,
            name: place.function.to_string(),
            process: place.process.to_string(),
            wait_s: seconds(&ns),
            delta_s: Amount(ns.delta()).seconds(),
            role,
            because: format!(
                "threads waited {} there, {:.0} times instead of {:.0}; {why}",
                instead(&ns),
                count.now(),
                count.was()
            ),
            significance: ns.p_value(),
            ..Change::default()
        });
    }
    found
}
