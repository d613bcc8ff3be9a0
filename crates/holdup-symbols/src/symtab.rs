//! Function symbols of an ELF file, sorted by address.

use crate::bytes::{c_string, u16_at, u32_at, u64_at};
use crate::demangle::MANGLED_LIMIT;
use crate::elf::Elf;
use crate::gopclntab;
use crate::unpack::unxz;

const SHN_UNDEF: u16 = 0;
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_LOCAL: u8 = 0;
const STB_GLOBAL: u8 = 1;

/// How many symbols before an address are tried when the nearest one is too short: a big function can contain
/// labels with a size of their own.
const NESTING: usize = 16;

/// Largest `.gnu_debugdata`, unpacked.
const UNPACK_LIMIT: u64 = 256 << 20;

/// How much of a name counts when names are compared: many symbols can share one long text.
const COMPARED: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Symbol {
    addr: u64,
    size: u64,
    /// Where the name is in `names`.
    name: u32,
    /// Which of several symbols at one address is the best: see `rank`.
    rank: u32,
    /// End of the section it lies in.
    limit: u64,
}

/// A function as the symbol table knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub name: &'a str,
    pub start: u64,
    pub size: u64,
    /// Whether the symbol has no size, so that it may name more than is its own.
    pub reaching: bool,
}

/// The functions of `.symtab`, or of `.dynsym` where the former was stripped.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    symbols: Vec<Symbol>,
    names: Vec<u8>,
    /// Whether all functions are there, so that a symbol without a size reaches to the next one.
    complete: bool,
}

impl SymbolTable {
    /// The best table among several files of the same build (the file itself, its debug file).
    pub fn load(files: &[&Elf]) -> SymbolTable {
        let full = files.iter().map(|elf| SymbolTable::read(elf, ".symtab", ".strtab"));
        let full = full.max_by_key(|t| t.symbols.len()).unwrap_or_default();
        if !full.symbols.is_empty() {
            return SymbolTable { complete: true, ..full };
        }
        let mut table = SymbolTable::default();
        for elf in files {
            table.add(SymbolTable::read(elf, ".dynsym", ".dynstr"));
            // What Fedora leaves in a stripped file: the functions that `.dynsym` has not.
            if let Some(mini) = elf.data(".gnu_debugdata").and_then(|packed| unpack(elf, &packed)) {
                table.add(SymbolTable::read(&mini, ".symtab", ".strtab"));
            }
        }
        if let Some(go) = files.iter().find_map(|elf| SymbolTable::of_go(elf)) {
            table.add(go);
        }
        table.sort();
        table
    }

    /// What Go's runtime knows of its own functions.
    fn of_go(elf: &Elf) -> Option<SymbolTable> {
        let bytes = elf.data(".gopclntab").or_else(|| elf.data(".data.rel.ro.gopclntab"))?;
        let text = elf.section(".text")?;
        let (functions, range) = gopclntab::parse(&bytes, (text.addr, text.size))?;
        let names = bytes.get(range)?.to_vec();
        let limit = text.addr.saturating_add(text.size);
        let inside = functions.into_iter().filter(|f| f.addr >= text.addr && f.addr < limit);
        let symbols = inside.map(|f| Symbol { addr: f.addr, size: f.size, name: f.name, rank: 0, limit });
        let symbols: Vec<Symbol> = symbols.collect();
        let held = elf.meter().hold((symbols.len() * size_of::<Symbol>() + names.len()) as u64);
        held.then_some(SymbolTable { symbols, names, complete: false })
    }

    fn read(elf: &Elf, table: &str, strings: &str) -> SymbolTable {
        let (Some(table), Some(names)) = (elf.data(table), elf.data(strings)) else { return SymbolTable::default() };
        let size = if elf.is_64 { 24 } else { 16 };
        let symbols: Vec<Symbol> = table.chunks_exact(size).filter_map(|s| read_symbol(s, elf, &names)).collect();
        drop(table);
        if !elf.meter().hold((symbols.len() * size_of::<Symbol>() + names.len()) as u64) {
            return SymbolTable::default();
        }
        let mut table = SymbolTable { symbols, names, complete: false };
        table.sort();
        table
    }

    fn add(&mut self, other: SymbolTable) {
        let Ok(shift) = u32::try_from(self.names.len()) else { return };
        self.names.extend(other.names);
        let shifted = other.symbols.into_iter().filter_map(|s| Some(Symbol { name: s.name.checked_add(shift)?, ..s }));
        self.symbols.extend(shifted);
    }

    /// By address, the best of each address only.
    fn sort(&mut self) {
        self.symbols.sort_unstable_by_key(|s| (s.addr, s.rank, s.name));
        self.symbols.dedup_by(|next, kept| {
            let same = next.addr == kept.addr;
            if same {
                let size = kept.size.max(next.size);
                *kept = Symbol { size, ..*next };
            }
            same
        });
    }

    /// The function around `addr`. A symbol with a size is believed only inside it: in a stripped library the
    /// nearest exported name can be a quarter of the library away.
    pub fn find(&self, addr: u64) -> Option<Found<'_>> {
        let after = self.symbols.partition_point(|s| s.addr <= addr);
        let next = self.symbols.get(after).map_or(u64::MAX, |s| s.addr);
        let before = &self.symbols[after.saturating_sub(NESTING)..after];
        let sized = before.iter().rev().find(|s| s.size != 0 && addr - s.addr < s.size);
        let unsized_one = || {
            let nearest = before.last().filter(|s| s.size == 0 && self.complete && addr < s.limit)?;
            Some(Symbol { size: next.min(nearest.limit) - nearest.addr, ..*nearest })
        };
        let reaching = sized.is_none();
        let found = sized.copied().or_else(unsized_one)?;
        Some(Found { name: name_at(&self.names, found.name)?, start: found.addr, size: found.size, reaching })
    }
}

/// The address of a symbol in a linked file, be it a function or a mark. Costs a pass over the table.
pub(crate) fn address_of(elf: &Elf, name: &str) -> Option<u64> {
    let (table, names) = (elf.data(".symtab")?, elf.data(".strtab")?);
    let size = if elf.is_64 { 24 } else { 16 };
    let is_it = |s: &&[u8]| u32_at(s, 0).is_some_and(|at| c_string(&names, at as usize, COMPARED) == name.as_bytes());
    let found = table.chunks_exact(size).take_while(|_| elf.meter().read(0)).find(is_it)?;
    if elf.is_64 { u64_at(found, 8) } else { u32_at(found, 4).map(u64::from) }
}

/// Names and addresses of the functions that a linked file defines, by both of its tables, as far as the meter goes.
pub(crate) fn functions(elf: &Elf) -> Vec<(String, u64)> {
    let size = if elf.is_64 { 24 } else { 16 };
    let mut found = Vec::new();
    for (table, names) in [(".symtab", ".strtab"), (".dynsym", ".dynstr")] {
        let (Some(table), Some(names)) = (elf.data(table), elf.data(names)) else { continue };
        for symbol in
            table.chunks_exact(size).take_while(|_| elf.meter().read(0)).filter_map(|s| read_symbol(s, elf, &names))
        {
            let Some(name) = name_at(&names, symbol.name).filter(|name| elf.meter().hold(name.len() as u64 + 32))
            else {
                continue;
            };
            found.push((name.to_owned(), symbol.addr));
        }
    }
    found
}

/// An ELF file packed with xz, inside of `elf`.
fn unpack(elf: &Elf, packed: &[u8]) -> Option<Elf> {
    let meter = elf.meter();
    let unpacked = unxz(packed, UNPACK_LIMIT.min(meter.memory_left()))?;
    Elf::from_bytes(unpacked, meter).ok()
}

fn read_symbol(s: &[u8], elf: &Elf, names: &[u8]) -> Option<Symbol> {
    let word = |at| u32_at(s, at).map(u64::from);
    let (info, section, mut addr, size) = if elf.is_64 {
        (s[4], u16_at(s, 6)?, u64_at(s, 8)?, u64_at(s, 16)?)
    } else {
        (s[12], u16_at(s, 14)?, word(4)?, word(8)?)
    };
    let (kind, binding) = (info & 15, info >> 4);
    if section == SHN_UNDEF || !matches!(kind, STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC) {
        return None;
    }
    let home = elf.sections.get(usize::from(section));
    // Hand-written assembler often leaves the type out; elsewhere such symbols are data or marks.
    let code = home.is_some_and(|h| h.executable);
    if kind == STT_NOTYPE && !code {
        return None;
    }
    let name = u32_at(s, 0)?;
    let text = c_string(names, name as usize, COMPARED);
    if text.is_empty() {
        return None;
    }
    // `$x`, `$d`: marks of the ARM toolchain. `.L…`: labels. `.annobin_…`: marks of a plugin of GCC's.
    if kind == STT_NOTYPE && (text.starts_with(b"$") || text.starts_with(b".")) {
        return None;
    }
    if elf.relocatable {
        // Counted from the section's beginning; what has no address has no name either.
        addr = addr.checked_add(home.filter(|h| h.executable && !h.name.starts_with(".init"))?.addr)?;
    }
    let limit = home.map_or(addr, |h| h.addr.saturating_add(h.size)).max(addr);
    Some(Symbol { addr, size, name, rank: rank(text, kind, binding), limit })
}

/// Which of several names of one function to show, the best being the greatest: functions before labels, exported
/// names before local and weak ones, few leading underscores, short names.
fn rank(name: &[u8], kind: u8, binding: u8) -> u32 {
    let binding = match binding {
        STB_GLOBAL => 2,
        STB_LOCAL => 0,
        _ => 1,
    };
    let underscores = name.iter().take_while(|&&b| b == b'_').count().min(15) as u32;
    let length = name.len().min(255) as u32;
    let function = u32::from(kind != STT_NOTYPE);
    // Weak aliases are as public as strong ones: `write` and `__write`. Underscores tell them apart better.
    (function << 20) | (u32::from(binding != 0) << 19) | ((15 - underscores) << 12) | (binding << 9) | (255 - length)
}

/// The name at `at`: more of it than is ever shown, but not all of a text without an end.
fn name_at(names: &[u8], at: u32) -> Option<&str> {
    let name = c_string(names, at as usize, 2 * MANGLED_LIMIT);
    match std::str::from_utf8(name) {
        Ok(name) => Some(name),
        // Cut inside a character.
        Err(e) if name.len() == 2 * MANGLED_LIMIT => std::str::from_utf8(&name[..e.valid_up_to()]).ok(),
        Err(_) => None,
    }
}
