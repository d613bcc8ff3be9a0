//! A lock as it was used in a recording, used in the same way here; and what could be done about it, tried before any code
//! is changed.
//!
//! What a recording tells of each role: how many threads, how long they held the lock in each taking that anybody noticed, and
//! how much they ran and waited elsewhere between. What it does not tell is how often the lock was taken without anybody
//! noticing: that one number is fitted, so that as much time is spent waiting here as there. Each case then has the same work to do,
//! and what is compared is how long it takes.

mod burn;
mod changes;
mod fit;
mod run;

pub use changes::Change;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::harness::stats;
use crate::machine::Machine;
use crate::result::Point;
use crate::{Error, Result};
use run::{Done, Plan};

/// The version of the report.
pub const SCHEMA: &str = "holdup.reproduce/1";

/// How a lock was used: what is to be reproduced.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// The lock in words.
    pub lock: String,
    /// CPUs of the machine on which it was recorded.
    pub cpus: usize,
    /// Length of the recording in seconds.
    pub length_s: f64,
    /// Its users; the first is the one to mend.
    pub roles: Vec<Role>,
}

/// Threads that use the lock in the same way. Times are sums over them, in seconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Who they are.
    pub name: String,
    /// How many.
    pub threads: usize,
    /// Takings of the lock that somebody noticed.
    pub takings: u64,
    /// They ran, holds included.
    pub ran_s: f64,
    /// They waited for the lock.
    pub waited_s: f64,
    /// They waited for something else, holds included.
    pub blocked_s: f64,
    /// Holds: how long the holder ran and waited for something else, in nanoseconds.
    pub holds: Vec<[u64; 2]>,
}

/// What came out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where.
    pub machine: Machine,
    /// What was to be reproduced.
    pub recorded: Recorded,
    /// Takings for each that somebody noticed, fitted; of roles whose takings are known, 1.
    pub takings_for_each_seen: f64,
    /// Threads that waited for the lock, on average: there, and here.
    pub waiting: [f64; 2],
    /// Whether here as much is waited as there, within a quarter.
    pub reproduced: bool,
    /// Why not, and what else limits the answer.
    pub doubts: Vec<String>,
    /// The case as recorded, in seconds for its work.
    pub base_s: Point,
    /// What could be done, the best first.
    pub changes: Vec<Tried>,
}

/// A change, tried.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// What was changed, in words.
    pub change: String,
    /// How many times faster the same work is done: the median of rounds in turns with the case as recorded, least and most.
    pub gain: Point,
    /// Threads that waited for the lock, on average.
    pub waiting: f64,
}

/// How much to try.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Rounds: each change once in each.
    pub rounds: usize,
    /// How long the case as recorded shall take, in seconds.
    pub seconds: f64,
    /// The changes to try; empty for those that may help.
    pub changes: Vec<Change>,
}

/// From so much off on, what happens here is something else.
const OFF: f64 = 0.25;
/// A run that takes so many times what was asked for is ended.
const LIMIT: f64 = 4.0;
/// Lengths of a round that make sense, in seconds.
const LENGTHS: (f64, f64) = (0.01, 3600.0);
/// Threads that are made.
const MOST_THREADS: usize = 1024;

/// Runs the case as recorded, and the changes. `tick` is told how much is done, from 0 to 1.
///
/// # Errors
/// Nothing in the recording to reproduce: nobody waited, no hold was seen, or too many threads used the lock.
pub fn reproduce(recorded: Recorded, machine: &Machine, effort: &Effort, tick: &mut dyn FnMut(f64)) -> Result<Report> {
    let seconds = effort.seconds.clamp(LENGTHS.0, LENGTHS.1);
    let fitted = fit::fit(&recorded, seconds)?;
    let changes = if effort.changes.is_empty() { changes::worth_trying(&fitted.plan) } else { effort.changes.clone() };
    let plans: Vec<Plan> = changes.iter().map(|change| change.to(&fitted.plan)).collect();
    let (limit_s, rounds) = (LIMIT * seconds, effort.rounds.max(1));
    let mut base: Vec<Done> = Vec::new();
    let mut tried: Vec<Vec<Done>> = vec![Vec::new(); plans.len()];
    for round in 0..rounds {
        base.push(run::run(&fitted.plan, limit_s)?);
        for (i, (plan, done)) in plans.iter().zip(&mut tried).enumerate() {
            done.push(run::run(plan, limit_s)?);
            tick((round * plans.len() + i + 1) as f64 / (rounds * plans.len()) as f64);
        }
    }
    let mut all: Vec<Tried> = changes
        .iter()
        .zip(&tried)
        .map(|(change, done)| Tried {
            change: change.words(&recorded),
            gain: Point::of(0.0, base.iter().zip(done).map(|(a, b)| a.whole_s / b.whole_s)),
            waiting: stats::median(done.iter().map(Done::waiting)),
        })
        .collect();
    all.sort_by(|a, b| b.gain.median.total_cmp(&a.gain.median));
    let waiting = [recorded.waiting(), stats::median(base.iter().map(Done::waiting))];
    let reproduced = (waiting[1] / waiting[0] - 1.0).abs() <= OFF;
    Ok(Report {
        schema: SCHEMA.to_owned(),
        machine: machine.clone(),
        doubts: doubts(&recorded, machine, waiting, reproduced),
        takings_for_each_seen: fitted.more,
        waiting,
        reproduced,
        base_s: Point::of(0.0, base.iter().map(|done| done.whole_s)),
        changes: all,
        recorded,
    })
}

impl Recorded {
    /// Threads that waited for the lock, on average.
    pub fn waiting(&self) -> f64 {
        self.roles.iter().map(|r| r.waited_s).sum::<f64>() / self.length_s.max(f64::MIN_POSITIVE)
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::Usage(format!("nothing to reproduce: {what}")));
        if self.waiting() <= 0.0 {
            return refuse("nobody waited for this lock");
        }
        let threads: usize = self.roles.iter().map(|r| r.threads).sum();
        if threads > MOST_THREADS {
            return refuse(&format!("{threads} threads used this lock, and at most {MOST_THREADS} are made here"));
        }
        if self.roles.iter().all(|r| r.holds.is_empty()) {
            return refuse("nobody was seen to hold this lock: a timer or an interrupt ended each wait for it");
        }
        Ok(())
    }
}

fn doubts(recorded: &Recorded, machine: &Machine, waiting: [f64; 2], reproduced: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    if !reproduced {
        doubts.push(format!(
            "{:.2} threads waited on average where it was recorded, {:.2} do here: the gains may be others there",
            waiting[0], waiting[1]
        ));
    }
    let here = machine.cpus.len();
    if here != recorded.cpus {
        doubts.push(format!("recorded on {} CPUs, reproduced on {here}", recorded.cpus));
    }
    doubts
}
