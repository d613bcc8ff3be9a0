//! Split debug information: what a compiler left in `.dwo` files beside its objects, or `dwp` gathered from them into one
//! package beside the program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use addr2line::SplitDwarfLoad;
use gimli::{Dwarf, DwarfPackage, Error, Reader as _, SectionId};

use crate::elf::Elf;
use crate::meter::Meter;
use crate::sections::{Reader, section};

/// Where the parts of one file's debug information are.
pub(crate) struct Split {
    /// The file with the rest.
    path: Option<PathBuf>,
    /// The root directory of the process.
    root: Option<PathBuf>,
    meter: Arc<Meter>,
    package: OnceLock<Option<DwarfPackage<Reader>>>,
}

impl Split {
    pub fn new(elf: &Elf, root: Option<&Path>) -> Split {
        let (path, root) = (elf.path().map(Path::to_owned), root.map(Path::to_owned));
        Split { path, root, meter: elf.meter().clone(), package: OnceLock::new() }
    }

    /// The part that a unit names. Its path can lead anywhere, so only a file that has the unit's id is used.
    pub fn load(&self, load: &SplitDwarfLoad<Reader>) -> Option<Arc<Dwarf<Reader>>> {
        let package = self.package.get_or_init(|| self.open_package()).as_ref();
        if let Some(unit) = package.and_then(|p| p.find_cu(load.dwo_id, &load.parent).ok().flatten()) {
            return Some(Arc::new(unit));
        }
        let text = |part: &Reader| part.to_string_lossy().ok().map(|text| PathBuf::from(text.as_ref()));
        let name = load.path.as_ref().and_then(text)?;
        let path = load.comp_dir.as_ref().and_then(text).unwrap_or_default().join(name);
        let inside = |root: &PathBuf| root.join(path.strip_prefix("/").unwrap_or(&path));
        let elf = Elf::open(&self.root.as_ref().map_or_else(|| path.clone(), inside), &self.meter).ok()?;
        let mut dwarf = Dwarf::load(|id| Ok::<_, Error>(part(&elf, id))).ok()?;
        let header = dwarf.units().next().ok()??;
        if dwarf.unit(header).ok()?.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }

    fn open_package(&self) -> Option<DwarfPackage<Reader>> {
        let mut path = self.path.clone()?.into_os_string();
        path.push(".dwp");
        let elf = Elf::open(Path::new(&path), &self.meter).ok()?;
        let empty = section(&elf, "", SectionId::DebugInfo);
        DwarfPackage::load(|id| Ok::<_, Error>(part(&elf, id)), empty).ok()
    }
}

fn part(elf: &Elf, id: SectionId) -> Reader {
    section(elf, id.dwo_name().unwrap_or_default(), id)
}
