//! The experiments, one file each.

mod arc;
mod atomics;
mod counters;
mod false_sharing;
mod handoff;
mod locks;
mod memory;
pub mod pause;
mod preempt;
mod pulse_all;
mod send_delay;
mod timemutex;

pub use handoff::TO_CPU;

use crate::experiment::Experiment;
use crate::{Error, Result, hint};

/// All, in the order in which they are listed and run.
pub const ALL: &[&Experiment] = &[
    &pause::EXPERIMENT,
    &send_delay::EXPERIMENT,
    &pulse_all::EXPERIMENT,
    &timemutex::EXPERIMENT,
    &arc::EXPERIMENT,
    &counters::EXPERIMENT,
    // These are about what the others are made of.
    &atomics::EXPERIMENT,
    &false_sharing::EXPERIMENT,
    &locks::EXPERIMENT,
    &handoff::EXPERIMENT,
    &preempt::EXPERIMENT,
    &memory::EXPERIMENT,
];

/// Their names, for who offers them without running any: no experiment becomes part of that program.
pub const NAMES: [&str; ALL.len()] = {
    let (mut names, mut i) = ([""; ALL.len()], 0);
    while i < ALL.len() {
        names[i] = ALL[i].name;
        i += 1;
    }
    names
};

/// The experiment of this name.
///
/// # Errors
/// There is none; the message has the nearest name.
pub fn find(name: &str) -> Result<&'static Experiment> {
    ALL.iter().find(|e| e.name == name).copied().ok_or_else(|| {
        let near = hint(name, &NAMES);
        Error::Usage(format!("there is no experiment `{name}`{near}; `holdup lab list` names all"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::Values;

    #[test]
    fn names_are_unique_and_defaults_are_valid() {
        for (i, experiment) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|other| other.name != experiment.name));
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
