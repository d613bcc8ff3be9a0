//! What is hazardous about this machine, in a few seconds.
//!
//! Each check takes its texts from a [`Read`], so that it can be asked about machines that it does not run on.

mod cpu;
mod kernel;
mod limits;
mod measure;

use serde::Serialize;

use crate::harness::cycles;
use crate::machine;
use crate::{Error, Result, hint};

/// The name and version of the document.
pub const SCHEMA: &str = "holdup.check/1";

/// Reads a file of /proc or /sys; `None` if there is none.
pub type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// All answers.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The processor.
    pub cpu: Cpu,
    /// One answer for each check.
    pub checks: Vec<Check>,
}

/// The processor.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Cpu {
    /// Its name.
    pub model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Rate of the time stamp counter.
    pub tsc_ghz: f64,
    /// Rate of the core now, from chains of operations that each need the one before; none where they do not agree.
    pub core_ghz: Option<f64>,
}

/// How an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// This machine does not tell.
    Unknown,
    /// It may cost something, or make measurements wrong.
    Warn,
    /// It does.
    Bad,
}

/// One answer.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Check {
    /// The check.
    pub name: &'static str,
    /// How it is.
    pub verdict: Grade,
    /// The number behind it.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// How far measured values lie apart, in the same unit; 0 for what was read.
    pub spread: f64,
    /// What was found.
    pub detail: String,
    /// What to do; empty if nothing.
    pub advice: String,
}

impl Check {
    /// An answer that was read, with nothing to do.
    fn new(name: &'static str, verdict: Grade, value: f64, unit: &'static str, detail: impl Into<String>) -> Self {
        Check { name, verdict, value, unit, spread: 0.0, detail: detail.into(), advice: String::new() }
    }

    fn advice(mut self, advice: &str) -> Self {
        advice.clone_into(&mut self.advice);
        self
    }

    fn unknown(name: &'static str, unit: &'static str, detail: &str) -> Self {
        Check::new(name, Grade::Unknown, 0.0, unit, detail)
    }
}

/// A check: its name, and how it is made.
type Entry = (&'static str, fn(Read) -> Check);

const ALL: &[Entry] = &[
    ("pause", cpu::pause),
    ("clock", cpu::clock),
    ("smt", cpu::smt),
    ("numa", cpu::numa),
    ("governor", cpu::governor),
    ("turbo", cpu::turbo),
    ("cpus", limits::cpus),
    ("quota", limits::quota),
    ("rseq", limits::rseq),
    ("thp", kernel::thp),
    ("mitigations", kernel::mitigations),
    ("steal", kernel::steal),
    ("pressure", kernel::pressure),
    ("perf", kernel::perf),
    ("bpf", kernel::bpf),
];

/// The names of all checks.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// Makes the checks of these names, or all if there are none.
///
/// # Errors
/// A name that is none; the message has the nearest.
pub fn run(only: &[String]) -> Result<Report> {
    let names = names();
    for name in only {
        if !names.contains(&name.as_str()) {
            let near = hint(name, &names);
            return Err(Error::Usage(format!("there is no check `{name}` (there are {}){near}", names.join(", "))));
        }
    }
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let chosen = ALL.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|o| o == name));
    let checks = chosen.map(|(_, check)| check(&read)).collect();
    Ok(Report { schema: SCHEMA, cpu: processor(&read), checks })
}

fn processor(read: Read) -> Cpu {
    let info = read("/proc/cpuinfo").unwrap_or_default();
    Cpu {
        model: machine::cpu_model(&info),
        cpus: limits::online(read),
        tsc_ghz: crate::harness::clock::ticks_per_ns(),
        core_ghz: cycles::core_ghz(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_answers_on_a_machine_that_tells_nothing() {
        for (name, check) in ALL {
            let answer = check(&|_| None);
            assert_eq!(answer.name, *name);
            assert!(!answer.detail.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_unknown_check_gets_the_nearest_name() {
        let refused = run(&["presure".to_owned()]).expect_err("no such check");
        assert!(refused.to_string().contains("did you mean `pressure`?"));
    }
}
