//! One mapped file: its symbols, call frame information and debug information, each read when first asked for.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdup_trace::{Image, Location, SourceLine};

use crate::cfi::Cfi;
use crate::debuginfod::{Artifact, Debuginfod};
use crate::dwarf::{Dwarf, SourceFrame};
use crate::elf::{Elf, Section};
use crate::find::{debug_file, open_image, shared_debug_file};
use crate::meter::{Budget, Meter};
use crate::names::Names;
use crate::symtab::{Found, SymbolTable};
use holdup_disasm::{Arch, instruction_boundary};

/// Longest function whose start is looked up by decoding from its beginning.
const DECODE_LIMIT: u64 = 1 << 20;
/// How far behind its symbol a function's call frame information may begin.
const PADDING: u64 = 16;
/// Memory that every file takes, beside what is in it.
const OBJECT: u64 = 4 << 10;

/// A function: where it begins, how long it is, what it is called if anybody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub name: Option<String>,
    pub start: u64,
    pub size: u64,
}

/// What a linkage table is called: nobody wrote it, so that callers are what its time is told by.
const LINKAGE: &str = "[plt]";

/// A file with code.
pub(crate) struct Object {
    elf: Elf,
    /// The path as the traced process saw it.
    name: String,
    root: Option<PathBuf>,
    remote: Option<Arc<Debuginfod>>,
    meter: Arc<Meter>,
    names: Arc<Names>,
    debug: OnceLock<Option<Elf>>,
    symbols: OnceLock<SymbolTable>,
    cfi: OnceLock<Cfi>,
    dwarf: OnceLock<Result<Option<Dwarf>, String>>,
}

impl Object {
    /// Opens the file behind an image. `Ok(None)`: nothing is left of the budget.
    pub fn open(
        image: &Image,
        root: Option<&Path>,
        held: Option<&Path>,
        remote: Option<&Arc<Debuginfod>>,
        budget: &Arc<Budget>,
    ) -> Result<Option<Object>, String> {
        let meter = Meter::new(budget);
        if !meter.hold(OBJECT) || !meter.has_time() {
            return Ok(None);
        }
        let opened = meter.timed(Duration::ZERO, || open_image(image, root, held, &meter));
        let opened = opened.unwrap_or_else(|| Err("is damaged".into()));
        let elf = opened.or_else(|e| {
            let id = image.build_id.as_deref();
            remote.zip(id).and_then(|(remote, id)| remote.get(id, Artifact::Executable, &meter)).ok_or(e)
        })?;
        let object = Object::new(elf, image.path.clone(), root.map(Path::to_owned));
        Ok(Some(Object { remote: remote.cloned(), ..object }))
    }

    /// An ELF image that is in memory, like the vdso.
    pub fn from_bytes(bytes: Vec<u8>, name: &str, budget: &Arc<Budget>) -> Result<Object, String> {
        Ok(Object::new(Elf::from_bytes(bytes, &Meter::new(budget))?, name.to_owned(), None))
    }

    /// An open file that no image was mapped from.
    pub fn from_elf(elf: Elf, name: String) -> Object {
        Object::new(elf, name, None)
    }

    fn new(elf: Elf, name: String, root: Option<PathBuf>) -> Object {
        let (debug, symbols, meter) = (OnceLock::new(), OnceLock::new(), elf.meter().clone());
        let names = Arc::new(Names::new(&meter));
        Object {
            elf,
            name,
            root,
            remote: None,
            meter,
            names,
            debug,
            symbols,
            cfi: OnceLock::new(),
            dwarf: OnceLock::new(),
        }
    }

    /// Only x86-64 and AArch64 have an architecture here.
    pub fn arch(&self) -> Option<Arch> {
        self.elf.arch
    }

    /// Whether Go's toolchain linked it.
    pub fn is_go(&self) -> bool {
        self.elf.section(".note.go.buildid").is_some()
    }

    /// The file's own address for an address in the mapping.
    pub fn vaddr(&self, image: &Image, address: u64) -> Option<u64> {
        self.elf.vaddr(address.checked_sub(image.start)?.checked_add(image.file_offset)?)
    }

    /// What has to be told about the debug information, if it was read.
    pub fn problem(&self) -> Option<&str> {
        self.dwarf.get()?.as_ref().err().map(String::as_str)
    }

    fn debug(&self) -> Option<&Elf> {
        let fetch = || {
            let id = self.elf.build_id.as_deref()?;
            self.remote.as_ref()?.get(id, Artifact::Debuginfo, &self.meter)
        };
        self.debug.get_or_init(|| debug_file(&self.elf, self.root.as_deref()).or_else(fetch)).as_ref()
    }

    fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| {
            // The debug file of a stripped program has the complete table.
            let own = self.elf.section(".symtab").is_some();
            let files = [Some(&self.elf), if own { None } else { self.debug() }];
            let files: Vec<_> = files.into_iter().flatten().collect();
            crate::guarded(|| SymbolTable::load(&files)).unwrap_or_default()
        })
    }

    /// Call frame information. A separate debug file is searched for only where the file itself has none.
    pub fn cfi(&self) -> &Cfi {
        self.cfi.get_or_init(|| {
            let own = self.elf.section(".eh_frame").is_some_and(|s| s.size > 8);
            let load = || Cfi::load(&self.elf, if own { None } else { self.debug() });
            self.meter.timed(Duration::ZERO, load).unwrap_or_else(|| Cfi::none(&self.meter))
        })
    }

    fn dwarf(&self) -> Option<&Dwarf> {
        let load = || {
            let source = if Dwarf::is_in(&self.elf) { Some(&self.elf) } else { self.debug() };
            // Before it is linked, debug information has no addresses.
            let Some(source) = source.filter(|s| Dwarf::is_in(s) && !s.relocatable) else { return Ok(None) };
            Dwarf::load(source, shared_debug_file(source).as_ref(), self.root.as_deref(), &self.names).map(Some)
        };
        self.dwarf.get_or_init(load).as_ref().ok()?.as_ref()
    }

    /// The function around `vaddr`: by symbol, else at least its bounds by call frame information.
    pub fn function(&self, vaddr: u64) -> Option<Function> {
        let found = self.symbols().find(vaddr);
        if let Some(found) = found.filter(|f| !f.reaching) {
            return Some(self.named(&found));
        }
        if let Some(section) = self.linkage(vaddr) {
            return Some(Function { name: Some(LINKAGE.into()), start: section.addr, size: section.size });
        }
        let entry = crate::guarded(|| self.cfi().entry(vaddr).map(|e| e.range())).flatten();
        // Behind the end of a function of assembler, of which no symbol tells the size, another one without a name begins.
        let is_other = |f: &Found| entry.is_some_and(|(start, _)| start > f.start.saturating_add(PADDING));
        if let Some(found) = found.filter(|f| !is_other(f)) {
            return Some(self.named(&found));
        }
        entry.map(|(start, size)| Function { name: None, start, size })
    }

    fn named(&self, found: &Found) -> Function {
        Function { name: Some(self.names.name(found.name)), start: found.start, size: found.size }
    }

    /// All functions at `vaddr`, the innermost inlined one first; and whether they may be kept.
    pub fn locate(&self, vaddr: u64) -> (Vec<Location>, bool) {
        let all = self.meter.timed(Duration::ZERO, || {
            let function = self.function(vaddr);
            let frames = self.dwarf().map(|d| d.frames(vaddr)).unwrap_or_default();
            self.locations(vaddr, function, frames)
        });
        let found = all.unwrap_or_else(|| {
            // What was read before the time was up still names functions.
            let known = self.symbols.get().and_then(|s| s.find(vaddr));
            self.locations(vaddr, known.map(|found| self.named(&found)), Vec::new())
        });
        let size: usize = found.iter().map(|l| l.function.len() + l.module.len() + l.file.len() + 128).sum();
        let kept = self.meter.hold(size as u64);
        (found, kept)
    }

    fn locations(&self, vaddr: u64, function: Option<Function>, frames: Vec<SourceFrame>) -> Vec<Location> {
        let start = function.as_ref().map(|f| f.start);
        let offset = start.map_or(0, |start| vaddr - start);
        let place = || format!("{}+0x{:x}", base_name(&self.name), start.unwrap_or(vaddr));
        let outer = function.and_then(|f| f.name);
        let mut found: Vec<Location> = frames
            .into_iter()
            .map(|f| Location { function: f.function, module: self.name.clone(), file: f.file, line: f.line, offset })
            .collect();
        if found.is_empty() {
            found.push(Location { module: self.name.clone(), offset, ..Location::default() });
        }
        let last = found.len() - 1;
        for (i, location) in found.iter_mut().enumerate() {
            match &outer {
                // The symbol has the whole scope in its name; the debug information of a C++ function may not.
                Some(name) if i == last => location.function.clone_from(name),
                _ if location.function.is_empty() => location.function = place(),
                _ => {}
            }
        }
        found
    }

    /// At most `limit` bytes of the function around `vaddr`, and the address of the first.
    pub fn code(&self, vaddr: u64, limit: usize) -> Option<(u64, Vec<u8>)> {
        let code = || {
            let function = self.function(vaddr)?;
            window(&function, vaddr, limit as u64, self.elf.arch, |start, len| self.elf.code(start, len))
        };
        self.meter.timed(Duration::ZERO, code).flatten()
    }

    /// The source lines of `length` bytes from `vaddr` on.
    pub fn lines(&self, vaddr: u64, length: u64) -> Vec<SourceLine> {
        let lines = || self.dwarf().map_or_else(Vec::new, |d| d.lines(vaddr, vaddr.saturating_add(length)));
        self.meter.timed(Duration::ZERO, lines).unwrap_or_default()
    }

    /// The bytes before `vaddr`, for finding out whether it follows a call.
    pub fn bytes_before(&self, vaddr: u64, len: u64) -> Option<Vec<u8>> {
        self.elf.code(vaddr.checked_sub(len)?, len)
    }

    /// Whether `vaddr` lies in a linkage table, whose entries jump to functions of other files.
    pub fn is_linkage(&self, vaddr: u64) -> bool {
        self.linkage(vaddr).is_some()
    }

    fn linkage(&self, vaddr: u64) -> Option<&Section> {
        let inside = |s: &&Section| vaddr >= s.addr && vaddr - s.addr < s.size;
        self.elf.sections.iter().find(inside).filter(|s| s.name.starts_with(".plt"))
    }
}

/// The whole function if it fits, else a part around `addr` that begins with an instruction.
pub(crate) fn window(
    function: &Function,
    addr: u64,
    limit: u64,
    arch: Option<Arch>,
    read: impl Fn(u64, u64) -> Option<Vec<u8>>,
) -> Option<(u64, Vec<u8>)> {
    if function.size <= limit {
        return read(function.start, function.size).map(|bytes| (function.start, bytes));
    }
    let distance = addr.checked_sub(function.start)?;
    if distance > DECODE_LIMIT {
        return None;
    }
    let wanted = function.start + distance.saturating_sub(limit / 2);
    let before = read(function.start, wanted - function.start + 16)?;
    let start = instruction_boundary(arch?, &before, function.start, wanted);
    let len = limit.min(function.start + function.size - start);
    read(start, len).map(|bytes| (start, bytes))
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}
