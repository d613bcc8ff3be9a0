//! (two runs as facts, expected causes and symptoms)

use std::collections::BTreeMap;
use std::rc::Rc;

use holdup_analysis::classify::WaitKind;
use holdup_analysis::diff::facts::{Facts, Family, Held, Place, Ran, Under, Waited};
use holdup_analysis::diff::{Change, Diff, DiffOptions, diff};
use holdup_analysis::report::FindingKind;

const S: f64 = 1e9;

/// A quiet run of `elapsed` seconds on two CPUs.
fn run(elapsed: f64) -> Facts {
    Facts { path: "run".into(), elapsed_ns: elapsed * S, cpus: 2, period_ns: 1e6, ..Facts::default() }
}

fn place(function: &str) -> Place {
    Place { process: "".into(), function: function.into() }
}

trait With: Sized + Into<Facts> {
    /// A function that works for `seconds`.
    fn works(self, function: &str, seconds: f64) -> Facts {
        self.ran(function, Ran { ns: seconds * S, samples: seconds * 1e3, ..Ran::default() })
    }

    /// A function that spins for `seconds`, all of it behind `pause`.
    fn spins(self, function: &str, seconds: f64) -> Facts {
        let ns = seconds * S;
        self.ran(function, Ran { ns, spin_ns: ns, pause_ns: 0.95 * ns, samples: seconds * 1e3, ..Ran::default() })
    }

    fn ran(self, function: &str, ran: Ran) -> Facts {
        let mut facts: Facts = self.into();
        facts.ran_ns += ran.ns;
        facts.functions.insert(function.into(), ran);
        facts
    }

    /// Threads wait in `at` for a lock, `holder` runs meanwhile, each hold takes `hold_us`.
    fn holds(self, at: &str, holder: &str, seconds: f64, hold_us: u64) -> Facts {
        let mut facts: Facts = self.into();
        let under = Under { ns: 1.0, depths: 1.0 };
        let spread = |i: u64| hold_us * 1000 + i * 13 % 997 + if i.is_multiple_of(9) { 4_000_000 } else { 0 };
        facts.held.push(Held {
            kind: FindingKind::LockHeld,
            family: Family::Lock,
            function: holder.into(),
            waits_at: at.into(),
            lock: "futex".into(),
            wait_ns: seconds * S,
            blame_ns: seconds * S / 2.0,
            waits: 1000.0,
            ran: BTreeMap::from([(Rc::from(holder), under)]),
            sampled_ns: 1.0,
            holds: BTreeMap::from([(Rc::from(at), (0..400).map(spread).collect())]),
            ..Held::default()
        });
        facts.waits.insert((place(at), WaitKind::Lock), Waited { ns: seconds * S, count: 1000.0 });
        facts
    }
}

fn compare(before: Facts, after: Facts) -> Diff {
    diff(&[before], &[after], &DiffOptions { fail_on: Some(0.05), ..DiffOptions::default() })
}

fn find<'a>(diff: &'a Diff, what: &str, name: &str) -> &'a Change {
    let found = diff.changes.iter().find(|c| c.what.name() == what && c.name.contains(name));
    found.unwrap_or_else(|| panic!("no {what} {name} in {:#?}", diff.changes))
}

impl With for Facts {}

#[test]
fn equal_runs_have_no_changes() {
    let one = || run(2.0).works("parse", 1.5).holds("enqueue", "scan", 1.0, 200);
    let answer = compare(one(), one());
    assert!(answer.changes.is_empty() && answer.regressions.is_empty(), "{answer:#?}");
    assert_eq!(answer.slower, 1.0);
}

#[test]
fn a_longer_hold_is_the_cause_and_the_waits_are_symptoms() {
    let before = run(2.0).works("scan", 0.5).works("parse", 1.0).holds("enqueue", "scan", 0.4, 100);
    let after = run(4.0).works("scan", 2.5).works("parse", 1.0).holds("enqueue", "scan", 3.0, 500);
    let answer = compare(before, after);
    assert_eq!((answer.changes[0].name.as_str(), answer.changes[0].role.name()), ("scan", "cause"));
    assert_eq!(find(&answer, "lock", "enqueue").role.name(), "symptom");
    assert_eq!(find(&answer, "wait-site", "enqueue").role.name(), "symptom");
    assert!(answer.regressions.iter().any(|r| r.starts_with("elapsed time")), "{:?}", answer.regressions);
}

#[test]
fn work_that_left_the_lock_is_a_cause_although_it_takes_as_long() {
    let before = run(4.0).works("scan", 2.0).works("parse", 1.0).holds("enqueue", "scan", 3.0, 500);
    let after = run(2.0).works("scan", 2.0).works("parse", 1.0);
    let first = &compare(before, after).changes[0];
    assert_eq!((first.what.name(), first.name.as_str(), first.role.name()), ("function", "scan", "cause"));
    assert!(first.because.contains("own work is nearly the same"), "{}", first.because);
}

#[test]
fn spinning_behind_pause_in_unrelated_functions_is_the_pauses_fault() {
    let before = run(2.0).works("update", 0.5).spins("acquire", 0.3).spins("await_slot", 0.4);
    let after = run(5.0).works("update", 0.51).spins("acquire", 2.3).spins("await_slot", 2.9);
    let answer = compare(before, after);
    assert_eq!(find(&answer, "instruction", "pause").role.name(), "cause");
    for function in ["acquire", "await_slot"] {
        let change = find(&answer, "function", function);
        assert_eq!(change.role.name(), "cause");
        assert!(change.because.contains("behind `pause`"), "{}", change.because);
    }
}

#[test]
fn spinning_behind_a_longer_hold_is_a_symptom() {
    let before = run(2.0).works("update", 0.5).spins("acquire", 0.3).spins("await_slot", 0.4);
    let after = run(5.0).works("update", 2.5).spins("acquire", 2.3).spins("await_slot", 2.9);
    let answer = compare(before, after);
    assert_eq!((answer.changes[0].name.as_str(), answer.changes[0].role.name()), ("update", "cause"));
    for function in ["acquire", "await_slot"] {
        let change = find(&answer, "function", function);
        assert_eq!(change.role.name(), "symptom");
        assert!(change.because.contains("`update`"), "{}", change.because);
    }
    assert!(!answer.changes.iter().any(|c| c.name == "pause"));
}

#[test]
fn a_slightly_longer_critical_section_is_found_where_neighbours_hide_it() {
    let noisy = |facts: Facts, other: f64| Facts { other_ns: other * S, ..facts };
    let before = noisy(run(4.0).works("post", 2.0).holds("enqueue", "post", 1.5, 200), 5.0);
    let same = noisy(run(7.0).works("post", 2.1).holds("enqueue", "post", 2.6, 201), 9.0);
    let longer = noisy(run(3.5).works("post", 2.05).holds("enqueue", "post", 1.1, 220), 4.0);
    let answer = compare(before.clone(), same);
    assert!(answer.regressions.is_empty(), "{:?}", answer.regressions);
    assert!(answer.notes.iter().any(|n| n.contains("other programs")), "{:?}", answer.notes);
    let answer = compare(before, longer);
    assert!(answer.regressions.iter().any(|r| r.contains("hold of the lock")), "{:?}", answer.regressions);
    assert!(answer.changes.iter().any(|c| c.name == "post" && c.because.contains("undisturbed")), "{answer:#?}");
}

#[test]
fn figures_are_for_the_same_work() {
    let (before, after) = (run(2.0).works("parse", 1.0), run(4.0).works("parse", 2.0));
    let options = DiffOptions { per: Some((1000.0, 2000.0)), fail_on: Some(0.05) };
    let answer = diff(&[before], &[after], &options);
    assert_eq!((answer.slower, answer.changes.len(), answer.regressions.len()), (1.0, 0, 0));
}

#[test]
fn a_program_may_be_called_differently_on_the_other_side() {
    // Both are the program in focus: its process is the empty name.
    let answer = compare(run(2.0).works("parse", 1.0), run(3.0).works("parse", 2.0));
    assert_eq!((answer.changes.len(), answer.changes[0].cpu_s), (1, [1.0, 2.0]));
}

/// Seconds that threads waited in `at` for a disk, in so many waits.
fn flushes(facts: Facts, at: &str, seconds: f64, waits: f64) -> Facts {
    let mut facts = facts;
    facts.held.push(Held {
        kind: FindingKind::Disk,
        family: Family::Disk,
        function: at.into(),
        wait_ns: seconds * S,
        blame_ns: seconds * S,
        waits,
        ..Held::default()
    });
    facts.waits.insert((place(at), WaitKind::Disk), Waited { ns: seconds * S, count: waits });
    facts
}

#[test]
fn a_flush_that_was_added_is_a_regression_also_beside_neighbours() {
    let beside = |facts: Facts| Facts { other_ns: 0.1 * facts.elapsed_ns * facts.cpus as f64, ..facts };
    let before = || beside(run(2.0).works("append", 1.0));
    let after = beside(flushes(run(2.6).works("append", 1.0), "commit", 0.62, 200.0));
    let answer = compare(before(), after);
    let found: Vec<_> = answer.regressions.iter().filter(|r| r.contains("commit")).collect();
    assert!(found.len() == 1 && found[0].ends_with("0 ns → 620.0 ms, new"), "{:?}", answer.regressions);
    assert!(!answer.regressions.iter().any(|r| r.starts_with("elapsed")), "that may be the neighbours");

    // As many flushes that take longer may be the neighbours', too; so may waits for a lock that was free before.
    let slower = beside(flushes(run(2.6).works("append", 1.0), "commit", 0.62, 200.0));
    let faster = beside(flushes(run(2.3).works("append", 1.0), "commit", 0.31, 180.0));
    assert_eq!(compare(faster, slower).regressions, [""; 0]);
    let contended = beside(run(2.6).works("append", 1.0).holds("enqueue", "append", 0.62, 200));
    assert_eq!(compare(before(), contended).regressions, [""; 0]);
}

#[test]
fn growth_from_little_is_told_by_what_it_was() {
    let before = run(2.0).works("parse", 1.0).works("hash", 0.033);
    let after = run(2.2).works("parse", 1.0).works("hash", 0.121);
    let answer = compare(before, after);
    assert!(
        answer.regressions.iter().any(|r| r == "CPU time in `hash`: 33.0 ms → 121.0 ms, 3.7 times"),
        "{:?}",
        answer.regressions
    );
}
