//! What holds a machine up, added up over many short recordings, as metrics for Prometheus and what reads its format.
//!
//! All times are of what was looked at, so that what one asks for is always a ratio: `rate(holdup_blame_cpu_seconds_total)` /
//! `rate(holdup_observed_seconds_total)` is how many CPUs stood still for something, on average.
//!
//! The number of series is bounded however long it goes on: causes beyond the first [`MOST_CAUSES`] that were seen count as one.

use std::collections::BTreeMap;
use std::fmt::Write;

use holdup_analysis::Explanation;
use holdup_analysis::report::{CpuSeconds, Finding, FindingKind};
use holdup_base::text::clean;

/// Causes with series of their own.
pub const MOST_CAUSES: usize = 200;
/// The longest value of a label, in characters.
const LONGEST: usize = 120;
/// What stands for causes without series of their own.
const OTHERS: &str = "(others)";

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What all recordings so far come to.
#[derive(Debug, Default)]
pub struct Metrics {
    rounds: u64,
    failed: u64,
    observed_s: f64,
    cpu: CpuSeconds,
    lost_events: u64,
    causes: BTreeMap<Cause, Sums>,
    stalls: BTreeMap<Cause, Stalls>,
}

/// By what causes are told apart: labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    /// None of stalls.
    kind: Option<FindingKind>,
    process: String,
    function: String,
    lock: String,
}

#[derive(Debug, Default)]
struct Sums {
    blame_s: f64,
    waited_s: f64,
    waits: u64,
}

#[derive(Debug, Default)]
struct Stalls {
    count: u64,
    /// The lengths of the longest of each recording.
    longest_s: f64,
}

impl Metrics {
    /// Adds what a recording tells. O(findings · log causes).
    pub fn add(&mut self, told: &Explanation) {
        self.rounds += 1;
        self.observed_s += told.trace.duration_s;
        self.lost_events += told.health.lost_events;
        add_cpu(&mut self.cpu, &told.cpu_seconds);
        for finding in told.findings.iter().filter(|f| f.is_cause()) {
            let sums = entry(&mut self.causes, Cause::of(finding));
            sums.blame_s += finding.blame_cpu_s;
            sums.waited_s += finding.waiters.total_s;
            sums.waits += finding.waiters.waits;
        }
        for stall in &told.stalls {
            let (process, function) = (shown(&stall.culprit.process), shown(&stall.culprit.function));
            let sums = entry(&mut self.stalls, Cause { process, function, ..Cause::default() });
            sums.count += stall.count as u64;
            sums.longest_s += stall.longest_s;
        }
    }

    /// Counts a recording that failed.
    pub fn fail(&mut self) {
        self.failed += 1;
    }

    /// All of it, with what it cost: `cpu_s` seconds of this process's CPU time.
    pub fn text(&self, cpu_s: f64) -> String {
        let mut page = Page::default();
        page.counter("holdup_rounds_total", "Recordings that were explained.");
        page.value("", self.rounds as f64);
        page.counter("holdup_rounds_failed_total", "Recordings that failed.");
        page.value("", self.failed as f64);
        page.counter(
            "holdup_observed_seconds_total",
            "Time that was recorded and explained; all others are of this time.",
        );
        page.value("", self.observed_s);
        page.counter("holdup_lost_events_total", "Events that a recording has lost.");
        page.value("", self.lost_events as f64);
        page.counter("process_cpu_seconds_total", "CPU time of the agent itself.");
        page.value("", cpu_s);
        self.cpu(&mut page);
        self.causes(&mut page);
        self.stalls(&mut page);
        page.0
    }

    fn cpu(&self, page: &mut Page) {
        let help = "CPU time by what became of it: work, spinning, other programs, standing still because of a cause, ready beside an \
            idle CPU, nothing to do, not known. The sum is CPUs times time.";
        page.counter("holdup_cpu_seconds_total", help);
        let CpuSeconds { total: _, busy, spin, other, held_up, runnable_idle, no_work, lost } = self.cpu;
        let all = [
            ("busy", busy),
            ("spin", spin),
            ("other", other),
            ("held_up", held_up),
            ("runnable_idle", runnable_idle),
            ("no_work", no_work),
            ("lost", lost),
        ];
        for (state, seconds) in all {
            page.value(&format!("{{state=\"{state}\"}}"), seconds);
        }
    }

    fn causes(&self, page: &mut Page) {
        page.counter("holdup_blame_cpu_seconds_total", "CPU time that stood still because of a cause.");
        self.causes.iter().for_each(|(cause, sums)| page.value(&cause.labels(), sums.blame_s));
        page.counter("holdup_wait_seconds_total", "Time that threads waited for a cause, all of them together.");
        self.causes.iter().for_each(|(cause, sums)| page.value(&cause.labels(), sums.waited_s));
        page.counter("holdup_waits_total", "Waits for a cause.");
        self.causes.iter().for_each(|(cause, sums)| page.value(&cause.labels(), sums.waits as f64));
    }

    fn stalls(&self, page: &mut Page) {
        page.counter("holdup_stalls_total", "Stretches in which threads waited unusually long for the same.");
        self.stalls.iter().for_each(|(cause, sums)| page.value(&cause.labels(), sums.count as f64));
        page.counter("holdup_longest_stall_seconds_total", "The longest of these of each recording, added up.");
        self.stalls.iter().for_each(|(cause, sums)| page.value(&cause.labels(), sums.longest_s));
    }
}

/// Of a cause, or of all beyond those that have series of their own.
fn entry<T: Default>(all: &mut BTreeMap<Cause, T>, cause: Cause) -> &mut T {
    let full = all.len() >= MOST_CAUSES && !all.contains_key(&cause);
    let key = if full { Cause { kind: cause.kind, process: OTHERS.to_owned(), ..Cause::default() } } else { cause };
    all.entry(key).or_default()
}

fn add_cpu(sum: &mut CpuSeconds, part: &CpuSeconds) {
    sum.total += part.total;
    sum.busy += part.busy;
    sum.spin += part.spin;
    sum.other += part.other;
    sum.held_up += part.held_up;
    sum.runnable_idle += part.runnable_idle;
    sum.no_work += part.no_work;
    sum.lost += part.lost;
}

impl Cause {
    fn of(finding: &Finding) -> Self {
        Cause {
            kind: Some(finding.kind),
            process: shown(&finding.culprit.process),
            function: shown(&finding.culprit.function),
            lock: finding.lock.as_ref().map_or_else(String::new, |lock| shown(&lock.name)),
        }
    }

    /// `{kind="lock-held",process="a",function="b",lock=""}`, without what is empty.
    fn labels(&self) -> String {
        let kind = self.kind.map_or("", FindingKind::name);
        let all = [("kind", kind), ("process", &self.process), ("function", &self.function), ("lock", &self.lock)];
        let mut text = String::new();
        for (name, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
            text.push(if text.is_empty() { '{' } else { ',' });
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = write!(text, "{name}=\"{value}\"");
        }
        if !text.is_empty() {
            text.push('}');
        }
        text
    }
}

/// A foreign name as the value of a label: short, and without what would act where it is shown.
fn shown(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", clean(&name[..end])),
        None => clean(name).into_owned(),
    }
}

#[derive(Default)]
struct Page(String, &'static str);

impl Page {
    fn counter(&mut self, name: &'static str, help: &str) {
        self.1 = name;
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} counter");
    }

    fn value(&mut self, labels: &str, value: f64) {
        let _ = writeln!(self.0, "{}{labels} {value}", self.1);
    }
}

#[cfg(test)]
mod tests {
    use holdup_analysis::report::{Culprit, LockFacts, TraceFacts, Waiters};

    use super::*;

    fn told(process: &str, function: &str) -> Explanation {
        let finding = Finding {
            kind: FindingKind::LockHeld,
            culprit: Culprit { process: process.into(), function: function.into(), ..Culprit::default() },
            lock: Some(LockFacts { name: "the arena".into(), ..LockFacts::default() }),
            blame_cpu_s: 0.5,
            waiters: Waiters { waits: 7, total_s: 1.5, ..Waiters::default() },
            ..Finding::default()
        };
        let idle = Finding { kind: FindingKind::IdleByDesign, blame_cpu_s: 9.0, ..Finding::default() };
        Explanation {
            trace: TraceFacts { duration_s: 2.0, cpus: 2, ..TraceFacts::default() },
            cpu_seconds: CpuSeconds { total: 4.0, busy: 3.5, held_up: 0.5, ..CpuSeconds::default() },
            findings: vec![finding, idle],
            ..Explanation::default()
        }
    }

    #[test]
    fn recordings_add_up_by_cause() {
        let mut metrics = Metrics::default();
        metrics.add(&told("cc1", "fold"));
        metrics.add(&told("cc1", "fold"));
        metrics.fail();
        let text = metrics.text(0.25);
        for line in [
            "holdup_rounds_total 2",
            "holdup_rounds_failed_total 1",
            "holdup_observed_seconds_total 4",
            "process_cpu_seconds_total 0.25",
            "holdup_cpu_seconds_total{state=\"busy\"} 7",
            "holdup_blame_cpu_seconds_total{kind=\"lock-held\",process=\"cc1\",function=\"fold\",lock=\"the arena\"} 1",
            "holdup_waits_total{kind=\"lock-held\",process=\"cc1\",function=\"fold\",lock=\"the arena\"} 14",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("idle-by-design"), "that is no cause:\n{text}");
    }

    #[test]
    fn names_end_neither_label_nor_line() {
        let mut metrics = Metrics::default();
        metrics.add(&told("a\"} 1\nevil 2", &"x".repeat(10_000)));
        let text = metrics.text(0.0);
        assert!(text.lines().all(|l| !l.starts_with("evil")), "{text}");
        assert!(text.contains(r#"process="a\"} 1\\nevil 2""#), "{text}");
        assert!(text.lines().all(|l| l.len() < 400), "{text}");
    }

    #[test]
    fn series_are_bounded() {
        let mut metrics = Metrics::default();
        (0..10_000).for_each(|i| metrics.add(&told(&format!("p{i}"), "f")));
        let blame = |l: &&str| l.starts_with("holdup_blame_cpu_seconds_total");
        let text = metrics.text(0.0);
        assert_eq!(text.lines().filter(blame).count(), MOST_CAUSES + 1);
        let rest = "holdup_blame_cpu_seconds_total{kind=\"lock-held\",process=\"(others)\"} 4900";
        assert!(text.lines().any(|l| l == rest), "nothing is left out of the sum");
    }
}
