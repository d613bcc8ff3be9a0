//! Which finding comes first. Each rule has a function here, that puts one row before others; what ran is put in its place by
//! [`profile::insert`](super::profile::insert).

use holdup_trace::{Amount, ThreadIdx};
use rustc_hash::FxHashSet;

use crate::replay::Taken;
use crate::report::{Activity, Confidence, Finding, FindingKind};

/// The one with most blame first; but what explains others comes before these. O(n log n).
pub(super) fn sort(findings: &mut [(Finding, Option<Taken>)]) {
    findings.sort_by(|(a, _), (b, _)| rank(b).total_cmp(&rank(a)).then_with(|| a.title.cmp(&b.title)));
    put_before_its_queue(findings);
    put_before_its_work(findings);
    put_behind_work(findings);
    put_first_what_carries(findings);
    put_before_whom_they_ask(findings);
}

/// Puts the row at `from` where the one at `to` is, and those from there on behind it.
pub(super) fn bring<T>(findings: &mut [T], from: usize, to: usize) {
    findings[to..=from].rotate_right(1);
}

/// Those that are woken for nothing stand in a queue for the lock that they look under, and are late to come: what wakes them comes before that.
fn put_before_its_queue<T>(findings: &mut [(Finding, T)]) {
    let Some(herd) = findings.iter().position(|(f, _)| f.about.wakes_all) else { return };
    let waiters: FxHashSet<ThreadIdx> = findings[herd].0.about.waiters.iter().copied().collect();
    let queues = |f: &Finding| {
        let own = f.about.waiters.iter().filter(|thread| waiters.contains(thread)).count();
        matches!(f.kind, FindingKind::Convoy | FindingKind::LockHeld) && 2 * own > f.about.waiters.len()
    };
    if let Some(queue) = findings[..herd].iter().position(|(f, _)| queues(f)) {
        bring(findings, herd, queue);
    }
}

/// What works for this part of the time of those that sleep and look may be what these waited for.
const WORKS: f64 = 0.5;

/// What others may have waited for that sleep and look comes before them.
fn put_behind_work<T>(findings: &mut [(Finding, T)]) {
    let Some(at) = findings.iter().position(|(f, _)| f.about.looks) else { return };
    let least = WORKS * findings[at].0.lasted_s;
    let works =
        |f: &Finding| f.is_cause() && !f.about.looks && f.culprit.activity == Activity::Ran && f.lasted_s >= least;
    if let Some(work) = findings[at..].iter().position(|(f, _)| works(f)) {
        findings[at..=at + work].rotate_left(1);
    }
}

/// Who asks for one thing after another comes before those that sleep before they answer: of more that are asked at once they sleep at once.
fn put_before_whom_they_ask(findings: &mut [(Finding, Option<Taken>)]) {
    let Some(row) = findings.iter().position(|(f, _)| !f.about.asks.is_empty()) else { return };
    let asked = &findings[row].0.about.asks;
    let is_asked = |f: &Finding| {
        f.kind == FindingKind::SleepPolling && f.about.culprits.iter().all(|thread| asked.contains(thread))
    };
    if let Some(at) = findings[..row].iter().position(|(f, _)| is_asked(f)) {
        bring(findings, row, at);
    }
}

/// Who sends objects and who takes them in do so for the same: the first of them stands for all.
fn put_first_what_carries<T>(findings: &mut [(Finding, T)]) {
    let carried = || findings.iter().map(|(f, _)| f).filter(|f| f.about.carries);
    let all: f64 = carried().map(rank).sum();
    let Some(row) = findings.iter().position(|(f, _)| f.about.carries) else { return };
    if let Some(to) = findings[..row].iter().position(|(f, _)| rank(f) < all) {
        bring(findings, row, to);
    }
}

/// The waking of threads is the price of hand-overs of all kinds: what is handed over, and why so often, tells more.
const PRICE: f64 = 2.0 / 3.0;

/// Work of which no function has much is not one thing to mend.
const SPREAD: f64 = 0.75;

/// What a finding is charged for, in CPU seconds, as far as it is a cause by itself.
pub(super) fn rank(f: &Finding) -> f64 {
    match f.kind {
        FindingKind::WakeLatency => PRICE * f.blame_cpu_s,
        FindingKind::Serial if f.culprit.function.is_empty() => SPREAD * f.blame_cpu_s,
        _ => f.blame_cpu_s,
    }
}

/// Who works alone under a lock for which others wait does so because of that: the lock comes before the work.
fn put_before_its_work<T>(findings: &mut [(Finding, T)]) {
    let Some((work, _)) = findings.first().filter(|(f, _)| f.kind == FindingKind::Serial) else { return };
    let whose = |f: &Finding| (f.culprit.process.clone(), f.culprit.function.clone());
    let is_its = |f: &Finding| {
        let both = f.about.culprits.iter().filter(|thread| work.about.culprits.contains(thread)).count();
        f.kind == FindingKind::LockHeld && whose(f) == whose(work) && 2 * both > f.about.culprits.len()
    };
    let at = findings.iter().position(|(f, _)| is_its(f) && f.blame_cpu_s >= MATTERS * work.blame_cpu_s);
    if let Some(at) = at.filter(|_| !work.culprit.function.is_empty()) {
        bring(findings, at, 0);
    }
}

/// From this part of what its work alone is charged for on, a lock is why.
const MATTERS: f64 = 0.4;

/// From this many times the saving of the first one on, another is what to begin with.
const MORE: f64 = 1.2;
/// What is charged with less than this part of what the first one is has a bound that is too loose to go by.
const CHARGED: f64 = 0.1;

/// Idle CPUs are charged to whoever kept them idle; but what the run would gain is what its length depends on. Where both are known, the one
/// without which the run could be much shorter comes first. A sleep may be there to keep a pace, and the run as long without it.
pub(super) fn put_first_what_saves_more(findings: &mut [Finding]) {
    let saving = |f: &Finding| f.gain_at_most.map(|gain| 1.0 - 1.0 / gain);
    let Some((first, least)) = findings.first().and_then(|f| Some((f.blame_cpu_s, MORE * saving(f)?))) else { return };
    let is_sure = |f: &Finding| f.kind != FindingKind::SleepPolling && f.confidence <= Confidence::Medium;
    let is_more = |f: &Finding| f.blame_cpu_s >= CHARGED * first && is_sure(f);
    let rows = findings.iter().enumerate().filter(|(_, f)| is_more(f));
    let most = rows.filter_map(|(row, f)| Some((row, saving(f)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((row, _)) = most.filter(|(_, saving)| *saving > least) {
        bring(findings, row, 0);
    }
}

/// To mend a cause with a lower bound than this saves little.
const LITTLE: f64 = 1.1;
/// A program that runs for this part of the CPU time that there is mostly works.
pub(super) const MOST: f64 = 0.5;

/// What ran comes before causes of which each would save little, where it took most of `cpu`, the CPU time that there is in nanoseconds. O(findings).
pub(super) fn put_first_what_ran(findings: &mut [Finding], cpu: f64) {
    let Some(at) = findings.iter().position(|f| f.kind == FindingKind::CpuBound) else { return };
    let saves_little = |f: &Finding| f.gain_at_most.is_some_and(|gain| gain < LITTLE);
    if findings[at].blame_cpu_s >= MOST * Amount(cpu).seconds() && findings[..at].iter().all(saves_little) {
        bring(findings, at, 0);
    }
}

/// Collections come first where they are most of what ran: collectors that keep all CPUs busy let none stand idle.
pub(super) fn put_first_what_collects<T>(findings: &mut [(Finding, T)]) {
    if let Some(at) = findings.iter().position(|(f, _)| f.kind == FindingKind::Gc) {
        bring(findings, at, 0);
    }
}

#[cfg(test)]
mod tests {
    use holdup_trace::ThreadIdx;

    use super::*;
    use crate::report::{About, Culprit};

    /// A finding about threads of one program that ran `function`.
    fn finding(kind: FindingKind, function: &str, blame_cpu_s: f64, threads: &[u32]) -> (Finding, ()) {
        let culprit = Culprit { process: "app".into(), function: function.into(), ..Culprit::default() };
        let about = About { culprits: threads.iter().map(|n| ThreadIdx(*n)).collect(), ..About::default() };
        (Finding { kind, blame_cpu_s, culprit, about, ..Finding::default() }, ())
    }

    #[test]
    fn a_lock_comes_before_the_work_that_is_done_under_it() {
        let first = |lock: (Finding, ())| {
            let mut found = [finding(FindingKind::Serial, "render", 2.0, &[1, 2]), lock];
            put_before_its_work(&mut found);
            found[0].0.kind
        };
        let held = |function, blame, threads: &[u32]| finding(FindingKind::LockHeld, function, blame, threads);
        assert_eq!(first(held("render", 1.5, &[1, 2])), FindingKind::LockHeld);
        assert_eq!(first(held("render", 0.5, &[1, 2])), FindingKind::Serial, "it explains little of it");
        assert_eq!(first(held("render", 1.5, &[3, 4])), FindingKind::Serial, "others have that lock");
        assert_eq!(first(held("flush", 1.5, &[1, 2])), FindingKind::Serial, "for something else");
    }
    #[test]
    fn what_carries_objects_on_both_sides_is_one_sum() {
        let first = |sends: f64| {
            let row = |function, blame, carries| {
                let (mut finding, ()) = finding(FindingKind::Serial, function, blame, &[1]);
                finding.about.carries = carries;
                (finding, ())
            };
            let mut found = [row("load", 0.4, false), row("dumps", sends, true), row("loads", 0.25, true)];
            put_first_what_carries(&mut found);
            found[0].0.culprit.function.clone()
        };
        assert_eq!(first(0.3), "dumps");
        assert_eq!(first(0.1), "load", "there is less of it than of that");
    }

    #[test]
    fn what_could_save_much_more_comes_first() {
        let first = |gain: Option<f64>, blame_cpu_s, confidence| {
            let of = |blame, gain_at_most, confidence| {
                let (finding, ()) = finding(FindingKind::Serial, "render", blame, &[1]);
                Finding { gain_at_most, confidence, ..finding }
            };
            let mut found = [of(1.0, Some(1.25), Confidence::High), of(blame_cpu_s, gain, confidence)];
            put_first_what_saves_more(&mut found);
            found[0].gain_at_most
        };
        let (high, low) = (Confidence::High, Confidence::Low);
        assert_eq!(first(Some(2.0), 0.3, high), Some(2.0));
        assert_eq!(first(Some(1.3), 0.3, high), Some(1.25), "hardly more");
        assert_eq!(first(Some(2.0), 0.05, high), Some(1.25), "hardly charged");
        assert_eq!(first(Some(2.0), 0.3, low), Some(1.25), "a guess");
        assert_eq!(first(None, 0.3, high), Some(1.25), "nobody knows what it could save");
    }

    #[test]
    fn what_ran_comes_before_what_would_save_little() {
        let of = |kind, blame_cpu_s, gain_at_most| Finding { kind, blame_cpu_s, gain_at_most, ..Finding::default() };
        let first = |gain, ran| {
            let mut all = [of(FindingKind::LockHeld, 0.2, gain), of(FindingKind::CpuBound, ran, None)];
            put_first_what_ran(&mut all, 2e9);
            all[0].kind
        };
        assert_eq!(first(Some(1.09), 1.8), FindingKind::CpuBound);
        assert_eq!(first(Some(1.3), 1.8), FindingKind::LockHeld, "that is worth it");
        assert_eq!(first(Some(1.09), 0.6), FindingKind::LockHeld, "it has not run for most of the time");
        assert_eq!(first(None, 1.8), FindingKind::LockHeld, "nobody knows");
    }
}
