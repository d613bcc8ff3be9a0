//! What happens when the budget for all files is used up: with small ones, so that it does.

#[path = "../tests/common/elf.rs"]
pub(crate) mod elf;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use elf::TEXT;
use holdup_trace::{Image, RawStack, Symbolizer, Unwinder};

use crate::meter::Limits;
use crate::objects::Objects;
use crate::{Kernel, StackUnwinder, Symbols};

const BASE: u64 = 0x7f00_0000_0000;

fn symbols(memory: u64, time: Duration) -> Symbols {
    Symbols::of(Kernel::None, Objects::with_limits(false, Limits { memory, time }))
}

fn image(path: &Path) -> [Arc<Image>; 1] {
    let end = BASE + std::fs::metadata(path).unwrap().len();
    let path = path.to_str().unwrap().to_owned();
    [Arc::new(Image { start: BASE, end, path, ..Image::default() })]
}

#[test]
fn units_that_share_a_line_table_do_not_multiply_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    let (units, rows) = (400, 100_000);
    let names: Vec<String> = (0..units).map(|i| format!("f{i}")).collect();
    let sections = elf::symbols(&names).into_iter().chain(elf::shared_lines(units, rows)).collect();
    std::fs::write(&path, elf::elf(8192, sections)).unwrap();
    // Enough for some of the 400 tables of 2.4 MB.
    let mut symbols = symbols(64 << 20, Duration::from_secs(3600));
    let mut lined = 0;
    for i in 0..units {
        let found = symbols.locate(false, &image(&path), BASE + TEXT + 16 * i + 3);
        assert_eq!(found[0].function, format!("f{i}"));
        lined += usize::from(found[0].line != 0);
    }
    assert!((1..15).contains(&lined), "{lined} units have lines");
    assert_eq!(symbols.notes().len(), 1, "{:?}", symbols.notes());
    assert!(symbols.notes()[0].text.contains("(1 of them)"), "{:?}", symbols.notes());
}

#[test]
fn many_files_have_one_budget_and_leave_some_to_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut symbols = symbols(4 << 20, Duration::from_secs(3600));
    let mut named = 0;
    let names: Vec<String> = (0..256).map(|i| format!("a_function_with_a_long_name_{i}")).collect();
    for i in 0..1500 {
        let path = dir.path().join(format!("file{i}"));
        std::fs::write(&path, elf::elf(4096, elf::symbols(&names))).unwrap();
        let found = symbols.locate(false, &image(&path), BASE + TEXT + 3);
        named += usize::from(found[0].function == names[0]);
        assert!(found[0].function == names[0] || found[0].function.starts_with(&format!("file{i}+0x")));
    }
    assert!((20..500).contains(&named), "{named} of 1500 files have names");
    let notes = symbols.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let left_out = 1500 - named;
    assert!(notes[0].text.contains(&format!("({left_out} of them)")) && notes[0].text.contains("4 MiB"), "{notes:?}");
}

#[test]
fn a_file_without_time_left_keeps_what_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow");
    std::fs::write(&path, elf::elf(4096, elf::symbols(&elf::costly_names()))).unwrap();
    let mut none = symbols(1 << 30, Duration::ZERO);
    assert_eq!(none.locate(false, &image(&path), BASE + TEXT + 3)[0].function, "slow+0x1003");
    assert!(none.notes()[0].text.contains("0 s of CPU time"), "{:?}", none.notes());
}

#[test]
fn frame_programs_use_up_their_time_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    for (instructions, notes) in [(10, 0), (200_000, 1)] {
        let path = dir.path().join(format!("frames{instructions}"));
        std::fs::write(&path, elf::elf(4096, vec![elf::long_frame_program(4096, instructions)])).unwrap();
        let limits = Limits { memory: 64 << 20, time: Duration::from_millis(200) };
        let mut unwinder = StackUnwinder::of(Objects::with_limits(false, limits));
        // Each word of the stack is the return address of another call.
        let bytes = (1..=2000u64).flat_map(|i| (BASE + TEXT + i).to_le_bytes()).collect();
        let raw = RawStack { ip: BASE + TEXT, sp: 0x7fff_0000, bytes, ..RawStack::default() };
        let (frames, _) = unwinder.unwind(&image(&path), &raw);
        assert_eq!(frames.len() < 2000, notes == 1, "{} frames", frames.len());
        assert_eq!(unwinder.notes().len(), notes, "{:?}", unwinder.notes());
    }
}

#[test]
fn code_at_the_end_of_the_address_space_is_nobodys_return_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("last");
    let mut bytes = elf::elf(64, elf::symbols(&[]));
    // The address of the one segment, so that its last byte is the last there is.
    let start = u64::MAX - (bytes.len() as u64 - 1);
    bytes[64 + 16..64 + 24].copy_from_slice(&start.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let images = image(&path);
    assert_eq!(StackUnwinder::new().follows_call(&images, BASE + bytes.len() as u64), None);
    assert!(StackUnwinder::new().follows_call(&images, BASE + bytes.len() as u64 - 1).is_some());
}
