//! Version 7: sections anywhere in the file, found through options, packed with zstd or zlib, or not.

use super::description::{Buffer, CpuData, Description, PageLayout};
use super::file::{Damage, File, Head, expect, text_of};
use super::functions::Functions;
use super::options::{self, number};
use crate::bytes::{Cursor, u16_at, u64_at};
use crate::linux::cpus::MAX_CPUS;
use crate::unpack::{self, Packing};

/// Bit of a section's flags: its content is packed.
const PACKED: u16 = 1;
/// So many lists of options are not followed: a file of one recording has a handful.
const MOST_LISTS: usize = 4096;

/// Reads all descriptions.
pub fn read(file: &mut File, head: &Head) -> Result<Description, Damage> {
    let at = file.at();
    let name = file.c_string()?;
    file.c_string()?;
    let packing = match name.as_str() {
        "none" | "" => None,
        "zstd" => Some(Packing::Zstd),
        "zlib" => Some(Packing::Zlib),
        _ => return Err(Damage { at, what: format!("it is packed with `{name}`, which holdup does not know") }),
    };
    let d = Description { packing, ..Description::new(head.long) };
    let mut reader = Reader { file, d, page_size: head.page_size };
    let mut next = reader.file.u64()?;
    for _ in 0..MOST_LISTS {
        if next == 0 {
            break;
        }
        next = reader.list(next)?;
    }
    reader.d.cpus = reader.d.cpus.max(reader.d.buffers.iter().map(|b| b.cpus.len() as u32).max().unwrap_or(0));
    Ok(reader.d)
}

struct Reader<'f> {
    file: &'f mut File,
    d: Description,
    page_size: u32,
}

impl Reader<'_> {
    /// Reads the options at `at`, and says where the next list is; 0 for nowhere.
    fn list(&mut self, at: u64) -> Result<u64, Damage> {
        let bytes = self.section(at, number::DONE)?;
        let mut c = Cursor::new(&bytes);
        let mut one = || {
            let id = u16_at(c.take(2)?, 0)?;
            let size = c.u32()?;
            Some((id, c.take(size.into())?))
        };
        loop {
            match expect(one(), at, "a list of options")? {
                (number::DONE, next) => return Ok(u64_at(next, 0).unwrap_or(0)),
                (id, option) => self.option(at, id, option)?,
            }
        }
    }

    fn option(&mut self, at: u64, id: u16, bytes: &[u8]) -> Result<(), Damage> {
        let place = || expect(u64_at(bytes, 0), at, "a section's place");
        match id {
            number::HEADER_INFO | number::FTRACE_EVENTS | number::EVENT_FORMATS => {
                let place = place()?;
                let section = self.section(place, id)?;
                expect(self.describe(id, &section), place, "a description")
            }
            number::KALLSYMS => {
                let place = place()?;
                let section = self.section(place, id)?;
                self.d.functions = Functions::parse(section.get(4..).unwrap_or(&[]));
                Ok(())
            }
            number::CMDLINES => {
                let place = place()?;
                let section = self.section(place, id)?;
                let size = u64_at(&section, 0).unwrap_or(0);
                self.d.add_names(Cursor::new(section.get(8..).unwrap_or(&[])).take(size).unwrap_or(&[]));
                Ok(())
            }
            number::BUFFER => self.buffer(at, bytes),
            _ => {
                options::add(&mut self.d, id, bytes);
                Ok(())
            }
        }
    }

    fn describe(&mut self, id: u16, section: &[u8]) -> Option<()> {
        let c = &mut Cursor::new(section);
        let formats = |c: &mut Cursor, system: &str, d: &mut Description| -> Option<()> {
            for _ in 0..c.u32()? {
                let size = c.u64()?;
                d.add_format(system, c.take(size)?);
            }
            Some(())
        };
        match id {
            number::HEADER_INFO => {
                c.c_string()?;
                let size = c.u64()?;
                self.d.page = PageLayout::parse(&text_of(c, size)?, self.d.long);
            }
            number::FTRACE_EVENTS => formats(c, "ftrace", &mut self.d)?,
            _ => {
                for _ in 0..c.u32()? {
                    let system = crate::bytes::text(c.c_string()?);
                    formats(c, &system, &mut self.d)?;
                }
            }
        }
        Some(())
    }

    fn buffer(&mut self, at: u64, bytes: &[u8]) -> Result<(), Damage> {
        let parse = || {
            let c = &mut Cursor::new(bytes);
            let (offset, name, clock) = (c.u64()?, c.c_string()?, c.c_string()?);
            let (page_size, count) = (c.u32()?, c.u32()?);
            let (name, clock) = (crate::bytes::text(name), crate::bytes::text(clock));
            let one = |c: &mut Cursor| Some(CpuData { cpu: c.u32()?, offset: c.u64()?, size: c.u64()? });
            let cpus: Option<Vec<_>> = (0..count.min(MAX_CPUS.into())).map(|_| one(c)).collect();
            let cpus = cpus?.into_iter().filter(|p| p.size > 0).collect();
            Some((offset, Buffer { name, clock, cpus, packed: false, page_size }))
        };
        let (offset, mut buffer) = expect(parse(), at, "a buffer's description")?;
        if buffer.page_size == 0 {
            buffer.page_size = self.page_size;
        }
        let (flags, _) = self.section_head(offset, number::BUFFER)?;
        buffer.packed = flags & PACKED != 0;
        self.d.buffers.push(buffer);
        Ok(())
    }

    /// Flags and size of the section at `at`.
    fn section_head(&mut self, at: u64, expected: u16) -> Result<(u16, u64), Damage> {
        self.file.jump(at)?;
        let [id, flags] = [u16::from_le_bytes(self.file.array()?), u16::from_le_bytes(self.file.array()?)];
        self.file.u32()?;
        let size = self.file.u64()?;
        if id != expected {
            return Err(Damage { at, what: format!("expected section {expected}, found {id}") });
        }
        Ok((flags, size))
    }

    /// The content of the section at `at`.
    fn section(&mut self, at: u64, id: u16) -> Result<Vec<u8>, Damage> {
        let (flags, size) = self.section_head(at, id)?;
        if flags & PACKED == 0 {
            return self.file.take(size);
        }
        let (packed, plain) = (self.file.u32()?, self.file.u32()?);
        let bytes = self.file.take(packed.into())?;
        unpack::whole(self.d.packing, &bytes, plain).map_err(|what| Damage { at, what })
    }
}
