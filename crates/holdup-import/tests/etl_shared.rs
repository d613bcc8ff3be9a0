//! Real ETW logs, made by others. Counts are those of their README; what else is compared was counted by a byte-level walker of its own.

mod common;

use common::{import_file, native};
use holdup_testing::shared_trace;
use holdup_trace::{LossKind, SwitchState, Trace};

fn sum_of_native(trace: &Trace) -> u64 {
    trace.meta.native_events.values().sum()
}

#[test]
fn windows_7_slow_ppt() {
    let Some(path) = shared_trace("win7-8cpu-slow-ppt.etl") else { return };
    let trace = import_file(&path).expect("it can be read");
    let counts = ["CSwitch", "SampledProfile", "StackWalk", "ISR-MSI", "DPC", "TimerDPC", "ReadyThread"];
    assert_eq!(counts.map(|name| native(&trace, name)), [29_533, 136_370, 138_474, 138_599, 13_487, 1772, 0]);
    // The log's own first record is one more.
    assert_eq!(sum_of_native(&trace), 505_714 + 1);
    let meta = &trace.meta;
    assert_eq!((meta.cpus, meta.sample_period_ns, &*meta.host.os), (8, 1_000_000, "Windows 6.1.7601"));
    assert!((meta.duration().seconds() - 17.0737).abs() < 1e-3, "{}", meta.duration_ns);
    assert_eq!((trace.switches.rows(), trace.samples.rows(), trace.wakes.rows()), (29_533, 136_370, 0));
    assert_eq!(trace.losses.rows(), 0);
    // No walk is without its sample: of 42 of the 138,474 there is a switch in the sample's tick, too, and the README leaves them out.
    let depths: Vec<_> =
        trace.samples.iter().map(|row| trace.stacks.frames(row.expect("a row").stack).count()).collect();
    // Ten samples have no walk, and so their instruction alone; two of the frames are null.
    assert_eq!(depths.iter().sum::<usize>(), 682_793 + 10 - 2);
}

#[test]
fn each_thread_leaves_the_cpu_that_it_came_to() {
    let Some(path) = shared_trace("win7-8cpu-slow-ppt.etl") else { return };
    let trace = import_file(&path).expect("it can be read");
    let mut running = [None; 8];
    for row in trace.switches.iter().map(|row| row.expect("a row")) {
        let tid = |thread: holdup_trace::ThreadIdx| trace.threads.tid[thread.index()];
        let last = running[row.cpu.index()].replace(tid(row.next));
        assert!(last.is_none_or(|last| last == tid(row.prev)), "{row:?}");
        assert_ne!(row.state, SwitchState::Unknown);
    }
}

#[test]
fn windows_8_packed_with_stack_keys() {
    let Some(path) = shared_trace("win8-8cpu-xpress.etl") else { return };
    let trace = import_file(&path).expect("it can be read");
    let counts = ["SampledProfile", "CSwitch", "StackWalk", "StackWalk/KeyDelete", "StackWalk/KeyRundown"];
    assert_eq!(counts.map(|name| native(&trace, name)), [79_528, 0, 252, 1909, 1012]);
    assert_eq!(["StackWalk/StackKeyKernel", "StackWalk/StackKeyUser"].map(|name| native(&trace, name)), [2061, 7046]);
    assert_eq!(sum_of_native(&trace), 179_474);
    let meta = &trace.meta;
    assert_eq!((meta.cpus, meta.sample_period_ns, &*meta.host.os), (8, 1_000_000, "Windows 6.2.9200"));
    assert!((meta.duration().seconds() - 12.6).abs() < 0.1, "{}", meta.duration_ns);
    assert_eq!(trace.samples.rows(), 79_528);
    // Those of 1208 disk reads, 153 page faults, 35 loads and the like, by a count of its own.
    let loss = trace.losses.iter().next().expect("a loss").expect("a row");
    assert_eq!((loss.kind, loss.count, trace.losses.rows()), (LossKind::LimitedStacks, 2583, 1));
}
