//! Where the file behind a mapping is, and the debug information that was split from it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdup_trace::Image;

use crate::elf::Elf;
use crate::files::open_regular;
use crate::meter::Meter;

/// What the kernel appends to the path of a file that is gone.
const DELETED: &str = " (deleted)";

/// Opens the file that an image was mapped from, if it is still the same.
///
/// `held` is where it is kept open, for when it is gone. `Err` is a sentence about the first candidate that is there but cannot be used.
pub(crate) fn open_image(
    image: &Image,
    root: Option<&Path>,
    held: Option<&Path>,
    meter: &Arc<Meter>,
) -> Result<Elf, String> {
    let mut problem = None;
    for path in image_candidates(image, root).into_iter().chain(held.map(Path::to_owned)) {
        match Elf::open(&path, meter) {
            Ok(elf) => match &image.build_id {
                Some(wanted) if !same_id(elf.build_id.as_deref(), wanted) => {
                    let found = elf.build_id.as_deref().map_or_else(|| "none".into(), hex);
                    let text = "is another build than the one recorded";
                    problem.get_or_insert(format!("{} {text} (build id {found}, not {})", path.display(), hex(wanted)));
                }
                _ => return Ok(elf),
            },
            Err(_) if !path.exists() => {}
            Err(e) => _ = problem.get_or_insert(format!("{} {e}", path.display())),
        }
    }
    Err(problem.unwrap_or_else(|| format!("{} is not there", image.path)))
}

/// perf pads build ids to 20 bytes with zeros.
pub(crate) fn same_id(found: Option<&[u8]>, wanted: &[u8]) -> bool {
    let trim = |id: &[u8]| id.len() - id.iter().rev().take_while(|&&b| b == 0).count();
    found.is_some_and(|found| !found.is_empty() && found[..trim(found)] == wanted[..trim(wanted)])
}

fn image_candidates(image: &Image, root: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let plain = image.path.strip_suffix(DELETED);
    if plain.is_some() && image.pid != 0 {
        // While the process lives the kernel still gives the file out.
        paths.push(mapped_place(image));
    }
    let path = plain.unwrap_or(&image.path);
    // A file that took the place of a deleted one is only used if its build id proves it to be the same.
    if plain.is_none() || image.build_id.is_some() {
        if let Some(root) = root {
            paths.push(root.join(path.trim_start_matches('/')));
        }
        paths.push(path.into());
    }
    paths
}

/// Where the file of an image can be opened while its process lives: as that has mapped it or, for want of the capability, by its path there.
pub(crate) fn live_places(image: &Image) -> [PathBuf; 2] {
    let Image { pid, path, .. } = image;
    [mapped_place(image), format!("/proc/{pid}/root{path}").into()]
}

fn mapped_place(image: &Image) -> PathBuf {
    format!("/proc/{}/map_files/{:x}-{:x}", image.pid, image.start, image.end).into()
}

/// The root directory to look for the process's files in; `None` if it is ours.
pub(crate) fn process_root(pid: u32) -> Option<PathBuf> {
    if pid == 0 {
        return None;
    }
    let of = |pid: &str, what: &str| std::fs::read_link(format!("/proc/{pid}/{what}")).ok();
    let id = pid.to_string();
    let root = of(&id, "root")?;
    let ours = of(&id, "ns/mnt")? == of("self", "ns/mnt")? && root == Path::new("/");
    (!ours).then(|| format!("/proc/{pid}/root").into())
}

/// The separate debug file of `elf`, by build id or by `.gnu_debuglink`.
pub(crate) fn debug_file(elf: &Elf, root: Option<&Path>) -> Option<Elf> {
    let ours = Path::new("/");
    let roots = root.into_iter().chain([ours]);
    roots.filter_map(|root| by_build_id(elf, root).or_else(|| by_link(elf, root))).next()
}

fn by_build_id(elf: &Elf, root: &Path) -> Option<Elf> {
    let id = elf.build_id.as_deref()?;
    let found = Elf::open(&root.join(path_of_id(id)?), elf.meter()).ok()?;
    found.build_id.as_deref().is_none_or(|found| found == id).then_some(found)
}

/// The debug file of this machine with a build id, which it must have itself.
pub(crate) fn by_id(id: &[u8], meter: &Arc<Meter>) -> Option<Elf> {
    let path = Path::new("/").join(path_of_id(id)?);
    Elf::open(&path, meter).ok().filter(|found| same_id(found.build_id.as_deref(), id))
}

/// Where distributions put debug files, below the root.
fn path_of_id(id: &[u8]) -> Option<String> {
    let (first, rest) = id.split_at_checked(1).filter(|(_, rest)| rest.len() > 1)?;
    Some(format!("usr/lib/debug/.build-id/{}/{}.debug", hex(first), hex(rest)))
}

fn by_link(elf: &Elf, root: &Path) -> Option<Elf> {
    let (name, crc) = elf.debug_link()?;
    // The name is the file's word: it must not lead elsewhere.
    if name.is_empty() || name.contains('/') || name == ".." {
        return None;
    }
    let dir = elf.path()?.parent()?;
    let below = root.join("usr/lib/debug").join(dir.strip_prefix("/").unwrap_or(dir));
    [dir.join(&name), dir.join(".debug").join(&name), below.join(&name)]
        .iter()
        .filter(|path| Some(path.as_path()) != elf.path())
        .find_map(|path| Elf::open(path, elf.meter()).ok().filter(|found| belongs(elf, found, crc)))
}

/// The build id proves it at no cost; without one the whole file's checksum has to be computed.
fn belongs(elf: &Elf, debug: &Elf, crc: u32) -> bool {
    if let (Some(a), Some(b)) = (&elf.build_id, &debug.build_id) {
        return a == b;
    }
    debug.path().and_then(|path| checksum(path, debug.meter())) == Some(crc)
}

/// The checksum of a whole file, a part at a time: it can be larger than memory.
fn checksum(path: &Path, meter: &Meter) -> Option<u32> {
    let (mut file, _) = open_regular(path, true).ok()?;
    let (mut hash, mut part) = (flate2::Crc::new(), vec![0; 1 << 18]);
    loop {
        let read = file.read(&mut part).ok()?;
        if read == 0 {
            return Some(hash.sum());
        }
        hash.update(&part[..read]);
        if !meter.tick() {
            return None;
        }
    }
}

/// The file with what `dwz` found in several debug files. The link can lead anywhere: only a file that has the build
/// id is used, so that nobody is told what is in a file of which he does not know even that.
pub(crate) fn shared_debug_file(debug: &Elf) -> Option<Elf> {
    let (name, id) = debug.alt_link()?;
    let same = |found: &Elf| found.build_id.as_deref() == Some(&id[..]);
    let at = debug.path()?.parent()?.join(&name);
    let by_name = Elf::open(&at, debug.meter()).ok().filter(same);
    by_name.or_else(|| {
        let (first, rest) = (hex(id.get(..1)?), hex(id.get(1..)?));
        let path = format!("/usr/lib/debug/.build-id/{first}/{rest}.debug");
        Elf::open(Path::new(&path), debug.meter()).ok().filter(same)
    })
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
