//! Files that were made to use up memory, time or the stack of whoever reads them: each is read in a process of its own
//! with a bound on both, which ends as if nothing had been.

mod common;

use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use common::elf::{self, TEXT};
use common::{BASE, flat_image};
use holdup_symbols::{Kernel, StackUnwinder, Symbols};
use holdup_trace::{Location, RawStack, Symbolizer, Unwinder};
use nix::sys::resource::{Resource, setrlimit};

/// Address space of the process that reads, in bytes. What may stay in use is less than half of the smallest bound.
const SPACE: u64 = 6 << 30;
/// CPU time of the process that reads, in seconds: more than all files may have.
const TIME: u64 = 120;

/// Runs `read` in a process of its own, on the file that `make` gives.
fn alone(test: &str, space: u64, make: impl FnOnce(&Path), read: impl FnOnce(&Path)) {
    if let Some(path) = std::env::var_os("HOSTILE_FILE") {
        setrlimit(Resource::RLIMIT_AS, space, space).unwrap();
        setrlimit(Resource::RLIMIT_CPU, TIME, TIME).unwrap();
        return read(Path::new(&path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hostile");
    make(&path);
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env("HOSTILE_FILE", &path).output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "signal {:?}: {text}{errors}", output.status.signal());
    assert!(text.contains("1 passed"), "{text}");
}

fn locate(symbols: &mut Symbols, path: &Path, address: u64) -> Vec<Location> {
    symbols.locate(false, &[flat_image(path)], BASE + address)
}

fn note(symbols: &Symbols, wanted: &str) -> String {
    let notes = symbols.notes();
    notes.iter().find(|n| n.text.contains(wanted)).unwrap_or_else(|| panic!("no {wanted:?} in {notes:?}")).text.clone()
}

#[test]
fn names_that_stand_for_gigabytes() {
    let names = elf::costly_names();
    let make = |path: &Path| std::fs::write(path, elf::elf(4096, elf::symbols(&names))).unwrap();
    alone("names_that_stand_for_gigabytes", SPACE, make, |path| {
        let mut symbols = Symbols::new(Kernel::None);
        for (i, raw) in names.iter().enumerate() {
            // Two addresses of each function: it counts once.
            for address in [TEXT + 16 * i as u64, TEXT + 16 * i as u64 + 5] {
                let found = locate(&mut symbols, path, address);
                let name = &found[0].function;
                assert!(name == raw || name.len() <= 4096 && name.ends_with('…'), "{raw}: {name}");
            }
        }
        assert!(note(&symbols, "too costly").contains(&format!("({} of them)", names.len())), "{:?}", symbols.notes());
    });
}

#[test]
fn functions_inlined_in_each_other_without_end() {
    let make = |path: &Path| {
        let sections = elf::symbols(&["f".into()]).into_iter().chain(elf::inlined(200_000, 16)).collect();
        std::fs::write(path, elf::elf(4096, sections)).unwrap();
    };
    alone("functions_inlined_in_each_other_without_end", SPACE, make, |path| {
        let mut symbols = Symbols::new(Kernel::None);
        let found = locate(&mut symbols, path, TEXT + 3);
        assert_eq!((found.last().unwrap().function.as_str(), found.len()), ("f", 1));
        note(&symbols, "inlined in each other too deeply are left out (1 ");
    });
}

#[test]
fn more_inlined_functions_than_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep");
    for (depth, shown) in [(40, 41), (150, 96)] {
        let sections = elf::symbols(&["f".into()]).into_iter().chain(elf::inlined(depth, 16)).collect();
        std::fs::write(&path, elf::elf(4096, sections)).unwrap();
        let mut symbols = Symbols::new(Kernel::None);
        let found = locate(&mut symbols, &path, TEXT + 3);
        assert_eq!((found.len(), found.last().unwrap().function.as_str()), (shown, "f"));
        assert_eq!(symbols.notes().len(), usize::from(depth > shown), "{:?}", symbols.notes());
    }
}

#[test]
fn debug_information_that_unpacks_to_gigabytes() {
    let make = |path: &Path| {
        let names = [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_ranges", ".debug_aranges"];
        // Each of them would do, and all of them together are as many as there are.
        let packed = names.map(|name| elf::packed_zeros(name, 2 << 30));
        let sections = elf::symbols(&["f".into()]).into_iter().chain(packed).collect();
        std::fs::write(path, elf::elf(4096, sections)).unwrap();
    };
    alone("debug_information_that_unpacks_to_gigabytes", SPACE, make, |path| {
        let mut symbols = Symbols::new(Kernel::None);
        assert_eq!(locate(&mut symbols, path, TEXT + 3)[0].function, "f");
        note(&symbols, "read in part");
    });
}

#[test]
fn sections_that_share_one_long_name() {
    let make = |path: &Path| {
        let mut file = elf::elf(4096, elf::symbols(&["f".into()]));
        // 60,000 headers at the end, named by the million bytes before them.
        let (names, count) = (file.len() as u64, 60_000u64);
        file.extend(vec![b'x'; 1_000_000]);
        let table = file.len() as u64;
        let mut header = [0u8; 64];
        header[4] = 3;
        header[24..32].copy_from_slice(&names.to_le_bytes());
        header[32..40].copy_from_slice(&1_000_000u64.to_le_bytes());
        (0..count).for_each(|_| file.extend(header));
        file.push(0);
        file[(names + 999_999) as usize] = 0;
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[60..64].copy_from_slice(&[(count & 0xff) as u8, (count >> 8) as u8, 0, 0]);
        std::fs::write(path, file).unwrap();
    };
    alone("sections_that_share_one_long_name", 1 << 30, make, |path| {
        let found = locate(&mut Symbols::new(Kernel::None), path, TEXT + 3);
        assert_eq!(found[0].function, "hostile+0x1003");
    });
}

#[test]
fn headers_of_gigabytes_in_a_file_without_contents() {
    let make = |path: &Path| {
        let mut begin = elf::elf(16, Vec::new());
        begin[54..56].copy_from_slice(&[0xff; 2]);
        begin[56..64].copy_from_slice(&[0xff; 8]);
        let file = std::fs::File::create(path).unwrap();
        file.write_all_at(&begin, 0).unwrap();
        file.set_len((4 << 30) - 1).unwrap();
    };
    alone("headers_of_gigabytes_in_a_file_without_contents", 1 << 30, make, |path| {
        let (mut symbols, images) = (Symbols::new(Kernel::None), [flat_image(path)]);
        assert_eq!(locate(&mut symbols, path, TEXT + 3)[0].function, "hostile+0x1003");
        let raw = RawStack { ip: BASE + TEXT, sp: 0x7fff_0000, bytes: vec![0; 64], ..RawStack::default() };
        assert_eq!(StackUnwinder::new().unwind(&images, &raw).0.len(), 1);
    });
}
