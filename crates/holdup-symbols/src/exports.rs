//! What a program or library keeps under names that others may use: functions and variables alike.

use std::cell::OnceCell;
use std::path::Path;

use holdup_trace::Image;

use crate::bytes::{c_string, u16_at, u32_at, u64_at};
use crate::cfi::Cfi;
use crate::elf::Elf;
use crate::find::live_places;
use crate::meter::{Budget, Limits, Meter};

/// Bytes of a symbol's entry in a 64-bit file.
const ENTRY: usize = 24;

/// A file that is asked for few names.
pub struct Exports {
    elf: Elf,
    cfi: OnceCell<Cfi>,
}

impl Exports {
    /// Opens a 64-bit ELF file. What it may cost is bounded as for naming.
    ///
    /// # Errors
    /// A sentence without the path.
    pub fn open(path: &Path) -> Result<Exports, String> {
        let meter = Meter::new(&Budget::new(Limits::of_this_machine()));
        let elf = Elf::open(path, &meter)?;
        if elf.is_64 { Ok(Exports { elf, cfi: OnceCell::new() }) } else { Err("is not a 64-bit program".into()) }
    }

    /// Opens the file of an image of a live process; `None` if it cannot be had, or used.
    pub fn of_live(image: &Image) -> Option<Exports> {
        live_places(image).iter().find_map(|path| Exports::open(path).ok())
    }

    /// Address, in the file's own terms, and size in bytes of what has each name. O(symbols · names).
    pub fn find<const N: usize>(&self, names: [&str; N]) -> [Option<(u64, u64)>; N] {
        let mut found = [None; N];
        let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
        for (symbols, texts) in [(".dynsym", ".dynstr"), (".symtab", ".strtab")] {
            if found.iter().all(Option::is_some) {
                break;
            }
            let (Some(symbols), Some(texts)) = (self.elf.data(symbols), self.elf.data(texts)) else { continue };
            for entry in symbols.chunks_exact(ENTRY) {
                let Some((at, value, size)) = defined(entry) else { continue };
                let text = c_string(&texts, at, longest + 1);
                if let Some(i) = names.iter().position(|name| text == name.as_bytes()) {
                    found[i].get_or_insert((value, size));
                }
            }
        }
        found
    }

    /// At most `length` bytes of what the file holds for an address in its own terms.
    pub fn bytes(&self, address: u64, length: u64) -> Vec<u8> {
        self.elf.code(address, length).unwrap_or_default()
    }

    /// The constants of the file; empty if there are none, or too many.
    pub fn constants(&self) -> Vec<u8> {
        self.elf.data(".rodata").unwrap_or_default()
    }

    /// First address of the function that begins at `address`, and the first one behind it, by what the file says for unwinding.
    pub fn function(&self, address: u64) -> Option<(u64, u64)> {
        let cfi = self.cfi.get_or_init(|| Cfi::load(&self.elf, None));
        let (start, size) = cfi.entry(address)?.range();
        (start == address).then_some((start, start.checked_add(size)?))
    }

    /// What is to be added to an address in the file's own terms where `image` maps the file.
    pub fn shift(&self, image: &Image) -> Option<u64> {
        Some(image.start.wrapping_sub(self.elf.vaddr(image.file_offset)?))
    }
}

/// Where the name is, the value and the size of a symbol that is defined.
fn defined(entry: &[u8]) -> Option<(usize, u64, u64)> {
    let (name, section) = (u32_at(entry, 0)? as usize, u16_at(entry, 6)?);
    (section != 0 && name != 0).then_some((name, u64_at(entry, 8)?, u64_at(entry, 16)?))
}
