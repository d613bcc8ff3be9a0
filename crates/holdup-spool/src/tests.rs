use std::path::{Path, PathBuf};

use super::*;
use crate::records::{Record, kind};
use holdup_trace::tables::{Listener, Subject};
use holdup_trace::*;

/// A spool of all kinds of block, and where it lies.
fn sample(dir: &Path) -> PathBuf {
    let path = dir.join("spool");
    let mut spool = SpoolWriter::create(&path).expect("create");
    let header = Header { start_ns: 1000, cpus: 2, min_wait_ns: 20_000, ..Header::default() };
    spool.header(&header).expect("header");
    let side = [
        Side::Name { t: 1000, pid: 10, tid: 10, name: "main".into() },
        Side::Name { t: 1000, pid: 10, tid: 11, name: "worker".into() },
        Side::Map {
            t: 1000,
            image: Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid: 10, ..Image::default() },
        },
        Side::Exec { t: 1001, pid: 12 },
        Side::Listener { t: 1001, pid: 10, parent: 9, listens: true },
        Side::Listener { t: 1001, pid: 404, parent: 10, listens: true },
        Side::Subject { t: 1001, pid: 10, what: "manage.py".into() },
        Side::Subject { t: 1001, pid: 404, what: "of nobody".into() },
        Side::Exec { t: 1002, pid: 10 },
        Side::Exec { t: 1003, pid: 10 },
        Side::Subject { t: 1003, pid: 10, what: "Main".into() },
        Side::Lost { kind: LossKind::Events, t: 1002, cpu: 1, span: 1, count: 3, what: "records".into() },
    ];
    spool.side(&side).expect("side");
    let mut records = Vec::new();
    let mut put = |t, kind, a, b| records.extend(Record { t, kind, a, b }.encode());
    // Thread 11 blocks on a private futex that thread 10 owns, which wakes it.
    put(2000, kind::FUTEX, 0x7000 | 9 << 48 | 1 << 56, 2 | 10 << 32);
    put(2000, kind::SWITCH, 11 | 10 << 24 | 202 << 48, 1 | 10 << 16);
    put(92_000, kind::WAKE_KEY, 0x7000, 10 | 0x81 << 32);
    put(92_000, kind::WAKE_STACK, 0, 78);
    put(92_000, kind::WAKE, 10 | 11 << 24, 0);
    put(93_000, kind::SWITCH, 10 | 11 << 24 | 0xffff << 48, 10 << 16);
    put(94_000, kind::BLOCKED, 11, 77);
    put(95_000, kind::SAMPLE, 11, 77);
    put(95_000, kind::MORE, 0x1234, 0);
    put(96_000, kind::LOCK, 0xffff_8000_0000_0000, 11 | 10 << 24 | 1 << 48 | 1 << 56);
    put(96_000, kind::BLOCK_IO, 8 | 11 << 40 | 1 << 63, 8 << 20 | 4096 << 32);
    put(97_000, kind::FORK, 10 | 10 << 32, 13 | 10 << 32);
    put(98_000, kind::NAME, 13 | 10 << 32, u64::from_le_bytes(*b"new name"));
    put(98_000, kind::MORE, u64::from_le_bytes(*b" longer\0"), 0);
    put(99_000, kind::EXIT, 13, 0);
    put(99_500, kind::EXIT, 404, 0);
    // Thread 10 blocks for good; its stack is taken at the end.
    put(100_000, kind::SWITCH, 10 | 0xffff << 48, 1 | 10 << 16);
    put(200_000, kind::BLOCKED, 10, 79);
    spool.records(0, &records).expect("records");
    let mut stacks = Vec::new();
    for hash in [77, 78, 79] {
        let stack = RawStack { pid: 10, kernel: vec![0xffff_ffff_8100_0000, hash], ..RawStack::default() };
        encode_stack(&mut stacks, hash, &stack);
    }
    spool.stacks(&stacks).expect("stacks");
    spool.round().expect("round");
    spool.footer(&Footer { end_ns: 301_000, exit_code: Some(3), ..Footer::default() }).expect("footer");
    path
}

fn trace_of(path: &Path) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    read(path, &mut builder)?;
    builder.finish(None)
}

#[test]
fn what_was_written_is_read() {
    let dir = tempfile::tempdir().expect("dir");
    let trace = trace_of(&sample(dir.path())).expect("trace");
    let rows = trace.row_counts();
    for (table, n) in [("switch", 3), ("wake", 1), ("futex", 1), ("sample", 1), ("kernel_lock", 1), ("block_io", 1)] {
        assert_eq!(rows[table], n, "{table}");
    }
    let listeners: Vec<Listener> = trace.listeners.load().expect("listeners").rows().collect();
    let subjects: Vec<Subject> = trace.subjects.load().expect("subjects").rows().collect();
    assert_eq!(subjects.iter().map(|s| trace.text(s.what)).collect::<Vec<_>>(), ["manage.py", "", "Main"]);
    let [Listener { thread, parent: ThreadIdx::NONE, listens: true, .. }] = listeners[..] else {
        panic!("one process is known, and nothing of its parent: {listeners:?}");
    };
    assert_eq!(trace.thread(thread).expect("server").tid, 10);
    let futex = trace.futexes.load().expect("futexes");
    let (waiter, owner) = (futex.thread[0], futex.owner[0]);
    assert_eq!(trace.thread(waiter).expect("waiter").tid, 11);
    assert_eq!(trace.thread(owner).expect("owner").tid, 10);
    let wake = trace.wakes.load().expect("wakes");
    assert_eq!(wake.lock[0], futex.lock[0], "waker and waiter name the same futex");
    assert_eq!((trace.meta.exit_code, trace.meta.duration_ns), (Some(3), 300_000));
    assert_eq!(trace.meta.native_events["sched_switch"], 3);
    let names: Vec<&str> = trace.threads.name.iter().map(|&n| trace.text(n)).collect();
    assert!(names.contains(&"new name longer"), "{names:?}");
    let by_tid = |tid: u32| trace.threads.rows().find(|thread| thread.tid == tid);
    assert_ne!(by_tid(13).expect("forked").end, holdup_trace::Timestamp::MAX);
    assert!(by_tid(404).is_none(), "it ended before there was anything to see of it");
}

/// In the locks of a container's process stand the numbers that its threads have for themselves.
#[test]
fn owners_in_containers_are_found_by_their_own_numbers() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let mut spool = SpoolWriter::create(&path).expect("create");
    spool.header(&Header { start_ns: 1000, cpus: 1, ..Header::default() }).expect("header");
    let names = [(700, "main"), (701, "worker"), (9, "another")];
    let mut side: Vec<Side> = names
        .map(|(tid, name)| Side::Name { t: 1000, pid: if tid == 9 { 9 } else { 700 }, tid, name: name.into() })
        .into();
    side.push(Side::Inner { t: 1000, pid: 700, tid: 701, inner: 9 });
    spool.side(&side).expect("side");
    let mut records = Vec::new();
    let mut put = |t, kind, a, b| records.extend(Record { t, kind, a, b }.encode());
    put(1500, kind::INNER, 702 | 700 << 32, 10);
    put(1500, kind::FORK, 700 | 700 << 32, 702 | 700 << 32);
    for (t, owner) in [(2000, 9), (3000, 10), (4000, 11)] {
        put(t, kind::FUTEX, 0x7000 | 9 << 48 | 1 << 56, 2 | owner << 32);
        put(t, kind::SWITCH, 700 | 202 << 48, 1 | 700 << 16);
        put(t + 500, kind::SWITCH, 700 << 24 | 0xffff << 48, 0);
    }
    spool.records(0, &records).expect("records");
    spool.round().expect("round");
    spool.footer(&Footer { end_ns: 5000, ..Footer::default() }).expect("footer");
    let trace = trace_of(&path).expect("trace");
    let owners = trace.futexes.load().expect("futexes").owner;
    let tids: Vec<Option<u32>> = owners.iter().map(|&owner| trace.thread(owner).map(|thread| thread.tid)).collect();
    assert_eq!(tids, [Some(701), Some(702), None], "known at the beginning, known since its start, and not known");
}

/// It is told as of when the look at all of them began.
#[test]
fn who_begins_while_proc_is_read_is_one_thread() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let mut spool = SpoolWriter::create(&path).expect("create");
    spool.header(&Header { start_ns: 1000, cpus: 1, ..Header::default() }).expect("header");
    let fork = Record { t: 1500, kind: kind::FORK, a: 10 | 10 << 32, b: 20 | 20 << 32 };
    spool.records(0, &fork.encode()).expect("records");
    let side = [
        Side::Name { t: 1000, pid: 10, tid: 10, name: "sh".into() },
        Side::Placement { t: 1000, tid: 20, cpus: "0".into(), nice: 0, policy: 0, group: "/".into(), span: 0 },
        Side::Parent { t: 1000, pid: 20, parent: 10 },
        Side::Name { t: 1000, pid: 20, tid: 20, name: "sleep".into() },
    ];
    spool.side(&side).expect("side");
    spool.round().expect("round");
    spool.footer(&Footer { end_ns: 5000, ..Footer::default() }).expect("footer");
    let trace = trace_of(&path).expect("trace");
    let names: Vec<&str> = trace.threads.rows().filter(|t| t.tid == 20).map(|t| trace.text(t.name)).collect();
    assert_eq!(names, ["sleep"]);
}

#[test]
fn waits_have_stacks_ended_or_not() {
    let dir = tempfile::tempdir().expect("dir");
    let trace = trace_of(&sample(dir.path())).expect("trace");
    let waits = trace.waits.load().expect("waits");
    assert_eq!(waits.t.len(), 2);
    let tid = |i: usize| trace.thread(waits.thread[i]).expect("thread").tid;
    assert_eq!((tid(0), waits.start[0].nanos(), waits.t[0].nanos()), (11, 1000, 92_000));
    assert_ne!(waits.waker_stack[0], StackId::NONE);
    assert_eq!((tid(1), waits.start[1].nanos(), waits.t[1].nanos()), (10, 99_000, 199_000), "open at the end");
    assert_ne!(waits.stack[1], StackId::NONE);
}

#[test]
fn a_sample_keeps_its_own_leaf() {
    let dir = tempfile::tempdir().expect("dir");
    let trace = trace_of(&sample(dir.path())).expect("trace");
    let samples = trace.samples.load().expect("samples");
    let leaf = trace.stacks.frames(samples.stack[0]).next().and_then(|f| trace.stacks.frame(f)).expect("leaf");
    assert_eq!((samples.ip[0], leaf.address), (0x1234, 0x1234));
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("other");
    std::fs::write(&path, b"PERFILE2 and so on").expect("write");
    assert!(matches!(trace_of(&path), Err(Error::Input(_))));
    assert!(matches!(SpoolWriter::create(&path), Err(Error::Input(_))), "an existing file is left alone");
    std::os::unix::fs::symlink("/dev/null", dir.path().join("link")).expect("link");
    assert!(SpoolWriter::create(&dir.path().join("link")).is_err(), "a link is not followed");
}

#[test]
fn a_spool_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("dir");
    let mode = std::fs::metadata(sample(dir.path())).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_cut_spool_is_used_up_to_the_cut() {
    let dir = tempfile::tempdir().expect("dir");
    let path = sample(dir.path());
    let whole = std::fs::read(&path).expect("read");
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("write");
    let trace = trace_of(&path).expect("trace");
    assert_eq!(trace.row_counts()["switch"], 3);
    assert!(trace.meta.notes[0].text.contains("cut at byte"), "{:?}", trace.meta.notes);
    assert_eq!(trace.losses.rows(), 2);
}

/// Truncations, bit flips and overwritten spans, most of them with checksums made right again.
#[test]
fn damaged_spools_never_panic() {
    let dir = tempfile::tempdir().expect("dir");
    let path = sample(dir.path());
    let whole = std::fs::read(&path).expect("read");
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as usize % below.max(1)
    };
    for round in 0..10_000_u32 {
        let mut bytes = whole.clone();
        match round % 4 {
            0 => bytes.truncate(8 + random(bytes.len() - 8)),
            1 => (0..1 + random(8)).for_each(|_| bytes[random(whole.len())] ^= 1 << random(8)),
            _ => {
                let at = random(bytes.len());
                let end = (at + random(40)).min(bytes.len());
                bytes[at..end].iter_mut().for_each(|b| *b = random(256) as u8);
            }
        }
        if round % 4 != 0 {
            mend_checksums(&mut bytes);
        }
        std::fs::write(&path, &bytes).expect("write");
        match trace_of(&path) {
            Ok(_) | Err(Error::Input(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Makes the checksums of all blocks right whose headers can still be read.
fn mend_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(header) = bytes.get(at..at + 20) {
        let length = u32::from_le_bytes(header[8..12].try_into().expect("four bytes")) as usize;
        let Some(payload) = bytes.get(at + 20..at + 20 + length) else { return };
        let crc = crate::format::checksum(&header[..16], payload);
        bytes[at + 16..at + 20].copy_from_slice(&crc.to_le_bytes());
        at += 20 + length;
    }
}
