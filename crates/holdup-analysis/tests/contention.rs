//! How a lock was used.

mod common;

use common::{FUTEX, MS, SLEEP, Schedule};
use holdup_analysis::contention::{self, LockUse};
use holdup_analysis::{NoDisassembler, Options};
use holdup_trace::{Nanos, Trace, WakeContext};

/// Five times in a second the janitor holds the lock for 100 ms, of which it sleeps for 20; two users come 20 and 40 ms after it
/// took the lock. `known`: whether they read from the lock who has it.
fn registry(known: bool) -> Trace {
    let mut s = Schedule::new(4, 1000.0).thread(10, "janitor").thread(11, "user-1").thread(12, "user-2");
    for round in 0..5 {
        let t = 200.0 * f64::from(round);
        s = s.runs(10, 0, t, t + 50.0, SLEEP).wakes(t + 70.0, 0, 0, 10, WakeContext::Timer, 0);
        for user in [11, 12] {
            let (cpu, from) = (user as u16 - 10, if round == 0 { 0.0 } else { t - 100.0 });
            let to = t + 20.0 * f64::from(user - 10);
            s = s.futex(to, user, if known { 10 } else { 0 }).runs(user, cpu, from, to, FUTEX);
        }
        s = s.by(t + 100.0, 0, 10, 11).by(t + 100.0, 0, 10, 12).runs(10, 0, t + 70.0, t + 100.0, SLEEP);
        s = s.wakes(t + 200.0, 0, 0, 10, WakeContext::Timer, 0);
    }
    s.finish()
}

fn used(trace: &Trace, finding: &str) -> holdup_trace::Result<LockUse> {
    contention::of_finding(trace, "t", &Options::default(), finding, &NoDisassembler)
}

#[test]
fn roles_holds_and_what_is_done_between_are_told_apart() {
    let trace = registry(true);
    let used = used(&trace, "").expect("a lock");
    let [janitor, users] = &used.roles[..] else { panic!("{:?}", used.roles) };
    assert_eq!((&janitor.names[..], janitor.threads, janitor.takings), (&["janitor".to_owned()][..], 1, 5));
    assert_eq!((&users.names[..], users.threads, users.takings), (&["user-1, user-2".to_owned()][..], 2, 10));
    // 80 and 60 ms each time, and the last time until the end, as they don't run again; the janitor never.
    assert_eq!((users.waited, janitor.waited), (Nanos(900 * MS), Nanos::ZERO));
    // It took the lock earlier than the first of two came: 80 ms are two thirds of 120, and another can't have had it for more than 100.
    assert_eq!(janitor.holds.len(), 5);
    for hold in &janitor.holds {
        let all = hold.ran.0 + hold.blocked.0;
        assert!((100 * MS..=120 * MS).contains(&all) && hold.blocked.0 >= 20 * MS, "{hold:?}");
    }
    assert_eq!(janitor.ran, Nanos(400 * MS));
    assert_eq!(used.others, 0);
}

#[test]
fn a_finding_without_a_lock_is_refused_with_those_that_have_one() {
    let trace = registry(true);
    let refused = used(&trace, "f9").expect_err("no such finding").to_string();
    assert_eq!(refused, "t: there is no finding f9; those about locks are f1");
    let idle = Schedule::new(2, 100.0).thread(10, "a").runs(10, 0, 0.0, 50.0, SLEEP).finish();
    assert!(used(&idle, "").expect_err("no lock").to_string().contains("none of its findings is about a lock"));
}
