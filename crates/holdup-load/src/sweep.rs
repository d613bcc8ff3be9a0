//! Runs a command over counts of threads or CPUs.
//!
//! Rounds are interleaved: each goes over all counts before the next begins, and each begins at another count, so that
//! a machine that gets slower or busier meanwhile does not look like a law.

mod control;
mod launch;
mod resident;
mod work;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

pub use control::arithmetic;
pub use launch::{Launch, allowed_cpus, restrict_to};
pub use resident::last_cache;
pub use work::Measure;

/// What went wrong, as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan contradicts itself or the machine. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command could not be measured. Exit code 3.
    #[error("{0}")]
    Failed(String),
}

/// A result with this module's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What to run, and over which counts.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command and its arguments; `{n}` stands for the count.
    pub command: Vec<String>,
    /// The counts, rising.
    pub counts: Vec<usize>,
    /// The environment variable that is set to the count.
    pub env: Option<String>,
    /// Whether the command may run on that many CPUs alone.
    pub restrict: bool,
    /// Runs at each count.
    pub runs: usize,
    /// The most that one run may take.
    pub timeout: Option<Duration>,
    /// How its work is told.
    pub measure: Measure,
}

/// One run that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The count.
    pub n: usize,
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds in user mode, of the command and all children that it waited for.
    pub user_s: f64,
    /// The same in the kernel.
    pub system_s: f64,
    /// The most memory that it had at a time, with all its descendants, in bytes; `None` if it ended too soon to look.
    pub resident: Option<u64>,
    /// Units of work; 1 where the output tells nothing.
    pub work: f64,
}

impl Run {
    /// Units of work per second.
    pub fn throughput(&self) -> f64 {
        self.work / self.elapsed_s
    }

    /// CPU seconds.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Sweep {
    /// The runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// The counts to try by default: powers of two, and all `cpus`.
pub fn default_counts(cpus: usize) -> Vec<usize> {
    let powers = (0..).map(|i| 1 << i).take_while(|n| *n < cpus);
    powers.chain([cpus.max(1)]).collect()
}

impl Plan {
    /// Checks the plan against itself and the machine.
    ///
    /// # Errors
    /// Nothing to run, nothing that varies, counts that are no counts, more CPUs than there are.
    pub fn check(&self) -> Result<()> {
        let usage = |text: String| Err(Error::Usage(text));
        let named = self.command.iter().any(|word| word.contains("{n}"));
        let rising = self.counts.windows(2).all(|w| w[0] < w[1]);
        if self.command.is_empty() {
            return usage("nothing to run: give the command after --".into());
        }
        if self.counts.first().is_none_or(|n| *n == 0) || !rising {
            return usage(format!(
                "{:?} are not counts: give whole numbers above 0, rising, such as 1,2,4",
                self.counts
            ));
        }
        if !named && self.env.is_none() && !self.restrict {
            return usage(
                "every run would be the same: put {n} where the command takes its number of threads, name a variable \
                 with --env, or vary the CPUs with --cpus"
                    .into(),
            );
        }
        let (cpus, most) = (allowed_cpus().len(), self.counts.last().copied().unwrap_or(0));
        if self.restrict && most > cpus {
            return usage(format!("--cpus {most}: this process may run on {cpus} CPUs; give counts up to that"));
        }
        Ok(())
    }

    /// How the command is run at the count `n`.
    pub fn launch(&self, n: usize) -> Launch {
        let word = n.to_string();
        Launch {
            argv: self.command.iter().map(|w| w.replace("{n}", &word)).collect(),
            env: self.env.clone().map(|name| (name, word)),
            cpus: self.restrict.then(|| allowed_cpus().into_iter().take(n).collect()),
        }
    }

    /// Runs all rounds, after a run that does not count. `on_run` is told the number of the run to come, how many there
    /// are, and the count. `stop` ends the sweep; what was measured is kept.
    ///
    /// # Errors
    /// The plan is unusable, or the command fails, takes too long, or does not tell its work.
    pub fn run(&self, stop: &AtomicBool, on_run: &mut dyn FnMut(usize, usize, usize)) -> Result<Sweep> {
        self.check()?;
        let mut sweep = Sweep::default();
        let all = 1 + self.runs * self.counts.len();
        let rounds = (0..self.runs).flat_map(|round| {
            let mut counts = self.counts.clone();
            counts.rotate_left(round % self.counts.len());
            counts
        });
        for (i, n) in [self.counts[0]].into_iter().chain(rounds).enumerate() {
            on_run(i, all, n);
            match self.once(n, stop)? {
                Some(run) if i > 0 => sweep.runs.push(run),
                Some(_) => {}
                None => {
                    sweep.interrupted = true;
                    break;
                }
            }
        }
        Ok(sweep)
    }

    /// One run; `None` if `stop` ended it.
    fn once(&self, n: usize, stop: &AtomicBool) -> Result<Option<Run>> {
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let mut output = self.measure.output()?;
        let launch = self.launch(n);
        let Some(used) = launch.run(output.as_ref(), self.timeout, stop)? else { return Ok(None) };
        let work = self.measure.work(output.as_mut(), used.elapsed_s).map_err(|e| Error::Failed(launch.says(&e)))?;
        Ok(Some(Run {
            n,
            elapsed_s: used.elapsed_s,
            user_s: used.user_s,
            system_s: used.system_s,
            resident: used.resident,
            work,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(script: &str, counts: &[usize]) -> Plan {
        Plan {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            counts: counts.to_vec(),
            env: None,
            restrict: false,
            runs: 2,
            timeout: Some(Duration::from_secs(60)),
            measure: Measure::Elapsed,
        }
    }

    fn go(plan: &Plan) -> Result<Sweep> {
        plan.run(&AtomicBool::new(false), &mut |_, _, _| {})
    }

    #[test]
    fn rounds_are_interleaved_and_begin_elsewhere() {
        let sweep = go(&plan("exit 0 # {n}", &[1, 2, 3])).expect("runs");
        assert_eq!(sweep.runs.iter().map(|r| r.n).collect::<Vec<_>>(), [1, 2, 3, 2, 3, 1]);
        assert!(sweep.runs.iter().all(|r| r.elapsed_s > 0.0 && r.work == 1.0));
    }

    #[test]
    fn work_is_read_from_the_output() {
        let measure = Measure::work_pattern("did ([0-9,]+)").expect("a pattern");
        let sweep = go(&Plan { measure, ..plan("echo did 1,00{n}", &[2, 4]) }).expect("runs");
        assert_eq!(sweep.runs.iter().map(|r| r.work).collect::<Vec<_>>(), [1002.0, 1004.0, 1004.0, 1002.0]);
    }

    #[test]
    fn cpus_and_variables_reach_the_command() {
        let measure = Measure::work_pattern("^(.*)$").expect("a pattern");
        let plan = Plan { measure, env: Some("N".into()), restrict: true, ..plan("echo $(nproc)$N", &[1]) };
        assert_eq!(go(&plan).expect("runs").runs[0].work, 11.0);
        assert!(allowed_cpus().len() >= default_counts(2).len() - 1);
    }

    #[test]
    fn what_cannot_be_measured_is_a_sentence() {
        let text = |plan: &Plan| go(plan).expect_err("no measurement").to_string();
        assert!(text(&plan("exit {n}", &[3])).contains("exit code 3"));
        assert!(text(&plan("kill -9 $$ # {n}", &[1])).contains("signal"));
        let short = Some(Duration::from_millis(50));
        assert!(text(&Plan { timeout: short, ..plan("sleep 100 # {n}", &[1]) }).contains("longer than"));
        let measure = Measure::work_pattern("did (.*)").expect("a pattern");
        assert!(text(&Plan { measure: measure.clone(), ..plan("echo {n}", &[1]) }).contains("did (.*)"));
        assert!(text(&Plan { measure, ..plan("echo did much {n}", &[1]) }).contains("much"));
        assert!(text(&plan("no number", &[1])).contains("{n}"));
        let missing = Plan { command: vec!["/no/such/{n}".into()], ..plan("", &[1]) };
        assert!(text(&missing).contains("/no/such/1"));
        assert!(Measure::work_pattern("no group").is_err() && Measure::work_pattern("(").is_err());
    }

    #[test]
    fn stopping_keeps_what_was_measured() {
        let stop = AtomicBool::new(false);
        let plan = plan("exit 0 # {n}", &[1, 2]);
        let sweep = plan.run(&stop, &mut |i, _, _| stop.store(i == 3, Relaxed)).expect("runs");
        assert!(sweep.interrupted && sweep.runs.len() == 2);
    }

    #[test]
    fn default_counts_double() {
        assert_eq!(default_counts(1), [1]);
        assert_eq!(default_counts(8), [1, 2, 4, 8]);
        assert_eq!(default_counts(12), [1, 2, 4, 8, 12]);
    }
}
