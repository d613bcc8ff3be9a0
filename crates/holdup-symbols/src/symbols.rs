//! [`Symbols`]: names for addresses of the kernel, of files, of the vdso and of compiled-at-run-time code.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdup_trace::{COMPILED, Image, Location, Note, NoteKind, SourceLine, Symbolizer};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::demangle::{demangle, is_mangled};
use crate::held::Held;
use crate::inlined::InlinedFunctions;
use crate::jit::PerfMap;
use crate::kcore::KernelCode;
use crate::kernel::KernelSymbols;
use crate::kernel_files::KernelFiles;
use crate::meter::Meter;
use crate::nameless;
use crate::object::{Function, base_name, window};
use crate::objects::{Objects, image_at, is_file};
use crate::sources::Sources;
use crate::vdso;
use crate::windows::{Windows, is_windows};
use holdup_disasm::Arch;

/// Where the names of kernel functions come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// The kernel that runs: only for traces made since its boot on this machine.
    Live,
    /// A file in the format of `/proc/kallsyms` or `System.map`, from the machine that made the trace.
    File(PathBuf),
    /// No names.
    None,
}

/// Names addresses. Files are read when the first address in them is asked for, and kept.
///
/// Nothing here fails: what cannot be named gets `module+0xoffset` or nothing, and [`Symbols::notes`] says why.
pub struct Symbols {
    source: Kernel,
    /// Read when the first kernel address is asked for.
    kernel: Option<KernelSymbols>,
    kernel_code: Option<Option<KernelCode>>,
    kernel_files: KernelFiles,
    objects: Objects,
    /// (index of the file, address in its terms)
    located: FxHashMap<(usize, u64), Vec<Location>>,
    jit: FxHashMap<u32, Option<PerfMap>>,
    /// What processes told while they lived.
    told: FxHashMap<u32, Vec<u8>>,
    /// What they put into one another, of processes that told it.
    inlined: FxHashMap<u32, InlinedFunctions>,
    /// Processes of which it was said that they told none.
    unnamed: FxHashSet<u32>,
    windows: Windows,
}

impl Symbols {
    /// Names user addresses from the files of this machine, and kernel addresses from `kernel`.
    pub fn new(kernel: Kernel) -> Symbols {
        let objects = Objects::new(kernel == Kernel::Live);
        Symbols::of(kernel, objects)
    }

    pub(crate) fn of(kernel: Kernel, objects: Objects) -> Symbols {
        let (located, jit, told) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let (windows, unnamed) = (Windows::default(), FxHashSet::default());
        let kernel_files = KernelFiles::default();
        Symbols {
            source: kernel,
            kernel: None,
            kernel_code: None,
            kernel_files,
            objects,
            located,
            jit,
            told,
            inlined: FxHashMap::default(),
            unnamed,
            windows,
        }
    }

    /// For a trace from elsewhere: a file of this machine is used only if its build id proves that it is the same, and what
    /// programs of this machine tell of their compiled code is not.
    #[must_use]
    pub fn of_another_machine(mut self) -> Symbols {
        self.objects.set_foreign();
        self
    }

    /// Looks there, too.
    #[must_use]
    pub fn with(mut self, sources: &Sources) -> Symbols {
        self.windows = Windows::new(sources.clone());
        self.objects.set_remote(sources.debuginfod());
        self
    }

    /// Names functions of files that are gone by those that are kept open.
    #[must_use]
    pub fn holding(mut self, held: Vec<Held>) -> Symbols {
        self.objects.set_held(held);
        self
    }

    /// Names code that the process `pid` compiled by `map`, the text of a perf map that it gave while it lived: what lies in /tmp
    /// counts besides, and before it. `inlined` says more of some of that code.
    pub fn told_by(&mut self, pid: u32, map: Vec<u8>, inlined: InlinedFunctions) {
        self.told.insert(pid, map);
        self.inlined.insert(pid, inlined);
    }

    /// Says that functions of the process have names on its stacks: nobody is told how to have them.
    pub fn has_names(&mut self, pid: u32) {
        self.unnamed.insert(pid);
    }

    /// What could not be read, in sentences, each once, in the order of discovery; then what was left out of files that
    /// would have cost too much, with how often.
    pub fn notes(&self) -> Vec<Note> {
        let sources = self.windows.sources();
        let fetched = sources.fetch.notes().into_iter().chain(sources.notes.iter().cloned());
        self.objects.problems().into_iter().chain(fetched.map(Note::from)).collect()
    }

    fn kernel(&mut self) -> &KernelSymbols {
        if self.kernel.is_none() {
            let read = match &self.source {
                Kernel::Live => KernelSymbols::read(Path::new("/proc/kallsyms")),
                Kernel::File(path) => KernelSymbols::read(path),
                Kernel::None => Ok(KernelSymbols::default()),
            };
            self.kernel = Some(read.unwrap_or_else(|e| {
                self.objects.note(e);
                KernelSymbols::default()
            }));
        }
        self.kernel.get_or_insert_default()
    }

    /// An address of the trace in the terms of the symbol file: a System.map knows nothing of where the boot put
    /// the kernel. perf.data tells it by the address of one function, in the name and offset of the kernel's image.
    fn unslide(&mut self, images: &[Arc<Image>], address: u64) -> u64 {
        if !matches!(self.source, Kernel::File(_)) {
            return address;
        }
        let reference = images.iter().find_map(|i| {
            let name = i.path.strip_prefix("[kernel.kallsyms]").filter(|n| !n.is_empty())?;
            (i.file_offset != 0).then(|| (name.to_owned(), i.file_offset))
        });
        let Some((name, runtime)) = reference else { return address };
        self.kernel().address_of(&name).map_or(address, |map| address.wrapping_sub(runtime.wrapping_sub(map)))
    }

    fn locate_kernel(&mut self, images: &[Arc<Image>], address: u64) -> Vec<Location> {
        if self.source == Kernel::None {
            let image = image_at(images, address);
            return image.and_then(|i| self.kernel_files.locate(i, address, &self.objects)).unwrap_or_default();
        }
        let address = self.unslide(images, address);
        let Some(f) = self.kernel().find(address) else {
            // Nothing is known but that it is the kernel; a made-up name would only hide that.
            return Vec::new();
        };
        let (function, module) = (f.name.to_owned(), f.module.to_owned());
        vec![Location { function, module, offset: address - f.start, ..Location::default() }]
    }

    fn kernel_code(&mut self, address: u64, limit: usize) -> Option<(u64, Vec<u8>)> {
        if self.source != Kernel::Live {
            return None;
        }
        let found = self.kernel().find(address)?;
        let function = Function { name: None, start: found.start, size: found.size };
        let source = self.kernel_code.get_or_insert_with(KernelCode::open).as_ref()?;
        window(&function, address, limit as u64, Arch::host(), |start, len| source.read(start, len))
    }

    fn locate_user(&mut self, image: &Arc<Image>, address: u64) -> Vec<Location> {
        let unnamed = |place: u64| {
            // In memory without a file an offset says nothing.
            let file = is_file(&image.path);
            let function = if file { format!("{}+0x{place:x}", base_name(&image.path)) } else { image.path.clone() };
            vec![Location { function, module: image.path.clone(), ..Location::default() }]
        };
        let place = (address - image.start).wrapping_add(image.file_offset);
        let Some(index) = self.objects.index(image) else { return unnamed(place) };
        let object = self.objects.get(index);
        let Some(vaddr) = object.vaddr(image, address) else { return unnamed(place) };
        if let Some(known) = self.located.get(&(index, vaddr)) {
            return known.clone();
        }
        let (found, kept) = object.locate(vaddr);
        let problem = object.problem().map(|p| format!("no source lines for {}: {p}", image.path));
        if let Some(problem) = problem {
            self.objects.note(problem);
        }
        if kept {
            self.located.insert((index, vaddr), found.clone());
        }
        found
    }

    fn locate_jit(&mut self, pid: u32, address: u64) -> Vec<Location> {
        if let Some((functions, start)) = self.inlined.get(&pid).and_then(|inlined| inlined.at(address)) {
            let offset = address - start;
            let location = |function: &Arc<str>| Location {
                function: function.to_string(),
                module: COMPILED.into(),
                offset,
                ..Location::default()
            };
            return functions.iter().map(location).collect();
        }
        let Some((name, start, _)) = self.perf_map(pid).and_then(|map| map.find(address)) else {
            return Vec::new();
        };
        let (function, file, line) = python_name(&name).or_else(|| javascript_name(&name)).unwrap_or((&name, "", 0));
        let function = named_by_place(function, file, line);
        // Python's as where its frames are read from the interpreter.
        let module = if python_name(&name).is_some() { file } else { COMPILED }.to_owned();
        let file = file.to_owned();
        vec![Location { function, module, file, line, offset: address - start }]
    }

    /// Code of a process that told no name of it, with what would make it tell.
    fn nameless(&mut self, images: &[Arc<Image>], image: &Image) -> Vec<Location> {
        let has_map = self.perf_map(image.pid).is_some();
        if !has_map
            && self.unnamed.insert(image.pid)
            && let Some(hint) = nameless::hint(images, image.pid)
        {
            self.objects.note(Note::new(NoteKind::NoNames, hint));
        }
        vec![Location { function: nameless::NAME.into(), module: image.path.clone(), ..Location::default() }]
    }

    fn perf_map(&mut self, pid: u32) -> Option<&PerfMap> {
        if pid != 0 && !self.objects.is_foreign() && !self.jit.contains_key(&pid) {
            let meter = Meter::new(self.objects.budget());
            let map = PerfMap::of_process(pid, self.told.remove(&pid), &meter).unwrap_or_else(|e| {
                self.objects.note(e);
                None
            });
            self.jit.insert(pid, map);
        }
        self.jit.get(&pid)?.as_ref()
    }
}

impl Symbolizer for Symbols {
    fn demangle(&self, name: &str) -> String {
        // Of what is not mangled nothing is cut off: a source chose to write it so.
        if is_mangled(name) { demangle(name).text } else { name.to_owned() }
    }

    fn locate(&mut self, kernel: bool, images: &[Arc<Image>], address: u64) -> Vec<Location> {
        let image = image_at(images, address);
        if let Some(image) = image.filter(|image| is_windows(image)) {
            return self.windows.locate(image, address, &mut self.objects);
        }
        if kernel {
            return self.locate_kernel(images, address);
        }
        let Some(image) = image else {
            let pid = images.first().map_or(0, |i| i.pid);
            return self.locate_jit(pid, address);
        };
        if !is_file(&image.path) && image.path != vdso::NAME {
            let found = self.locate_jit(image.pid, address);
            if !found.is_empty() {
                return found;
            }
            if holdup_trace::is_made_at_run_time(&image.path) {
                return self.nameless(images, image);
            }
        }
        self.locate_user(image, address)
    }

    fn code(&mut self, kernel: bool, images: &[Arc<Image>], address: u64, limit: usize) -> Option<(u64, Vec<u8>)> {
        if kernel {
            return self.kernel_code(address, limit);
        }
        let image = image_at(images, address)?;
        let index = self.objects.index(image)?;
        let object = self.objects.get(index);
        let vaddr = object.vaddr(image, address)?;
        let (start, bytes) = crate::guarded(|| object.code(vaddr, limit)).flatten()?;
        Some((address.wrapping_sub(vaddr.wrapping_sub(start)), bytes))
    }

    fn lines(&mut self, images: &[Arc<Image>], start: u64, length: usize) -> Vec<SourceLine> {
        let Some(image) = image_at(images, start) else { return Vec::new() };
        let Some(index) = self.objects.index(image) else { return Vec::new() };
        let object = self.objects.get(index);
        object.vaddr(image, start).map_or_else(Vec::new, |vaddr| object.lines(vaddr, length as u64))
    }
}

/// A function's name; of one of the many without, its place.
pub fn named_by_place(function: &str, file: &str, line: u32) -> String {
    match function {
        "" => format!("(anonymous at {}:{line})", base_name(file)),
        named => named.to_owned(),
    }
}

/// `py::function:/path/file.py`, as CPython writes it.
fn python_name(name: &str) -> Option<(&str, &str, u32)> {
    let (function, file) = name.strip_prefix("py::")?.rsplit_once(':')?;
    Some((function, file, 0))
}

/// `JS:*function file:///path/file.js:12:3`, as V8 writes it: a kind, a mark of how well it is compiled, and where the
/// function begins; one without a name is empty. Older ones write `LazyCompile` or `Function`, and no column.
fn javascript_name(name: &str) -> Option<(&str, &str, u32)> {
    let (kind, rest) = name.split_once(':')?;
    if !matches!(kind, "JS" | "LazyCompile" | "Function" | "Script" | "Eval") {
        return None;
    }
    let rest = rest.trim_start_matches(['~', '^', '*', '+', '\'', '-']);
    let (function, place) = rest.split_once(' ')?;
    let number = |text: &str| text.parse::<u32>().ok();
    let (file, last) = place.rsplit_once(':')?;
    let (file, line) = match file.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?))) {
        Some(both) if number(last).is_some() => both,
        _ => (file, number(last)?),
    };
    let file = file.strip_prefix("file://").unwrap_or(file);
    Some((function, file, line))
}

#[cfg(test)]
mod tests {
    use super::javascript_name;

    #[test]
    fn functions_of_javascript_are_told_from_their_files() {
        let known = [
            ("JS:*rebuildIndex /srv/my app/atomics.js:14:22", ("rebuildIndex", "/srv/my app/atomics.js", 14)),
            ("JS:^answer file:///srv/app.mjs:3:1", ("answer", "/srv/app.mjs", 3)),
            ("JS:~ node:internal/main/run:1:1", ("", "node:internal/main/run", 1)),
            ("LazyCompile:*tick /app/a.js:7", ("tick", "/app/a.js", 7)),
            ("Function:~Map.get /app/b.js:7", ("Map.get", "/app/b.js", 7)),
        ];
        known.iter().for_each(|(name, parts)| assert_eq!(javascript_name(name), Some(*parts), "{name}"));
        for other in ["Builtin:Add", "JS:", "JS:*f", "JS:*f x", "JS:*f :", "RegExp:a b:1", "void Register.work(int)"] {
            assert_eq!(javascript_name(other), None, "{other}");
        }
    }
}
