//! Inlined functions and source lines from DWARF.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianArcSlice, LittleEndian, SectionId};
use holdup_trace::SourceLine;

use crate::demangle::demangle;
use crate::elf::Elf;

type Reader = EndianArcSlice<LittleEndian>;

/// One function at an address: the one called, or one inlined there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceFrame {
    /// Empty if unknown.
    pub function: String,
    /// Empty if unknown.
    pub file: String,
    pub line: u32,
}

/// The debug information of one file.
pub(crate) struct Dwarf {
    context: Context<Reader>,
}

impl Dwarf {
    /// Whether the file has any.
    pub fn is_in(elf: &Elf) -> bool {
        [".debug_info", ".debug_line"].iter().any(|name| elf.section(name).is_some_and(|s| s.size > 0))
    }

    /// Reads the sections of `elf`, and of the file that `dwz` moved shared parts to.
    pub fn load(elf: &Elf, shared: Option<&Elf>) -> Result<Dwarf, String> {
        let load = || -> gimli::Result<Context<Reader>> {
            let mut dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(section(elf, id)))?;
            if let Some(shared) = shared {
                dwarf.load_sup(|id| Ok::<_, gimli::Error>(section(shared, id)))?;
            }
            Context::from_dwarf(dwarf)
        };
        match crate::guarded(load) {
            Some(Ok(context)) => Ok(Dwarf { context }),
            Some(Err(e)) => Err(format!("its debug information is damaged: {e}")),
            None => Err("its debug information is damaged".into()),
        }
    }

    /// The functions at an address, the innermost first; the last is the one that was called.
    pub fn frames(&self, addr: u64) -> Vec<SourceFrame> {
        // `Context` fills caches behind `&self`; after a panic the unit is merely without functions.
        let context = AssertUnwindSafe(&self.context);
        crate::guarded(move || collect(&context, addr)).unwrap_or_default()
    }

    /// The source lines of `from..to`; offsets count from `from`.
    pub fn lines(&self, from: u64, to: u64) -> Vec<SourceLine> {
        let context = AssertUnwindSafe(&self.context);
        crate::guarded(move || collect_lines(&context, from, to)).unwrap_or_default()
    }
}

/// The line records of `from..to`, by address. `find_location_range` walks the line table from the record before
/// `from`; a look-up for each instruction would search it anew.
fn collect_lines(context: &Context<Reader>, from: u64, to: u64) -> Vec<SourceLine> {
    let mut found: Vec<SourceLine> = Vec::new();
    let Ok(records) = context.find_location_range(from, to) else { return found };
    for (start, _, location) in records {
        let offset = (start.max(from) - from) as u32;
        let (inlined, file, line) = (inlined_at(context, start.max(from)), location.file, location.line);
        let next = SourceLine { offset, inlined, file: file.unwrap_or_default().to_owned(), line: line.unwrap_or(0) };
        let goes_on =
            found.last().is_some_and(|l| (&l.inlined, &l.file, l.line) == (&next.inlined, &next.file, next.line));
        if !goes_on {
            found.push(next);
        }
    }
    found
}

/// The innermost function inlined at an address; empty if none is.
fn inlined_at(context: &Context<Reader>, addr: u64) -> String {
    let Ok(mut frames) = context.find_frames(addr).skip_all_loads() else { return String::new() };
    let (Ok(Some(inner)), Ok(Some(_))) = (frames.next(), frames.next()) else { return String::new() };
    inner.function.and_then(|f| f.raw_name().ok().map(|raw| demangle(&raw))).unwrap_or_default()
}

fn collect(context: &Context<Reader>, addr: u64) -> Vec<SourceFrame> {
    let mut found = Vec::new();
    let Ok(mut frames) = context.find_frames(addr).skip_all_loads() else { return found };
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref().and_then(|f| f.raw_name().ok()).map(|raw| demangle(&raw));
        let location = frame.location.as_ref();
        let file = location.and_then(|l| l.file).unwrap_or_default().to_owned();
        let line = location.and_then(|l| l.line).unwrap_or(0);
        found.push(SourceFrame { function: function.unwrap_or_default(), file, line });
        // Deeper nesting than any compiler makes: a damaged file.
        if found.len() >= 256 {
            break;
        }
    }
    found
}

fn section(elf: &Elf, id: SectionId) -> Reader {
    let data: Arc<[u8]> = elf.shared(id.name()).unwrap_or_default();
    EndianArcSlice::new(data, LittleEndian)
}
