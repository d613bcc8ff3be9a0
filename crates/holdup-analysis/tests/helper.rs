//! Who is the culprit where the samples are in a helper that everybody calls?

mod common;

use common::{FUTEX, MS, Namer, Schedule};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Cpu, Image, MapEvent, SampleEvent, Trace};

/// Addresses of return sites and leaves, each in a function of its own.
const NAMES: [(u64, &str); 4] =
    [(0x1000, "mix"), (0x2000, "update_ledger"), (0x3000, "prepare_order"), (0x4000, "worker_main")];

/// `holder` runs `mix` below `update_ledger` for a second; `waiter` runs it below `prepare_order` for `elsewhere`
/// milliseconds and then waits for a lock that `holder` has.
fn lock_held(elsewhere: u64) -> Trace {
    let mut schedule = Schedule::new(2, 1000.0)
        .thread(10, "holder")
        .thread(11, "waiter")
        .runs(10, 0, 0.0, 1000.0, -1)
        .futex(elsewhere as f64, 11, 10)
        .runs(11, 1, 0.0, elsewhere as f64, FUTEX);
    let image = Image { start: 0, end: 0x10000, path: "/bin/app".into(), pid: 1, ..Image::default() };
    let b = &mut schedule.builder;
    let image = b.image(image);
    b.push(0, MapEvent { pid: 1, image });
    b.meta_mut().sample_period_ns = MS;
    for (cpu, tid, caller, end) in [(0, 10, 0x2000, 1000), (1, 11, 0x3000, elsewhere)] {
        let chain = b.chain(1, &[], &[0x1004, caller + 4, 0x4004]);
        for t in 1..end {
            b.push(t * MS, SampleEvent { cpu: Cpu(cpu), tid, ip: 0x1004, bp: 0, chain });
        }
    }
    schedule.finish_with(&mut Namer(&NAMES))
}

fn culprit(trace: &Trace) -> (String, String) {
    let answer = explain(trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let culprit = &answer.findings[0].culprit;
    (culprit.thread.clone(), culprit.function.clone())
}

#[test]
fn a_helper_that_others_call_gives_way_to_its_caller() {
    assert_eq!(culprit(&lock_held(200)), ("holder".to_owned(), "update_ledger".to_owned()));
}

#[test]
fn a_helper_that_nobody_else_calls_is_the_place() {
    assert_eq!(culprit(&lock_held(10)), ("holder".to_owned(), "mix".to_owned()));
}
