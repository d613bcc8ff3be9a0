//! What damage begins from: small sound files of every kind.

#[path = "../../holdup-symbols/tests/common/elf.rs"]
#[allow(missing_docs, reason = "it is that crate's")]
pub mod elf;
#[path = "../../holdup-spool/tests/spools/mod.rs"]
#[allow(missing_docs, reason = "it is that crate's")]
pub mod spools;
#[path = "../../holdup-import/tests/common/trace_dat.rs"]
#[allow(missing_docs, dead_code, reason = "it is that crate's")]
pub mod trace_dat;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use holdup_testing::Need;
use holdup_trace::{Destination, TraceBuilder, file};

/// The importer's fixtures whose names have `part`; those that are packed also as what is in them.
fn fixtures(part: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(FIXTURES).expect("the fixtures").flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.is_file() && path.to_string_lossy().contains(part));
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).expect("a fixture");
        if path.extension().is_some_and(|e| e == "gz") {
            seeds.push(unpacked(&bytes));
        }
        seeds.push(bytes);
    }
    assert!(!seeds.is_empty(), "{part}");
    seeds
}

fn unpacked(gzip: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(gzip).read_to_end(&mut plain).expect("sound gzip");
    plain
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../holdup-import/tests/fixtures");

/// Files and streams of perf.
pub fn perf_data() -> Vec<Vec<u8>> {
    fixtures(".data")
}

/// A trace with a packet of every kind, and its beginning.
pub fn perfetto() -> Vec<Vec<u8>> {
    let mut seeds = fixtures(".pftrace");
    seeds.extend(seeds.first().map(|whole| whole[..whole.len() / 2].to_vec()));
    seeds
}

/// What perf prints.
pub fn perf_script() -> Vec<Vec<u8>> {
    fixtures("script")
}

/// Both versions of trace-cmd's files, packed and not.
pub fn trace_dat() -> Vec<Vec<u8>> {
    use trace_dat::{page, stack, switch, version6, version7, waking};
    let pages = [
        page(&[(1000, switch((7, "seven", 1), (0, "swapper/0"))), (1000, stack(7, &[0xffff_ffff_8100_0010]))], None),
        page(&[(2000, waking(8, (7, "seven"), 0)), (9000, switch((8, "eight", 2), (7, "seven")))], Some(5)),
    ];
    let cpus: Vec<_> = pages.into_iter().map(|page| vec![page]).collect();
    vec![version6(&cpus), version7(&cpus, false), version7(&cpus, true)]
}

/// Folders with one stream each, in one piece.
pub fn ctf() -> Vec<Vec<u8>> {
    let folder = |name: &str| {
        let mut files: Vec<_> = fs::read_dir(Path::new(FIXTURES).join(name)).expect("it").flatten().collect();
        files.sort_by_key(|file| (!file.file_name().to_string_lossy().starts_with("metadata"), file.file_name()));
        let read = |file: &fs::DirEntry| unpacked(&fs::read(file.path()).expect("a fixture"));
        let (description, stream) = (read(&files[0]), read(&files[1]));
        [&(description.len() as u32).to_le_bytes()[..], &description, &stream].concat()
    };
    ["perf.ctf", "ust.ctf"].map(folder).to_vec()
}

/// Logs of ETW as the tests write them: packed or not, stacks by keys or not, and with more than a buffer of each CPU.
pub fn etl() -> Vec<Vec<u8>> {
    use holdup_testing::etl::{Log, Packing};
    let kinds = [(Packing::Plain, false), (Packing::Plain, true), (Packing::Lz77, true), (Packing::Huffman, false)];
    let log = |(packing, by_keys)| {
        let mut log = Log::example(packing, by_keys);
        log.buffer_size = 700;
        log.finish()
    };
    kinds.into_iter().map(log).collect()
}

/// The same traces as `.holdup` files.
pub fn holdup_file() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seed.holdup");
    let written = perf_data().into_iter().map(|bytes| {
        let mut builder = TraceBuilder::new(&Destination::Memory).expect("memory needs no folder");
        let input = holdup_import::Input::from_bytes(Path::new("seed"), bytes).expect("a fixture");
        input.import(&mut builder).expect("a fixture");
        file::write(&builder.finish(None).expect("a trace"), &path).expect("room for a file");
        fs::read(&path).expect("a file")
    });
    written.collect()
}

/// A recorder's spool with every kind of record, and one that a recorder left in the middle.
pub fn spool() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seed.spool");
    spools::write_spool(&path, &spools::records(), &spools::stacks());
    let whole = fs::read(&path).expect("a file");
    vec![whole[..whole.len() * 2 / 3].to_vec(), whole]
}

/// Names of functions, mangled by C++ and both ways of Rust; those that cost most beside usual ones.
pub fn demangle() -> Vec<Vec<u8>> {
    let usual = [
        "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
        "_ZN4core3ptr85drop_in_place$LT$alloc..vec..Vec$LT$alloc..string..String$GT$$GT$17h0123456789abcdefE",
        "_RNvMs_NtCs1234_7mycrate4nameNtB4_3Foo3barNvXs_B6_B1_",
        "_ZNKSt8functionIFvRKN5boost6system10error_codeEmEEclES4_m",
        "_ZZN3foo3barEvENKUlT_E_clIiEEDaS0_",
        "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
    ];
    let mut seeds: Vec<Vec<u8>> = usual.iter().map(|name| name.as_bytes().to_vec()).collect();
    seeds.push(usual.join("\n").into_bytes());
    seeds.extend(elf::costly_names().into_iter().map(String::into_bytes));
    seeds
}

/// Programs: made by hand, with lines, inlined functions, frame programs and packed sections; where there is a compiler, also
/// one of it.
pub fn object() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        elf::elf(256, elf::symbols(&["main".into(), "_ZN3foo3barEv".into()])),
        elf::elf(256, elf::inlined(5, 256)),
        elf::elf(256, elf::shared_lines(4, 8)),
        elf::elf(256, vec![elf::long_frame_program(256, 20)]),
        elf::elf(256, vec![elf::packed_zeros(".debug_info", 1 << 20)]),
    ];
    if holdup_testing::has(Need::Program("gcc")) {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("seed");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../holdup-symbols/tests/programs/inline.c");
        let built = Command::new("gcc").args(["-O2", "-g"]).arg(source).arg("-o").arg(&out).status();
        assert!(built.is_ok_and(|status| status.success()), "gcc fails");
        seeds.push(fs::read(out).expect("a program"));
    }
    seeds
}
