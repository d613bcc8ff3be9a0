//! Inlined functions and source lines from DWARF.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use addr2line::{Context, FrameIter, FunctionName, LookupContinuation, LookupResult};
use holdup_trace::SourceLine;

use crate::dwo::Split;
use crate::elf::Elf;
use crate::meter::{Cut, Meter};
use crate::names::Names;
use crate::sections::{Reader, section};

/// Deeper nesting than compilers make; what lies farther out is left out, but for the function itself.
const INLINED: usize = 96;

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
    split: Split,
    meter: Arc<Meter>,
    names: Arc<Names>,
}

impl Dwarf {
    /// Whether the file has any.
    pub fn is_in(elf: &Elf) -> bool {
        [".debug_info", ".debug_line"].iter().any(|name| elf.section(name).is_some_and(|s| s.size > 0))
    }

    /// Reads the sections of `elf`, and of the file that `dwz` moved shared parts to. What the compiler left in files of
    /// their own is looked for below `root`.
    pub fn load(elf: &Elf, shared: Option<&Elf>, root: Option<&Path>, names: &Arc<Names>) -> Result<Dwarf, String> {
        let load = || -> gimli::Result<Context<Reader>> {
            let mut dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(section(elf, id.name(), id)))?;
            if let Some(shared) = shared {
                dwarf.load_sup(|id| Ok::<_, gimli::Error>(section(shared, id.name(), id)))?;
            }
            Context::from_dwarf(dwarf)
        };
        match crate::guarded(load) {
            Some(Ok(context)) => {
                Ok(Dwarf { context, split: Split::new(elf, root), meter: elf.meter().clone(), names: names.clone() })
            }
            Some(Err(e)) => Err(format!("its debug information is damaged: {e}")),
            None => Err("its debug information is damaged".into()),
        }
    }

    /// The functions at an address, the innermost first; the last is the one that was called.
    pub fn frames(&self, addr: u64) -> Vec<SourceFrame> {
        // `Context` fills caches behind `&self`; after a panic the unit is merely without functions.
        let this = AssertUnwindSafe(self);
        crate::guarded(move || this.collect(addr)).unwrap_or_default()
    }

    /// The source lines of `from..to`; offsets count from `from`.
    pub fn lines(&self, from: u64, to: u64) -> Vec<SourceLine> {
        let this = AssertUnwindSafe(self);
        crate::guarded(move || this.collect_lines(from, to)).unwrap_or_default()
    }

    /// The line records of `from..to`, by address. `find_location_range` walks the line table from the record before
    /// `from`; a look-up for each instruction would search it anew.
    fn collect_lines(&self, from: u64, to: u64) -> Vec<SourceLine> {
        let mut found: Vec<SourceLine> = Vec::new();
        let Ok(records) = self.context.find_location_range(from, to) else { return found };
        for (start, _, location) in records {
            // A table in which addresses go back and forth has more records than the code has bytes.
            if found.len() as u64 > to - from || !self.meter.tick() {
                break;
            }
            let offset = (start.max(from) - from) as u32;
            let inlined = self.inlined_at(start.max(from));
            let file = self.names.path(location.file.unwrap_or_default());
            let next = SourceLine { offset, inlined, file, line: location.line.unwrap_or(0) };
            let goes_on =
                found.last().is_some_and(|l| (&l.inlined, &l.file, l.line) == (&next.inlined, &next.file, next.line));
            if !goes_on {
                found.push(next);
            }
        }
        found
    }

    /// The innermost function inlined at an address; empty if none is.
    fn inlined_at(&self, addr: u64) -> String {
        let Ok(mut frames) = self.find(addr) else { return String::new() };
        let (Ok(Some(inner)), Ok(Some(_))) = (frames.next(), frames.next()) else { return String::new() };
        inner.function.and_then(|f| f.raw_name().ok().map(|raw| self.names.name(&raw))).unwrap_or_default()
    }

    fn find(&self, addr: u64) -> gimli::Result<FrameIter<'_, Reader>> {
        let mut found = self.context.find_frames(addr);
        loop {
            match found {
                LookupResult::Output(frames) => return frames,
                LookupResult::Load { load, continuation } => found = continuation.resume(self.split.load(&load)),
            }
        }
    }

    fn collect(&self, addr: u64) -> Vec<SourceFrame> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.find(addr) else {
            // The functions of the unit are too much; its lines may not be.
            let place = self.context.find_location(addr).ok().flatten();
            return place.map(|l| self.frame(None, Some(&l))).into_iter().collect();
        };
        while let Ok(Some(frame)) = frames.next() {
            if found.len() >= INLINED || !self.meter.tick() {
                self.meter.cut(Cut::Depth);
                break;
            }
            found.push(self.frame(frame.function.as_ref(), frame.location.as_ref()));
        }
        found
    }

    fn frame(&self, function: Option<&FunctionName<Reader>>, place: Option<&addr2line::Location>) -> SourceFrame {
        let name = function.and_then(|f| f.raw_name().ok()).map(|raw| self.names.name(&raw));
        let file = self.names.path(place.and_then(|l| l.file).unwrap_or_default());
        SourceFrame { function: name.unwrap_or_default(), file, line: place.and_then(|l| l.line).unwrap_or(0) }
    }
}
