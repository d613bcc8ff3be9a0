//! Damaged spools, most of them with checksums made right again: an error, or a trace that can be walked; no panic.

#[path = "../../holdup-trace/tests/damage/mod.rs"]
mod damage;

use std::path::Path;

use damage::{Count, Namer, Random, judge, mutate, silence, word};
use holdup_spool::records::{Record, kind};
use holdup_spool::{Footer, Header, Side, SpoolWriter, encode_stack};
use holdup_trace::*;

/// Unoptimized code takes milliseconds for each; `cargo test --release` runs them all.
const ROUNDS: u32 = if cfg!(debug_assertions) { 2_400 } else { 15_000 };

fn records() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |t: u64, kind, a: u64, b: u64| bytes.extend(Record { t, kind, a, b }.encode());
    for i in 0..30u64 {
        let t = 2000 + i * 1000;
        put(t, kind::FUTEX, 0x7000 | 9 << 48 | 1 << 56, 2 | 10 << 32);
        put(t, kind::SWITCH, 11 | 10 << 24 | 202 << 48, 1 | 10 << 16);
        put(t + 100, kind::WAKE_KEY, 0x7000, 10 | 0x81 << 32);
        put(t + 100, kind::WAKE_STACK, 0, 78);
        put(t + 100, kind::WAKE, 10 | 11 << 24, 0);
        put(t + 200, kind::SWITCH, 10 | 11 << 24 | 0xffff << 48, 10 << 16);
        put(t + 300, kind::BLOCKED, 11, 77);
        put(t + 400, kind::SAMPLE, 11, 77);
        put(t + 400, kind::MORE, 0x1234 + i, 0);
        put(t + 500, kind::LOCK, 0xffff_8000_0000_0000, 11 | 10 << 24 | 1 << 48 | 1 << 56);
        put(t + 600, kind::BLOCK_IO, 8 | 11 << 40 | 1 << 63, 8 << 20 | 4096 << 32);
        put(t + 700, kind::FORK, 10 | 10 << 32, (13 + i) | 10 << 32);
        put(t + 800, kind::NAME, 13 | 10 << 32, u64::from_le_bytes(*b"new name"));
        put(t + 800, kind::MORE, u64::from_le_bytes(*b" longer\0"), 0);
        put(t + 900, kind::EXIT, 13 + i, 0);
    }
    bytes
}

fn write_spool(path: &Path, records: &[u8], stacks: &[u8]) {
    let _ = std::fs::remove_file(path);
    let mut spool = SpoolWriter::create(path).expect("create");
    let header = Header { start_ns: 1000, cpus: 2, min_wait_ns: 20_000, ..Header::default() };
    spool.header(&header).expect("header");
    let image = Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid: 10, ..Image::default() };
    let side = [
        Side::Name { t: 1000, pid: 10, tid: 11, name: "worker".into() },
        Side::Map { t: 1000, image },
        Side::Exec { t: 1001, pid: 12 },
        Side::Lost { kind: holdup_trace::LossKind::Events, t: 1002, cpu: 1, span: 1, count: 3, what: "records".into() },
    ];
    spool.side(&side).expect("side");
    for (cpu, part) in records.chunks(360).enumerate() {
        spool.records(cpu as u16 % 2, part).expect("records");
        if cpu % 4 == 3 {
            spool.round().expect("round");
        }
    }
    spool.stacks(stacks).expect("stacks");
    spool.round().expect("round");
    spool.footer(&Footer { end_ns: 99_000, exit_code: Some(3), ..Footer::default() }).expect("footer");
}

fn open_spool(path: &Path) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    holdup_spool::read(path, &mut builder)?;
    builder.finish(Some(&mut Namer))
}

/// Makes the checksums of all blocks right whose headers can still be read.
fn mend_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(header) = bytes.get(at..at + 20) {
        let length = word(header, 8, 4);
        let Some(payload) = bytes.get(at + 20..at + 20 + length) else { return };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[..16]);
        crc.update(payload);
        bytes[at + 16..at + 20].copy_from_slice(&crc.finalize().to_le_bytes());
        at += 20 + length;
    }
}

#[test]
fn damaged_spools_are_refused_or_read() {
    silence();
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("small.spool");
    let mut stacks = Vec::new();
    for hash in [77, 78, 79] {
        let stack = RawStack { pid: 10, kernel: vec![0xffff_ffff_8100_0000, hash], ip: 0x1000, ..RawStack::default() };
        encode_stack(&mut stacks, hash, &stack);
    }
    write_spool(&path, &records(), &stacks);
    let whole = std::fs::read(&path).expect("read");
    let mut random = Random(0xd1b5_4a32_d192_ed03);
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
