//! What changed by itself: work, and what others wait for.

use std::collections::BTreeMap;

use holdup_trace::Amount;

use super::{Case, instead, seconds, time};
use crate::classify::WaitKind;
use crate::diff::change::{Change, Role, Subject};
use crate::diff::facts::{Family, Place};
use crate::diff::functions::FunctionItem;
use crate::diff::items::{HeldItem, HeldKey};
use crate::diff::series::{Noise, Series};

/// A sleep that nobody else waits for explains the run's length from this share of its change on.
const EXPLAINS: f64 = 0.3;

/// All causes but spinning.
pub(super) fn find(case: &mut Case) -> Vec<Change> {
    let mut causes: BTreeMap<(Place, Subject), Change> = BTreeMap::new();
    own_time(case, &mut causes);
    held_up(case, &mut causes);
    let mut all: Vec<Change> = causes.into_values().collect();
    all.extend(own_sleep(case));
    all
}

/// Functions that themselves used more or less CPU time.
fn own_time(case: &mut Case, causes: &mut BTreeMap<(Place, Subject), Change>) {
    let noise = case.cpu_noise();
    let items: Vec<(Place, FunctionItem)> = case.functions.iter().map(|(p, i)| (p.clone(), i.clone())).collect();
    for (place, FunctionItem { own, atomic, .. }) in items {
        if !case.shows(&own, noise) {
            continue;
        }
        let mut because = format!("it ran {}", instead(&own));
        let atomic = atomic.delta() / own.delta();
        if atomic > 0.5 {
            because += &format!(
                "; {:.0} % of the change sits on or behind atomic instructions: a contended cache line",
                100.0 * atomic.min(1.0)
            );
        }
        let change = Change {
            what: Subject::Function,
            name: case.name(&place),
            process: place.process.to_string(),
            cpu_s: seconds(&own),
            delta_s: Amount(own.delta()).seconds(),
            role: Role::Cause,
            because,
            significance: own.p_value(),
            ..Change::default()
        };
        causes.insert((place, Subject::Function), change);
    }
}

/// What threads waited for, longer or shorter.
fn held_up(case: &mut Case, causes: &mut BTreeMap<(Place, Subject), Change>) {
    let noise = case.wait_noise();
    let items: Vec<(HeldKey, HeldItem)> = case.held.iter().map(|(k, i)| (k.clone(), i.clone())).collect();
    for (key, item) in items {
        let longer = longer_hold(case, &item);
        // A hold that changed is a cause even where the waits for it drown in noise.
        if !case.shows(&item.blame, noise) && longer.is_none() {
            continue;
        }
        let place = Place { process: key.process.clone(), function: item.function.clone() };
        let what = what_of(&key, &item);
        let own = case.functions.get(&place).map(|f| f.own.clone()).unwrap_or_default();
        let change = causes.entry((place.clone(), what)).or_insert_with(|| Change {
            what,
            name: name_of(case, &key, &place),
            process: key.process.to_string(),
            cpu_s: seconds(&own),
            role: role_of(case, &key),
            significance: item.blame.p_value(),
            ..Change::default()
        });
        change.delta_s += Amount(item.blame.delta()).seconds();
        for (sum, side) in change.wait_s.iter_mut().zip(seconds(&item.wait)) {
            *sum += side;
        }
        if !change.because.is_empty() {
            change.because += "; ";
        }
        change.because += &reason(&key, &item, &own);
        change.because.extend(longer);
    }
}

/// A critical section that takes longer, or less long, when nothing disturbs it.
fn longer_hold(case: &Case, item: &HeldItem) -> Option<String> {
    let noise = Noise::hold(case.disturbed);
    let matters = item.blame.was().max(item.blame.now()) >= super::SMALLEST * case.whole;
    let real = item.holds.iter().filter(|(_, h)| matters && h.steadier().is_real(noise, 3.0));
    let (by, hold) = real.max_by(|a, b| a.1.quartile.delta().abs().total_cmp(&b.1.quartile.delta().abs()))?;
    let q = &hold.quartile;
    Some(format!(
        "; undisturbed, the lock is held {} by the critical section that ends in `{by}` ({:+.1} %; lower quartiles of \
         {} and {} holds)",
        instead(q),
        100.0 * q.delta() / q.was().max(1.0),
        hold.count[0],
        hold.count[1]
    ))
}

fn what_of(key: &HeldKey, item: &HeldItem) -> Subject {
    match key.family {
        Family::Lock if item.handed_over => Subject::Lock,
        Family::Lock | Family::Thread => Subject::Function,
        Family::Disk | Family::Sleep | Family::Scheduler | Family::Idle => Subject::WaitSite,
    }
}

fn name_of(case: &Case, key: &HeldKey, place: &Place) -> String {
    match key.family {
        Family::Scheduler => format!("runnable while a CPU is idle: {}", place.function),
        _ => case.name(place),
    }
}

/// Who could run and did not may have been in the way of neighbours.
fn role_of(case: &Case, key: &HeldKey) -> Role {
    if key.family == Family::Scheduler && !case.disturbed.is_quiet() { Role::Unclear } else { Role::Cause }
}

fn reason(key: &HeldKey, item: &HeldItem, own: &Series) -> String {
    let waits = instead(&item.wait);
    let at = if key.at.is_empty() { "elsewhere".to_owned() } else { format!("in `{}`", key.at) };
    match key.family {
        Family::Lock if item.handed_over => format!(
            "threads waited {waits} for a lock that nobody holds for long: it is handed over {:.0} times instead of {:.0}",
            item.waits.now(),
            item.waits.was()
        ),
        Family::Lock => {
            let same = own.delta().abs() < 0.1 * own.was().max(own.now());
            let outside = if same { "; its own work is nearly the same" } else { "" };
            format!("threads waited {waits} {at} for the lock while it ran{outside}")
        }
        Family::Disk => format!("threads waited {waits} for the disk here, or for a lock held meanwhile"),
        Family::Sleep => format!("others waited {waits} while it slept"),
        Family::Scheduler => format!("threads could run and did not, {waits}"),
        // Nobody waits for who works alone; places stand empty.
        Family::Thread if item.wait.was().max(item.wait.now()) < 1.0 => {
            format!("CPUs had nothing else to do {} while it ran", instead(&item.blame))
        }
        Family::Thread | Family::Idle => format!("threads waited {waits} {at} until it was done"),
    }
}

/// A thread that sleeps, and is all that the program waits for.
fn own_sleep(case: &mut Case) -> Vec<Change> {
    let noise = case.wait_noise();
    let elapsed = case.elapsed.delta();
    let mut found = Vec::new();
    for ((place, kind), (ns, count)) in case.sides.waits() {
        let alone = matches!(kind, WaitKind::Timer | WaitKind::Disk);
        let charged =
            case.held.keys().any(|k| k.at == place.function && matches!(k.family, Family::Disk | Family::Sleep));
        let explains = ns.delta() * elapsed > 0.0 && ns.delta().abs() >= EXPLAINS * elapsed.abs();
        if !alone || charged || !explains || !case.shows(&ns, noise) {
            continue;
        }
        let delta = ns.delta().abs().min(elapsed.abs()) * elapsed.signum();
        let whom = if kind == WaitKind::Timer { "slept" } else { "waited for the disk" };
        found.push(Change {
            what: Subject::WaitSite,
            name: place.function.to_string(),
            process: place.process.to_string(),
            wait_s: seconds(&ns),
            delta_s: Amount(delta).seconds(),
            role: Role::Cause,
            because: format!(
                "it {whom} {} ({:.0} times instead of {:.0}), and the run's length changed by {}",
                instead(&ns),
                count.now(),
                count.was(),
                time(elapsed.abs())
            ),
            significance: ns.p_value(),
            ..Change::default()
        });
    }
    found
}
