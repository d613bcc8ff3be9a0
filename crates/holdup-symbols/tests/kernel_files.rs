//! Kernels and modules of other machines: named from their own files, by build id.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::server::{Server, not_found, with_length};
use common::{compile, tool};
use holdup_symbols::{Kernel, Sources, Symbols};
use holdup_trace::{Image, Symbolizer, decode_build_id};

const ID: &str = "00112233445566778899aabbccddeeff00112233";
/// Where the kernel was built to be, and how far its boot moved it.
const SLIDE: u64 = 0xffff_ffff_1234_0000;

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The address of a symbol in the file's own terms, by `nm`.
fn address(path: &Path, name: &str) -> u64 {
    let all = tool("nm", &[&text(path)]).unwrap();
    let line = all.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

fn foreign(sources: &Sources) -> Symbols {
    Symbols::new(Kernel::None).of_another_machine().with(sources)
}

#[test]
fn functions_and_lines_of_another_machines_kernel_come_from_debuginfod() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = dir.path().join("vmlinux");
    if compile("gcc", &["-O2", "-g", "-no-pie", &format!("-Wl,--build-id=0x{ID}")], &["inline.c"], &kernel).is_none() {
        return;
    }
    let (start, outer, bytes) =
        (address(&kernel, "_start"), address(&kernel, "outer"), std::fs::read(&kernel).unwrap());
    let server = Server::start(Box::new(move |path, stream| {
        if path == format!("/buildid/{ID}/debuginfo") { with_length(stream, &bytes) } else { not_found(stream) }
    }));
    let sources = Sources::new(None, None, Some(&server.url)).cached_in(dir.path());
    let image = |reference: &str, id: &str| Image {
        path: format!("[kernel.kallsyms]{reference}"),
        start: start.wrapping_add(SLIDE),
        end: u64::MAX,
        file_offset: start.wrapping_add(SLIDE),
        build_id: decode_build_id(id),
        pid: 0,
    };
    let at = outer.wrapping_add(SLIDE);
    let locate = |image: Image| foreign(&sources).locate(true, &[Arc::new(image)], at + 4);
    let found = locate(image("_start", ID));
    let outermost = found.last().unwrap();
    assert_eq!((outermost.function.as_str(), outermost.module.as_str(), outermost.line), ("outer", "[kernel]", 9));
    assert!(found.len() > 1 && outermost.offset == 4, "{found:?}");
    // Without a known function nobody knows where the boot put it; without its id it is not known.
    assert_eq!(locate(image("no_such_function", ID)), []);
    assert_eq!(locate(image("_start", "00112233445566778899aabbccddeeff00112234")), []);
}

/// A module of two sections of code that stay, and one that does not.
fn build_module(dir: &Path) -> Option<PathBuf> {
    let (source, object, module) = (dir.join("m.c"), dir.join("m.o"), dir.join("my-mod.ko"));
    let code = "int first(int x) { return x * 3; }\n\
                __attribute__((section(\".init.text\"))) int starts(int x) { return x + 77; }\n\
                __attribute__((section(\".text.late\"))) int late(int x) { return x * 5 + 1; }\n";
    std::fs::write(&source, code).unwrap();
    tool("gcc", &["-O2", "-g", "-c", &text(&source), "-o", &text(&object)])?;
    tool("ld", &["-r", &format!("--build-id=0x{ID}"), &text(&object), "-o", &text(&module)])?;
    Some(module)
}

#[test]
fn modules_are_read_as_distributions_pack_them() {
    let dir = tempfile::tempdir().unwrap();
    let Some(module) = build_module(dir.path()) else { return };
    // Size and alignment of sections, by readelf.
    let sections = tool("readelf", &["-SW", &text(&module)]).unwrap();
    let fields = |name: &str| {
        let line = sections.lines().find(|line| line.contains(&format!(" {name} "))).unwrap();
        let words: Vec<&str> = line.split_once(']').unwrap().1.split_whitespace().collect();
        (u64::from_str_radix(words[4], 16).unwrap(), words.last().unwrap().parse::<u64>().unwrap())
    };
    let ((size, _), (_, align)) = (fields(".text"), fields(".text.late"));
    let base = 0xffff_ffff_c012_3000;
    let late = base + size.next_multiple_of(align);

    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    gz.write_all(&std::fs::read(&module).unwrap()).unwrap();
    let mut packed = vec![("my-mod.ko", None), ("my-mod.ko.gz", Some(gz.finish().unwrap()))];
    for (name, program) in [("my-mod.ko.xz", "xz"), ("my-mod.ko.zst", "zstd")] {
        let arguments: &[&str] =
            if program == "xz" { &["-k", "--check=crc32", "--lzma2=dict=1MiB"] } else { &["-q", "-k"] };
        if tool(program, &[arguments, &[&text(&module)]].concat()).is_some() {
            packed.push((name, None));
        }
    }
    for (name, bytes) in packed {
        let path = dir.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let image = |id: &str| {
            Arc::new(Image {
                path: text(&path),
                start: base,
                end: base + 0x4000,
                build_id: decode_build_id(id),
                ..Image::default()
            })
        };
        let name_at = |id: &str, address: u64| {
            let found = foreign(&Sources::default()).locate(true, &[image(id)], address);
            found.last().map(|l| (l.function.clone(), l.module.clone(), l.offset, l.line))
        };
        assert_eq!(name_at(ID, base + 2), Some(("first".into(), "[my_mod]".into(), 2, 0)), "{name}");
        assert_eq!(name_at(ID, late + 1), Some(("late".into(), "[my_mod]".into(), 1, 0)), "{name}");
        assert_eq!(name_at("0011223344556677", base + 2), None, "{name}: another build");
    }
}
