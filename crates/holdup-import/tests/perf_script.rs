//! The text of `perf script`, counted by `perf report --stats` of the recording that it was printed from.

mod common;

use common::{fixture, import_bytes, import_file, native};
use holdup_import::{Format, Input};
use holdup_testing::damage::{Random, mutate};
use holdup_trace::{SwitchState, Trace, WakeContext};

const EVENTS: [&str; 5] =
    ["sched:sched_switch", "sched:sched_waking", "irq:softirq_entry", "irq:softirq_exit", "cpu-clock/freq=999/"];

fn check(trace: &Trace) {
    assert_eq!(EVENTS.map(|name| native(trace, name)), [19, 10, 2, 2, 7]);
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.samples.rows()), (19, 10, 7));
    assert_eq!((trace.meta.format.as_str(), trace.meta.sample_period_ns), ("perf-script", 1_001_001));
    assert!(trace.switches.iter().all(|s| s.is_ok_and(|s| s.state != SwitchState::Unknown)));
    assert!(trace.threads.name.iter().any(|&name| trace.text(name) == "sched-pipe"));
    assert_eq!(trace.losses.rows(), 0);
}

#[test]
fn call_chains_bring_their_names() {
    let trace = import_file(&fixture("script.txt.gz")).expect("it can be read");
    check(&trace);
    let mut blocked = 0;
    for switch in trace.switches.iter().map(|s| s.expect("a row")).filter(|s| s.state.is_blocked()) {
        let frames: Vec<_> = trace.stacks.frames(switch.stack).collect();
        let name = |at: usize| trace.names.locations(frames[at]).map(|l| trace.text(l.function)).next();
        assert_eq!((name(0), name(1)), (Some("__schedule"), Some("schedule")), "{frames:?}");
        blocked += 1;
    }
    assert!(blocked > 3);
}

#[test]
fn without_call_chains_and_with_records() {
    let trace = import_file(&fixture("script-bare.txt.gz")).expect("it can be read");
    check(&trace);
    assert_eq!((native(&trace, "FORK"), native(&trace, "EXIT")), (1, 2));
}

fn import(text: &str) -> Trace {
    import_bytes(text.as_bytes().to_vec()).expect("it can be read")
}

#[test]
fn what_plugins_print() {
    let text = "
 a 1 c     7 [001] 10.000001: irq:softirq_entry: vec=1 [action=TIMER]
 a 1 c     7 [001] 10.000002: sched:sched_wakeup: b:b:8 [120] CPU:000
 a 1 c     7 [001] 10.000003: irq:softirq_exit: vec=1 [action=TIMER]
 a 1 c     7 [001] 10.000004: sched:sched_switch: a 1 c:7 [120] D ==> swapper/1:0 [120]
 <idle>    0 [000] 10.000005: sched:sched_switch: swapper/0:0 [120] R ==> b:b:8 [120]
 b:b       8 [000] 10.000006: block:block_rq_issue: 254,1 WS 65536 () 4096 + 128 [b]
";
    let trace = import(text);
    let switches: Vec<_> = trace.switches.iter().map(|s| s.expect("a row")).collect();
    assert_eq!(
        switches.iter().map(|s| s.state).collect::<Vec<_>>(),
        [SwitchState::Uninterruptible, SwitchState::Runnable]
    );
    let wake = trace.wakes.iter().next().expect("one").expect("a row");
    assert_eq!((wake.context, wake.source, wake.target.0), (WakeContext::SoftIrq, 1, 0));
    let io = trace.block_ios.iter().next().expect("one").expect("a row");
    assert_eq!((io.device, io.sector, io.bytes), (254 << 20 | 1, 4096, 65536));
    let names: Vec<_> = trace.threads.name.iter().map(|&name| trace.text(name)).collect();
    assert!(names.contains(&"a 1 c") && names.contains(&"b:b"), "{names:?}");
}

#[test]
fn a_futex_is_known_by_its_address_and_process() {
    let text = "
 a  7/8 [001] 10.000001: syscalls:sys_enter_futex: uaddr: 0x7f0000001000, op: 0x00000080, val: 0x00000002
 a  7/8 [001] 10.000002: sched:sched_switch: prev_comm=a prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=b next_pid=9 next_prio=120
 a  7/9 [001] 10.000003: syscalls:sys_enter_futex: uaddr: 0x7f0000001000, op: 0x00000081, val: 0x00000001
 a  7/9 [001] 10.000004: sched:sched_switch: prev_comm=b prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=a next_pid=8 next_prio=120
";
    let trace = import(text);
    let futexes: Vec<_> = trace.futexes.iter().map(|f| f.expect("a row")).collect();
    assert_eq!(futexes.len(), 1, "who wakes others waits for nothing");
    let (lock, locks) = (futexes[0].lock.index(), &trace.locks);
    assert_eq!((locks.address[lock], locks.pid[lock], futexes[0].operation), (0x7f00_0000_1000, 7, 0));
}

#[test]
fn other_text_is_no_trace() {
    let is =
        |text: &str| Input::from_bytes("x".as_ref(), text.into()).expect("memory").format() == Some(Format::PerfScript);
    let event = "a 7 [001] 10.000001: sched:sched_wakeup: b:8 [120] CPU:000\n";
    assert!(is(&event.repeat(2)) && is(&format!("{event}\tff main+0x1 (a)\n\tfe x (b)\n\n")));
    assert!(!is(event) && !is(&format!("hello\n{}", event.repeat(3))) && !is("some\ntext\nof a page\n"));
    // What ftrace itself prints has its threads as one word.
    assert!(!is(&"     bash-1234    [000] d..2  1234.567890: sched_switch: prev_comm=a\n".repeat(3)));
}

#[test]
fn damaged_text() {
    let mut plain = Vec::new();
    let packed = std::fs::File::open(fixture("script.txt.gz")).expect("a file");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut plain).expect("sound gzip");
    let mut readable = 0;
    for round in 0..1000 {
        let mut random = Random::new(round);
        let mut bytes = plain.clone();
        // Behind what tells the kind.
        let mut behind = bytes.split_off(4096);
        (0..=random.below(3)).for_each(|_| mutate(&mut behind, &mut random, true));
        bytes.extend(behind);
        readable += u32::from(import_bytes(bytes).is_ok());
    }
    assert_eq!(readable, 1000, "damage behind a good beginning is a note");
}
