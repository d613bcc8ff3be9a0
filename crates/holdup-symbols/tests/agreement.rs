//! Source lines and inlining agree with binutils' `addr2line`, over a whole Rust program and a C++ library.

mod common;

use std::path::Path;

use common::{BASE, compile, flat_image, tool};
use holdup_symbols::{Kernel, Symbols};
use holdup_trace::Symbolizer;

/// (address, offset in the file, size) of the code.
fn text_section(path: &str) -> Option<(u64, u64, u64)> {
    let headers = tool("readelf", &["-SW", path])?;
    let line = headers.lines().find(|l| l.contains(" .text "))?;
    let words: Vec<&str> = line.split_whitespace().skip_while(|w| *w != ".text").collect();
    let hex = |i: usize| u64::from_str_radix(words[i], 16).ok();
    Some((hex(2)?, hex(3)?, hex(4)?))
}

/// Lines at each address, the innermost first, as `addr2line -i` prints them: `file:12 (discriminator 3)`.
fn lines_of_binutils(path: &str, addresses: &[u64]) -> Option<Vec<Vec<u32>>> {
    let addresses: Vec<String> = addresses.iter().map(|a| format!("{a:#x}")).collect();
    let mut args = vec!["-e", path, "-a", "-i"];
    args.extend(addresses.iter().map(String::as_str));
    let mut all: Vec<Vec<u32>> = Vec::new();
    for line in tool("addr2line", &args)?.lines() {
        if line.starts_with("0x") {
            all.push(Vec::new());
        } else {
            let number = line.rsplit(':').next()?.split_whitespace().next()?;
            all.last_mut()?.push(number.parse().unwrap_or(0));
        }
    }
    Some(all)
}

fn agree(path: &Path) {
    let name = path.to_str().unwrap();
    let Some((address, offset, size)) = text_section(name) else { return };
    let steps: Vec<u64> = (0..size).step_by(size as usize / 400).collect();
    let addresses: Vec<u64> = steps.iter().map(|s| address + s).collect();
    let Some(theirs) = lines_of_binutils(name, &addresses) else { return };
    let (mut symbols, image) = (Symbols::new(Kernel::None), [flat_image(path)]);
    let mut inlined = 0;
    for (step, theirs) in steps.iter().zip(theirs) {
        let ours = symbols.locate(false, &image, BASE + offset + step);
        assert_eq!(ours.iter().map(|l| l.line).collect::<Vec<_>>(), theirs, "{name} {:#x}: {ours:#?}", address + step);
        inlined += usize::from(ours.len() > 1);
    }
    assert!(inlined > 20, "{name}: {inlined} places with inlined functions");
}

#[test]
fn lines_agree_with_binutils() {
    let dir = tempfile::tempdir().unwrap();
    let (library, program) = (dir.path().join("libengine.so"), dir.path().join("threads"));
    if compile("g++", &["-O2", "-g", "-fPIC", "-shared", "-pthread"], &["engine.cpp"], &library).is_some() {
        agree(&library);
    }
    if compile("rustc", &["-O", "-g", "--edition=2024"], &["threads.rs"], &program).is_some() {
        agree(&program);
    }
}
