//! Spools by hand, so that they can be damaged.

use std::path::Path;

use holdup_spool::records::{Record, kind};
use holdup_spool::{Footer, Header, Side, SpoolWriter, encode_stack};
use holdup_trace::{Image, LossKind, RawStack};

/// What the programs in the kernel tell of two threads that wake each other, with a record of every kind.
pub fn records() -> Vec<u8> {
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

/// Three stacks, with the hashes that [`records`] names.
pub fn stacks() -> Vec<u8> {
    let mut stacks = Vec::new();
    for hash in [77, 78, 79] {
        let stack = RawStack { pid: 10, kernel: vec![0xffff_ffff_8100_0000, hash], ip: 0x1000, ..RawStack::default() };
        encode_stack(&mut stacks, hash, &stack);
    }
    stacks
}

/// A whole spool of them.
pub fn write_spool(path: &Path, records: &[u8], stacks: &[u8]) {
    let _ = std::fs::remove_file(path);
    let mut spool = SpoolWriter::create(path).expect("create");
    let header = Header { start_ns: 1000, cpus: 2, min_wait_ns: 20_000, ..Header::default() };
    spool.header(&header).expect("header");
    let image = Image { start: 0x1000, end: 0x2000, path: "/bin/x".into(), pid: 10, ..Image::default() };
    let side = [
        Side::Name { t: 1000, pid: 10, tid: 11, name: "worker".into() },
        Side::Map { t: 1000, image },
        Side::Exec { t: 1001, pid: 12 },
        Side::Lost { kind: LossKind::Events, t: 1002, cpu: 1, span: 1, count: 3, what: "records".into() },
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

/// Makes the checksums of all blocks right whose headers can still be read.
pub fn mend_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(header) = bytes.get(at..at + 20) {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some(payload) = bytes.get(at + 20..at + 20 + length) else { return };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[..16]);
        crc.update(payload);
        bytes[at + 16..at + 20].copy_from_slice(&crc.finalize().to_le_bytes());
        at += 20 + length;
    }
}
