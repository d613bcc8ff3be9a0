//! Reading a `.holdup` file. Every member's checksum is verified before it is decoded.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, StringArray};
use rustc_hash::FxHashMap;
use zip::{CompressionMethod, ZipArchive};

use super::older;
use crate::arrow::{Section, guarded, open_arrow};
use crate::bytes::Bytes;
use crate::event_tables::ReadTables;
use crate::tables::{Codes, Frames, Lines, Locations, StackNodes};
use crate::{Dictionary, Error, EventTables, Meta, Names, Result, Stacks, Store, Table, Trace};

/// More rows than a compressed byte of a table ever holds.
const MOST_ROWS_PER_BYTE: u64 = 64;

/// Whether `head`, the first bytes of a file, can be the beginning of a `.holdup` file.
pub fn is_holdup(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04")
}

/// Opens a `.holdup` file. Dictionaries are loaded, the large tables stay in the file.
pub fn read(path: &Path) -> Result<Trace> {
    read_from(File::open(path).map_err(|e| Error::input(path, format!("cannot be opened: {e}")))?, path)
}

/// Opens a `.holdup` file that is open already; `path` is its name in messages. It has to be one that can be read by
/// position: no pipe.
pub fn read_from(file: File, path: &Path) -> Result<Trace> {
    read_bytes(Bytes::File(Arc::new(file)), path)
}

/// Opens the bytes of a `.holdup` file; `path` is its name in messages.
pub fn read_memory(bytes: impl Into<Arc<[u8]>>, path: &Path) -> Result<Trace> {
    read_bytes(Bytes::Memory(bytes.into()), path)
}

fn read_bytes(bytes: Bytes, path: &Path) -> Result<Trace> {
    let members = Members::open(path, bytes)?;
    let meta: Meta = serde_json::from_slice(&members.bytes("meta.json")?)
        .map_err(|e| Error::input(path, format!("meta.json is not what holdup writes: {e}")))?;
    if meta.version > super::VERSION {
        let known = super::VERSION;
        let found = meta.version;
        return Err(Error::input(
            path,
            format!("written by a newer holdup (layout {found}, known {known}): update holdup"),
        ));
    }
    let stacks = Stacks::from_tables(members.table::<StackNodes>()?, members.table::<Frames>()?);
    // Files written before there was such a table are read too.
    let lines = if members.has::<Lines>() { members.table()? } else { Lines::default() };
    let names = Names::new(members.table::<Locations>()?, members.table::<Codes>()?, lines, stacks.frame_count());
    let strings = members.strings()?;
    let stored = Stored { members: &members, meta: &meta };
    let mut events = EventTables::read(&stored)?;
    if meta.version < older::WITH_KINDS_OF_LOSSES {
        events.losses = older::losses(&stored.read()?, &strings)?;
    }
    Ok(Trace { strings, stacks, names, threads: members.table()?, locks: members.table()?, events, meta })
}

/// The members of the zip: where each begins and how long it is.
struct Members<'a> {
    path: &'a Path,
    file: Bytes,
    sections: FxHashMap<String, (u64, u64)>,
}

/// The event tables among the members, whose numbers of rows the facts tell.
struct Stored<'a> {
    members: &'a Members<'a>,
    meta: &'a Meta,
}

impl ReadTables for Stored<'_> {
    fn read<T: Table>(&self) -> Result<Store<T>> {
        // A file lists its tables, so what is missing from the list came into being after it.
        if !self.members.has::<T>() && !self.meta.rows.contains_key(T::NAME) {
            return Ok(Store::default());
        }
        let section = self.members.section(&format!("{}.arrow", T::NAME))?;
        // Readers make room for this many rows: no more than the bytes can hold.
        let rows = self.meta.rows.get(T::NAME).copied().unwrap_or(0).min(section.len() * MOST_ROWS_PER_BYTE);
        Ok(Store::from_section(section, rows))
    }
}

impl<'a> Members<'a> {
    fn open(path: &'a Path, file: Bytes) -> Result<Self> {
        let bad = |e: String| {
            Error::input(path, format!("not a complete .holdup file: {e}; record again, or open its spool"))
        };
        let total = file.len().map_err(|e| bad(e.to_string()))?;
        let whole = Section::new(file.clone(), 0, total);
        let mut zip = ZipArchive::new(BufReader::new(whole.clone())).map_err(|e| bad(e.to_string()))?;
        let mut sections = FxHashMap::default();
        for i in 0..zip.len() {
            let member = zip.by_index_raw(i).map_err(|e| bad(e.to_string()))?;
            let name = member.name().map_err(|e| bad(e.to_string()))?.into_owned();
            if member.compression() != CompressionMethod::Stored {
                return Err(bad(format!("member {name} is compressed")));
            }
            let start = member.data_start().ok_or_else(|| bad(format!("member {name} has no data")))?;
            let (size, crc) = (member.size(), member.crc32());
            if start.checked_add(size).is_none_or(|end| end > total) {
                return Err(bad(format!("member {name} ends behind the file's end")));
            }
            drop(member);
            let found = checksum(whole.clone(), start, size).map_err(|e| bad(e.to_string()))?;
            if found != crc {
                return Err(Error::at(path, start, format!("the checksum of {name} is wrong: the file is damaged")));
            }
            sections.insert(name, (start, size));
        }
        Ok(Members { path, file, sections })
    }

    fn section(&self, name: &str) -> Result<Section> {
        let &(start, len) = self
            .sections
            .get(name)
            .ok_or_else(|| Error::input(self.path, format!("has no member {name}: not a .holdup file?")))?;
        Ok(Section::new(self.file.clone(), start, len))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.section(name)?.read_to_end(&mut bytes).map_err(|e| Error::input(self.path, e))?;
        Ok(bytes)
    }

    fn has<T: Table>(&self) -> bool {
        self.sections.contains_key(&format!("{}.arrow", T::NAME))
    }

    fn table<T: Table>(&self) -> Result<T> {
        Store::from_section(self.section(&format!("{}.arrow", T::NAME))?, 0).load()
    }

    fn strings(&self) -> Result<Dictionary> {
        let reader = open_arrow(self.section("string.arrow")?)?;
        let mut strings = Dictionary::empty_for_reading();
        for i in 0..reader.len() {
            let Some(batch) = guarded("string", || reader.batch(i))? else { break };
            let texts = batch.columns().first().and_then(|c| c.as_any().downcast_ref::<StringArray>());
            let texts = texts.ok_or_else(|| Error::input(self.path, "string.arrow holds no strings"))?;
            (0..texts.len()).for_each(|i| strings.append(texts.value(i)));
        }
        Ok(strings)
    }
}

fn checksum(mut file: Section, start: u64, len: u64) -> io::Result<u32> {
    file.seek(SeekFrom::Start(start))?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    let mut rest = file.take(len);
    loop {
        match rest.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            n => hasher.update(&buffer[..n]),
        }
    }
}
