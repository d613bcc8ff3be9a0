//! Why more threads give less than that much more: what a unit of work costs beyond what it costs with few threads.
//!
//! A unit costs CPU time, waiting, and the time of threads that are not there or have nothing to do. What does not grow with
//! the number of threads is no loss. What grows is told apart by how it will grow on:
//! - **contention** (σ): threads wait for a lock, asleep or spinning, or for a part that one thread does for all;
//! - **coherence** (κ): the same code takes longer because of memory that other CPUs write: the growth is on or behind
//!   atomic instructions, or at an instruction that had no such part in the time before;
//! - **capacity**: all of the code takes longer: CPUs share a core, a cache, memory or a clock.
//!
//! A line that several CPUs write without atomic instructions (false sharing) makes all code around it take longer, as a lack
//! of capacity does. It is told by exclusion: arithmetic does not take longer meanwhile, and the program's memory has room
//! in the cache.

use holdup_base::named;
use holdup_trace::Amount;
use serde::Serialize;

use super::facts::Facts;

mod case;
mod executed;
mod lost;
mod serial;

use case::Case;

/// Runs at one number of threads.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Threads, or CPUs.
    pub n: usize,
    /// Units of work that each run did.
    pub work: f64,
    /// The runs; at least one.
    pub runs: &'a [Facts],
}

/// What is known of the machine and of runs without a recorder at the larger number of threads. With it, one explanation for
/// code of which all takes longer can be told from another.
#[derive(Debug, Clone, Copy, Default, Serialize, schemars::JsonSchema)]
pub struct Machine {
    /// Throughput for each thread as a share of what it is with the smaller number, of runs that were not recorded.
    pub efficiency: Option<f64>,
    /// How many times as much CPU time arithmetic takes there that touches no memory: CPUs share a core, a clock or a host.
    pub arithmetic: Option<f64>,
    /// Whether all memory of the program has room in the last cache.
    pub fits_cache: Option<bool>,
}

/// Where the loss between two numbers of threads comes from.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Attribution {
    /// The smaller number.
    pub from_n: usize,
    /// The larger one.
    pub to_n: usize,
    /// Seconds of threads for each unit of work, at both: of CPU, of waiting, and without anything to do.
    pub cost_s_per_unit: [f64; 2],
    /// The share of the cost at the larger number that is loss.
    pub loss: f64,
    /// The share that is contention.
    pub sigma: f64,
    /// The share that is coherence.
    pub kappa: f64,
    /// The share that is lack of capacity.
    pub capacity: f64,
    /// What most of the loss is.
    pub verdict: Verdict,
    /// The reason for that.
    pub because: String,
    /// What to do.
    pub advice: String,
    /// The largest first.
    pub causes: Vec<LossCause>,
    /// What was known of the machine.
    pub machine: Machine,
    /// What the reader should know about how far this can be trusted.
    pub notes: Vec<String>,
}

named! {
    /// By which law a cost grows with the number of threads.
    pub enum Law {
        /// Contention: threads wait for what only one can have or do.
        Sigma = "sigma",
        /// Coherence: CPUs wait for memory that others write.
        Kappa = "kappa",
        /// CPUs share a core, a cache, memory or a clock.
        Capacity = "capacity",
    }
}

named! {
    /// What most of a loss is.
    pub enum Verdict {
        /// There is next to none.
        Scales = "scales",
        /// By [`Law::Sigma`].
        Contention = "contention",
        /// By [`Law::Kappa`].
        Coherence = "coherence",
        /// By [`Law::Capacity`].
        Capacity = "capacity",
        /// No cause is known for it.
        Unexplained = "unexplained",
    }
}

named! {
    /// What costs more.
    pub enum LossSite {
        /// A function's CPU time.
        Function = "function",
        /// The waits for a lock.
        Lock = "lock",
        /// The waits at a place.
        WaitSite = "wait-site",
        /// A function that runs while other threads have nothing to do.
        Serial = "serial",
    }
}

impl Law {
    /// What a loss is of which most follows this law.
    pub const fn verdict(self) -> Verdict {
        match self {
            Law::Sigma => Verdict::Contention,
            Law::Kappa => Verdict::Coherence,
            Law::Capacity => Verdict::Capacity,
        }
    }
}

impl Verdict {
    /// The law that most of the loss follows; none where there is no loss, or no cause for it.
    pub fn law(self) -> Option<Law> {
        Law::ALL.iter().copied().find(|law| law.verdict() == self)
    }
}

/// A function, lock or place whose cost for each unit of work grew.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct LossCause {
    /// By which law it grows on.
    pub law: Law,
    /// What it is.
    pub what: LossSite,
    /// What it is called.
    pub name: String,
    /// In which process; empty for the program.
    pub process: String,
    /// `file.c:12`: where in it most of the growth is; empty if unknown.
    pub source: String,
    /// The instruction with most of the growth; empty if unknown.
    pub instruction: String,
    /// Seconds for each unit of work, at both numbers.
    pub s_per_unit: [f64; 2],
    /// Its growth as a share of the cost at the larger number.
    pub share: f64,
    /// The reason, with figures.
    pub because: String,
    /// Whether it is a function's part in a lock's own code.
    #[serde(skip)]
    pub lock_code: bool,
    /// Whether most of it is in the kernel.
    #[serde(skip)]
    pub in_kernel: bool,
}

/// Loss below this share is none.
const SCALES: f64 = 0.1;
/// Causes below this share of the cost are not shown.
const SMALLEST: f64 = 0.03;

/// Attributes what a unit of work costs more at `large` than at `small`. O(items).
pub fn attribute(small: &At, large: &At, machine: Machine) -> Attribution {
    let case = Case::new(small, large, machine);
    let mut causes = case.functions();
    causes.extend(case.waits());
    causes.extend(serial::causes(&case));
    gather_lock_code(&mut causes);
    causes.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    let of_law = |law: Law| causes.iter().filter(|c| c.law == law).map(|c| c.share).fold(0.0, |a, b| a + b);
    let [sigma, kappa, capacity] = [Law::Sigma, Law::Kappa, Law::Capacity].map(of_law);
    let mut answer = Attribution {
        from_n: small.n,
        to_n: large.n,
        cost_s_per_unit: case.cost.map(|ns| Amount(ns).seconds() / case.work),
        loss: 1.0 - case.cost[0] / case.cost[1].max(1.0),
        sigma,
        kappa,
        capacity,
        verdict: Verdict::Scales,
        because: String::new(),
        advice: String::new(),
        causes,
        machine,
        notes: case.notes(),
    };
    let largest = [(sigma, Law::Sigma), (kappa, Law::Kappa), (capacity, Law::Capacity)];
    let (most, verdict) = largest
        .map(|(share, law)| (share, law.verdict()))
        .into_iter()
        .fold((0.0, Verdict::Scales), |a, b| if b.0 > a.0 { b } else { a });
    let scales = machine.efficiency.is_some_and(|e| e >= 1.0 - SCALES);
    match (most >= SCALES, scales) {
        (true, false) => answer.verdict = verdict,
        (true, true) => answer.notes.push(format!(
            "runs that were not recorded reach {:.0} % efficiency: what the recorded one lost is a disturbance's",
            100.0 * machine.efficiency.unwrap_or_default()
        )),
        (false, false) if answer.loss >= SCALES => answer.verdict = Verdict::Unexplained,
        _ => {}
    }
    answer.because = answer.reason();
    answer.advice = answer.what_to_do();
    answer
}

/// Counts the CPU time of a lock's own code, wherever it was spent, with the lock that is waited for most.
fn gather_lock_code(causes: &mut Vec<LossCause>) {
    let is_waited_for =
        |cause: &&mut LossCause| cause.law == Law::Sigma && matches!(cause.what, LossSite::Lock | LossSite::WaitSite);
    let (code, mut others): (Vec<_>, Vec<_>) = std::mem::take(causes).into_iter().partition(|cause| cause.lock_code);
    match others.iter_mut().filter(is_waited_for).max_by(|a, b| a.share.total_cmp(&b.share)) {
        Some(lock) if !code.is_empty() => {
            let seconds: f64 = code.iter().map(|c| c.s_per_unit[1] - c.s_per_unit[0]).sum();
            let share: f64 = code.iter().map(|c| c.share).sum();
            lock.s_per_unit[1] += seconds;
            lock.share += share;
            lock.because = format!("{}, {:.0} % is the lock's own code", lock.because, 100.0 * share);
        }
        _ => others.extend(code),
    }
    *causes = others;
}

impl Attribution {
    fn what_to_do(&self) -> String {
        let law = self.verdict.law();
        let first = self.causes.iter().find(|c| Some(c.law) == law);
        let who = first.map_or(String::new(), |c| match c.source.as_str() {
            "" => format!("`{}`", c.name),
            source => format!("`{}` ({source})", c.name),
        });
        match self.verdict {
            Verdict::Contention if first.is_some_and(|c| c.what == LossSite::Serial) => format!(
                "Spread what {who} does over the threads, in even shares, or do it while they work on something else."
            ),
            Verdict::Contention => format!(
                "Make what {who} does while others wait shorter, move it out of the lock, or split the data so that \
                 threads seldom need the same lock."
            ),
            Verdict::Coherence | Verdict::Capacity if first.is_some_and(|c| c.in_kernel) => format!(
                "Ask the kernel for less in {who}: keep and use again what is mapped, opened or allocated there, do it for \
                 larger pieces at a time, or in processes of their own."
            ),
            Verdict::Coherence => format!(
                "Let each thread or CPU have its own of what {who} writes, on a cache line of its own, and add up when it is \
                 read; the crate holdup-sync has such counters, cells and reference counts."
            ),
            Verdict::Capacity => format!(
                "No lock, and no sign of a shared line: {who} takes longer because the CPUs share something. Look whether they are \
                 threads of one core (lscpu -e), how much memory it walks through, and whether it writes beside what others write."
            ),
            Verdict::Unexplained => "No function, lock or place accounts for most of that. Record longer runs on a quieter machine, and look \
                              at the recordings (--keep) with holdup explain."
                .to_owned(),
            Verdict::Scales => "The program itself scales: a unit of work costs about as much with many threads as with few."
                .to_owned(),
        }
    }

    fn reason(&self) -> String {
        let grown = self.cost_s_per_unit[1] / self.cost_s_per_unit[0].max(f64::MIN_POSITIVE);
        let cost = format!(
            "a unit of work costs {grown:.2}× as much thread time with {} threads as with {}",
            self.to_n, self.from_n
        );
        let parts = [("contention (σ)", self.sigma), ("coherence (κ)", self.kappa), ("capacity", self.capacity)];
        let shares: Vec<String> = parts
            .into_iter()
            .filter(|(_, share)| *share >= SMALLEST)
            .map(|(name, share)| format!("{:.0} % of it is {name}", 100.0 * share))
            .collect();
        if shares.is_empty() { cost } else { format!("{cost}; {}", shares.join(", ")) }
    }
}
