//! Program databases (PDB), where Microsoft's and LLVM's linkers put the symbols of a Windows image: functions, source
//! lines, inlined functions.
//!
//! `pdb2` reads the format. What is found at an address is worked out here, on flat tables: ids, scopes and inlined calls
//! of a damaged file form circles or nest without end, and `pdb-addr2line` follows them by recursion.

mod ids;
mod module;
mod msvc;
mod source;
mod text;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdup_trace::PdbId;
use pdb2::{AddressMap, DebugInformation, FallibleIterator, PDB, Rva, StringTable, SymbolData};
use rustc_hash::FxHashMap;

use crate::demangle::MANGLED_LIMIT;
use crate::dwarf::SourceFrame;
use crate::files::open_regular;
use crate::meter::Meter;
use crate::names::Names;
use crate::panics::quietly;
use ids::Ids;
use module::{Module, key};
use source::Source;
use text::{Piece, Texts};

/// A symbol that the linker exported to all modules: all that the PDBs of an operating system have.
#[derive(Debug, Clone, Copy)]
struct Public {
    start: u64,
    name: Piece,
}

/// Which module a piece of code is from.
#[derive(Debug, Clone, Copy)]
struct Contribution {
    start: u64,
    end: u64,
    module: usize,
}

/// An open PDB. Modules are read when the first address in them is asked for.
pub(crate) struct Pdb {
    pdb: RefCell<PDB<'static, Source>>,
    debug: DebugInformation<'static>,
    map: AddressMap<'static>,
    strings: Option<StringTable<'static>>,
    publics: Vec<Public>,
    texts: Texts,
    contributions: Vec<Contribution>,
    modules: RefCell<FxHashMap<usize, Option<Arc<Module>>>>,
    ids: RefCell<Option<Arc<Ids>>>,
    meter: Arc<Meter>,
    names: Names,
}

/// What lies at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The innermost inlined function first; never empty.
    pub frames: Vec<SourceFrame>,
    /// Bytes from the function's first.
    pub offset: u64,
}

impl Pdb {
    /// Opens a file if it is that of the image; the error is a sentence without the path.
    pub fn open(path: &Path, wanted: &PdbId, meter: &Arc<Meter>) -> Result<Pdb, String> {
        let (file, meta) = open_regular(path, true).map_err(|e| e.to_string())?;
        let source = Source::new(file, meta.len(), meter);
        let opened = quietly(|| meter.timed(Duration::ZERO, || Pdb::load(source, wanted, meter)));
        opened.unwrap_or_else(|| Err("is damaged, or needs more than all files may cost".into()))
    }

    fn load(source: Source, wanted: &PdbId, meter: &Arc<Meter>) -> Result<Pdb, String> {
        let damaged = |e: pdb2::Error| format!("is damaged: {e}");
        let mut pdb = PDB::open(source).map_err(|e| match e {
            pdb2::Error::UnrecognizedFileFormat => "is not a PDB file".to_owned(),
            e => damaged(e),
        })?;
        let info = pdb.pdb_information().map_err(damaged)?;
        let debug = pdb.debug_information().map_err(damaged)?;
        let age = debug.age().unwrap_or(info.age);
        // The age in the image is that of the link; tools that add to the file raise the other one.
        if info.guid.into_bytes() != wanted.guid || (age != wanted.age && info.age != wanted.age) {
            let found = PdbId { guid: info.guid.into_bytes(), age, name: String::new() };
            return Err(format!("is of another build than the one recorded ({}, not {})", found.key(), wanted.key()));
        }
        let map = pdb.address_map().map_err(damaged)?;
        let strings = pdb.string_table().ok();
        let (publics, texts) = publics(&mut pdb, meter).unwrap_or_default();
        let contributions = contributions(&debug, meter).unwrap_or_default();
        let (modules, ids, names) = (RefCell::default(), RefCell::default(), Names::new(meter));
        let (pdb, meter) = (RefCell::new(pdb), meter.clone());
        Ok(Pdb { pdb, debug, map, strings, publics, texts, contributions, modules, ids, meter, names })
    }

    /// The functions at an address of the image (counted from where it was loaded); `None` if nothing is known.
    pub fn locate(&self, rva: u64) -> Option<Found> {
        quietly(|| self.meter.timed(Duration::ZERO, || self.find(rva))).flatten()
    }

    /// Whether there is room to keep what was found.
    pub fn hold(&self, bytes: usize) -> bool {
        self.meter.hold(bytes as u64)
    }

    fn find(&self, rva: u64) -> Option<Found> {
        let at = key(Rva(u32::try_from(rva).ok()?).to_internal_offset(&self.map)?);
        let after = self.contributions.partition_point(|c| c.start <= at);
        let home = self.contributions.get(..after)?.last().filter(|c| at < c.end);
        let module = home.and_then(|home| self.module(home.module));
        if let Some(module) = &module
            && let Some(procedure) = module.procedure(at)
        {
            let all = module.frames(procedure, at, &self.meter);
            let frame = |f: &module::Frame| SourceFrame {
                function: match f.inlined {
                    Some(id) => self.ids().name(id).map(|name| self.names.path(&name)).unwrap_or_default(),
                    None => self.name(module.name(procedure)),
                },
                file: self.names.path(f.file),
                line: f.line,
            };
            return Some(Found { frames: all.iter().map(frame).collect(), offset: at - procedure.start });
        }
        let after = self.publics.partition_point(|p| p.start <= at);
        let public = self.publics.get(..after)?.last()?;
        // Code of another section or module has nothing to do with it, and of a function whose end is known this is none.
        let ended = module.is_some_and(|module| module.procedure(public.start).is_some());
        if ended || public.start >> 32 != at >> 32 || home.is_none_or(|home| public.start < home.start) {
            return None;
        }
        let function = self.name(self.texts.get(public.name));
        Some(Found { frames: vec![SourceFrame { function, ..SourceFrame::default() }], offset: at - public.start })
    }

    fn name(&self, raw: &str) -> String {
        match msvc::qualified(raw) {
            Some(name) => self.names.path(&name),
            None if raw.starts_with('?') => self.names.path(raw),
            None => self.names.name(raw),
        }
    }

    fn module(&self, index: usize) -> Option<Arc<Module>> {
        if let Some(known) = self.modules.borrow().get(&index) {
            return known.clone();
        }
        let load = || -> pdb2::Result<Option<Module>> {
            let Some(module) = self.debug.modules()?.nth(index)? else { return Ok(None) };
            let info = self.pdb.borrow_mut().module_info(&module)?;
            info.map(|info| Module::load(&info, self.strings.as_ref(), &self.meter)).transpose()
        };
        // A panic of the reader leaves a borrow behind that ends with it.
        let found = crate::guarded(load).and_then(Result::ok).flatten().map(Arc::new);
        self.modules.borrow_mut().insert(index, found.clone());
        found
    }

    fn ids(&self) -> Arc<Ids> {
        if let Some(ids) = &*self.ids.borrow() {
            return ids.clone();
        }
        let load = || {
            let mut pdb = self.pdb.borrow_mut();
            let ids = pdb.id_information()?;
            Ids::load(&ids, || pdb.type_information().ok(), &self.meter)
        };
        let ids = Arc::new(crate::guarded(load).and_then(Result::ok).unwrap_or_default());
        *self.ids.borrow_mut() = Some(ids.clone());
        ids
    }
}

/// The public symbols in code, by address.
fn publics(pdb: &mut PDB<'static, Source>, meter: &Meter) -> pdb2::Result<(Vec<Public>, Texts)> {
    const S_PUB32: u16 = 0x110e;
    let sections = pdb.sections()?.unwrap_or_default();
    let table = pdb.global_symbols()?;
    let (mut publics, mut texts) = (Vec::new(), Texts::default());
    let mut symbols = table.iter();
    while let Some(symbol) = symbols.next()? {
        if symbol.raw_kind() != S_PUB32 {
            continue;
        }
        let Ok(SymbolData::Public(public)) = symbol.parse() else { continue };
        let section = usize::from(public.offset.section).checked_sub(1).and_then(|i| sections.get(i));
        if !section.is_none_or(|s| s.characteristics.execute()) {
            continue;
        }
        if !meter.read((size_of::<Public>() + public.name.len()) as u64) {
            break;
        }
        let name = texts.keep(public.name.as_bytes(), MANGLED_LIMIT);
        publics.push(Public { start: key(public.offset), name });
    }
    // Several names of one function: the first, as the linker has them.
    publics.sort_by_key(|p| p.start);
    publics.dedup_by_key(|p| p.start);
    Ok((publics, texts))
}

fn contributions(debug: &DebugInformation, meter: &Meter) -> pdb2::Result<Vec<Contribution>> {
    let mut all = Vec::new();
    let mut pieces = debug.section_contributions()?;
    while let Some(piece) = pieces.next()? {
        if !meter.read(size_of::<Contribution>() as u64) {
            break;
        }
        let start = key(piece.offset);
        all.push(Contribution { start, end: start.saturating_add(piece.size.into()), module: piece.module });
    }
    all.sort_by_key(|c| c.start);
    Ok(all)
}
