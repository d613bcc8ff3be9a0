//! Real traces of old kernels, made by others. Counts are those of their README.

mod common;

use common::{import_file, native};
use holdup_testing::shared_trace;
use holdup_trace::SwitchState;

#[test]
fn kernel_3_19_with_call_chains() {
    let Some(path) = shared_trace("kernel3.19-2cpu-switch-callchain.perf.data") else { return };
    let trace = import_file(&path).expect("it can be read");
    assert_eq!((native(&trace, "sched:sched_switch"), native(&trace, "sched:sched_stat_sleep")), (404, 198));
    assert_eq!((trace.switches.rows(), trace.meta.cpus), (404, 2));
    let states: Vec<_> = trace.switches.iter().map(|s| s.expect("a row").state).collect();
    assert!(states.iter().all(|&s| s != SwitchState::Unknown));
    assert!(states.iter().filter(|&&s| s == SwitchState::Sleeping).count() > 150);
    let with_stack = trace.switches.iter().filter(|s| s.as_ref().is_ok_and(|s| s.stack.0 != 0)).count();
    assert!(with_stack > 200, "{with_stack}");
}

#[test]
fn kernel_3_2_with_32_cpus() {
    let Some(path) = shared_trace("kernel3.2-32cpu-numa.perf.data") else { return };
    let trace = import_file(&path).expect("it can be read");
    let counts = ["SAMPLE", "cycles", "MMAP", "COMM", "EXIT"];
    assert_eq!(counts.map(|name| native(&trace, name)), [175, 175, 8631, 1736, 2]);
    assert_eq!((trace.samples.rows(), trace.meta.cpus), (175, 32));
    assert_eq!(trace.meta.sample_period_ns, 1_000_000);
}
