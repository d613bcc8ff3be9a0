//! Damaged files, most of them with checksums made right again: an error, or a trace that can be walked; no panic.

mod spools;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use holdup_testing::damage::{Random, mutate};
use holdup_trace::*;
use spools::{mend_checksums, records, write_spool};

/// Unoptimized code takes milliseconds for each; `cargo test --release` runs them all.
const ROUNDS: u32 = if cfg!(debug_assertions) { 2_400 } else { 15_000 };

/// The same for `.holdup` files.
const FILE_ROUNDS: u32 = if cfg!(debug_assertions) { 800 } else { 10_000 };

struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, kernel: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let module = if kernel { "[kernel]" } else { "/bin/x" }.to_owned();
        let location = |function: String| Location { function, module: module.clone(), line: 7, ..Location::default() };
        vec![location("inlined".into()), location(format!("f{}", address >> 4))]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], address: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((address & !15, vec![0x90; 16]))
    }

    fn lines(&mut self, _: &[Arc<Image>], start: u64, _: usize) -> Vec<SourceLine> {
        let line = |offset: u32| SourceLine { offset, line: start as u32 + offset, ..SourceLine::default() };
        vec![line(0), line(8)]
    }
}

/// A trace with rows in every table.
fn small_trace() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    b.meta_mut().cpus = 2;
    let name = b.string("worker");
    b.push(0, Event::Fork { parent_pid: 1, parent: 1, pid: 10, tid: 10 });
    b.push(0, Event::Name { pid: 10, tid: 10, name });
    b.push(1, Event::Name { pid: 10, tid: 11, name });
    let image = Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid: 10, ..Image::default() };
    let image = b.image(image);
    b.push(2, Event::Map { pid: 10, image });
    let lock = b.lock(LockKey { kind: LockKind::Futex, pid: 10, address: 0x7000 });
    let mutex = b.lock(LockKey { kind: LockKind::from_code(2), pid: 0, address: 0xffff_8000_0000 });
    for i in 0..60u64 {
        let t = 1000 * (i + 1);
        let (prev, next) = (10 + (i % 2) as u32, 10 + ((i + 1) % 2) as u32);
        let chain = b.chain(10, &[0xffff_8100_0000, 0xffff_8100_0010 + i], &[0x1000 + i, 0x1100]);
        let (cpu, none) = (Cpu((i % 2) as u16), LockId::NONE);
        b.push(t, Event::Futex { tid: prev, lock, owner: next, operation: 0, timed: i % 3 == 0 });
        b.push(t, Event::KernelLock { cpu, tid: prev, lock: mutex, begin: i % 2 == 0, owner: next });
        let state = SwitchState::Sleeping;
        b.push(t, Event::Switch { cpu, prev, next, state, io_wait: false, syscall: 202, lock: none, chain });
        let context = WakeContext::Task;
        let wake = Event::Wake { cpu, waker: next, wakee: prev, context, source: 0, target: cpu, lock, chain };
        b.push(t + 500, wake);
        b.push(t + 600, Event::Blocked { tid: prev, chain, lock });
        b.push(t + 700, Event::Sample { cpu, tid: next, ip: 0x1000 + i, chain });
        b.push(t + 800, Event::BlockIo { device: 8, sector: i, bytes: 4096, tid: prev, issue: true });
    }
    let what = b.string("records");
    b.push(90_000, Event::Lost { cpu: Cpu(1), span: Nanos(500), count: 3, what });
    b.push(90_000, Event::Exit { tid: 11 });
    b.finish(Some(&mut Namer)).expect("trace")
}

/// Reads all there is, by the ids that are there.
fn walk(trace: &Trace) -> Result<()> {
    let losses = trace.losses()?;
    let mut sum = trace.row_counts().len() + losses.len();
    let see = |stack: StackId| {
        let frames = trace.stacks.frames(stack).take(1 << 20);
        frames.flat_map(|f| trace.names.locations(f)).map(|l| trace.text(l.function).len()).sum::<usize>()
    };
    macro_rules! tables {
        ($($table:ident: |$row:ident| $use:expr;)+) => {
            $(for $row in trace.$table.iter() {
                let $row = $row?;
                sum = sum.wrapping_add($use);
            })+
        };
    }
    let thread = |t: ThreadIdx| trace.thread(t).map_or(0, |t| trace.text(t.name).len());
    tables! {
        switches: |r| see(r.stack) + thread(r.prev) + thread(r.next);
        wakes: |r| see(r.stack) + thread(r.waker);
        waits: |r| see(r.stack) + see(r.waker_stack) + thread(r.thread);
        samples: |r| see(r.stack);
        futexes: |r| thread(r.owner);
        kernel_locks: |r| thread(r.owner);
        block_ios: |r| thread(r.thread);
        thread_names: |r| trace.text(r.name).len();
        images: |r| trace.text(r.path).len() + decode_build_id(trace.text(r.build_id)).map_or(0, |b| b.len());
        losses: |r| r.count as usize;
    }
    for row in trace.locks.rows() {
        sum = sum.wrapping_add(trace.text(row.name).len() + row.kind.name().len());
    }
    for i in 0..=trace.stacks.frame_count() {
        let frame = trace.stacks.frame(FrameId(i as u32));
        sum = sum.wrapping_add(frame.map_or(0, |f| f.space.index()));
    }
    if let Some(code) = trace.names.code(|_| true) {
        sum = sum.wrapping_add(trace.names.lines(&code).map(|l| trace.text(l.file).len()).sum::<usize>());
    }
    std::hint::black_box(sum);
    Ok(())
}

#[derive(Default)]
struct Count {
    opened: u32,
    refused: u32,
}

/// Runs `open` on a damaged file; fails the test on a panic, an empty or a wrong error.
fn judge(round: u32, count: &mut Count, bytes: &[u8], open: impl FnOnce() -> Result<Trace>) {
    let result = catch_unwind(AssertUnwindSafe(|| open().and_then(|trace| walk(&trace))));
    match result {
        Ok(Ok(())) => count.opened += 1,
        Ok(Err(Error::Input(text))) => {
            assert!(!text.is_empty() && !text.contains('\n') || text.len() > 40, "{text}");
            count.refused += 1;
        }
        Ok(Err(other)) => panic!("round {round}: {other:?}"),
        Err(payload) => {
            let what = payload.downcast_ref::<String>().cloned();
            let what = what.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default();
            let kept = std::env::temp_dir().join(format!("holdup-mutation-{round}"));
            let _ = std::fs::write(&kept, bytes);
            eprintln!("round {round} panicked: {what}; the file is {}", kept.display());
            panic!("round {round}: {what}");
        }
    }
}

/// A member of the zip: its data, and where the directory keeps its checksum.
struct Member {
    from: usize,
    to: usize,
    crc_at: usize,
}

fn word(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
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

/// The panics that are caught are not shown; those of failed assertions are.
fn silence() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.location().is_some_and(|l| l.file().ends_with("tests/mutations.rs")) {
                usual(info);
            }
        }));
    });
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
    assert!(count.opened > ROUNDS / 24 && count.refused > ROUNDS / 24, "the mutations reach both sides");
}

fn open_spool(path: &Path) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    spool::read(path, &mut builder)?;
    builder.finish(Some(&mut Namer))
}

#[test]
fn damaged_spools_are_refused_or_read() {
    silence();
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("small.spool");
    let stacks = spools::stacks();
    write_spool(&path, &records(), &stacks);
    let whole = std::fs::read(&path).expect("read");
    let mut random = Random::new(0xd1b5_4a32_d192_ed03);
    let mut count = Count::default();
    judge(0, &mut count, &whole, || open_spool(&path));
    assert_eq!(count.opened, 1, "the spool itself is sound");
    for round in 1..=ROUNDS {
        if round % 2 == 0 {
            // What the kernel wrote, damaged before it is packed.
            let (mut damaged, mut stacks) = (records(), stacks.clone());
            (0..1 + random.below(4)).for_each(|_| mutate(&mut damaged, &mut random, true));
            mutate(&mut stacks, &mut random, true);
            write_spool(&path, &damaged, &stacks);
            judge(round, &mut count, &[], || open_spool(&path));
            continue;
        }
        let mut bytes = whole.clone();
        (0..1 + random.below(3)).for_each(|_| mutate(&mut bytes, &mut random, round % 4 == 1));
        if round % 8 != 1 {
            mend_checksums(&mut bytes);
        }
        std::fs::write(&path, &bytes).expect("write");
        judge(round, &mut count, &bytes, || open_spool(&path));
    }
    eprintln!("{} opened, {} refused", count.opened, count.refused);
    assert!(count.opened > ROUNDS / 2, "the mutations reach the records");
}
