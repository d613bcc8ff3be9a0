//! CTF: real folders, counted by `babeltrace2` and by `perf report --stats`, and written ones for what those lack.

mod common;

use common::ctf::*;
use common::{import_file, native};
use holdup_import::Format;
use holdup_testing::damage::{Random, mutate};
use holdup_testing::shared_trace;
use holdup_trace::{SwitchState, Trace, WakeContext};

#[test]
fn lttng_of_8_cpus() {
    let Some(path) = shared_trace("lttng-8cpu-many-threads") else { return };
    let trace = import_file(&path).expect("it can be read");
    let counts = ["sched_switch", "sched_waking", "sched_wakeup", "sched_process_fork", "syscall_exit_clone"];
    assert_eq!(counts.map(|name| native(&trace, name)), [28325, 6743, 6743, 8003, 16006]);
    assert_eq!(trace.meta.native_events.values().sum::<u64>(), 240_644);
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.losses.rows()), (28325, 6743, 0));
    assert_eq!((trace.meta.format.as_str(), trace.meta.cpus, trace.meta.notes.len()), ("ctf", 8, 0));
    assert_eq!((trace.meta.host.name.as_str(), trace.meta.host.os.as_str()), ("wilbrod", "4.4.3-1-ARCH"));
    let mut threads: Vec<_> = trace.switches.iter().flat_map(|s| s.map(|s| [s.prev, s.next]).expect("a row")).collect();
    threads.sort_unstable_by_key(|t| t.0);
    threads.dedup();
    // One idle thread for all CPUs is one tid.
    let tids: std::collections::BTreeSet<u32> = threads.iter().map(|&t| trace.threads.tid[t.0 as usize]).collect();
    assert_eq!(tids.len(), 8059);
    // The packets' own times, of the first event and of the last.
    assert_eq!((trace.meta.start_ns, trace.meta.duration_ns), (2_357_617_049_815, 432_614_679));
}

#[test]
fn perf_converted_to_ctf() {
    let trace = import_files(fixture_files("perf.ctf")).expect("it can be read");
    let counts = ["sched:sched_switch", "sched:sched_waking", "irq:softirq_entry", "cpu-clock/freq=999/", "perf_fork"];
    assert_eq!(counts.map(|name| native(&trace, name)), [166, 76, 57, 209, 196]);
    assert_eq!((trace.switches.rows(), trace.wakes.rows(), trace.samples.rows()), (166, 76, 209));
    assert_eq!((trace.meta.cpus, trace.meta.sample_period_ns, trace.meta.host.arch.as_str()), (2, 1_001_001, "x86_64"));
    let sleeps = trace.switches.iter().filter(|s| s.as_ref().is_ok_and(|s| s.syscall == 230)).count();
    assert_eq!(sleeps, 1, "sleep blocks in clock_nanosleep");
    for switch in trace.switches.iter().map(|s| s.expect("a row")).filter(|s| s.state.is_blocked()) {
        let frames: Vec<_> = trace.stacks.frames(switch.stack).filter_map(|f| trace.stacks.frame(f)).collect();
        assert!(frames.len() > 3 && frames[0].address > 1 << 63, "{frames:x?}");
    }
    assert!(trace.threads.name.iter().any(|&name| trace.text(name) == "sched-pipe"));
}

#[test]
fn lttng_of_user_space_is_counted() {
    let trace = import_files(fixture_files("ust.ctf")).expect("it can be read");
    let counts = ["bin_info", "build_id", "debug_link", "start", "procname", "end"];
    assert_eq!(counts.map(|name| native(&trace, &format!("lttng_ust_statedump:{name}"))), [9, 8, 8, 1, 1, 1]);
    assert!(trace.meta.notes.iter().any(|n| n.text.contains("no trace of a kernel")), "{:?}", trace.meta.notes);
}

/// Ticks of 27 bits turn over.
const TURN: u64 = 1 << 27;
const START: u64 = 9 * TURN - 100;

fn switch(packet: &mut Packet, time: u64, (prev, state, next): (u64, u64, u64)) {
    let names = [format!("thread{prev}"), format!("thread{next}")];
    let bits = packet.event(SWITCH, time);
    bits.text(&names[0], 16).put(prev, 32).put(state, 64).text(&names[1], 16).put(next, 32);
}

/// Two CPUs: thread 7 of CPU 0 wakes thread 8, which had blocked in a futex on CPU 1.
fn schedule(big: bool) -> Files {
    let mut zero = Packet::new(big, 0, START, START + 500);
    switch(&mut zero, START, (0, 0, 7));
    // "abc", 3 bits and 32 bits that lie askew.
    zero.event(WAKING, START + 300).text("thread8", 8).put(5, 3).put(8, 32).align(8).put(1, 32);
    switch(&mut zero, START + 400, (7, 1, 0));
    let mut one = Packet::new(big, 1, START, START + 200);
    one.event(SEQUENCE, START + 1).put(2, 32);
    for name in ["first", "second"] {
        one.events.align(8).text(name, name.len() + 1).put(1, 5).put(2, 5).put(3, 5);
    }
    for word in 0..4 {
        one.events.align(8).put(word, 32);
    }
    for (tag, len) in [(255, 0), (0, 6), (2, 0)] {
        let bits = one.event(VARIANT, START + 2).put(tag, 8);
        match tag {
            0 => bits.text("hello", len),
            2 => bits.put(3, 8).put(1, 64).put(2, 64).put(3, 64),
            _ => bits,
        };
        bits.put(0x3ff0_0000_0000_0000, 64);
    }
    switch(&mut one, START + 10, (0, 0, 8));
    one.event(FUTEX, START + 20).put(0x1000, 64).put(0x80, 32);
    switch(&mut one, START + 150, (8, 1, 0));
    let mut later = Packet::new(big, 1, START + 320, START + 2 * TURN);
    (later.discarded, later.sequence) = (12, 1);
    switch(&mut later, START + 350, (0, 0, 8));
    later.event(FUTEX_EXIT, START + 360).put(0, 64);
    // More than a turn of the short clock later, so its header is the long one.
    later.events.align(8).put(31, 5).align(8).put(SWITCH, 32).put(START + 2 * TURN, 64);
    later.events.text("thread8", 16).put(8, 32).put(2, 64).text("", 16).put(0, 32);
    let streams = [zero.bytes(), [one.bytes(), later.bytes()].concat()];
    let names = ["channel0_0", "channel0_1"].map(str::to_owned);
    let mut files: Files = names.into_iter().zip(streams).collect();
    files.push(("metadata".to_owned(), packets(&metadata(big), big)));
    files
}

fn check(trace: &Trace) {
    let counts = ["sched_switch", "sched_waking", "sequence", "variant", "syscall_entry_futex", "syscall_exit_futex"];
    assert_eq!(counts.map(|name| native(trace, name)), [6, 1, 1, 3, 1, 1]);
    assert!(trace.meta.notes.is_empty(), "{:?}", trace.meta.notes);
    assert_eq!((trace.meta.start_ns, trace.meta.duration_ns), (START, 2 * TURN));
    let tid = |thread: holdup_trace::ThreadIdx| trace.threads.tid[thread.0 as usize];
    let switches: Vec<_> = trace.switches.iter().map(|s| s.expect("a row")).collect();
    let rows: Vec<_> = switches.iter().map(|s| (s.t.nanos(), s.cpu.0, tid(s.prev), tid(s.next), s.syscall)).collect();
    let expected = [
        (0, 0, 0, 7, -1),
        (10, 1, 0, 8, -1),
        (150, 1, 8, 0, 202),
        (350, 1, 0, 8, -1),
        (400, 0, 7, 0, -1),
        (2 * TURN, 1, 8, 0, -1),
    ];
    assert_eq!(rows, expected);
    assert_eq!(switches[5].state, SwitchState::Uninterruptible);
    let futex = trace.futexes.iter().next().expect("one").expect("a row");
    assert_eq!((futex.t.nanos(), tid(futex.thread), futex.lock), (150, 8, switches[2].lock));
    assert_eq!(trace.locks.address[futex.lock.index()], 0x1000);
    let wake = trace.wakes.iter().next().expect("one").expect("a row");
    assert_eq!((wake.t.nanos(), tid(wake.waker), tid(wake.wakee), wake.target.0), (300, 7, 8, 1));
    assert_eq!(wake.context, WakeContext::Task);
    let losses = trace.losses().expect("they can be read");
    assert_eq!(losses.iter().map(|l| (l.count, l.cpu)).collect::<Vec<_>>(), [(12, Some(1))]);
    let names: Vec<_> = trace.threads.name.iter().map(|&name| trace.text(name)).collect();
    assert!(names.contains(&"thread7") && names.contains(&"thread8"), "{names:?}");
}

#[test]
fn both_byte_orders() {
    check(&import_files(schedule(false)).expect("it can be read"));
    check(&import_files(schedule(true)).expect("it can be read"));
}

#[test]
fn a_folder_on_the_disk_and_one_around_it() {
    let folder = std::env::temp_dir().join(format!("holdup-ctf-{}", std::process::id()));
    let kernel = folder.join("session").join("kernel");
    std::fs::create_dir_all(kernel.join("index")).expect("a folder");
    for (name, bytes) in schedule(false) {
        std::fs::write(kernel.join(name), bytes).expect("a file");
    }
    for path in [&folder, &kernel] {
        let input = holdup_import::open(path).expect("it is a trace");
        assert_eq!((input.format(), input.path()), (Some(Format::Ctf), kernel.as_path()));
        check(&import_file(path).expect("it can be read"));
    }
    let metadata = import_file(&kernel.join("metadata")).expect_err("no trace by itself").to_string();
    assert!(metadata.contains("name the folder"), "{metadata}");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

#[test]
fn cut_at_every_length() {
    let files = schedule(false);
    for at in 0..files.len() {
        for len in 0..files[at].1.len() {
            let mut files = files.clone();
            files[at].1.truncate(len);
            if let Err(e) = import_files(files) {
                assert!(e.to_string().len() > 20, "{e}");
            }
        }
    }
}

#[test]
fn what_is_missing_is_told() {
    let mut files = schedule(false);
    let full = files[1].1.len();
    files[1].1.truncate(full - 60);
    let trace = import_files(files).expect("most of it can be read");
    assert!(trace.meta.notes[0].text.contains("channel0_1: the packet at byte"), "{:?}", trace.meta.notes);
    let mut files = schedule(false);
    files[2].1 = metadata(false).replace("id = 100", "id = 101").into_bytes();
    let trace = import_files(files).expect("the rest can be read");
    assert!(trace.meta.notes[0].text.contains("an event has the number 100"), "{:?}", trace.meta.notes);
    assert_eq!((native(&trace, "sched_switch"), trace.losses.rows()), (5, 2));
}

#[test]
fn lies_are_refused() {
    let error = |metadata: &str| {
        let files = vec![("metadata".to_owned(), metadata.as_bytes().to_vec())];
        import_files(files).map(|trace| trace.meta.notes).map_err(|e| e.to_string())
    };
    assert!(error("").expect_err("no streams").contains("no stream is described"));
    assert!(
        error("stream { id = 1; event.header := struct nothing; };").expect_err("no type").contains("not declared")
    );
    // Structs within structs, each twice the one before.
    let doubling = |n: usize| format!("struct s{n} {{ struct s{0} a; struct s{0} b; }};", n - 1);
    let bomb: String = (1..64).map(doubling).collect();
    let bomb = format!("struct s0 {{ string a; }}; {bomb} stream {{ event.header := struct s63; }};");
    assert!(error(&bomb).expect_err("too large").contains("too large"));
    let deep = format!("stream {{ event.header := {}", "struct { ".repeat(100_000));
    assert!(error(&deep).expect_err("too deep").contains("deeper"));
}

/// An event whose sequence claims more elements than there are bits, or whose elements have none.
#[test]
fn endless_sequences_end() {
    for element in ["string", "uint8_t", "struct { }", "struct { uint8_t x[0]; }"] {
        let text = metadata(false).replace("uint64_t _uaddr", &format!("uint64_t _n; {element} _e[_n]"));
        let mut files = schedule(false);
        files[2].1 = text.replace("typealias integer { size = 8;", "typealias integer { size = 8; ").into_bytes();
        let trace = import_files(files).expect("the rest can be read");
        assert!(native(&trace, "sched_switch") >= 4, "{element}");
        let mut packet = Packet::new(false, 0, START, START + 9);
        packet.event(FUTEX, START).put(u64::MAX, 64);
        let files = vec![("metadata".to_owned(), text.into_bytes()), ("c".to_owned(), packet.bytes())];
        let trace = import_files(files).expect("its metadata can be read");
        assert_eq!(trace.meta.native_events.len(), 0, "{element}");
        assert!(trace.meta.notes.iter().any(|n| n.text.starts_with("c: an event")), "{:?}", trace.meta.notes);
    }
}

fn survives(files: &Files, rounds: u64) {
    let mut readable = 0;
    for round in 0..rounds {
        let mut random = Random::new(round);
        let mut damaged = files.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len());
            mutate(&mut damaged[at].1, &mut random, true);
        }
        match import_files(damaged) {
            Ok(_) => readable += 1,
            Err(e) => assert!(e.to_string().len() > 20, "{e}"),
        }
    }
    assert!(readable > rounds / 10, "only {readable} of {rounds} could be read");
}

#[test]
fn damaged_folders() {
    survives(&schedule(false), 1500);
    survives(&schedule(true), 500);
    survives(&fixture_files("ust.ctf"), 1000);
    survives(&fixture_files("perf.ctf"), 300);
}
