//! Our own recordings, one for each way in which perf writes them.

mod common;

use common::{fixture, fixture_bytes, import_bytes, import_file, native};
use holdup_import::{Format, detect};
use holdup_trace::{SwitchState, Trace, WakeContext};

fn open(name: &str) -> Trace {
    import_file(&fixture(name)).expect("the fixture can be read")
}

fn thread_names(trace: &Trace) -> Vec<&str> {
    trace.threads.name.iter().map(|&name| trace.text(name)).collect()
}

#[test]
fn kind_is_told_from_content() {
    for name in common::FIXTURES {
        let bytes = fixture_bytes(name);
        assert_eq!(detect(&bytes[..bytes.len().min(holdup_import::HEAD_BYTES)]), Some(Format::PerfData), "{name}");
    }
    assert_eq!(detect(b""), None);
    assert_eq!(detect(b"PK\x03\x04"), None);
    assert_eq!(detect(&[0x1f, 0x8b, 8, 0]), None);
}

#[test]
fn file_mode() {
    let trace = open("task.perf.data");
    let counts = ["sched:sched_switch", "sched:sched_waking", "cpu-clock/freq=999/", "MMAP2", "COMM", "FORK", "EXIT"];
    assert_eq!(counts.map(|name| native(&trace, name)), [45, 22, 9, 29, 3, 1, 2]);
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.samples.rows()), (45, 22, 9));
    assert_eq!((trace.meta.format.as_str(), trace.meta.cpus), ("perf.data", 2));
    assert_eq!((trace.meta.host.os.as_str(), trace.meta.host.arch.as_str()), ("6.18.44-fc-v595", "x86_64"));
    assert_eq!(trace.meta.sample_period_ns, 1_001_001);
    assert_eq!(trace.meta.command.last().map(String::as_str), Some("20"));
    assert!(trace.losses.rows() == 0 && trace.meta.notes.is_empty(), "{:?}", trace.meta.notes);
    assert!(thread_names(&trace).contains(&"sched-pipe"), "{:?}", thread_names(&trace));
}

#[test]
fn all_stacks_start_in_the_scheduler_and_reach_user_space() {
    let trace = open("task.perf.data");
    for switch in trace.switches.iter() {
        let switch = switch.expect("a row");
        if switch.prev.is_real() && switch.state.is_blocked() {
            let frames: Vec<_> = trace.stacks.frames(switch.stack).filter_map(|f| trace.stacks.frame(f)).collect();
            assert!(frames.len() > 4 && frames[0].address > 1 << 63, "{frames:x?}");
            assert!(frames.last().is_some_and(|f| f.address < 1 << 48), "{frames:x?}");
        }
    }
}

#[test]
fn stream_mode() {
    let trace = open("pipe.perf.data");
    let counts = ["sched:sched_switch", "sched:sched_waking", "cpu-clock/freq=999/", "HEADER_ATTR"];
    assert_eq!(counts.map(|name| native(&trace, name)), [49, 22, 8, 3]);
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.samples.rows()), (49, 22, 8));
    assert_eq!((trace.meta.cpus, trace.meta.host.arch.as_str()), (2, "x86_64"));
    assert!(trace.meta.notes.is_empty(), "{:?}", trace.meta.notes);
}

#[test]
fn compressed_records() {
    let trace = open("zstd.perf.data");
    let counts = ["sched:sched_switch", "sched:sched_waking", "COMPRESSED", "FORK"];
    assert_eq!(counts.map(|name| native(&trace, name)), [328, 260, 2, 40]);
    assert_eq!((trace.switches.rows(), trace.wakes.rows()), (328, 260));
}

#[test]
fn copied_stacks_are_kept_for_the_unwinder() {
    let trace = open("dwarf.perf.data");
    assert_eq!((native(&trace, "sched:sched_switch"), trace.switches.rows()), (14, 14));
    // Nobody set an unwinder: kernel frames only.
    assert_eq!(trace.meta.user_stacks.1, 0);
    assert!(!trace.stacks.is_empty());
}

#[test]
fn interrupts_are_named_as_wakers() {
    let trace = open("contexts.perf.data.gz");
    // sched_wakeup is left out where sched_waking is there; sched_wakeup_new is a wake of its own.
    assert_eq!((native(&trace, "sched:sched_wakeup"), trace.wakes.rows()), (23, 26));
    let wakes: Vec<_> = trace.wakes.iter().map(|w| w.expect("a row")).collect();
    let by = |context, source| wakes.iter().filter(|w| (w.context, w.source) == (context, source)).count();
    const BLOCK: u16 = 4;
    const TIMER: u16 = 1;
    // dd's four requests end in the block softirq; timers are hrtimers, or the timer softirq's.
    assert_eq!(by(WakeContext::SoftIrq, BLOCK), 4);
    assert_eq!(by(WakeContext::SoftIrq, TIMER), 1);
    assert!(wakes.iter().filter(|w| w.context == WakeContext::Timer).count() >= 2);
    assert!(by(WakeContext::Task, 0) >= 4);
}

#[test]
fn disks_locks_and_system_calls() {
    let trace = open("contexts.perf.data.gz");
    assert_eq!((trace.block_ios.rows(), trace.kernel_locks.rows()), (8, 6));
    let io: Vec<_> = trace.block_ios.iter().map(|b| b.expect("a row")).collect();
    assert!(io.iter().all(|b| b.device == 254 << 20 && b.bytes == 65536), "{io:?}");
    const CLOCK_NANOSLEEP: i16 = 230;
    let sleeps = trace.switches.iter().filter(|s| s.as_ref().is_ok_and(|s| s.syscall == CLOCK_NANOSLEEP)).count();
    assert_eq!(sleeps, 1);
}

#[test]
fn states_come_from_the_traces_own_format() {
    let trace = open("contexts.perf.data.gz");
    let count = |state| trace.switches.iter().filter(|s| s.as_ref().is_ok_and(|s| s.state == state)).count();
    assert!(count(SwitchState::Uninterruptible) >= 5, "dd waits for its disk");
    assert!(count(SwitchState::Idle) >= 3, "kworkers and rcu wait in state I");
    assert!(count(SwitchState::Dead) >= 1);
    assert_eq!(count(SwitchState::Unknown), 0);
}

/// Where the records of a file begin, and their length, by its header.
fn records_of(bytes: &[u8]) -> (usize, usize) {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
    (number(40), number(48))
}

#[test]
fn a_killed_perf_leaves_a_readable_file() {
    let mut bytes = fixture_bytes("task.perf.data");
    let (start, len) = records_of(&bytes);
    bytes[48..56].fill(0);
    bytes.truncate(start + len - 10);
    let trace = import_bytes(bytes).expect("most of it can be read");
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("killed")), "{:?}", trace.meta.notes);
    assert!(trace.losses.rows() > 0);
    // The formats were at the end: all but the last record are recognised by their shape.
    assert_eq!((trace.switches.rows() + trace.wakes.rows(), native(&trace, "sched:sched_waking")), (67, 22));
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("shape")), "{:?}", trace.meta.notes);
    assert!(thread_names(&trace).contains(&"sched-pipe"));
}

#[test]
fn a_cut_file_gives_what_it_has() {
    let mut bytes = fixture_bytes("zstd.perf.data");
    let (start, len) = records_of(&bytes);
    bytes.truncate(start + len / 2);
    let trace = import_bytes(bytes).expect("the beginning can be read");
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("at byte")), "{:?}", trace.meta.notes);
    assert!(trace.losses.rows() > 0);
}

#[test]
fn what_is_no_trace_is_refused_with_a_sentence() {
    let error = |bytes: &[u8]| import_bytes(bytes.to_vec()).expect_err("no trace").to_string();
    assert!(error(b"hello").contains("no trace that holdup knows"));
    assert!(error(b"2ELIFREP").contains("big-endian"));
    assert!(error(b"PERFFILE........").contains("before 2010"));
    assert!(error(b"PERFILE2\x68\0\0\0\0\0\0\0").contains("at byte 0"));
    assert!(error(b"PERFILE2\x10\0\0\0\0\0\0\0").contains("no event's description"));
    let folder = holdup_import::open("/".as_ref()).err().expect("a folder is no trace").to_string();
    assert!(folder.contains("is a folder"), "{folder}");
}
