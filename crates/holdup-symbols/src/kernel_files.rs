//! The kernel of a trace from elsewhere, and its modules: named from their own files, by build id.
//!
//! Where the kernel that runs is the one that was recorded, /proc/kallsyms knows all this better.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use holdup_trace::{Image, Location};
use rustc_hash::FxHashMap;

use crate::debuginfod::Artifact;
use crate::elf::Elf;
use crate::files::open_regular;
use crate::find::{by_id, same_id};
use crate::meter::Meter;
use crate::object::Object;
use crate::objects::Objects;
use crate::symtab::address_of;
use crate::unpack::unpack_file;

/// How perf names the kernel; behind it stands a function, whose address the offset is.
const KERNEL: &str = "[kernel.kallsyms]";
/// Largest file of a module, packed.
const MODULE: u64 = 256 << 20;

/// Kernels and modules by build id.
#[derive(Default)]
pub(crate) struct KernelFiles {
    files: FxHashMap<Vec<u8>, Option<KernelFile>>,
}

struct KernelFile {
    object: Object,
    /// What has to be taken from an address to have the file's own.
    slide: u64,
}

impl KernelFiles {
    /// What lies at an address of the kernel; `None` if nobody has its file.
    pub fn locate(&mut self, image: &Image, address: u64, objects: &Objects) -> Option<Vec<Location>> {
        let id = image.build_id.as_ref()?;
        if !self.files.contains_key(id) {
            self.files.insert(id.clone(), open(image, id, objects));
        }
        let file = self.files.get(id)?.as_ref()?;
        let (found, _) = file.object.locate(address.wrapping_sub(file.slide));
        Some(found)
    }
}

fn open(image: &Image, id: &[u8], objects: &Objects) -> Option<KernelFile> {
    let meter = Meter::new(objects.budget());
    let remote = |what: Artifact| objects.remote()?.get(id, what, &meter);
    let local = by_id(id, &meter);
    let (elf, name, slide) = if let Some(function) = image.path.strip_prefix(KERNEL) {
        let elf = local.or_else(|| remote(Artifact::Debuginfo))?;
        // Where the boot put the kernel only perf's reference tells.
        let slide = image.file_offset.wrapping_sub(address_of(&elf, function)?);
        (elf, "[kernel]".to_owned(), slide)
    } else {
        let elf = module(Path::new(&image.path), id, &meter).or(local);
        let elf = elf.or_else(|| remote(Artifact::Debuginfo)).or_else(|| remote(Artifact::Executable))?;
        (elf, module_name(&image.path), image.start)
    };
    Some(KernelFile { object: Object::from_elf(elf, name), slide })
}

/// `/lib/modules/6.1/kernel/net/nf-tables.ko.xz` → `[nf_tables]`, as /proc/kallsyms has it.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path).trim_matches(['[', ']']);
    let stem = file.split_once(".ko").map_or(file, |(stem, _)| stem);
    format!("[{}]", stem.replace('-', "_"))
}

/// The module's file, if it is that build. Distributions pack them.
fn module(path: &Path, id: &[u8], meter: &Arc<Meter>) -> Option<Elf> {
    let (file, meta) = path.is_absolute().then(|| open_regular(path, true).ok())??;
    if meta.len() > MODULE || !meter.fits(meta.len()) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MODULE).read_to_end(&mut bytes).ok()?;
    let bytes = unpack_file(bytes, meter.memory_left())?;
    if !meter.hold(bytes.len() as u64) {
        return None;
    }
    Elf::from_bytes(bytes, meter).ok().filter(|elf| same_id(elf.build_id.as_deref(), id))
}

#[cfg(test)]
mod tests {
    use super::module_name;

    #[test]
    fn modules_are_named_as_the_kernel_does() {
        assert_eq!(module_name("/lib/modules/6.1/kernel/net/nf-tables.ko.xz"), "[nf_tables]");
        assert_eq!(module_name("[ext4]"), "[ext4]");
        assert_eq!(module_name("/x/kvm.ko"), "[kvm]");
    }
}
