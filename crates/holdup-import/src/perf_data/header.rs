//! The file's beginning: where its sections are.

use std::io::{self, Read, Seek, SeekFrom};

use super::attr::{self, Attr};
use crate::bytes::{Cursor, u64_at};

/// First bytes of a perf.data of either kind.
pub const MAGIC: &[u8] = b"PERFILE2";
/// The same, written on a machine of the other byte order.
pub const MAGIC_SWAPPED: &[u8] = b"2ELIFREP";
/// Before 2010.
pub const MAGIC_OLD: &[u8] = b"PERFFILE";
/// The size that a pipe's header tells.
pub const PIPE_HEADER: u64 = 16;

/// More events than this is damage.
const MAX_ATTRS: u64 = 1 << 16;
/// A section that has to be held in memory is not larger than this.
const MAX_SECTION: u64 = 256 << 20;

/// A part of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Section {
    /// Its first byte.
    pub offset: u64,
    /// Its length.
    pub size: u64,
}

/// The header of a perf.data in file mode.
#[derive(Debug, Clone, Default)]
pub struct Header {
    attr_size: u64,
    attrs: Section,
    /// The records.
    pub data: Section,
    features: [u64; 4],
}

impl Header {
    /// From the file's first bytes; `None` if they are too few.
    pub fn parse(head: &[u8]) -> Option<Self> {
        let mut c = Cursor::new(head.get(16..)?);
        let section = |c: &mut Cursor| Some(Section { offset: c.u64()?, size: c.u64()? });
        let attr_size = c.u64()?;
        let (attrs, data) = (section(&mut c)?, section(&mut c)?);
        section(&mut c)?; // event types, long gone
        let mut features = [0; 4];
        // The oldest files end before these.
        if u64_at(head, 8)? >= 104 {
            for word in &mut features {
                *word = c.u64()?;
            }
        }
        Some(Header { attr_size, attrs, data, features })
    }

    /// The events with their ids. The error is a sentence.
    pub fn read_attrs(&self, file: &mut (impl Read + Seek + ?Sized)) -> Result<Vec<(Attr, Vec<u64>)>, String> {
        let least = attr::MIN_SIZE as u64 + 16;
        if self.attr_size < least || self.attrs.size / self.attr_size > MAX_ATTRS {
            let (size, all) = (self.attr_size, self.attrs.size);
            return Err(format!(
                "event descriptions of {size} bytes each in {all} bytes, at least {least} each expected"
            ));
        }
        let table = read_section(file, self.attrs)?;
        let mut attrs = Vec::new();
        for entry in table.chunks_exact(self.attr_size as usize) {
            let (description, ids) = entry.split_at(entry.len() - 16);
            let Some(attr) = Attr::parse(description) else { continue };
            let ids = Section { offset: u64_at(ids, 0).unwrap_or(0), size: u64_at(ids, 8).unwrap_or(0) };
            let ids = if ids.size == 0 { Vec::new() } else { read_section(file, ids)? };
            let ids = ids.chunks_exact(8).filter_map(|id| u64_at(id, 0)).collect();
            attrs.push((attr, ids));
        }
        if attrs.is_empty() { Err("no event is described".to_owned()) } else { Ok(attrs) }
    }

    /// The feature sections: number and place.
    pub fn feature_sections(&self, file: &mut (impl Read + Seek + ?Sized)) -> Result<Vec<(u64, Section)>, String> {
        let numbers = (0..256_u64).filter(|n| self.features[*n as usize / 64] >> (n % 64) & 1 == 1);
        let numbers: Vec<u64> = numbers.collect();
        let table =
            Section { offset: self.data.offset.saturating_add(self.data.size), size: numbers.len() as u64 * 16 };
        let table = read_section(file, table)?;
        let place = |at| Some(Section { offset: u64_at(&table, at)?, size: u64_at(&table, at + 8)? });
        Ok(numbers.into_iter().enumerate().filter_map(|(i, n)| Some((n, place(i * 16)?))).collect())
    }
}

/// The bytes of a section. Never allocates more than the file holds. The error is a sentence.
pub fn read_section(file: &mut (impl Read + Seek + ?Sized), section: Section) -> Result<Vec<u8>, String> {
    let Section { offset, size } = section;
    let failed = |e: io::Error| format!("a section of {size} bytes at byte {offset} cannot be read: {e}");
    if size > MAX_SECTION {
        return Err(format!("a section at byte {offset} claims {size} bytes; the file is damaged"));
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    file.take(size).read_to_end(&mut bytes).map_err(failed)?;
    if (bytes.len() as u64) < size {
        return Err(format!("a section of {size} bytes at byte {offset} reaches beyond the file's end"));
    }
    Ok(bytes)
}
