//! What a PDB tells of one module (one object file of the linker): its functions, source lines and inlined functions.

use std::ops::Range;

use pdb2::{
    FallibleIterator, FileIndex, IdIndex, InlineSiteSymbol, Inlinee, LineProgram, ModuleInfo, PdbInternalSectionOffset,
    ProcedureSymbol, StringTable, SymbolData,
};
use rustc_hash::FxHashMap;

use super::text::{Piece, Texts};
use crate::demangle::MANGLED_LIMIT;
use crate::meter::Meter;

/// Functions inlined in each other that are shown.
const INLINED: usize = 96;

/// The records that matter, by their numbers in Microsoft's `cvinfo.h`: functions, thunks, a function's parts elsewhere,
/// inlined functions. To parse the others (variables, types) would take most of the time.
const FUNCTIONS: [u16; 6] = [0x110f, 0x1110, 0x1146, 0x1147, 0x1155, 0x1156];
const OTHERS: [u16; 4] = [0x1102, 0x1132, 0x114d, 0x115d];

/// An address as the linker knew it: the section's number, then the offset in it. These sort like addresses.
pub(super) fn key(at: PdbInternalSectionOffset) -> u64 {
    u64::from(at.section) << 32 | u64::from(at.offset)
}

/// A function.
#[derive(Debug, Clone)]
pub(super) struct Procedure {
    pub start: u64,
    pub len: u32,
    name: Piece,
    /// What was inlined in it, in `inlined`.
    inlined: Range<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Index into `files`.
    file: u32,
    line: u32,
}

/// Code of one source line.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: u64,
    /// 0 where it reaches to the next.
    len: u32,
    place: Place,
}

/// A call that was inlined.
#[derive(Debug, Clone, Copy)]
struct Site {
    /// The site that it is in.
    outer: Option<u32>,
    depth: u32,
    function: u32,
}

/// Code of one line of an inlined function.
#[derive(Debug, Clone, Copy)]
struct Inlined {
    start: u64,
    end: u64,
    site: u32,
    place: Place,
}

/// One frame: the number of an inlined function's id, or `None` for the function itself; file, line.
pub(super) struct Frame<'a> {
    pub inlined: Option<u32>,
    pub file: &'a str,
    pub line: u32,
}

/// The source files of a module.
struct Files<'a> {
    strings: Option<&'a StringTable<'static>>,
    program: Option<&'a LineProgram<'a>>,
    /// Index into `Module::files`.
    known: FxHashMap<FileIndex, u32>,
}

impl Files<'_> {
    fn name(&self, file: FileIndex) -> Option<Vec<u8>> {
        let name = self.program?.get_file_info(file).ok()?.name;
        let name = self.strings?.get(name).ok()?;
        Some(name.as_bytes().iter().copied().take(MANGLED_LIMIT).collect())
    }
}

/// What was read of a module.
#[derive(Debug, Default)]
pub(super) struct Module {
    procedures: Vec<Procedure>,
    lines: Vec<Line>,
    sites: Vec<Site>,
    inlined: Vec<Inlined>,
    files: Vec<Piece>,
    texts: Texts,
}

impl Module {
    /// Reads all that fits.
    pub fn load(
        info: &ModuleInfo<'static>,
        strings: Option<&StringTable<'static>>,
        meter: &Meter,
    ) -> pdb2::Result<Module> {
        let mut module = Module::default();
        let program = info.line_program().ok();
        let mut files = Files { strings, program: program.as_ref(), known: FxHashMap::default() };
        // Damage in one part leaves the others.
        let _ = module.add_symbols(info, &mut files, meter);
        let _ = module.add_lines(&mut files, meter);
        module.procedures.sort_by_key(|p| p.start);
        module.procedures.dedup_by_key(|p| p.start);
        module.lines.sort_by_key(|l| l.start);
        Ok(module)
    }

    fn add_symbols(&mut self, info: &ModuleInfo, files: &mut Files, meter: &Meter) -> pdb2::Result<()> {
        let inlinees: FxHashMap<IdIndex, Inlinee> =
            info.inlinees()?.map(|i| Ok((i.index(), i))).take_while(|_| Ok(meter.read(48))).collect()?;
        // Sites that are open, with where each ends: they nest.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut symbols = info.symbols()?;
        while let Some(symbol) = symbols.next()? {
            if !meter.read(0) {
                break;
            }
            let kind = symbol.raw_kind();
            if !FUNCTIONS.contains(&kind) && !OTHERS.contains(&kind) {
                continue;
            }
            open.retain(|(_, end)| symbol.index().0 < *end);
            match symbol.parse() {
                Ok(SymbolData::Procedure(p)) => {
                    open.clear();
                    self.add_procedure(&p, meter);
                }
                Ok(SymbolData::Thunk(t)) => self.add(t.offset, u32::from(t.len), t.name.as_bytes(), meter),
                Ok(SymbolData::SeparatedCode(part)) => {
                    let whole = self.procedures.iter().rfind(|p| p.start == key(part.parent_offset));
                    let name = whole.map(|p| p.name).unwrap_or_default();
                    let inlined = self.here();
                    self.procedures.push(Procedure { start: key(part.offset), len: part.len, name, inlined });
                }
                Ok(SymbolData::InlineSite(site)) if meter.hold(size_of::<Site>() as u64) => {
                    let outer = open.last().map(|(site, _)| *site);
                    let depth = outer.and_then(|o| self.sites.get(o as usize)).map_or(0, |o| o.depth.saturating_add(1));
                    open.push((self.sites.len() as u32, site.end.0));
                    self.sites.push(Site { outer, depth, function: site.inlinee.0 });
                    if let Some(inlinee) = inlinees.get(&site.inlinee) {
                        self.add_site(inlinee, &site, files, meter);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The end of what was inlined so far.
    fn here(&self) -> Range<u32> {
        let at = self.inlined.len() as u32;
        at..at
    }

    fn add_procedure(&mut self, p: &ProcedureSymbol, meter: &Meter) {
        self.add(p.offset, p.len, p.name.as_bytes(), meter);
    }

    fn add(&mut self, at: PdbInternalSectionOffset, len: u32, name: &[u8], meter: &Meter) {
        if meter.hold((size_of::<Procedure>() + name.len()) as u64) {
            let (name, inlined) = (self.texts.keep(name, MANGLED_LIMIT), self.here());
            self.procedures.push(Procedure { start: key(at), len, name, inlined });
        }
    }

    /// The lines of an inlined function belong to the procedure that was met last.
    fn add_site(&mut self, inlinee: &Inlinee, site: &InlineSiteSymbol, files: &mut Files, meter: &Meter) {
        let Some(start) = self.procedures.last().map(|p| p.start) else { return };
        let at = PdbInternalSectionOffset::new((start >> 32) as u16, start as u32);
        let mut lines = inlinee.lines(at, site);
        while let Ok(Some(line)) = lines.next() {
            if !meter.read(size_of::<Inlined>() as u64) {
                break;
            }
            let place = self.place(line.file_index, line.line_start, files, meter);
            let (start, site) = (key(line.offset), self.sites.len() as u32 - 1);
            let end = start.saturating_add(line.length.unwrap_or(0).into());
            self.inlined.push(Inlined { start, end, site, place });
        }
        let end = self.inlined.len() as u32;
        if let Some(last) = self.procedures.last_mut() {
            last.inlined.end = end;
        }
    }

    fn add_lines(&mut self, files: &mut Files, meter: &Meter) -> pdb2::Result<()> {
        let Some(program) = files.program else { return Ok(()) };
        let mut lines = program.lines();
        while let Some(line) = lines.next()? {
            if !meter.read(size_of::<Line>() as u64) {
                break;
            }
            let place = self.place(line.file_index, line.line_start, files, meter);
            self.lines.push(Line { start: key(line.offset), len: line.length.unwrap_or(0), place });
        }
        Ok(())
    }

    fn place(&mut self, file: FileIndex, line: u32, files: &mut Files, meter: &Meter) -> Place {
        if let Some(&file) = files.known.get(&file) {
            return Place { file, line };
        }
        let name = files.name(file).filter(|name| meter.hold(64 + name.len() as u64)).unwrap_or_default();
        let index = self.files.len() as u32;
        self.files.push(self.texts.keep(&name, MANGLED_LIMIT));
        files.known.insert(file, index);
        Place { file: index, line }
    }

    /// The function around an address.
    pub fn procedure(&self, at: u64) -> Option<&Procedure> {
        let after = self.procedures.partition_point(|p| p.start <= at);
        self.procedures.get(..after)?.last().filter(|p| at - p.start < u64::from(p.len))
    }

    /// The name of a function, as the compiler wrote it.
    pub fn name(&self, procedure: &Procedure) -> &str {
        self.texts.get(procedure.name)
    }

    /// What is at an address of a function, the innermost inlined one first, the function itself last.
    pub fn frames(&self, procedure: &Procedure, at: u64, meter: &Meter) -> Vec<Frame<'_>> {
        let range = procedure.inlined.start as usize..procedure.inlined.end as usize;
        let here: Vec<&Inlined> = (self.inlined.get(range).unwrap_or_default().iter())
            .take_while(|_| meter.read(0))
            .filter(|i| i.start <= at && at < i.end)
            .collect();
        let site = |i: &&&Inlined| self.sites.get(i.site as usize).map_or(0, |s| s.depth);
        let mut next = here.iter().max_by_key(site).map(|i| i.site);
        let mut frames = Vec::new();
        while let Some(index) = next
            && frames.len() < INLINED
            && let Some(site) = self.sites.get(index as usize)
        {
            let place = here.iter().find(|i| i.site == index).map(|i| i.place);
            frames.push(self.frame(Some(site.function), place));
            next = site.outer.filter(|&outer| outer < index);
        }
        frames.push(self.frame(None, self.line(procedure, at)));
        frames
    }

    fn line(&self, procedure: &Procedure, at: u64) -> Option<Place> {
        let after = self.lines.partition_point(|l| l.start <= at);
        let line = self.lines.get(..after)?.last().filter(|l| l.start >= procedure.start)?;
        (line.len == 0 || at - line.start < u64::from(line.len)).then_some(line.place)
    }

    fn frame(&self, inlined: Option<u32>, place: Option<Place>) -> Frame<'_> {
        let file = place.and_then(|p| self.files.get(p.file as usize)).map_or("", |&file| self.texts.get(file));
        Frame { inlined, file, line: place.map_or(0, |p| p.line) }
    }
}
