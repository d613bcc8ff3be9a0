//! Kernel functions from /proc/kallsyms or a System.map.

use std::path::Path;

/// A symbol's name is not believed farther than this from its address: beyond the last function of a module.
const REACH: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Symbol {
    addr: u64,
    name: u32,
    len: u16,
    /// Index into `modules`.
    module: u16,
    rank: u8,
}

/// Functions of the kernel and its modules, sorted by address.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols {
    text: Vec<u8>,
    symbols: Vec<Symbol>,
    /// `[kernel]`, then `[name]` of each module.
    modules: Vec<String>,
}

/// A kernel function around an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelFunction<'a> {
    pub name: &'a str,
    pub module: &'a str,
    pub start: u64,
    pub size: u64,
}

impl KernelSymbols {
    /// Reads a file in the format of /proc/kallsyms or System.map. An error is a sentence.
    pub fn read(path: &Path) -> Result<KernelSymbols, String> {
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let symbols = KernelSymbols::parse(text);
        if symbols.symbols.is_empty() {
            let hidden = "holds no function addresses (the kernel hides them: run as root, or set \
                          kernel.kptr_restrict to 0); kernel functions have no names";
            return Err(format!("{} {hidden}", path.display()));
        }
        Ok(symbols)
    }

    fn parse(text: Vec<u8>) -> KernelSymbols {
        let mut modules = vec!["[kernel]".to_owned()];
        let mut symbols = Vec::with_capacity(text.len() / 48);
        let mut at = 0;
        while at < text.len() {
            let end = text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| at + n);
            symbols.extend(parse_line(&text[at..end], at, &mut modules));
            at = end + 1;
        }
        symbols.sort_unstable_by_key(|s| (s.addr, s.rank, s.name));
        // The best name of each address comes last.
        symbols.dedup_by(|next, kept| {
            let same = next.addr == kept.addr;
            if same {
                *kept = *next;
            }
            same
        });
        KernelSymbols { text, symbols, modules }
    }

    /// The function around `addr`.
    pub fn find(&self, addr: u64) -> Option<KernelFunction<'_>> {
        let after = self.symbols.partition_point(|s| s.addr <= addr);
        let symbol = self.symbols[..after].last()?;
        let end = self.symbols.get(after).map_or(u64::MAX, |s| s.addr).min(symbol.addr.saturating_add(REACH));
        let name = self.text.get(symbol.name as usize..symbol.name as usize + usize::from(symbol.len))?;
        (addr < end).then_some(KernelFunction {
            name: std::str::from_utf8(name).ok()?,
            module: self.modules.get(usize::from(symbol.module))?,
            start: symbol.addr,
            size: end - symbol.addr,
        })
    }

    /// The address of a function.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let matches =
            |s: &&Symbol| self.text.get(s.name as usize..s.name as usize + usize::from(s.len)) == Some(name.as_bytes());
        self.symbols.iter().find(matches).map(|s| s.addr)
    }
}

/// `ffffffff81000000 T name\t[module]`
fn parse_line(line: &[u8], line_start: usize, modules: &mut Vec<String>) -> Option<Symbol> {
    let mut addr = 0u64;
    let mut digits = 0;
    while let Some(value) = line.get(digits).and_then(|&b| (b as char).to_digit(16)) {
        addr = addr << 4 | u64::from(value);
        digits += 1;
    }
    let kind = *line.get(digits + 1)?;
    if addr == 0 || !matches!(kind, b't' | b'T' | b'w' | b'W') {
        return None;
    }
    let rest = line.get(digits + 3..)?;
    let len = rest.iter().position(|b| matches!(b, b'\t' | b' ')).unwrap_or(rest.len());
    let module = rest.get(len + 1..).map_or(0, |m| module_index(m, modules));
    let name = u32::try_from(line_start + digits + 3).ok()?;
    Some(Symbol { addr, name, len: u16::try_from(len).ok()?, module, rank: rank(kind, &rest[..len]) })
}

fn module_index(name: &[u8], modules: &mut Vec<String>) -> u16 {
    // Symbols of one module follow each other.
    if let Some(i) = modules.iter().rposition(|m| m.as_bytes() == name) {
        return i as u16;
    }
    if modules.len() >= usize::from(u16::MAX) {
        return 0;
    }
    modules.push(String::from_utf8_lossy(name).into_owned());
    (modules.len() - 1) as u16
}

/// The greater, the better: few leading underscores, exported, not one of the marks of the linker script.
fn rank(kind: u8, name: &[u8]) -> u8 {
    let underscores = name.iter().take_while(|&&b| b == b'_').count().min(15) as u8;
    let exported = u8::from(kind == b'T');
    (15 - underscores) << 1 | exported
}

#[cfg(test)]
mod tests {
    use super::KernelSymbols;

    const TEXT: &str = "ffffffff81000100 T __do_it\nffffffff81000100 t do_it\nffffffff81000200 D data\n\
        ffffffff81000300 t last\nffffffffc0000000 t helper\t[ext4]\nffffffffc0000040 T ext4_read [ext4]\n";

    #[test]
    fn functions_reach_to_the_next_and_modules_have_names() {
        let k = KernelSymbols::parse(TEXT.into());
        let f = k.find(0xffff_ffff_8100_0180).unwrap();
        assert_eq!((f.name, f.module, f.start, f.size), ("do_it", "[kernel]", 0xffff_ffff_8100_0100, 0x200));
        let f = k.find(0xffff_ffff_c000_0041).unwrap();
        assert_eq!((f.name, f.module), ("ext4_read", "[ext4]"));
        assert_eq!(k.find(0xffff_ffff_9000_0000), None, "too far from anything");
        assert_eq!(k.find(0x1000), None);
        assert_eq!(k.address_of("last"), Some(0xffff_ffff_8100_0300));
    }

    #[test]
    fn hidden_addresses_give_no_symbols() {
        assert!(KernelSymbols::parse(b"0000000000000000 T a\n0000000000000000 t b\n".to_vec()).symbols.is_empty());
        assert!(KernelSymbols::parse(b"\n\nzz\nffff".to_vec()).symbols.is_empty());
    }
}
