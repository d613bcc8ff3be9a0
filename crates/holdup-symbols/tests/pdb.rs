//! Names for images of Windows from PDBs: what they say, where they are found, and what damage does.

mod common;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdup_symbols::{Kernel, Sources, Symbols};
use holdup_testing::damage::Random;
use holdup_trace::{Image, Location, PdbId, Symbolizer};

const BASE: u64 = 0x7ff6_1234_0000;

/// What llvm-symbolizer says: from each address to the next, the innermost function first, with lines. The line of `peek` is
/// that of `llvm-pdbutil dump -symbols` (20 from 0x10ef, 21 from 0x10f5): version 14 of the former has 21 from 0x10f0 on.
const EXPECTED: &[(u64, &[(&str, u32)])] = &[
    (0x1000, &[("work::Queue::Queue", 24)]),
    (0x100d, &[("work::Queue::Queue", 25)]),
    (0x10d4, &[("work::Queue::Queue", 26)]),
    (0x10d5, &[]),
    (0x10e0, &[("work::Queue::pop", 29)]),
    (0x10ef, &[("work::Queue::peek", 20), ("work::Queue::pop", 30)]),
    (0x10f5, &[("work::twice", 14), ("work::Queue::peek", 21), ("work::Queue::pop", 30)]),
    (0x10fb, &[("work::Queue::peek", 21), ("work::Queue::pop", 30)]),
    (0x1101, &[("work::Queue::pop", 30)]),
    (0x1102, &[]),
    (0x1110, &[("plain_function", 35)]),
    (0x1116, &[("plain_function", 36)]),
    (0x111a, &[]),
    (0x1120, &[("entry", 41)]),
    (0x112f, &[("entry", 42)]),
    (0x1140, &[("entry", 44)]),
    (0x114f, &[("entry", 45)]),
    (0x1162, &[]),
];
const END: u64 = 0x1170;

fn unpacked(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.gz"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The id of `fixture.pdb` or `public.pdb`, as llvm-pdbutil prints it.
fn id(name: &str) -> PdbId {
    let guid = if name == "fixture.pdb" {
        0xcfb7_7243_16b4_82ef_4c4c_4420_5044_422e
    } else {
        0x0678_b0d7_20e4_f9fc_4c4c_4420_5044_422e_u128
    };
    PdbId { guid: guid.to_be_bytes(), age: 1, name: name.into() }
}

fn image(id: &PdbId) -> Vec<Arc<Image>> {
    let path = r"\Device\HarddiskVolume2\work\fixture.exe".into();
    vec![Arc::new(Image {
        start: BASE,
        end: BASE + 0x6000,
        path,
        build_id: id.to_build_id(),
        pid: 12,
        ..Image::default()
    })]
}

fn symbols(path: &Path) -> Symbols {
    Symbols::new(Kernel::None).with(&Sources::new(Some(path.to_str().unwrap()), None, None))
}

fn at(symbols: &mut Symbols, images: &[Arc<Image>], rva: u64) -> Vec<Location> {
    symbols.locate(false, images, BASE + rva)
}

fn folder_with(name: &str, path: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, unpacked(name)).unwrap();
    dir
}

#[test]
fn functions_inlines_and_lines_are_those_of_llvm() {
    let dir = folder_with("fixture.pdb", "fixture.pdb");
    let (mut symbols, images) = (symbols(dir.path()), image(&id("fixture.pdb")));
    for rva in 0x1000..END {
        let &(_, expected) = EXPECTED.iter().rfind(|(start, _)| *start <= rva).unwrap();
        let found = at(&mut symbols, &images, rva);
        if expected.is_empty() {
            assert_eq!(found[0].function, format!("fixture.exe+0x{rva:x}"), "{rva:x}");
            assert_eq!(found.len(), 1);
            continue;
        }
        let frames: Vec<(&str, u32)> = found.iter().map(|l| (l.function.as_str(), l.line)).collect();
        assert_eq!(frames, expected, "{rva:x}");
        assert!(found.iter().all(|l| l.file == "/src/fixture.cpp" && l.module == images[0].path), "{found:?}");
        let start = EXPECTED.iter().rfind(|(s, f)| *s <= rva && f.last().map(|f| f.0) != expected.last().map(|f| f.0));
        let first = EXPECTED.iter().find(|(s, _)| *s > start.map_or(0, |s| s.0)).unwrap().0;
        assert_eq!(found[0].offset, rva - first, "{rva:x}");
    }
    assert_eq!(symbols.notes(), []);
}

#[test]
fn public_symbols_name_functions_where_nothing_else_does() {
    let dir = folder_with("public.pdb", "public.pdb");
    let (mut symbols, images) = (symbols(dir.path()), image(&id("public.pdb")));
    for (rva, name) in [
        (0x1000, "work::Queue::Queue"),
        (0x10f5, "work::Queue::pop"),
        (0x1110, "plain_function"),
        (0x1161, "entry"),
        (0x2000, "fixture.exe+0x2000"),
        (0x5fff, "fixture.exe+0x5fff"),
    ] {
        let found = at(&mut symbols, &images, rva);
        assert_eq!((found.len(), found[0].function.as_str(), found[0].line), (1, name, 0), "{rva:x}");
    }
}

#[test]
fn a_symbol_store_is_searched_as_debuggers_do() {
    let id = id("fixture.pdb");
    let key = id.key();
    assert_eq!(key, "CFB7724316B482EF4C4C44205044422E1");
    for path in
        ["fixture.pdb".into(), format!("fixture.pdb/{key}/fixture.pdb"), format!("fi/fixture.pdb/{key}/fixture.pdb")]
    {
        let dir = folder_with("fixture.pdb", &path);
        let text = format!("/nowhere;srv*{}*http://127.0.0.1:1/never", dir.path().display());
        let mut symbols = Symbols::new(Kernel::None).with(&Sources::new(None, Some(&text), None));
        assert_eq!(at(&mut symbols, &image(&id), 0x1110)[0].function, "plain_function", "{path}");
    }
}

#[test]
fn a_pdb_of_another_build_names_nothing() {
    let dir = folder_with("fixture.pdb", "fixture.pdb");
    let good = id("fixture.pdb");
    let mut guid = good.guid;
    guid[3] ^= 1;
    for wrong in [PdbId { guid, ..good.clone() }, PdbId { age: 2, ..good.clone() }] {
        let mut symbols = symbols(dir.path());
        assert_eq!(at(&mut symbols, &image(&wrong), 0x1110)[0].function, "fixture.exe+0x1110");
        let notes = symbols.notes();
        assert!(
            notes.len() == 1 && notes[0].text.contains("of another build") && notes[0].text.contains(&wrong.key()),
            "{notes:?}"
        );
    }
    std::fs::write(
        dir.path().join("fixture.pdb"),
        "nothing of the kind, but long enough to be read as a header of a file",
    )
    .unwrap();
    let mut symbols = symbols(dir.path());
    assert_eq!(at(&mut symbols, &image(&good), 0x1110)[0].function, "fixture.exe+0x1110");
    assert!(symbols.notes()[0].text.contains("is not a PDB file"), "{:?}", symbols.notes());
}

#[test]
fn what_is_compressed_is_told() {
    let dir = folder_with("fixture.pdb", "fixture.pd_");
    let mut symbols = symbols(dir.path());
    assert_eq!(at(&mut symbols, &image(&id("fixture.pdb")), 0x1110)[0].function, "fixture.exe+0x1110");
    let notes = symbols.notes();
    assert!(notes[0].text.contains("fixture.pd_") && notes[0].text.contains("cabextract"), "{notes:?}");
}

#[test]
fn images_without_an_id_and_kernel_images_have_names_of_their_own() {
    let dir = folder_with("fixture.pdb", "fixture.pdb");
    let mut symbols = symbols(dir.path());
    let mut driver = Image { build_id: None, ..(*image(&id("fixture.pdb"))[0]).clone() };
    let none = [Arc::new(driver.clone())];
    assert_eq!(at(&mut symbols, &none, 0x1110)[0].function, "fixture.exe+0x1110");
    (driver.pid, driver.build_id) = (0, id("fixture.pdb").to_build_id());
    assert_eq!(symbols.locate(true, &[Arc::new(driver)], BASE + 0x1110)[0].function, "plain_function");
}

/// Neither panics that get out, nor hangs, nor memory beyond the meter; whoever wants more rounds says so in `ROUNDS`.
#[test]
fn mutated_pdbs_do_no_harm() {
    let rounds = std::env::var("ROUNDS").map_or(300, |n| n.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("fixture.pdb");
    let mut random = Random::new(7);
    std::panic::set_hook(Box::new(|_| {}));
    let mut named = 0;
    for round in 0..rounds {
        let name = if round % 4 == 0 { "public.pdb" } else { "fixture.pdb" };
        let good = unpacked(name);
        let used: Vec<usize> = (0..good.len()).filter(|&i| good[i] != 0).collect();
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(12) {
            // What is zero is mostly not read.
            let at = if random.below(4) == 0 { random.below(good.len()) } else { used[random.below(used.len())] };
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8][random.below(6)];
        }
        if round % 16 == 0 {
            bytes.truncate(random.below(good.len()));
        }
        std::fs::write(&path, &bytes).unwrap();
        let id = PdbId { name: "fixture.pdb".into(), ..id(name) };
        let (mut symbols, images) = (symbols(dir.path()), image(&id));
        for rva in (0x1000..END).step_by(5).chain([0, 0x2000, 0xffff_ffff, 1 << 40]) {
            let found = at(&mut symbols, &images, rva);
            named += usize::from(found.iter().all(|l| !l.function.starts_with("fixture.exe+")));
        }
    }
    let _ = std::panic::take_hook();
    assert!(named > rounds * 10, "most damage leaves most names: {named} of {rounds} rounds");
}
