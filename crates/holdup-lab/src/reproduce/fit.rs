//! From what was recorded to a case that waits as much.

use super::run::{self, Part, Plan, Role};
use super::{LIMIT, Recorded, Role as Seen};
use crate::Result;

/// A case, and how many takings of the lock stand for each that was noticed.
pub(super) struct Fitted {
    pub(super) plan: Plan,
    pub(super) more: f64,
}

/// The rarest role takes the lock so often, at least: what one hold does is no average.
const RAREST: f64 = 4.0;
/// No run is longer than so many times what was asked for.
const LONGEST: f64 = 4.0;
/// A trial is so much shorter than a run.
const TRIAL: f64 = 0.4;
/// Takings for each that was noticed, at most.
const MOST: f64 = 4096.0;
/// From one taking to the next, in nanoseconds, at least: with less, what is measured here is mostly the measuring.
const SHORTEST: f64 = 1000.0;
/// So much more often is tried next, while too little is waited.
const STEP: f64 = 4.0;
/// Numbers of takings nearer than this are one.
const CLOSE: f64 = 1.1;
/// Near enough.
const NEAR: f64 = 0.06;

/// Finds how often the lock is taken for each time that somebody notices, so that as much is waited as was recorded: more often
/// while too little is waited, then between the last two.
///
/// # Errors
/// Nothing to reproduce.
pub(super) fn fit(recorded: &Recorded, seconds: f64) -> Result<Fitted> {
    recorded.check()?;
    let wanted = recorded.waiting();
    let off = |more: f64| -> Result<f64> {
        let done = run::run(&plan(recorded, more, seconds * TRIAL), LIMIT * TRIAL * seconds)?;
        Ok(done.waiting() / wanted - 1.0)
    };
    let most = fitting(recorded).map(|(_, role)| most(role)).fold(1.0, f64::max).min(MOST);
    let mut search = Search { best: (1.0, off(1.0)?), low: 1.0, high: None };
    while let Some(more) = search.next(most) {
        search.add(more, off(more)?);
    }
    Ok(Fitted { plan: plan(recorded, search.best.0, seconds), more: search.best.0 })
}

/// For a number at which a function that rises with it is near zero.
struct Search {
    /// The nearest yet, and what it came to.
    best: (f64, f64),
    low: f64,
    high: Option<f64>,
}

impl Search {
    /// What to try next, up to `most`.
    fn next(&self, most: f64) -> Option<f64> {
        if self.best.1.abs() <= NEAR || self.best.0 == 1.0 && self.best.1 > 0.0 {
            return None;
        }
        match self.high {
            None => Some((self.low * STEP).min(most)).filter(|more| *more > self.low * CLOSE),
            Some(high) => Some((self.low * high).sqrt()).filter(|_| high > self.low * CLOSE),
        }
    }

    fn add(&mut self, more: f64, off: f64) {
        if off.abs() < self.best.1.abs() {
            self.best = (more, off);
        }
        if off >= 0.0 { self.high = Some(more) } else { self.low = more }
    }
}

/// The roles whose takings are not all known: holds of the first are, if there are others that wait for it.
fn fitting(recorded: &Recorded) -> impl Iterator<Item = (usize, &Seen)> {
    let one = recorded.roles.len() == 1;
    recorded.roles.iter().enumerate().filter(move |(i, _)| *i > 0 || one)
}

/// How many takings for each that was noticed would fit into what a role ran.
fn most(seen: &Seen) -> f64 {
    let shortest = mean(seen, 0).max(SHORTEST);
    (seen.ran_s * 1e9 / seen.takings.max(1) as f64 / shortest).max(1.0)
}

/// The mean of what holders ran (0) or waited (1) in a hold, in nanoseconds.
fn mean(seen: &Seen, which: usize) -> f64 {
    seen.holds.iter().map(|h| h[which] as f64).sum::<f64>() / seen.holds.len().max(1) as f64
}

/// A case of about this length.
fn plan(recorded: &Recorded, more: f64, seconds: f64) -> Plan {
    let rarest = recorded.roles.iter().map(|r| r.takings).filter(|n| *n > 0).min().unwrap_or(1) as f64;
    let seconds = seconds.max(RAREST / rarest * recorded.length_s).min(LONGEST * seconds);
    let scale = seconds / recorded.length_s;
    let mut roles: Vec<Role> = recorded.roles.iter().map(|seen| role(seen, 1.0, scale)).collect();
    fitting(recorded).for_each(|(i, seen)| roles[i] = role(seen, more, scale));
    Plan { roles, lock: "std", partitions: 1, admitted: 0 }
}

fn role(seen: &Seen, more: f64, scale: f64) -> Role {
    let takings = seen.takings.max(1) as f64 * more.min(most(seen));
    let gap = |all: f64, held: f64| (all * 1e9 / takings - held).max(0.0);
    Role {
        threads: seen.threads,
        takings: (takings * scale).max(1.0),
        gap: Part { ran: gap(seen.ran_s, mean(seen, 0)), blocked: gap(seen.blocked_s, mean(seen, 1)) },
        holds: seen.holds.iter().map(|&[ran, blocked]| Part { ran: ran as f64, blocked: blocked as f64 }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_was_recorded_is_kept() {
        let seen = Seen {
            threads: 2,
            takings: 100,
            ran_s: 1.0,
            blocked_s: 0.5,
            holds: vec![[1_000_000, 0], [3_000_000, 1_000_000]],
            ..Seen::default()
        };
        let role = role(&seen, 4.0, 0.5);
        assert_eq!((role.takings, role.gap.ran), (200.0, 500_000.0));
        let all = |hold: f64, gap: f64| role.takings / 0.5 * (hold + gap) / 1e9;
        assert!((all(2e6, role.gap.ran) - 1.0).abs() < 1e-9);
        // Takings that do not fit into what ran are not made.
        assert_eq!(super::role(&seen, 1000.0, 1.0).takings, 500.0);
    }

    #[test]
    fn a_search_ends_near_zero_or_at_its_border() {
        let found = |most: f64, f: fn(f64) -> f64| {
            let mut search = Search { best: (1.0, f(1.0)), low: 1.0, high: None };
            let mut tries = 0;
            while let Some(more) = search.next(most) {
                search.add(more, f(more));
                tries += 1;
            }
            (search.best.0, tries)
        };
        let (near, tries) = found(4096.0, |x| x / 50.0 - 1.0);
        assert!((45.0..55.0).contains(&near) && tries < 12, "{near} {tries}");
        assert_eq!(found(3.0, |x| x / 50.0 - 1.0).0, 3.0);
        assert_eq!(found(4096.0, |x| x), (1.0, 0));
    }

    #[test]
    fn a_case_that_nobody_waits_in_or_a_crowd_is_refused() {
        let recorded = Recorded { length_s: 1.0, roles: vec![Seen::default()], ..Recorded::default() };
        let refused = fit(&recorded, 0.1).err().expect("nobody waited");
        assert_eq!(refused.to_string(), "nothing to reproduce: nobody waited for this lock");
        let crowd = Seen { threads: 100_000, waited_s: 1.0, holds: vec![[1, 0]], ..Seen::default() };
        let recorded = Recorded { length_s: 1.0, roles: vec![crowd], ..Recorded::default() };
        let refused = fit(&recorded, 0.1).err().expect("too many").to_string();
        assert!(refused.contains("100000 threads used this lock"), "{refused}");
    }
}
