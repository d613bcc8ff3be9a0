//! `HEADER_TRACING_DATA`: the formats of all tracepoints, as trace-cmd writes them.

use rustc_hash::FxHashMap;

use super::format::Format;
use crate::bytes::{Cursor, text};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The tracepoints' formats by id.
pub type Formats = FxHashMap<u64, Format>;

/// Reads the section; what comes before damage is kept. `None` if it is none at all.
pub fn parse(section: &[u8]) -> Option<Formats> {
    let mut c = Cursor::new(section.strip_prefix(MAGIC)?);
    let mut formats = Formats::default();
    read(&mut c, &mut formats);
    Some(formats)
}

fn read(c: &mut Cursor, formats: &mut Formats) -> Option<()> {
    c.c_string()?; // version
    c.u8()?; // big endian
    c.u8()?; // size of long
    c.u32()?; // page size
    for _ in ["header_page", "header_event"] {
        c.c_string()?;
        let size = c.u64()?;
        c.take(size)?;
    }
    for _ in 0..c.u32()? {
        read_format(c, "ftrace", formats)?;
    }
    for _ in 0..c.u32()? {
        let system = text(c.c_string()?);
        for _ in 0..c.u32()? {
            read_format(c, &system, formats)?;
        }
    }
    Some(())
}

fn read_format(c: &mut Cursor, system: &str, formats: &mut Formats) -> Option<()> {
    let size = c.u64()?;
    let text = String::from_utf8_lossy(c.take(size)?);
    if let Some(format) = Format::parse(system, &text) {
        formats.insert(format.id, format);
    }
    Some(())
}
