//! Perfetto's traces: real ones, made by others, whose counts are those of their README, and a fixture with every kind of packet.

mod common;

use common::{fixture_bytes, import_bytes, import_file, native};
use holdup_testing::damage::{Random, mutate};
use holdup_testing::shared_trace;
use holdup_trace::tables::{Switch, Wake};
use holdup_trace::{LossKind, Nanos, StackId, SwitchState, Table, Trace, WakeContext};

const FIXTURE: &str = "all.pftrace";

fn fixture() -> Trace {
    import_bytes(fixture_bytes(FIXTURE)).expect("the fixture can be read")
}

fn frames(trace: &Trace, stack: StackId) -> Vec<String> {
    let name = |frame| trace.names.locations(frame).map(|l| trace.text(l.function).to_owned()).next();
    trace.stacks.frames(stack).map(|frame| name(frame).unwrap_or_default()).collect()
}

fn switches(trace: &Trace) -> Vec<Switch> {
    trace.switches.iter().map(|s| s.expect("a row")).collect()
}

fn wakes(trace: &Trace) -> Vec<Wake> {
    trace.wakes.iter().map(|w| w.expect("a row")).collect()
}

/// Microseconds since the trace's start, which is 1 µs before its first event: what was there before comes first.
fn us(t: holdup_trace::Timestamp) -> u64 {
    t.since(holdup_trace::Timestamp::ZERO).0 / Nanos(1000).0
}

#[test]
fn android_12_with_stacks_of_switches() {
    let Some(path) = shared_trace("android12-4cpu-switch-stacks.pftrace") else { return };
    let trace = import_file(&path).expect("it can be read");
    let counts = ["sched_switch", "sched_waking", "sched_wakeup", "cpu_idle", "perf_sample"];
    assert_eq!(counts.map(|name| native(&trace, name)), [23_536, 13_907, 13_907, 12_853, 7_977]);
    // sched_wakeup tells nothing new where sched_waking is; the 17 of new threads do.
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.meta.cpus), (23_536, 13_907 + 17, 4));
    assert_eq!((trace.meta.format.as_str(), trace.meta.host.arch.as_str()), ("perfetto", "x86_64"));
    assert!(trace.meta.host.os.starts_with("5.10.43-android12"), "{}", trace.meta.host.os);
    let lost = |what: &str| {
        trace.losses().expect("losses").into_iter().filter(|l| l.what.contains(what)).map(|l| l.count).sum::<u64>()
    };
    // What the profiler says that it lost and left out, by another reader: 9,127 and 197.
    assert_eq!((lost("buffer full"), lost("left out"), lost("out of order")), (9_127, 197, 0));
}

#[test]
fn stacks_of_two_recorders_come_together() {
    let Some(path) = shared_trace("android12-4cpu-switch-stacks.pftrace") else { return };
    let trace = import_file(&path).expect("it can be read");
    let with: Vec<Switch> = switches(&trace).into_iter().filter(|s| s.stack != StackId::NONE).collect();
    // 5,003 have stacks.
    assert!((4_900..=5_003).contains(&with.len()), "{}", with.len());
    let stacks: Vec<(Switch, Vec<String>)> = with.into_iter().map(|s| (s, frames(&trace, s.stack))).collect();
    // Whoever leaves does so in __schedule, or in what took its place; who sleeps called schedule, who is preempted did not.
    let through = |stack: &[String], name: &str| stack.iter().take(3).any(|f| f.starts_with(name));
    let in_schedule = stacks.iter().filter(|(_, s)| through(s, "__schedule")).count();
    assert!(in_schedule * 100 >= stacks.len() * 98, "{in_schedule} of {}", stacks.len());
    let asleep = |s: &Switch| matches!(s.state, SwitchState::Sleeping);
    let sleeping = stacks.iter().filter(|(s, _)| asleep(s)).count();
    let right = stacks
        .iter()
        .filter(|(s, frames)| asleep(s) && !through(frames, "preempt_schedule") && !through(frames, "exit_to_user"))
        .count();
    assert!(sleeping > 3_000 && right * 100 >= sleeping * 97, "{right} of {sleeping} sleep where a thread can");
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("µs apart")), "{:?}", trace.meta.notes);
}

#[test]
fn a_phone_without_sched_waking() {
    let Some(path) = shared_trace("samsung-s20-sched-wakeup.perfetto-trace") else { return };
    let trace = import_file(&path).expect("it can be read");
    let counts = ["sched_switch", "sched_wakeup", "cpu_idle"];
    assert_eq!(counts.map(|name| native(&trace, name)), [15_267, 8_743, 11_687]);
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.losses.rows()), (15_267, 8_743, 0));
    assert_eq!((trace.meta.host.os.as_str(), trace.meta.host.arch.as_str()), ("4.19.113-22067904", "aarch64"));
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("add sched/sched_waking")), "{:?}", trace.meta.notes);
}

#[test]
fn every_switch_follows_the_one_before_on_its_cpu() {
    for name in ["android12-4cpu-switch-stacks.pftrace", "samsung-s20-sched-wakeup.perfetto-trace"] {
        let Some(path) = shared_trace(name) else { return };
        let trace = import_file(&path).expect("it can be read");
        let mut running = std::collections::HashMap::new();
        for s in switches(&trace) {
            if let Some(before) = running.insert(s.cpu, s.next) {
                assert_eq!(before, s.prev, "{name}: {s:?}");
            }
        }
    }
}

#[test]
fn plain_events_of_every_kind() {
    let trace = fixture();
    let tid = |thread: holdup_trace::ThreadIdx| trace.thread(thread).map_or(u32::MAX, |t| t.tid);
    let rows: Vec<_> =
        switches(&trace).iter().map(|s| (us(s.t), s.cpu.0, tid(s.prev), s.state, tid(s.next), s.syscall)).collect();
    use SwitchState::{Runnable, Sleeping};
    let wanted = [
        (100, 0, 10, Sleeping, 20, 202),
        (300, 0, 20, Runnable, 0, -1),
        (400, 0, 0, Runnable, 10, -1),
        // Compact: of the first, at 405, it is not known who left.
        (445, 1, 11, Runnable, 20, -1),
        (495, 1, 20, Sleeping, 0, 0),
    ];
    assert_eq!(rows, wanted);
    let rows: Vec<_> =
        wakes(&trace).iter().map(|w| (us(w.t), tid(w.waker), tid(w.wakee), w.context, w.source, w.target.0)).collect();
    use WakeContext::{SoftIrq, Task, Timer};
    let wanted = [
        (250, 20, 10, SoftIrq, 4, 0),
        (411, 10, 11, Task, 0, 1),
        (441, 10, 20, Timer, u16::MAX, 1),
        (460, 20, 10, Task, 0, 0),
    ];
    assert_eq!(rows, wanted);
    assert_eq!((trace.block_ios.rows(), trace.kernel_locks.rows(), trace.samples.rows()), (2, 2, 1));
    assert_eq!(
        (trace.meta.cpus, trace.meta.host.cpu.as_str(), trace.meta.sample_period_ns),
        (2, "A processor", 1_000_000)
    );
    let counts = ["sched_switch", "sched_waking", "contention_begin", "perf_sample", "process_tree", "cpu_idle"];
    assert_eq!(counts.map(|name| native(&trace, name)), [6, 3, 1, 5, 1, 1]);
}

#[test]
fn stacks_get_their_names_their_addresses_and_their_images() {
    let trace = fixture();
    let switch = switches(&trace)[0];
    assert_eq!(
        frames(&trace, switch.stack),
        ["schedule", "futex_wait", "_ZN3foo3barEv", "main"],
        "without the tracepoint's own"
    );
    let addresses: Vec<u64> =
        trace.stacks.frames(switch.stack).filter_map(|f| trace.stacks.frame(f)).map(|f| f.address).collect();
    assert_eq!(addresses[2..], [0x40_1500, 0x40_1400]);
    let file =
        trace.stacks.frames(switch.stack).nth(2).and_then(|f| trace.names.locations(f).next()).expect("a location");
    assert_eq!((trace.text(file.module), trace.text(file.file), file.line), ("/usr/bin/waits", "waits.cpp", 7));
    let images = trace.images.load().expect("images");
    let image = images.rows().next().expect("an image");
    assert_eq!(
        (image.start, image.end, image.file_offset, trace.text(image.path)),
        (0x40_1000, 0x40_3000, 0x1000, "/usr/bin/waits")
    );
    assert_eq!(trace.text(image.build_id), "000102030405060708090a0b0c0d0e0f10111213");
    let sample = trace.samples.iter().next().expect("one").expect("a row");
    assert_eq!((us(sample.t), frames(&trace, sample.stack)), (170, vec!["work".to_owned()]));
}

#[test]
fn threads_have_the_processes_of_the_tree() {
    let trace = fixture();
    let threads: Vec<_> =
        trace.threads.rows().map(|t| (t.tid, t.pid, trace.text(t.name), trace.text(t.process))).collect();
    for wanted in [(10, 10, "renamed", "renamed"), (20, 15, "works", "org.example.works"), (11, 10, "waits", "renamed")]
    {
        assert!(threads.contains(&wanted), "{wanted:?} in {threads:?}");
    }
}

#[test]
fn what_is_lost_is_told() {
    let trace = fixture();
    let losses = trace.losses().expect("losses");
    let lost =
        |kind, what: &str| losses.iter().find(|l| l.kind == kind && l.what.contains(what)).map(|l| (l.cpu, l.count));
    assert_eq!(lost(LossKind::Stacks, "buffer full"), Some((Some(0), 3)));
    assert_eq!(lost(LossKind::LimitedStacks, "refer to lost packets"), Some((None, 1)));
    assert_eq!(lost(LossKind::LimitedStacks, "left out"), Some((None, 1)));
    assert_eq!(lost(LossKind::Events, "ftrace overwrote"), Some((Some(0), 7)));
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("other machines")), "{:?}", trace.meta.notes);
}

/// A packet of these bytes, as a field of a trace.
fn packet(content: &[u8]) -> Vec<u8> {
    field(1, content)
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut n in [u64::from(number) << 3 | 2, content.len() as u64] {
        while n >= 0x80 {
            bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
    }
    bytes.extend(content);
    bytes
}

fn deflated(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(content).expect("memory takes it");
    packed.finish().expect("memory takes it")
}

#[test]
fn compressed_packets_inside_compressed_packets_are_refused() {
    let whole = fixture_bytes(FIXTURE);
    let once = packet(&field(50, &deflated(&whole)));
    let trace = import_bytes([whole.clone(), once.clone()].concat()).expect("it can be read");
    // The fixture has a compressed packet itself, which is refused inside another.
    assert_eq!((native(&trace, "sched_switch"), native(&trace, "process_tree")), (12, 1));
    assert!(trace.losses().expect("losses").iter().any(|l| l.what.contains("inside compressed ones") && l.count == 1));
    let twice = packet(&field(50, &deflated(&once)));
    let trace = import_bytes([whole, twice].concat()).expect("it can be read");
    assert_eq!(native(&trace, "sched_switch"), 6);
}

#[test]
fn a_bomb_is_refused() {
    // A packet of a gigabyte of zeros, of which 140 MB are there, in 140 KB.
    let mut bomb = vec![0x0a, 0x80, 0x80, 0x80, 0x80, 0x04];
    bomb.resize(140 << 20, 0);
    let bytes = [fixture_bytes(FIXTURE), packet(&field(50, &deflated(&bomb)))].concat();
    drop(bomb);
    let trace = import_bytes(bytes).expect("the rest can be read");
    assert_eq!(native(&trace, "sched_switch"), 6);
    assert!(trace.losses().expect("losses").iter().any(|l| l.what.contains("damaged packets")));
}

#[test]
fn a_cut_trace_gives_what_it_has() {
    let whole = fixture_bytes(FIXTURE);
    let mut events = Vec::new();
    for len in 0..whole.len() {
        match import_bytes(whole[..len].to_vec()) {
            Ok(trace) => {
                events.push(trace.switches.rows());
                let cut = trace.meta.notes.iter().any(|n| n.text.contains("at byte"));
                assert!(cut || trace.losses().expect("losses").iter().all(|l| !l.what.contains("damage")), "{len}");
            }
            Err(e) => assert!(len < 200 && e.to_string().len() > 20, "{len}: {e}"),
        }
    }
    assert!(events.is_sorted() && events.last() == Some(&5), "{events:?}");
}

#[test]
fn damaged_traces_are_read_or_refused() {
    let whole = fixture_bytes(FIXTURE);
    let mut random = Random::new(18);
    let mut readable = 0;
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        (0..=random.below(4)).for_each(|_| mutate(&mut bytes, &mut random, true));
        match import_bytes(bytes) {
            Ok(_) => readable += 1,
            Err(e) => assert!(e.to_string().len() > 20, "{e}"),
        }
    }
    assert!(readable > 400, "only {readable} could be read");
}
