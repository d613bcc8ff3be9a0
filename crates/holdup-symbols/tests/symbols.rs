//! Names, lines, inlined functions and code of real files.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{BASE, compile, flat_image, images, symbol, tool};
use holdup_symbols::{Kernel, Symbols};
use holdup_testing::{Need, skip};
use holdup_trace::{Image, Location, Symbolizer, decode_build_id};

/// What the whole of a function is called: the rows of each of its addresses.
fn rows(symbols: &mut Symbols, image: &Arc<Image>, start: u64, len: u64) -> Vec<Vec<Location>> {
    (start..start + len).map(|a| symbols.locate(false, std::slice::from_ref(image), BASE + a)).collect()
}

fn assert_inlined(symbols: &mut Symbols, image: &Arc<Image>, outer: u64) {
    let all = rows(symbols, image, outer, 8);
    let deepest = all.iter().find(|r| r.len() == 3).unwrap_or_else(|| panic!("{all:#?} {:?}", symbols.notes()));
    let named: Vec<_> = deepest.iter().map(|l| (l.function.as_str(), l.line)).collect();
    assert_eq!(named, [("innermost", 3), ("middle", 6), ("outer", 9)]);
    assert!(deepest.iter().all(|l| l.file.ends_with("tests/programs/inline.c") && l.offset < 8), "{deepest:#?}");
    assert!(deepest.iter().all(|l| l.module == image.path && l.offset == deepest[0].offset));
}

#[test]
fn inlined_functions_and_lines_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let formats = ["-g", "-gdwarf-4", "-gdwarf-5", "-gz=zlib"];
    for (i, format) in formats.iter().enumerate() {
        let path = dir.path().join(format!("inline{i}"));
        if compile("gcc", &["-O2", "-g", format], &["inline.c"], &path).is_none() {
            return;
        }
        let mut symbols = Symbols::new(Kernel::None);
        assert_inlined(&mut symbols, &flat_image(&path), symbol(&path, "outer"));
        assert_eq!(symbols.notes(), [], "{format}");
    }
}

#[test]
fn debug_information_compressed_by_zstd() {
    let dir = tempfile::tempdir().unwrap();
    let (path, packed) = (dir.path().join("inline"), dir.path().join("packed"));
    if compile("gcc", &["-O2", "-g"], &["inline.c"], &path).is_none() {
        return;
    }
    let mut objcopy = std::process::Command::new("objcopy");
    let packing = objcopy.arg("--compress-debug-sections=zstd").args([&path, &packed]).output();
    if !packing.as_ref().is_ok_and(|o| o.status.success()) {
        let help = std::process::Command::new("objcopy").arg("--help").output();
        let is_here = help.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("zstd"));
        return skip(Need::Other { name: "objcopy that knows zstd", is_here }, &format!("{packing:?}"));
    }
    assert_inlined(&mut Symbols::new(Kernel::None), &flat_image(&packed), symbol(&path, "outer"));
}

#[test]
fn symbols_without_debug_information_and_without_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain");
    if compile("gcc", &["-O2"], &["inline.c"], &path).is_none() {
        return;
    }
    let outer = symbol(&path, "outer");
    let mut symbols = Symbols::new(Kernel::None);
    let found = &rows(&mut symbols, &flat_image(&path), outer, 8)[3];
    assert_eq!((found.len(), found[0].function.as_str(), found[0].offset, found[0].line), (1, "outer", 3, 0));
    let stripped = dir.path().join("stripped");
    tool("strip", &[path.to_str().unwrap(), "-o", stripped.to_str().unwrap()]);
    // The bounds of the function are still known: all of its addresses have one name.
    let found = rows(&mut symbols, &flat_image(&stripped), outer, 8);
    for (offset, row) in found.iter().enumerate() {
        assert_eq!((row[0].function.as_str(), row[0].offset), (&*format!("stripped+0x{outer:x}"), offset as u64));
    }
}

#[test]
fn separate_debug_files_and_build_ids() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("split");
    if compile("gcc", &["-O2", "-g", "-Wl,--build-id"], &["inline.c"], &path).is_none() {
        return;
    }
    let (name, outer) = (path.to_str().unwrap(), symbol(&path, "outer"));
    let notes = tool("readelf", &["-n", name]).unwrap();
    let id = notes.lines().find_map(|l| l.trim().strip_prefix("Build ID: ")).unwrap();
    let debug = format!("{name}.debug");
    tool("objcopy", &["--only-keep-debug", name, &debug]);
    tool("strip", &[name]);
    tool("objcopy", &[&format!("--add-gnu-debuglink={debug}"), name]);
    let with_id = |id: &str| Arc::new(Image { build_id: decode_build_id(id), ..(*flat_image(&path)).clone() });

    let mut symbols = Symbols::new(Kernel::None);
    assert_inlined(&mut symbols, &with_id(id), outer);
    assert_inlined(&mut symbols, &flat_image(&path), outer);
    assert_eq!(symbols.notes(), []);

    let other = format!("00{}", &id[2..]);
    let found = &rows(&mut symbols, &with_id(&other), outer, 8)[3];
    assert_eq!(found[0].function, format!("split+0x{:x}", outer + 3));
    assert!(symbols.notes()[0].text.contains("another build"), "{:?}", symbols.notes());
    assert!(symbols.code(false, &[with_id(&other)], BASE + outer, 100).is_none());
}

#[test]
fn cpp_and_rust_names_have_no_arguments_and_no_hashes() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libengine.so");
    let args = ["-O2", "-g", "-fPIC", "-shared", "-pthread"];
    if compile("g++", &args, &["engine.cpp"], &library).is_some() {
        let step = symbol(&library, "_ZN6engine6Engine4stepEi");
        let all = rows(&mut Symbols::new(Kernel::None), &flat_image(&library), step, 40);
        assert!(all.iter().all(|r| r.last().unwrap().function == "engine::Engine::step"), "{all:#?}");
        assert!(all[0].last().unwrap().file.ends_with("engine.cpp"));
    }
    let path = dir.path().join("threads");
    if compile("rustc", &["-O", "-g", "--edition=2024"], &["threads.rs"], &path).is_some() {
        let nm = tool("nm", &[path.to_str().unwrap()]).unwrap();
        let raw = nm.lines().find(|l| l.contains("wait_for_lock")).unwrap().split_whitespace().nth(2).unwrap();
        let all = rows(&mut Symbols::new(Kernel::None), &flat_image(&path), symbol(&path, raw), 60);
        let (end, _) =
            all.iter().enumerate().find(|(i, r)| r.last().unwrap().offset != *i as u64).unwrap_or((60, &all[0]));
        assert!(
            end > 20 && all[..end].iter().all(|r| r.last().unwrap().function == "threads::wait_for_lock"),
            "{end} {all:#?}"
        );
        let all = &all[..end];
        let inlined = all.iter().flatten().find(|l| l.function.contains("Mutex<T>::lock"));
        assert!(inlined.is_some_and(|l| l.line > 0 && l.file.contains("mutex.rs")), "{all:#?}");
    }
}

#[test]
fn code_is_that_of_the_function() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain");
    if compile("gcc", &["-O2"], &["inline.c"], &path).is_none() {
        return;
    }
    let (image, outer) = (flat_image(&path), symbol(&path, "outer"));
    let mut symbols = Symbols::new(Kernel::None);
    let (start, code) = symbols.code(false, std::slice::from_ref(&image), BASE + outer + 5, 4096).unwrap();
    let file = std::fs::read(&path).unwrap();
    assert_eq!(start, BASE + outer);
    assert_eq!(code, file[outer as usize..outer as usize + code.len()]);
    let arch = holdup_disasm::Arch::host().unwrap();
    let all = holdup_disasm::disassemble(arch, &code, start);
    assert_eq!(all.last().unwrap().kind, holdup_disasm::Kind::Return, "{all:#?}");
    // A window of a function that is too long begins with an instruction.
    let (start, code) = symbols.code(false, std::slice::from_ref(&image), BASE + outer + 7, 6).unwrap();
    assert!(all.iter().any(|i| i.address == start) && code.len() <= 6 && start > BASE + outer, "{start:x}");
}

#[test]
fn lines_are_those_of_each_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plain");
    if compile("gcc", &["-O2", "-g"], &["inline.c"], &path).is_none() {
        return;
    }
    let (image, outer) = (flat_image(&path), symbol(&path, "outer"));
    let images = std::slice::from_ref(&image);
    let mut symbols = Symbols::new(Kernel::None);
    let (start, code) = symbols.code(false, images, BASE + outer, 4096).unwrap();
    let lines = symbols.lines(images, start, code.len());
    assert!(lines.len() > 2 && lines[0].offset == 0 && lines.is_sorted_by_key(|l| l.offset), "{lines:#?}");
    for offset in 0..code.len() as u32 {
        let line = lines.iter().rev().find(|l| l.offset <= offset).unwrap();
        let all = symbols.locate(false, images, start + u64::from(offset));
        assert_eq!((&line.file, line.line), (&all[0].file, all[0].line), "at {offset}");
        let inlined = if all.len() > 1 { all[0].function.as_str() } else { "" };
        assert_eq!(line.inlined, inlined, "at {offset}");
    }
    assert!(lines.iter().any(|l| !l.inlined.is_empty()));
    assert_eq!(symbols.lines(images, BASE - 1, 10), []);
}

#[test]
fn the_running_kernel_and_its_vdso() {
    let mut symbols = Symbols::new(Kernel::Live);
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let line = kallsyms.lines().find(|l| l.ends_with(" T wake_up_process"));
    let address = line.and_then(|l| u64::from_str_radix(l.split(' ').next()?, 16).ok()).filter(|&a| a != 0);
    match address {
        None => skip(Need::KernelAddresses, "all are 0"),
        Some(address) => {
            let found = &symbols.locate(true, &[], address + 4)[0];
            assert_eq!((&*found.function, &*found.module, found.offset), ("wake_up_process", "[kernel]", 4));
            if let Some((start, code)) = symbols.code(true, &[], address + 4, 1 << 16) {
                assert!(start == address && code.len() > 8);
            }
            assert_eq!(Symbols::new(Kernel::None).locate(true, &[], address), []);
        }
    }
    let images = images(std::process::id());
    let vdso = images.iter().find(|i| i.path == "[vdso]").expect("every process has one");
    let mut named = (vdso.start..vdso.end).flat_map(|a| symbols.locate(false, &images, a));
    assert!(named.any(|l| l.function.ends_with("clock_gettime") && l.module == "[vdso]"));
}

#[test]
fn a_stripped_library_does_not_lend_names_beyond_their_size() {
    let dir = tempfile::tempdir().unwrap();
    let (library, stripped) = (dir.path().join("libengine.so"), dir.path().join("stripped.so"));
    let args = ["-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"];
    if compile("g++", &args, &["engine.cpp"], &library).is_none() {
        return;
    }
    tool("strip", &[library.to_str().unwrap(), "-o", stripped.to_str().unwrap()]);
    let (hidden, exported) = (symbol(&library, "_ZN6engine6Engine4stepEi"), symbol(&library, "run_engine"));
    let mut symbols = Symbols::new(Kernel::None);
    let image = flat_image(&stripped);
    assert_eq!(rows(&mut symbols, &image, exported, 1)[0][0].function, "run_engine");
    assert_eq!(rows(&mut symbols, &image, hidden + 2, 1)[0][0].function, format!("stripped.so+0x{hidden:x}"));
}

#[test]
fn mini_debug_information_of_stripped_programs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mini) = (dir.path().join("mini"), dir.path().join("mini.debug"));
    if compile("gcc", &["-O2"], &["inline.c"], &path).is_none() {
        return;
    }
    let (name, outer) = (path.to_str().unwrap(), symbol(&path, "outer"));
    tool("objcopy", &["--only-keep-debug", name, mini.to_str().unwrap()]);
    if tool("xz", &[mini.to_str().unwrap()]).is_none() {
        return;
    }
    tool("strip", &[name]);
    tool("objcopy", &["--add-section", &format!(".gnu_debugdata={}.xz", mini.display()), name]);
    let found = &rows(&mut Symbols::new(Kernel::None), &flat_image(&path), outer, 4)[2];
    assert_eq!((found[0].function.as_str(), found[0].offset), ("outer", 2));
}

#[test]
fn code_compiled_at_run_time_and_unknown_memory() {
    let pid = std::process::id();
    let map = Path::new("/tmp").join(format!("perf-{pid}.map"));
    std::fs::write(&map, "30000000 100 LazyCompile:*tick /app/a.js:7\n30000100 20 py::run:/app/run.py\n").unwrap();
    let image =
        |start, path: &str| Arc::new(Image { start, end: start + 0x1000, path: path.into(), pid, ..Image::default() });
    let images = [image(0x3000_0000, "//anon"), image(0x4000_0000, "/no/such/file")];
    let mut symbols = Symbols::new(Kernel::None);
    let js = symbols.locate(false, &images, 0x3000_0010);
    assert_eq!((&*js[0].function, &*js[0].module, js[0].offset), ("tick", "[jit]", 16));
    assert_eq!((&*js[0].file, js[0].line), ("/app/a.js", 7));
    // In no image at all.
    let python = symbols.locate(false, &images[1..], 0x3000_0110);
    assert_eq!((&*python[0].function, &*python[0].file), ("run", "/app/run.py"));
    std::fs::remove_file(map).unwrap();
    assert_eq!(symbols.locate(false, &images, 0x3000_0fff)[0].function, "code compiled at run time");
    assert_eq!(symbols.locate(false, &images, 0x4000_0010)[0].function, "file+0x10");
    assert_eq!(symbols.notes().len(), 1);
    assert_eq!(symbols.locate(false, &[], 0x1234), []);
}

#[test]
fn a_file_of_the_same_path_names_nothing_of_another_machine_unless_its_id_proves_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spin");
    if compile("gcc", &["-O2", "-Wl,--build-id=0x0123456789abcdef"], &["inline.c"], &path).is_none() {
        return;
    }
    let place = BASE + symbol(&path, "outer");
    let of = |id: Option<&str>| {
        let build_id = id.and_then(decode_build_id);
        let image = Arc::new(Image { build_id, pid: std::process::id(), ..(*flat_image(&path)).clone() });
        let mut symbols = Symbols::new(Kernel::None).of_another_machine();
        let found = symbols.locate(false, &[image], place);
        (found[0].function.clone(), symbols.notes())
    };
    assert_eq!(of(Some("0123456789abcdef")), ("outer".into(), vec![]));
    let (name, notes) = of(Some("0123456789abcdee"));
    assert!(name.starts_with("spin+0x") && notes[0].text.contains("another build"), "{name} {notes:?}");
    let (name, notes) = of(None);
    assert!(name.starts_with("spin+0x") && notes[0].text.contains("without a build id"), "{name} {notes:?}");

    // Nor does a process of this machine that has the same number.
    let map = std::path::PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
    std::fs::write(&map, format!("{BASE:x} 100 compiled\n")).unwrap();
    let anonymous = [Arc::new(Image {
        start: BASE,
        end: BASE + 4096,
        path: "//anon".into(),
        pid: std::process::id(),
        ..Image::default()
    })];
    let name = |mut symbols: Symbols| symbols.locate(false, &anonymous, BASE + 4)[0].function.clone();
    let (here, elsewhere) = (name(Symbols::new(Kernel::None)), name(Symbols::new(Kernel::None).of_another_machine()));
    std::fs::remove_file(&map).unwrap();
    assert_eq!((here.as_str(), elsewhere.as_str()), ("compiled", "code compiled at run time"));
}

#[test]
fn split_debug_information_is_found_beside_objects_and_in_packages() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("split");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/inline.c");
    for format in ["-gdwarf-5", "-gdwarf-4"] {
        let object = dir.path().join("split.o");
        let (object, text) = (object.to_str().unwrap(), source.to_str().unwrap());
        if tool("gcc", &["-O2", "-g", format, "-gsplit-dwarf", "-c", text, "-o", object]).is_none() {
            return;
        }
        tool("gcc", &[object, "-o", path.to_str().unwrap()]).unwrap();
        let dwo = dir.path().join("split.dwo");
        assert!(dwo.is_file());
        let outer = symbol(&path, "outer");
        assert_inlined(&mut Symbols::new(Kernel::None), &flat_image(&path), outer);

        // The part of another build is not used; lines are in the program itself.
        let good = std::fs::read(&dwo).unwrap();
        tool("gcc", &["-O1", "-g", format, "-gsplit-dwarf", "-DOTHER=1", "-c", text, "-o", object]).unwrap();
        let all = rows(&mut Symbols::new(Kernel::None), &flat_image(&path), outer, 8);
        assert!(
            all.iter().all(|found| found.len() == 1 && found[0].function == "outer" && found[0].line > 0),
            "{all:?}"
        );

        std::fs::write(&dwo, &good).unwrap();
        let package = dir.path().join("split.dwp");
        // GNU's dwp writes an index of version 2 for DWARF 5, too, which its standard does not have.
        if format == "-gdwarf-4" && tool("dwp", &[dwo.to_str().unwrap(), "-o", package.to_str().unwrap()]).is_some() {
            std::fs::remove_file(&dwo).unwrap();
            assert_inlined(&mut Symbols::new(Kernel::None), &flat_image(&path), outer);
            std::fs::remove_file(&package).unwrap();
        }
    }
}
