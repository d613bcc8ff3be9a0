//! Which methods a piece of compiled code consists of: what the machine keeps to find its way back from compiled code to methods.
//!
//! ```text
//!   heap ─▶ segment map ─▶ block ─▶ nmethod ─▶ PcDesc: (where, scope) … ─▶ scope: (caller's scope, method, …) packed
//! ```

use std::sync::Arc;
use std::time::Instant;

use holdup_symbols::{Chain, InlinedCode};
use rustc_hash::FxHashMap;

use super::methods::Methods;
use super::structs::Structs;
use crate::memory::{Memory, half, word};

/// Code heaps of a machine: it has three.
const HEAPS: usize = 8;
/// Largest piece of code that is read, in bytes.
const CODE: usize = 4 << 20;
/// Steps through the segment map to the beginning of a block; each goes back by up to 254 segments.
const STEPS: usize = 4096;
/// Bytes of code that are read at a time, all pieces together.
const ALL_CODE: usize = 64 << 20;
/// Methods inside of each other: the compilers stop before.
const DEPTH: usize = 32;
/// Bytes of a `PcDesc`.
const POINT: usize = 16;
/// The version from which on no byte of a packed number is 0.
const WITHOUT_ZEROS: u32 = 20;

/// Reads the code of one machine.
pub(super) struct Scopes<'a> {
    memory: &'a Memory,
    structs: &'a Structs,
    heaps: Vec<Heap>,
    version: u32,
}

/// A heap of code.
struct Heap {
    low: u64,
    high: u64,
    segments: u64,
    shift: u32,
}

impl<'a> Scopes<'a> {
    pub(super) fn new(memory: &'a Memory, structs: &'a Structs) -> Option<Scopes<'a>> {
        let s = structs;
        let heaps = memory.word(s.heaps?)?;
        let count = half(&memory.read(heaps.checked_add(s.heaps_len?)?, 4)?, 0)? as usize;
        let data = memory.word(heaps.checked_add(s.heaps_data?)?)?;
        let heap = |i: usize| {
            let heap = memory.word(data.checked_add(i as u64 * 8)?)?;
            let at = |space: Option<u64>, edge: Option<u64>| memory.word(heap.checked_add(space?)?.checked_add(edge?)?);
            let shift = half(&memory.read(heap.checked_add(s.heap_shift?)?, 4)?, 0)?;
            let (low, high) = (at(s.heap_memory, s.space_low)?, at(s.heap_memory, s.space_high)?);
            Some(Heap { low, high, segments: at(s.heap_segments, s.space_low)?, shift }).filter(|heap| heap.shift < 32)
        };
        let heaps = (0..count.min(HEAPS)).filter_map(heap).collect();
        let version = half(&memory.read(s.version?, 4)?, 0)?;
        Some(Scopes { memory, structs, heaps, version })
    }

    /// What is known of the code in which `addresses` lie, which are sorted: no more than `most` places, and none after `until`.
    pub(super) fn of(&self, addresses: &[u64], methods: &mut Methods, most: usize, until: Instant) -> Vec<InlinedCode> {
        let mut found: Vec<InlinedCode> = Vec::new();
        let (mut points, mut read) = (0, 0);
        for &address in addresses {
            if found.last().is_some_and(|code| address < code.end) {
                continue;
            }
            if points >= most || read >= ALL_CODE || Instant::now() >= until {
                break;
            }
            let Some((blob, size)) = self.method(address) else { continue };
            read += size;
            if let Some(code) = self.code(blob, size, methods) {
                points += code.points.len();
                found.push(code);
            }
        }
        found
    }

    /// Where the compiled method around `address` lies, with all that is kept with it, and how many bytes that is.
    fn method(&self, address: u64) -> Option<(u64, usize)> {
        let (blob, s) = (self.blob(address)?, self.structs);
        let name = self.memory.word(blob.checked_add(s.blob_name?)?)?;
        if self.memory.name(name)? != b"nmethod" {
            return None;
        }
        let size = half(&self.memory.read(blob.checked_add(s.blob_size?)?, 4)?, 0)? as usize;
        (size <= CODE).then_some((blob, size))
    }

    fn code(&self, blob: u64, size: usize, methods: &mut Methods) -> Option<InlinedCode> {
        let (s, bytes) = (self.structs, self.memory.read(blob, size)?);
        let start = word(&bytes, s.code_begin? as usize)?;
        let end = blob.checked_add(size as u64)?;
        let code = Code { bytes: &bytes, blob, start, version: self.version };
        let points = code.points(s, |method| methods.name(self.memory, s, method))?;
        (blob < start && start < end && !points.is_empty()).then_some(InlinedCode { start, end, points })
    }

    /// Where the block around `address` has its content.
    fn blob(&self, address: u64) -> Option<u64> {
        let heap = self.heaps.iter().find(|heap| (heap.low..heap.high).contains(&address))?;
        let mut segment = (address - heap.low) >> heap.shift;
        for _ in 0..STEPS {
            let back = *self.memory.read(heap.segments.checked_add(segment)?, 1)?.first()?;
            match back {
                0 => return (heap.low + (segment << heap.shift)).checked_add(self.structs.block_size?),
                // Nothing lies there.
                u8::MAX => return None,
                back => segment = segment.checked_sub(u64::from(back))?,
            }
        }
        None
    }
}

/// The copy of a compiled method with all that is kept with it.
struct Code<'a> {
    bytes: &'a [u8],
    blob: u64,
    start: u64,
    version: u32,
}

impl Code<'_> {
    fn points(&self, s: &Structs, mut name: impl FnMut(u64) -> Option<Arc<str>>) -> Option<Vec<(u32, Chain)>> {
        let offset = |field: Option<u64>| half(self.bytes, field? as usize).map(|at| at as usize);
        let scopes = usize::try_from(word(self.bytes, s.scopes_begin? as usize)?.checked_sub(self.blob)?).ok()?;
        let (metadata, from, to) = (offset(s.metadata)?, offset(s.points)?, offset(s.points_end)?);
        let length = self.bytes.len() as u64 - self.start.checked_sub(self.blob)?.min(self.bytes.len() as u64);
        let mut chains: FxHashMap<u32, Option<Chain>> = FxHashMap::default();
        let mut points = Vec::new();
        for point in self.bytes.get(from..to)?.chunks_exact(POINT) {
            let (at, scope) = (half(point, 0)?, half(point, 4)?);
            // The first and the last are marks.
            if u64::from(at) > length || scope == 0 {
                continue;
            }
            let chain = chains.entry(scope).or_insert_with(|| self.chain(scopes, metadata, scope, &mut name));
            points.extend(chain.clone().map(|chain| (at, chain)));
        }
        points.sort_by_key(|(at, _)| *at);
        Some(points)
    }

    /// The methods of a scope and of those that contain it, the innermost first. `None` unless all of them have names.
    fn chain(
        &self,
        scopes: usize,
        metadata: usize,
        mut scope: u32,
        name: &mut impl FnMut(u64) -> Option<Arc<str>>,
    ) -> Option<Chain> {
        let mut chain = Vec::new();
        while scope != 0 && chain.len() < DEPTH {
            let mut packed = self.bytes.get(scopes.checked_add(scope as usize)?..)?.iter().copied();
            let outer = unpack(&mut packed, self.version)?;
            let index = unpack(&mut packed, self.version)?.checked_sub(1)?;
            chain.push(name(word(self.bytes, metadata.checked_add(index as usize * 8)?)?)?);
            // Callers are written first.
            scope = Some(outer).filter(|&outer| outer < scope)?;
        }
        (!chain.is_empty()).then(|| chain.into())
    }
}

/// A number of one to five bytes: each but the last is 192 or more (191 where none is 0).
fn unpack(bytes: &mut impl Iterator<Item = u8>, version: u32) -> Option<u32> {
    let excluded = u32::from(version >= WITHOUT_ZEROS);
    let mut sum = 0_u32;
    for i in 0..5 {
        let byte = u32::from(bytes.next()?).checked_sub(excluded)?;
        sum = sum.wrapping_add(byte.wrapping_shl(6 * i));
        if byte < 192 - excluded {
            break;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unpacked() {
        let read = |bytes: &[u8], version| unpack(&mut bytes.iter().copied(), version);
        assert_eq!([read(&[0], 17), read(&[191], 17), read(&[192, 0], 17)], [Some(0), Some(191), Some(192)]);
        assert_eq!(read(&[192, 1, 99], 17), Some(192 + 64));
        assert_eq!(read(&[255, 255, 255, 255, 255], 17), Some((0..5).map(|i| 255_u64 << (6 * i)).sum::<u64>() as u32));
        assert_eq!([read(&[1], 21), read(&[191], 21), read(&[192, 1], 21)], [Some(0), Some(190), Some(191)]);
        assert_eq!((read(&[], 17), read(&[200], 17), read(&[0], 21)), (None, None, None));
    }

    #[test]
    fn scopes_lead_to_their_callers() {
        // Metadata at 0: two methods. Scopes at 16: of the outer one at 1, of the inner one at 3.
        let mut bytes = Vec::new();
        bytes.extend([0x1000_u64, 0x2000].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([9, 0, 1, 1, 2]);
        let code = Code { bytes: &bytes, blob: 0, start: 0, version: 17 };
        let mut name = |method: u64| Some(Arc::from(format!("{method:x}")));
        let all = |chain: Option<Chain>| chain.map(|chain| chain.join(" "));
        assert_eq!(all(code.chain(16, 0, 3, &mut name)).as_deref(), Some("2000 1000"));
        assert_eq!(all(code.chain(16, 0, 1, &mut name)).as_deref(), Some("1000"));
        assert_eq!(all(code.chain(16, 0, 40, &mut name)), None);
        // One that is its own caller.
        bytes[19] = 3;
        let code = Code { bytes: &bytes, blob: 0, start: 0, version: 17 };
        assert_eq!(all(code.chain(16, 0, 3, &mut name)), None);
        assert_eq!(all(code.chain(16, 0, 3, &mut |_| None)), None);
    }
}
