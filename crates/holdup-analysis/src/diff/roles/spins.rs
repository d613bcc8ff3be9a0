//! Spinning: a symptom of somebody's longer work, or the pause's own fault.

use holdup_trace::Amount;
use rustc_hash::FxHashSet;

use super::{Case, instead, seconds, time};
use crate::diff::change::{Change, Role, Subject};
use crate::diff::facts::{Place, Spot};
use crate::diff::functions::FunctionItem;
use crate::diff::series::Series;

/// Work that changed by this share of the spinning explains it: with n threads spinning behind one holder it is 1/n.
const EXPLAINED: f64 = 0.1;
/// From this share of the change on it lies behind `pause`.
const BEHIND_PAUSE: f64 = 0.5;
/// From this share of a function's change on an instruction is named.
const CONCENTRATED: f64 = 0.3;
/// Samples at common instructions, as a share of all, from which on it is the same code.
const SAME: f64 = 0.6;
/// Instructions named for each function.
const NAMED: usize = 3;

/// The functions that spin, each with its role.
pub(super) fn find(case: &Case, causes: &[Change]) -> Vec<Change> {
    let noise = case.cpu_noise();
    let matters = |s: &Series| s.delta().abs() >= super::SMALLEST * case.whole && s.is_real(noise, super::SHOWN);
    let spinning: Vec<(&Place, &FunctionItem)> = case.functions.iter().filter(|(_, i)| matters(&i.spin)).collect();
    let total: f64 = spinning.iter().map(|(_, i)| i.spin.delta()).sum();
    let behind: Vec<&str> = spinning.iter().filter(|(_, i)| is_behind_pause(i)).map(|(p, _)| &*p.function).collect();
    let work = causes
        .iter()
        .filter(|c| c.delta_s * total > 0.0 && Amount::from_seconds(c.delta_s.abs()).0 >= EXPLAINED * total.abs())
        .max_by(|a, b| a.delta_s.abs().total_cmp(&b.delta_s.abs()));
    let mut found: Vec<Change> = spinning.iter().map(|(p, i)| change(p, i, work, &behind)).collect();
    if work.is_none() && behind.len() > 1 {
        found.push(pause_itself(case, &spinning, &behind));
    }
    found
}

fn is_behind_pause(item: &FunctionItem) -> bool {
    item.pause.delta() / item.spin.delta() >= BEHIND_PAUSE
}

fn change(place: &Place, item: &FunctionItem, work: Option<&Change>, behind: &[&str]) -> Change {
    let spun = format!("it spun {}", instead(&item.spin));
    let share = 100.0 * (item.pause.delta() / item.spin.delta()).clamp(0.0, 1.0);
    let (role, because) = match work {
        Some(cause) => (
            Role::Symptom,
            format!(
                "{spun}, because `{}` changed by {}",
                cause.name,
                time(Amount::from_seconds(cause.delta_s.abs()).0)
            ),
        ),
        None if is_behind_pause(item) => {
            let others: Vec<String> =
                behind.iter().filter(|f| **f != &*place.function).map(|f| format!("`{f}`")).collect();
            let also = if others.is_empty() { String::new() } else { format!(", as in {}", others.join(", ")) };
            let what = if item.spin.delta() > 0.0 {
                "a pause takes longer, or more of them are made for each look"
            } else {
                "there are fewer pauses, or each is shorter"
            };
            (
                Role::Cause,
                format!("{spun}, and {share:.0} % of the change sits on the instruction behind `pause`{also}: {what}"),
            )
        }
        None => (Role::Unclear, format!("{spun}, and no other work changed as much: whom it waits for is not known")),
    };
    Change {
        what: Subject::Function,
        name: place.function.to_string(),
        process: place.process.to_string(),
        cpu_s: seconds(&item.spin),
        delta_s: Amount(item.spin.delta()).seconds(),
        role,
        because,
        significance: item.spin.p_value(),
        ..Change::default()
    }
}

/// The classic: unrelated functions grew, and everything sits behind `pause`.
fn pause_itself(case: &Case, spinning: &[(&Place, &FunctionItem)], behind: &[&str]) -> Change {
    let mut cpu_s = [0.0; 2];
    for (_, item) in spinning.iter().filter(|(_, i)| is_behind_pause(i)) {
        let [old, new] = seconds(&item.pause);
        cpu_s = [cpu_s[0] + old, cpu_s[1] + new];
    }
    let names: Vec<String> = behind.iter().map(|f| format!("`{f}`")).collect();
    let places = places_behind_pause(case, behind);
    Change {
        what: Subject::Instruction,
        name: "pause".into(),
        cpu_s,
        delta_s: cpu_s[1] - cpu_s[0],
        role: Role::Cause,
        because: format!(
            "in unrelated functions ({}) the change sits behind `pause`, at {} addresses instead of {}, while no other \
             work changed with it: `holdup check --only pause` measures this machine's",
            names.join(", "),
            places[1],
            places[0]
        ),
        ..Change::default()
    }
}

/// How many hot addresses behind a `pause` these functions have before and after.
fn places_behind_pause(case: &Case, functions: &[&str]) -> [usize; 2] {
    let count = |runs: &[crate::diff::Facts]| {
        let hot =
            |(spot, ns): &(&Spot, &f64)| spot.behind_pause && functions.contains(&&*spot.place.function) && **ns > 2e7;
        runs.first().map_or(0, |f| f.spots.iter().filter(hot).count())
    };
    [count(case.sides.before), count(case.sides.after)]
}

/// Instructions at which the change of a function is concentrated, where both sides have the same code.
pub(super) fn instructions(case: &Case, changes: &[Change]) -> Vec<Change> {
    let spots = case.sides.collect(|facts, add| facts.spots.iter().for_each(|(s, ns)| add(s.clone(), *ns)));
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for function in
        changes.iter().filter(|c| c.what == Subject::Function && seen.insert((c.process.clone(), c.name.clone())))
    {
        let is_mine = |s: &Spot| *s.place.function == *function.name && *s.place.process == *function.process;
        let mine: Vec<_> = spots.iter().filter(|(s, _)| is_mine(s)).collect();
        let grown: f64 = mine.iter().map(|(_, ns)| ns.delta()).sum();
        if !is_same_code(&mine) {
            continue;
        }
        let mut concentrated: Vec<_> = mine
            .into_iter()
            .filter(|(_, ns)| ns.delta() / grown >= CONCENTRATED && ns.is_real(case.cpu_noise(), super::SHOWN))
            .collect();
        concentrated.sort_by(|a, b| b.1.delta().abs().total_cmp(&a.1.delta().abs()));
        found.extend(concentrated.into_iter().take(NAMED).map(|(spot, ns)| instruction(function, spot, ns, grown)));
    }
    found
}

/// Whether most samples of either side lie at instructions that the other side has, too.
fn is_same_code(spots: &[(&Spot, &Series)]) -> bool {
    let sum = |of: fn(&Series) -> f64| spots.iter().map(|(_, s)| of(s)).sum::<f64>();
    let common = |of: fn(&Series) -> f64, other: fn(&Series) -> f64| {
        spots.iter().filter(|(_, s)| other(s) > 0.0).map(|(_, s)| of(s)).sum::<f64>() >= SAME * sum(of)
    };
    sum(Series::was) > 0.0
        && sum(Series::now) > 0.0
        && common(Series::was, Series::now)
        && common(Series::now, Series::was)
}

fn instruction(function: &Change, spot: &Spot, ns: &Series, grown: f64) -> Change {
    let behind = if spot.behind_pause { ", behind a `pause`" } else { "" };
    Change {
        what: Subject::Instruction,
        name: format!("{}+{:#x}: {}", spot.code, spot.offset, spot.text),
        process: function.process.clone(),
        cpu_s: seconds(ns),
        delta_s: Amount(ns.delta()).seconds(),
        role: function.role,
        because: format!("{:.0} % of what `{}` changed by{behind}", 100.0 * ns.delta() / grown, function.name),
        significance: ns.p_value(),
        ..Change::default()
    }
}
