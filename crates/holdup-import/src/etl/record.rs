//! Records of a buffer: six kinds of headers, aligned to 8 bytes.

use crate::bytes::{u16_at, u32_at, u64_at};

/// `TRACE_HEADER_TYPE_…`: the third byte of a record.
mod header {
    pub const SYSTEM_32: u8 = 0x01;
    pub const SYSTEM_64: u8 = 0x02;
    pub const COMPACT_32: u8 = 0x03;
    pub const COMPACT_64: u8 = 0x04;
    pub const FULL_32: u8 = 0x0a;
    pub const PERFINFO_32: u8 = 0x10;
    pub const PERFINFO_64: u8 = 0x11;
    pub const EVENT_32: u8 = 0x12;
    pub const EVENT_64: u8 = 0x13;
    pub const FULL_64: u8 = 0x14;
    /// Types that other headers have, which are skipped: instances, timed, error, WNODE, messages.
    pub const SKIPPED: [u8; 6] = [0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x15];
}

/// A GUID as it lies in the file.
pub type Guid = [u8; 16];

/// Whose record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The kernel's, by its hook: group and type.
    Hook(u16),
    /// A provider's of the old kind, by opcode.
    Classic(Guid, u8),
    /// A provider's with a manifest, by event id.
    Event(Guid, u16),
    /// A header that is not read further.
    Other(u8),
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Whose it is.
    pub source: Source,
    /// Version of its layout.
    pub version: u16,
    /// Whether pointers have 64 bits.
    pub wide: bool,
    /// The thread that logged it, where the header tells.
    pub tid: Option<u32>,
    /// When, in ticks of the log's clock; `None` where the header is not read.
    pub time: Option<u64>,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The next record of `bytes` at `at`, and how long it is; `Ok(None)` at the end, `Err` if it is none.
#[inline]
pub fn next(bytes: &[u8], at: usize) -> Result<Option<(Record<'_>, usize)>, Damaged> {
    let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 8) else { return Ok(None) };
    match rest {
        // What was reserved and never written.
        [0xff, 0xff, 0xff, 0xff, ..] | [0, 0, 0, 0, ..] => Ok(None),
        [_, _, kind, flags, ..] if flags & 0x80 != 0 => match parse(rest, *kind) {
            Some((record, size)) => Ok(Some((record, size.next_multiple_of(8)))),
            None => Err(Damaged),
        },
        _ => Err(Damaged),
    }
}

/// What stands there is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

#[inline]
fn parse(rest: &[u8], kind: u8) -> Option<(Record<'_>, usize)> {
    match kind {
        header::PERFINFO_32 | header::PERFINFO_64 => kernel(rest, 16, 8, kind == header::PERFINFO_64),
        header::SYSTEM_32 | header::SYSTEM_64 => kernel(rest, 32, 16, kind == header::SYSTEM_64),
        header::COMPACT_32 | header::COMPACT_64 => kernel(rest, 24, 16, kind == header::COMPACT_64),
        header::EVENT_32 | header::EVENT_64 => {
            let (guid, id) = (guid(rest)?, u16_at(rest, 40)?);
            provider(rest, 80, Source::Event(guid, id), u16::from(*rest.get(42)?), kind == header::EVENT_64)
        }
        header::FULL_32 | header::FULL_64 => {
            let source = Source::Classic(guid(rest)?, *rest.get(4)?);
            provider(rest, 48, source, u16_at(rest, 6)?, kind == header::FULL_64)
        }
        other if header::SKIPPED.contains(&other) => {
            let size = usize::from(u16_at(rest, 0)?);
            let body = rest.get(8..size)?;
            let source = Source::Other(other);
            Some((Record { source, version: 0, wide: true, tid: None, time: None, body }, size))
        }
        _ => None,
    }
}

/// The kernel's own: a version first, then size and hook.
#[inline]
fn kernel(rest: &[u8], header: usize, time: usize, wide: bool) -> Option<(Record<'_>, usize)> {
    let size = usize::from(u16_at(rest, 4)?);
    let source = Source::Hook(u16_at(rest, 6)?);
    let tid = if header > 16 { u32_at(rest, 8) } else { None };
    let body = rest.get(header..size)?;
    Some((Record { source, version: u16_at(rest, 0)?, wide, tid, time: u64_at(rest, time), body }, size))
}

/// A provider's: the size first.
fn provider(rest: &[u8], header: usize, source: Source, version: u16, wide: bool) -> Option<(Record<'_>, usize)> {
    let size = usize::from(u16_at(rest, 0)?);
    let body = rest.get(header..size)?;
    Some((Record { source, version, wide, tid: u32_at(rest, 8), time: u64_at(rest, 16), body }, size))
}

fn guid(rest: &[u8]) -> Option<Guid> {
    rest.get(24..40)?.try_into().ok()
}

/// A GUID as it is spelled, in small letters.
pub fn spell(guid: &Guid) -> String {
    let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
    let (one, two) = rest.split_at(2);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let parts = [&[*d, *c, *b, *a][..], &[*f, *e], &[*h, *g], one, two];
    parts.map(hex).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CSwitch of the file win7-8cpu-slow-ppt.etl.
    fn switch() -> Vec<u8> {
        let mut bytes = vec![2, 0, 0x11, 0xc0, 40, 0, 0x24, 0x05];
        bytes.extend_from_slice(&77_u64.to_le_bytes());
        bytes.resize(40, 9);
        bytes
    }

    #[test]
    fn a_kernel_record() {
        let bytes = switch();
        let (record, size) = next(&bytes, 0).unwrap().unwrap();
        assert_eq!((record.source, record.version, record.time, size), (Source::Hook(0x524), 2, Some(77), 40));
        assert_eq!((record.body.len(), record.wide, record.tid), (24, true, None));
        assert!(next(&bytes, 40).unwrap().is_none());
    }

    #[test]
    fn lengths_are_not_believed() {
        for size in [0, 8, 15, 41, u16::MAX] {
            let mut bytes = switch();
            bytes[4..6].copy_from_slice(&size.to_le_bytes());
            assert!(next(&bytes, 0).is_err(), "{size}");
        }
        let mut bytes = switch();
        bytes[3] = 0;
        assert!(next(&bytes, 0).is_err(), "no record's mark");
        assert!(next(&[0xff; 64], 0).unwrap().is_none(), "reserved and never written");
    }

    #[test]
    fn a_guid_is_spelled() {
        let guid = [0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde];
        assert_eq!(spell(&guid), "b3e675d7-2554-4f18-830b-2762732560de");
    }
}
