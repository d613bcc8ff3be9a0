//! Names for the images of Windows: from their PDBs, where a symbol path leads to them.

use std::path::Path;
use std::sync::Arc;

use holdup_trace::{Image, Location, Note, NoteKind, PdbId};
use rustc_hash::FxHashMap;

use crate::dwarf::SourceFrame;
use crate::meter::Meter;
use crate::objects::Objects;
use crate::pdb::{Found, Pdb};
use crate::sources::Sources;
use crate::symbol_path::{Place, candidates, file_name, packed};

/// Memory that every PDB takes, beside what is in it.
const PDB: u64 = 16 << 10;

/// The PDBs of all images, each opened when the first address in it is asked for.
#[derive(Default)]
pub(crate) struct Windows {
    sources: Sources,
    /// By the image's build id.
    pdbs: FxHashMap<Vec<u8>, Option<Pdb>>,
    located: FxHashMap<(Vec<u8>, u64), Vec<Location>>,
}

/// Whether the image is one of Windows: only there folders end with a backslash.
pub(crate) fn is_windows(image: &Image) -> bool {
    image.path.contains('\\') || image.build_id.as_ref().is_some_and(|id| PdbId::from_build_id(id).is_some())
}

/// The last part of a path of Windows.
fn base_name(path: &str) -> &str {
    path.rsplit('\\').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

impl Windows {
    pub fn new(sources: Sources) -> Windows {
        Windows { sources, ..Windows::default() }
    }

    /// Where PDBs are looked for.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// What lies at an address of an image.
    pub fn locate(&mut self, image: &Arc<Image>, address: u64, objects: &mut Objects) -> Vec<Location> {
        let rva = address.wrapping_sub(image.start).wrapping_add(image.file_offset);
        let Some(id) = &image.build_id else { return vec![unnamed(image, rva)] };
        let key = (id.clone(), rva);
        if let Some(known) = self.located.get(&key) {
            return known.clone();
        }
        if !self.pdbs.contains_key(id) {
            let opened = PdbId::from_build_id(id).and_then(|wanted| self.open(&wanted, objects));
            self.pdbs.insert(id.clone(), opened);
        }
        let Some(Some(pdb)) = self.pdbs.get(id) else { return vec![unnamed(image, rva)] };
        let found = pdb.locate(rva).map_or_else(|| vec![unnamed(image, rva)], |found| locations(image, rva, found));
        let size: usize = found.iter().map(|l| l.function.len() + l.module.len() + l.file.len() + 128).sum();
        if pdb.hold(size) {
            self.located.insert(key, found.clone());
        }
        found
    }

    /// The image's PDB from the first place that has it.
    fn open(&self, id: &PdbId, objects: &mut Objects) -> Option<Pdb> {
        let meter = Meter::new(objects.budget());
        if !meter.hold(PDB) || !meter.has_time() {
            return None;
        }
        let mut note = |path: &Path, e: &str| {
            objects.note(Note::new(NoteKind::NoNames, format!("no names from {}: it {e}", path.display())));
        };
        for place in &self.sources.path.0 {
            let folder = match place {
                Place::Folder(folder) => folder.as_path(),
                Place::Server(server, _) => match self.fetch(server, self.sources.cache_of(place), id, &meter) {
                    Some(pdb) => return Some(pdb),
                    None => continue,
                },
            };
            for path in candidates(folder, id) {
                if path.is_file() {
                    match Pdb::open(&path, id, &meter) {
                        Ok(pdb) => return Some(pdb),
                        Err(e) => note(&path, &e),
                    }
                } else if let Some(packed) = packed(&path).filter(|packed| packed.is_file()) {
                    note(&packed, "is compressed: unpack it beside itself with `cabextract`, or `expand` on Windows");
                }
            }
        }
        None
    }

    /// The PDB that a server has, or had: what it gave once is in the cache.
    fn fetch(&self, server: &str, cache: Option<&Path>, id: &PdbId, meter: &Arc<Meter>) -> Option<Pdb> {
        let (name, key) = (file_name(id)?, id.key());
        let kept = cache?.join(name).join(&key).join(name);
        let mut pdb = None;
        let mut accept = |path: &Path| Pdb::open(path, id, meter).map(|opened| pdb = Some(opened));
        let path = self.sources.fetch.get(server, &[name, &key, name], &kept, &mut accept);
        if let Some(path) = path {
            return pdb.or_else(|| Pdb::open(&path, id, meter).ok());
        }
        // Some servers have them packed alone.
        let packed = packed(Path::new(name))?;
        let mut refuse =
            |_: &Path| Err("is compressed: unpack it with `cabextract`, or `expand` on Windows".to_owned());
        self.sources.fetch.get(server, &[name, &key, packed.to_str()?], &kept.with_file_name(&packed), &mut refuse);
        None
    }
}

/// `ntdll.dll+0x4290`
fn unnamed(image: &Image, rva: u64) -> Location {
    let function = format!("{}+0x{rva:x}", base_name(&image.path));
    Location { function, module: image.path.clone(), ..Location::default() }
}

fn locations(image: &Image, rva: u64, found: Found) -> Vec<Location> {
    let offset = found.offset;
    let location = |frame: SourceFrame| {
        let name = Some(frame.function).filter(|name| !name.is_empty());
        // The same text for all addresses of the function.
        let function = name.unwrap_or_else(|| unnamed(image, rva.saturating_sub(offset)).function);
        Location { function, module: image.path.clone(), file: frame.file, line: frame.line, offset }
    };
    found.frames.into_iter().map(location).collect()
}
