//! `cargo xtask scenarios --diff --bounds`: no fix may gain more than the printed bound, and most should not gain much less.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use holdup_base::stats::median;

use crate::holdup::{Finding, Holdup, recorded};

/// A fix may gain this much more than the bound, which is the noise of both.
const NOISE: f64 = 1.05;
/// A bound is tight if the fix gains this share of it.
const TIGHT: f64 = 0.6;

/// The heads of the columns.
pub const HEAD: [&str; 8] = ["pair", "held s", "fixed s", "gained", "at most", "", "first finding", "function"];

/// One pair of programs, for the same work.
pub struct Fix<'a> {
    /// Its name.
    pub name: &'a str,
    /// The program with the fault, and the one without.
    pub programs: [&'a Path; 2],
    /// Their arguments.
    pub args: &'a [String],
    /// Where to run, and to record.
    pub scratch: &'a Path,
}

impl Fix<'_> {
    /// Measures what the fix gains, in `runs` interleaved rounds without a recorder, and compares it with what is said of the fault.
    /// Whether the bound holds, and a row.
    pub fn judge(&self, holdup: &Holdup, runs: usize) -> Result<(bool, Vec<String>)> {
        let mut seconds = [Vec::new(), Vec::new()];
        for _ in 0..runs {
            for (program, seconds) in self.programs.iter().zip(&mut seconds) {
                let start = Instant::now();
                recorded(Command::new(program).args(self.args), self.scratch)?;
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        let [held, fixed] = seconds.map(median);
        let trace = self.scratch.join(format!("{}.bound.holdup", self.name));
        holdup.record(&trace, self.programs[0], self.args)?;
        let first = holdup.explain(&trace)?.findings.into_iter().next().unwrap_or_default();
        let (holds, verdict) = compare(held / fixed, &first);
        let bound = first.gain_at_most.map_or("-".to_owned(), |b| format!("{b:.2}"));
        let mut row = vec![self.name.to_owned()];
        row.extend([held, fixed, held / fixed].map(|n| format!("{n:.2}")));
        row.extend([bound, verdict.to_owned(), first.kind.to_string(), first.function().to_owned()]);
        Ok((holds, row))
    }
}

fn compare(gained: f64, first: &Finding) -> (bool, &'static str) {
    match first.gain_at_most {
        None => (true, "none"),
        Some(bound) if gained > NOISE * bound => (false, "BROKEN"),
        Some(bound) if gained < TIGHT * bound => (true, "loose"),
        Some(_) => (true, "ok"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_and_is_tight_or_not() {
        let of = |gain_at_most| Finding { gain_at_most, ..Finding::default() };
        assert_eq!(compare(2.0, &of(Some(1.9))), (false, "BROKEN"));
        assert_eq!(compare(2.0, &of(Some(1.91))), (true, "ok"));
        assert_eq!(compare(2.0, &of(Some(3.3))), (true, "ok"));
        assert_eq!(compare(2.0, &of(Some(3.4))), (true, "loose"));
        assert_eq!(compare(2.0, &of(None)), (true, "none"));
    }
}
