//! What an experiment is, and the list of them.

use std::collections::BTreeMap;

use crate::experiments;
use crate::harness::case::{Case, Work};
use crate::harness::pool::Pool;
use crate::harness::rounds::{self, Measured, Schedule};
use crate::knobs::{Knob, Values};
use crate::machine::Machine;
use crate::result::{Outcome, Point, Series, Verdict};
use crate::{Error, Result, hint};

/// One experiment.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// What its axis is.
    pub axis: &'static str,
    /// Its parameters.
    pub knobs: &'static [Knob],
    /// Measures.
    pub run: fn(&mut Session) -> Result<Found>,
}

/// What [`Experiment::run`] returns.
#[derive(Debug, Default)]
pub struct Found {
    /// The figures.
    pub series: Vec<Series>,
    /// What has to be known to read them.
    pub notes: Vec<String>,
    /// What they mean.
    pub verdict: Verdict,
}

/// What an experiment runs with.
pub struct Session<'a> {
    /// Its knobs.
    pub values: Values,
    /// Whether it should take only a few seconds.
    pub quick: bool,
    /// The machine, with its measured pause.
    pub machine: &'a Machine,
    /// Is told how much of the experiment is done, from 0 to 1.
    pub tick: &'a mut dyn FnMut(f64),
}

/// All experiments, in the order in which they are run.
pub fn all() -> &'static [&'static Experiment] {
    experiments::ALL
}

/// The experiment of this name.
///
/// # Errors
/// There is none; the message has the nearest name.
pub fn find(name: &str) -> Result<&'static Experiment> {
    let names: Vec<&str> = all().iter().map(|e| e.name).collect();
    all().iter().find(|e| e.name == name).copied().ok_or_else(|| {
        let near = hint(name, &names);
        Error::Usage(format!("there is no experiment `{name}`{near}; `holdup lab list` names all"))
    })
}

impl Experiment {
    /// Runs the experiment with these values of its knobs.
    ///
    /// # Errors
    /// This machine can't run it.
    pub fn perform(
        &self,
        values: Values,
        quick: bool,
        machine: &Machine,
        tick: &mut dyn FnMut(f64),
    ) -> Result<Outcome> {
        let begin = std::time::Instant::now();
        let params = values.written_out();
        let Found { series, notes, verdict } = (self.run)(&mut Session { values, quick, machine, tick })?;
        let elapsed_s = begin.elapsed().as_secs_f64();
        Ok(Outcome {
            name: self.name.to_owned(),
            params,
            axis: self.axis.to_owned(),
            series,
            notes,
            verdict,
            elapsed_s,
        })
    }
}

/// The measured cases of an experiment.
pub struct Ladder {
    /// Each case with its rounds.
    pub rungs: Vec<(Case, Measured)>,
}

impl Session<'_> {
    /// Measures cases as the knobs `cpus`, `rounds` and `round_us` say.
    pub fn measure(&mut self, mut cases: Vec<Case>) -> Ladder {
        let mut pool: Pool<Work> = Pool::new(self.values.cpus());
        let round_ns = (self.values.number("round_us") * 1000.0) as u64;
        let schedule = Schedule { round_ns, rounds: self.values.count("rounds") };
        let measured = rounds::measure(&mut pool, &mut cases, schedule, &mut *self.tick);
        Ladder { rungs: cases.into_iter().zip(measured).collect() }
    }

    /// Cases of one series for each number of threads of the knob `threads`.
    pub fn for_threads(&self, make: impl Fn(usize) -> Case) -> Vec<Case> {
        self.values.counts("threads").into_iter().map(make).collect()
    }
}

impl Ladder {
    /// Nanoseconds for each operation, by series, in the order of the cases.
    pub fn time_per_op(&self) -> Vec<Series> {
        self.series("ns/op", "", |measured, x| measured.point(x))
    }

    /// Any figure of the rungs as series whose names end in `suffix`. Rungs without the figure are left out.
    pub fn series(&self, unit: &str, suffix: &str, figure: impl Fn(&Measured, f64) -> Option<Point>) -> Vec<Series> {
        let mut order: Vec<String> = Vec::new();
        let mut points: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        for (case, measured) in &self.rungs {
            let name = format!("{}{suffix}", case.series);
            if !points.contains_key(&name) {
                order.push(name.clone());
            }
            points.entry(name).or_default().extend(figure(measured, case.x));
        }
        let series = |name: String| Series {
            points: points.remove(&name).unwrap_or_default(),
            name,
            unit: unit.to_owned(),
            axis: None,
        };
        order.into_iter().map(series).filter(|s| !s.points.is_empty()).collect()
    }

    /// Says which cases have no figure because every round was preempted.
    pub fn notes(&self) -> Vec<String> {
        let without = self.rungs.iter().filter(|(_, m)| m.clean() == 0);
        let note = |(case, _): &(Case, Measured)| {
            format!("{} at {} has no clean round: another program took a CPU in each; left out", case.series, case.x)
        };
        without.map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_are_valid() {
        for (i, experiment) in all().iter().enumerate() {
            assert!(all()[..i].iter().all(|other| other.name != experiment.name));
            for knob in experiment.knobs {
                for value in [knob.quick, knob.full] {
                    let mut values = Values::new(experiment.knobs, true);
                    assert_eq!(values.set(knob.name, value), Ok(()), "{} {}", experiment.name, knob.name);
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let message = find("cuonters").expect_err("no such experiment").to_string();
        assert!(message.contains("did you mean `counters`?"), "{message}");
        assert!(find("counters").is_ok());
    }
}
