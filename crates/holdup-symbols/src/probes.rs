//! Where a program can be probed: its functions by name, and the probes that it has built in (USDT, `.note.stapsdt` as SystemTap's
//! `sys/sdt.h` writes it).

use std::path::Path;

use holdup_base::near;

use crate::bytes::{c_string, u32_at, u64_at};
use crate::demangle::demangle;
use crate::elf::Elf;
use crate::meter::{Budget, Limits, Meter};
use crate::symtab;

/// The type of a note of a probe.
const STAPSDT: u32 = 3;
/// Most probes that are read of a file.
const MOST_PROBES: usize = 65_536;
/// Most of a text in a note.
const LONGEST: usize = 1024;

/// A probe that a program has built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usdt {
    /// Whose it is.
    pub provider: String,
    /// Its name there.
    pub name: String,
    /// Where its instruction is in the file, in bytes.
    pub offset: u64,
    /// Where in the file the counter is that says that somebody listens; 0 for none.
    pub semaphore: u64,
    /// Where its arguments are: `8@%rdi -4@$5`.
    pub arguments: String,
}

/// A program or library that is to be probed.
#[derive(Debug)]
pub struct Probeable {
    elf: Elf,
}

impl Probeable {
    /// Opens the file.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence that begins with its path.
    pub fn open(path: &Path) -> Result<Probeable, String> {
        let elf = Elf::open(path, &Meter::new(&Budget::new(Limits::of_this_machine())))?;
        if !cfg!(target_arch = "x86_64") || elf.arch != Some(holdup_disasm::Arch::X86_64) {
            return Err("is no program for x86-64, whose registers alone are known here".into());
        }
        Ok(Probeable { elf })
    }

    /// Where in the file, in bytes, the function begins that is called `wanted` (as in the source, without its arguments, or as the
    /// linker calls it), or that has the address `+0x…` in the file's own terms.
    ///
    /// # Errors
    /// What is wrong, as the rest of a sentence that begins with the file's path; with the nearest names.
    pub fn function(&self, wanted: &str) -> Result<u64, String> {
        if let Some(hex) = wanted.strip_prefix("+0x") {
            let address = u64::from_str_radix(hex, 16).map_err(|_| format!("{wanted} is not an address"))?;
            return self.offset_of(address, true).ok_or_else(|| format!("has no code at {wanted}"));
        }
        let functions = symtab::functions(&self.elf);
        if functions.is_empty() {
            return Err(format!(
                "has no names of functions: it is stripped. Take one that is not, or the function's address, +0x…, for {wanted}"
            ));
        }
        let raw = functions.iter().find(|(name, _)| name == wanted);
        let last = wanted.rsplit("::").next().unwrap_or(wanted);
        let is_it = |name: &str| name.contains(last) && without_arguments(&demangle(name).text) == wanted;
        let found = raw.or_else(|| functions.iter().find(|(name, _)| is_it(name)));
        let Some((_, address)) = found else {
            let hint = near::hint(wanted, functions.iter().map(|(name, _)| name.as_str()));
            return Err(format!("has no function {wanted}{hint}"));
        };
        self.offset_of(*address, true).ok_or_else(|| format!("has no code where its symbols say that {wanted} is"))
    }

    /// The probes that are built in. What of them is damaged is left out.
    pub fn usdt(&self) -> Vec<Usdt> {
        let Some(notes) = self.elf.data(".note.stapsdt") else { return Vec::new() };
        let base = self.elf.section(".stapsdt.base").map(|section| section.addr);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((next, desc)) = note(&notes, at)
            && found.len() < MOST_PROBES
        {
            found.extend(desc.and_then(|desc| self.probe(desc, base)));
            at = next;
        }
        found
    }

    fn probe(&self, desc: &[u8], base: Option<u64>) -> Option<Usdt> {
        let (address, linked, semaphore) = (u64_at(desc, 0)?, u64_at(desc, 8)?, u64_at(desc, 16)?);
        // Prelinking moves what the notes do not tell.
        let shift = base.map_or(0, |base| base.wrapping_sub(linked));
        let mut rest = desc.get(24..)?;
        let mut text = || {
            let text = c_string(rest, 0, LONGEST);
            rest = rest.get(text.len() + 1..).unwrap_or_default();
            String::from_utf8(text.to_vec()).ok()
        };
        let (provider, name, arguments) = (text()?, text()?, text()?);
        let offset = self.offset_of(address.wrapping_add(shift), true)?;
        let semaphore = match semaphore {
            0 => 0,
            address => self.offset_of(address.wrapping_add(shift), false)?,
        };
        Some(Usdt { provider, name, offset, semaphore, arguments })
    }

    /// Where in the file the byte lies that has this address when it is loaded.
    fn offset_of(&self, address: u64, is_code: bool) -> Option<u64> {
        let holds = |s: &&crate::elf::Segment| address >= s.vaddr && address - s.vaddr < s.file_size;
        let segment = self.elf.segments.iter().filter(|s| s.executable || !is_code).find(holds)?;
        segment.offset.checked_add(address - segment.vaddr)
    }
}

/// Where the note after that at `at` begins, and what this one says if it is of a probe.
fn note(notes: &[u8], at: usize) -> Option<(usize, Option<&[u8]>)> {
    let (name, desc) = (u32_at(notes, at)? as usize, u32_at(notes, at + 4)? as usize);
    let begin = at.checked_add(12)?.checked_add(name)?.checked_next_multiple_of(4)?;
    let end = begin.checked_add(desc)?;
    let of_probe = u32_at(notes, at + 8)? == STAPSDT && notes.get(at + 12..at + 12 + name)? == b"stapsdt\0";
    let desc = notes.get(begin..end)?;
    Some((end.checked_next_multiple_of(4)?, of_probe.then_some(desc)))
}

fn without_arguments(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_any_bytes_end() {
        let mut random = holdup_testing::damage::Random::new(7);
        for _ in 0..2000 {
            let length = random.below(200);
            let bytes: Vec<u8> =
                (0..length).map(|_| random.below(if length.is_multiple_of(2) { 9 } else { 256 }) as u8).collect();
            let (mut at, mut n) = (0, 0);
            while let Some((next, _)) = note(&bytes, at) {
                assert!(next > at, "forward");
                at = next;
                n += 1;
            }
            assert!(n <= length);
        }
    }
}
