//! Damaged files, most of them with checksums made right again: an error, or a trace that can be walked; no panic.

mod judge;

use holdup_testing::damage::{Random, mutate};
use holdup_trace::*;
use judge::{Count, Namer, judge, silence};

/// Unoptimized code takes milliseconds for each; `cargo test --release` runs them all.
const FILE_ROUNDS: u32 = if cfg!(debug_assertions) { 800 } else { 10_000 };

/// A trace with rows in every table.
fn small_trace() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    b.meta_mut().cpus = 2;
    let name = b.string("worker");
    b.push(0, ForkEvent { parent_pid: 1, parent: 1, pid: 10, tid: 10 });
    b.push(0, NameEvent { pid: 10, tid: 10, name });
    b.push(1, NameEvent { pid: 10, tid: 11, name });
    let image = Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid: 10, ..Image::default() };
    let image = b.image(image);
    b.push(2, MapEvent { pid: 10, image });
    let lock = b.lock(LockKey { kind: LockKind::Futex, pid: 10, address: 0x7000 });
    let mutex = b.lock(LockKey { kind: LockKind::from_code(2), pid: 0, address: 0xffff_8000_0000 });
    for i in 0..60u64 {
        let t = 1000 * (i + 1);
        let (prev, next) = (10 + (i % 2) as u32, 10 + ((i + 1) % 2) as u32);
        let chain = b.chain(10, &[0xffff_8100_0000, 0xffff_8100_0010 + i], &[0x1000 + i, 0x1100]);
        let (cpu, none) = (Cpu((i % 2) as u16), LockId::NONE);
        b.push(t, FutexEvent { tid: prev, lock, owner: next, operation: 0, timed: i % 3 == 0 });
        b.push(t, KernelLockEvent { cpu, tid: prev, lock: mutex, begin: i % 2 == 0, owner: next });
        let state = SwitchState::Sleeping;
        b.push(t, SwitchEvent { cpu, prev, next, state, io_wait: false, syscall: 202, lock: none, chain });
        let context = WakeContext::Task;
        let wake = WakeEvent { cpu, waker: next, wakee: prev, context, source: 0, target: cpu, lock, chain };
        b.push(t + 500, wake);
        b.push(t + 600, BlockedEvent { tid: prev, chain, lock });
        b.push(t + 700, SampleEvent { cpu, tid: next, ip: 0x1000 + i, bp: 0, chain });
        b.push(t + 800, BlockIoEvent { device: 8, sector: i, bytes: 4096, tid: prev, issue: true });
    }
    let what = b.string("records");
    b.push(90_000, LostEvent { kind: holdup_trace::LossKind::Events, cpu: Cpu(1), span: Nanos(500), count: 3, what });
    b.push(90_000, ExitEvent { tid: 11 });
    b.finish(Some(&mut Namer)).expect("trace")
}

/// A member of the zip: its data, and where the directory keeps its checksum.
struct Member {
    from: usize,
    to: usize,
    crc_at: usize,
}

fn members(bytes: &[u8]) -> Vec<Member> {
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("a zip");
    (0..zip.len())
        .map(|i| {
            let member = zip.by_index_raw(i).expect("member");
            let from = member.data_start().expect("data") as usize;
            Member { from, to: from + member.size() as usize, crc_at: member.central_header_start() as usize + 16 }
        })
        .collect()
}

#[test]
fn damaged_holdup_files_are_refused_or_read() {
    silence();
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("small.holdup");
    file::write(&small_trace(), &path).expect("write");
    let whole = std::fs::read(&path).expect("read");
    let members = members(&whole);
    assert!(members.len() >= 17, "{}", members.len());
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut count = Count::default();
    judge(0, &mut count, &whole, || file::read(&path));
    assert_eq!(count.opened, 1, "the file itself is sound");
    for round in 1..=FILE_ROUNDS {
        let mut bytes = whole.clone();
        if round % 8 == 0 {
            mutate(&mut bytes, &mut random, true);
        } else {
            // Within one member, whose checksum is then right again.
            let m = &members[random.below(members.len())];
            let mut data = whole[m.from..m.to].to_vec();
            (0..1 + random.below(3)).for_each(|_| mutate(&mut data, &mut random, false));
            bytes[m.from..m.to].copy_from_slice(&data);
            bytes[m.crc_at..m.crc_at + 4].copy_from_slice(&crc32fast::hash(&data).to_le_bytes());
        }
        std::fs::write(&path, &bytes).expect("write");
        judge(round, &mut count, &bytes, || file::read(&path));
    }
    eprintln!("{} opened, {} refused", count.opened, count.refused);
    assert!(count.opened > FILE_ROUNDS / 16 && count.refused > FILE_ROUNDS / 16, "the mutations reach both sides");
}
