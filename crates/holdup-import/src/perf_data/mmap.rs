//! MMAP and MMAP2: which files' code lies where.

use holdup_trace::{Image, MapEvent};
use rustc_hash::FxHashMap;

use crate::bytes::{text, u32_at, u64_at};
use crate::linux::Instant;
use crate::linux::sink::Sink;

/// `PERF_RECORD_MISC_MMAP_DATA`: not executable.
const DATA: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;
/// The pid that perf gives to the kernel and its modules.
const KERNEL: u32 = u32::MAX;

type BuildIds = FxHashMap<String, Vec<u8>>;

/// `PERF_RECORD_MMAP`.
pub fn mmap(body: &[u8], misc: u16, stamp: Instant, known: &BuildIds, sink: &mut Sink) -> Option<()> {
    if misc & DATA != 0 {
        return Some(());
    }
    add(body, text(body.get(32..)?), None, stamp, known, sink)
}

/// `PERF_RECORD_MMAP2`.
pub fn mmap2(body: &[u8], misc: u16, stamp: Instant, known: &BuildIds, sink: &mut Sink) -> Option<()> {
    let protection = u32_at(body, 56)?;
    if misc & DATA != 0 || protection & PROT_EXEC == 0 {
        return Some(());
    }
    let id = body.get(32..56)?;
    let build_id = (misc & BUILD_ID != 0).then(|| id[4..4 + usize::from(id[0]).min(20)].to_vec());
    add(body, text(body.get(64..)?), build_id, stamp, known, sink)
}

fn add(
    body: &[u8],
    path: String,
    build_id: Option<Vec<u8>>,
    stamp: Instant,
    known: &BuildIds,
    sink: &mut Sink,
) -> Option<()> {
    let (start, len, file_offset) = (u64_at(body, 8)?, u64_at(body, 16)?, u64_at(body, 24)?);
    let pid = u32_at(body, 0).map(|pid| if pid == KERNEL { 0 } else { pid })?;
    if path.starts_with("[guest.") {
        return Some(());
    }
    let kernel = path.starts_with("[kernel.kallsyms]");
    let build_id = build_id.or_else(|| known.get(if kernel { "[kernel.kallsyms]" } else { &path }).cloned());
    let path = if kernel { "[kernel]".to_owned() } else { path };
    let image = Image { start, end: start.saturating_add(len), file_offset, path, build_id, pid };
    let image = sink.builder.image(image);
    sink.maybe_timed(stamp.time, MapEvent { pid, image });
    Some(())
}
