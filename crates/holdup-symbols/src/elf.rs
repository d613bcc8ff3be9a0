//! The little of an ELF file that naming and unwinding need: segments, sections, build id.
//!
//! Only headers are read when a file is opened; sections are read (and decompressed) one by one when somebody
//! asks. Every offset and size is checked against the file, and against what the file's [`Meter`] has left, before
//! anything is allocated, so that a damaged file yields `None`, never a panic or a huge allocation. A file can be as
//! large as it likes without using disk: its size alone justifies nothing.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bytes::{c_string, u16_at, u32_at, u64_at};
use crate::files::open_regular;
use crate::meter::Meter;
use crate::unpack::decompress;
use holdup_disasm::Arch;

/// Files larger than this are left alone.
const FILE_LIMIT: u64 = 4 << 30;
/// Programs have a dozen loadable segments and a few dozen sections; what is beyond these numbers is not looked at.
const SEGMENTS: usize = 256;
const SECTIONS: usize = 4096;
/// Longest name of a section, in bytes: no name that is looked for is longer.
const SECTION_NAME: usize = 64;
/// Largest section of names that is read.
const SECTION_NAMES: u64 = 1 << 20;
/// Notes that are looked through for the build id, and the longest build id.
const NOTES: usize = 16;
const BUILD_ID: u32 = 64;

const ET_REL: u16 = 1;
const PT_LOAD: u32 = 1;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHF_EXECINSTR: u64 = 4;
const SHF_COMPRESSED: u64 = 0x800;
const NT_GNU_BUILD_ID: u32 = 3;

/// A loadable segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub offset: u64,
    pub vaddr: u64,
    pub file_size: u64,
    pub executable: bool,
}

/// A section's header.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub name: String,
    pub kind: u32,
    pub addr: u64,
    pub offset: u64,
    pub size: u64,
    pub executable: bool,
    align: u64,
    compressed: bool,
}

/// Where the bytes come from.
#[derive(Debug)]
enum Source {
    File { path: PathBuf, inode: (u64, u64), len: u64 },
    Bytes(Vec<u8>),
}

/// An ELF file's headers, and access to its sections.
#[derive(Debug)]
pub(crate) struct Elf {
    source: Source,
    pub is_64: bool,
    /// Whether it is not linked, like the kernel's modules. Its sections have the addresses that they get when it is loaded.
    pub relocatable: bool,
    /// `None` for machines whose code this crate neither unwinds nor disassembles.
    pub arch: Option<Arch>,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    pub build_id: Option<Vec<u8>>,
    meter: Arc<Meter>,
}

impl Elf {
    /// Opens a file; the error is a sentence without the path.
    pub fn open(path: &Path, meter: &Arc<Meter>) -> Result<Elf, String> {
        let (file, meta) = open_regular(path, true).map_err(|e| e.to_string())?;
        drop(file);
        if meta.len() > FILE_LIMIT {
            return Err(format!("has {} bytes, more than the {FILE_LIMIT} that are read", meta.len()));
        }
        let (inode, len) = ((meta.dev(), meta.ino()), meta.len());
        Elf::parse(Source::File { path: path.to_owned(), inode, len }, meter)
    }

    /// Takes an ELF image that is in memory.
    pub fn from_bytes(bytes: Vec<u8>, meter: &Arc<Meter>) -> Result<Elf, String> {
        Elf::parse(Source::Bytes(bytes), meter)
    }

    fn parse(source: Source, meter: &Arc<Meter>) -> Result<Elf, String> {
        let reader = source.reader().ok_or("cannot be opened")?;
        let header = reader.read(0, 64.min(reader.len())).ok_or("cannot be read")?;
        if header.get(..4) != Some(b"\x7fELF") {
            return Err("is not an ELF file".into());
        }
        if header.get(5) != Some(&1) {
            return Err("is a big-endian ELF file, which is not supported".into());
        }
        let is_64 = header.get(4) == Some(&2);
        let arch = match u16_at(&header, 18) {
            Some(62) if is_64 => Some(Arch::X86_64),
            Some(183) if is_64 => Some(Arch::Aarch64),
            _ => None,
        };
        let segments = read_segments(&reader, &header, is_64).unwrap_or_default();
        let mut sections = read_sections(&reader, &header, is_64).unwrap_or_default();
        let relocatable = u16_at(&header, 16) == Some(ET_REL);
        if relocatable {
            lay_out(&mut sections);
        }
        if segments.is_empty() && sections.is_empty() {
            return Err("is damaged: neither segments nor sections can be read".into());
        }
        drop(reader);
        let held = segments.len() * size_of::<Segment>() + sections.len() * (size_of::<Section>() + SECTION_NAME);
        if !meter.hold(held as u64) {
            return Err("is left out: too much was read already".into());
        }
        let mut elf =
            Elf { source, is_64, relocatable, arch, segments, sections, build_id: None, meter: meter.clone() };
        elf.build_id = elf.find_build_id();
        Ok(elf)
    }

    /// The section's header.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// The section's bytes, decompressed.
    pub fn data(&self, name: &str) -> Option<Vec<u8>> {
        self.section(name).and_then(|s| self.section_data(s))
    }

    /// The section's bytes, decompressed, ready for sharing; they count as kept.
    pub fn shared(&self, name: &str) -> Option<Arc<[u8]>> {
        self.data(name).filter(|d| !d.is_empty() && self.meter.hold(d.len() as u64)).map(Arc::from)
    }

    /// What this file may cost.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    pub fn section_data(&self, section: &Section) -> Option<Vec<u8>> {
        if section.kind == SHT_NOBITS || !self.meter.fits(section.size) || !self.meter.tick() {
            return None;
        }
        let bytes = self.source.reader()?.read(section.offset, section.size)?;
        if !section.compressed {
            return Some(bytes);
        }
        let left = self.meter.memory_left().saturating_sub(section.size);
        let unpacked = decompress(&bytes, self.is_64, left);
        // A size that does not fit is told apart from damage: it is counted.
        let claimed = if self.is_64 { u64_at(&bytes, 8) } else { u32_at(&bytes, 4).map(u64::from) };
        if unpacked.is_none() && claimed.is_some_and(|size| size > left) {
            self.meter.fits(u64::MAX);
        }
        unpacked
    }

    /// Bytes of code at `vaddr`, fewer than `len` if the segment ends.
    pub fn code(&self, vaddr: u64, len: u64) -> Option<Vec<u8>> {
        let s = self.segments.iter().find(|s| vaddr >= s.vaddr && vaddr - s.vaddr < s.file_size)?;
        let at = vaddr - s.vaddr;
        self.source.reader()?.read(s.offset.checked_add(at)?, len.min(s.file_size - at))
    }

    /// The address that the byte at `offset` of the file has in the file's own terms.
    pub fn vaddr(&self, offset: u64) -> Option<u64> {
        let inside = |s: &&Segment| offset >= s.offset && offset - s.offset < s.file_size;
        let exact = self.segments.iter().find(|s| s.executable && inside(s));
        let exact = exact.or_else(|| self.segments.iter().find(inside));
        // A mapping begins at a page, which can lie before the segment's first byte.
        let page = |s: &&Segment| s.executable && offset >= s.offset & !0xfff && offset < s.offset;
        let found = exact.or_else(|| self.segments.iter().find(page))?;
        Some(found.vaddr.wrapping_add(offset.wrapping_sub(found.offset)))
    }

    fn find_build_id(&self) -> Option<Vec<u8>> {
        let notes = self.sections.iter().filter(|s| s.kind == SHT_NOTE && s.size < 1 << 16);
        notes.take(NOTES).filter_map(|s| self.section_data(s)).find_map(|data| build_id_in(&data))
    }

    /// File name and checksum in `.gnu_debuglink`.
    pub fn debug_link(&self) -> Option<(String, u32)> {
        let data = self.data(".gnu_debuglink")?;
        let end = data.iter().position(|&b| b == 0)?;
        let crc = u32_at(&data, (end + 4) & !3)?;
        Some((String::from_utf8(data[..end].to_vec()).ok()?, crc))
    }

    /// File name and build id in `.gnu_debugaltlink`: where `dwz` put what several files have in common.
    pub fn alt_link(&self) -> Option<(String, Vec<u8>)> {
        let data = self.data(".gnu_debugaltlink")?;
        let end = data.iter().position(|&b| b == 0)?;
        Some((String::from_utf8(data[..end].to_vec()).ok()?, data[end + 1..].to_vec()))
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::File { path, .. } => Some(path),
            Source::Bytes(_) => None,
        }
    }
}

/// An open source. Files are opened again for each use: hundreds of them must not eat up the file descriptors.
enum Reader<'a> {
    File(File, u64),
    Bytes(&'a [u8]),
}

impl Source {
    fn reader(&self) -> Option<Reader<'_>> {
        match self {
            Source::Bytes(bytes) => Some(Reader::Bytes(bytes)),
            Source::File { path, inode, len } => {
                let (file, meta) = open_regular(path, true).ok()?;
                // Somebody may have put another file in its place since its headers were read.
                ((meta.dev(), meta.ino()) == *inode && meta.len() == *len).then_some(Reader::File(file, *len))
            }
        }
    }
}

impl Reader<'_> {
    fn len(&self) -> u64 {
        match self {
            Reader::File(_, len) => *len,
            Reader::Bytes(bytes) => bytes.len() as u64,
        }
    }

    fn read(&self, offset: u64, size: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(size).filter(|&end| end <= self.len())?;
        match self {
            Reader::Bytes(bytes) => Some(bytes[offset as usize..end as usize].to_vec()),
            Reader::File(file, _) => {
                let mut bytes = vec![0; size as usize];
                file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
            }
        }
    }
}

fn read_segments(reader: &Reader, header: &[u8], is_64: bool) -> Option<Vec<Segment>> {
    let (table, entry, count) = if is_64 {
        (u64_at(header, 32)?, u16_at(header, 54)?, u16_at(header, 56)?)
    } else {
        (u64::from(u32_at(header, 28)?), u16_at(header, 42)?, u16_at(header, 44)?)
    };
    let entry = usize::from(entry);
    if entry != if is_64 { 56 } else { 32 } {
        return None;
    }
    let bytes = reader.read(table, entry as u64 * u64::from(count))?;
    let segment = |h: &[u8]| -> Option<Segment> {
        if u32_at(h, 0)? != PT_LOAD {
            return None;
        }
        let word = |at| u32_at(h, at).map(u64::from);
        let (flags, offset, vaddr, file_size) = if is_64 {
            (u32_at(h, 4)?, u64_at(h, 8)?, u64_at(h, 16)?, u64_at(h, 32)?)
        } else {
            (u32_at(h, 24)?, word(4)?, word(8)?, word(16)?)
        };
        Some(Segment { offset, vaddr, file_size, executable: flags & 1 != 0 })
    };
    Some(bytes.chunks_exact(entry).filter_map(segment).take(SEGMENTS).collect())
}

fn read_sections(reader: &Reader, header: &[u8], is_64: bool) -> Option<Vec<Section>> {
    let (table, entry, count, names) = if is_64 {
        (u64_at(header, 40)?, u16_at(header, 58)?, u16_at(header, 60)?, u16_at(header, 62)?)
    } else {
        (u64::from(u32_at(header, 32)?), u16_at(header, 46)?, u16_at(header, 48)?, u16_at(header, 50)?)
    };
    let entry = usize::from(entry);
    if entry != if is_64 { 64 } else { 40 } {
        return None;
    }
    let bytes = reader.read(table, entry as u64 * u64::from(count))?;
    let header = |index: usize| read_section(bytes.get(index * entry..(index + 1) * entry)?, is_64);
    let headers: Vec<_> = (0..usize::from(count).min(SECTIONS)).map_while(header).collect();
    let names = header(usize::from(names)).filter(|(_, s)| s.size < SECTION_NAMES);
    let names = names.and_then(|(_, s)| reader.read(s.offset, s.size)).unwrap_or_default();
    let named = headers.into_iter().map(|(name, mut section)| {
        section.name = String::from_utf8_lossy(c_string(&names, name as usize, SECTION_NAME)).into_owned();
        section
    });
    Some(named.collect())
}

/// Offset of the name, and the section without it.
fn read_section(h: &[u8], is_64: bool) -> Option<(u32, Section)> {
    let word = |at| u32_at(h, at).map(u64::from);
    let (flags, addr, offset, size, align) = if is_64 {
        (u64_at(h, 8)?, u64_at(h, 16)?, u64_at(h, 24)?, u64_at(h, 32)?, u64_at(h, 48)?)
    } else {
        (word(8)?, word(12)?, word(16)?, word(20)?, word(32)?)
    };
    let executable = flags & SHF_EXECINSTR != 0;
    let compressed = flags & SHF_COMPRESSED != 0;
    let section =
        Section { name: String::new(), kind: u32_at(h, 4)?, addr, offset, size, executable, align, compressed };
    Some((u32_at(h, 0)?, section))
}

/// Gives sections of code the addresses that the kernel gives them in a module, from 0 on: in their order, but for those
/// that are needed only while it is loaded, which lie elsewhere.
fn lay_out(sections: &mut [Section]) {
    let mut end = 0u64;
    for section in sections.iter_mut().filter(|s| s.executable && !s.name.starts_with(".init")) {
        let aligned = end.checked_next_multiple_of(section.align.max(1)).unwrap_or(u64::MAX);
        section.addr = aligned;
        end = aligned.saturating_add(section.size);
    }
}

fn build_id_in(notes: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    while let (Some(name_len), Some(len), Some(kind)) =
        (u32_at(notes, at), u32_at(notes, at + 4), u32_at(notes, at + 8))
    {
        let name = at + 12;
        let desc = name + (name_len as usize).next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && len <= BUILD_ID && notes.get(name..name + 4) == Some(b"GNU\0") {
            return notes.get(desc..desc + len as usize).map(<[u8]>::to_vec);
        }
        at = desc + (len as usize).next_multiple_of(4);
    }
    None
}
