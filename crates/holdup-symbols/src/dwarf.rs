//! Inlined functions and source lines from DWARF.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use addr2line::Context;
use gimli::{EndianArcSlice, LittleEndian, SectionId};

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
