//! Waits of which the recorder took no stack, because it knew the place.

mod common;

use common::{Namer, Schedule, near};
use holdup_analysis::report::{Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{Trace, WakeContext};

const FDATASYNC: i16 = 75;

const NAMES: Namer = Namer(&[(0x10, "main"), (0x20, "commit"), (0x30, "load")]);

/// A writer waits ten times for 8 ms for the disk, with stacks as `stack` says.
fn writer(stack: impl Fn(u32) -> Option<&'static [u64]>) -> Trace {
    let mut s = Schedule::new(1, 100.0).thread(10, "writer");
    for i in 0..10 {
        let t = 10.0 * f64::from(i);
        s = match stack(i) {
            Some(frames) => s.waits_at(10, 0, [t, t + 2.0], FDATASYNC, frames),
            None => s.runs(10, 0, t, t + 2.0, FDATASYNC),
        };
        s = s.wakes(t + 10.0, 0, 0, 10, WakeContext::HardIrq, 0);
    }
    s.finish_with(&mut { NAMES })
}

fn disks(trace: &Trace) -> Vec<Finding> {
    let answer = explain(trace, "t", &Options::default(), &NoDisassembler).unwrap();
    answer.findings.into_iter().filter(|f| f.kind == FindingKind::Disk).collect()
}

const COMMIT: &[u64] = &[0x28, 0x18];
const LOAD: &[u64] = &[0x38, 0x18];

#[test]
fn waits_without_a_stack_are_like_most_others_of_their_program() {
    let found = disks(&writer(|i| (i < 3).then_some(COMMIT)));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].culprit.function, "commit");
    near(found[0].blame_cpu_s * 1e3, 80.0);
    assert!(found[0].title.contains("80.0 ms"), "{}", found[0].title);
}

#[test]
fn where_places_differ_nobody_knows_which_it_was() {
    let found = disks(&writer(|i| match i {
        0 | 1 => Some(COMMIT),
        2 | 3 => Some(LOAD),
        _ => None,
    }));
    let functions: Vec<&str> = found.iter().map(|f| f.culprit.function.as_str()).collect();
    assert_eq!(functions, ["", "commit", "load"], "{found:#?}");
    near(found[0].blame_cpu_s * 1e3, 48.0);
}
