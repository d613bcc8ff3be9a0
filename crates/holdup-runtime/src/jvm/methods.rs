//! What the method at an address is called.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::structs::Structs;
use crate::memory::{Memory, quarter};

/// Longest name of a class or a method that is believed, in bytes.
const NAME: usize = 300;
/// Methods that are remembered.
const METHODS: usize = 1 << 16;

/// Names of methods by where they lie: a method stays where it is while its class is loaded.
#[derive(Debug, Clone, Default)]
pub(super) struct Methods(FxHashMap<u64, Option<Arc<str>>>);

impl Methods {
    /// `pool.Class.method` of the method at an address; `None` if nothing there says that it is one.
    pub(super) fn name(&mut self, memory: &Memory, structs: &Structs, method: u64) -> Option<Arc<str>> {
        if let Some(known) = self.0.get(&method) {
            return known.clone();
        }
        let name = read(memory, structs, method).map(Arc::from);
        if self.0.len() < METHODS {
            self.0.insert(method, name.clone());
        }
        name
    }
}

fn read(memory: &Memory, s: &Structs, method: u64) -> Option<String> {
    let at = |base: u64, offset: Option<u64>| memory.word(base.checked_add(offset?)?);
    let is_address = |address: &u64| address.is_multiple_of(8) && *address >> 12 != 0 && address >> 47 == 0;
    Some(method).filter(is_address)?;
    let constant = at(method, s.const_method).filter(is_address)?;
    let pool = at(constant, s.constants).filter(is_address)?;
    let class = at(pool, s.pool_holder).filter(is_address)?;
    let index = quarter(&memory.read(constant.checked_add(s.name_index?)?, 2)?, 0)?;
    let name = memory.word(pool.checked_add(s.pool_size?)?.checked_add(u64::from(index) * 8)?)?;
    let class = symbol(memory, s, at(class, s.class_name)?)?;
    let name = symbol(memory, s, name)?;
    Some(format!("{}.{name}", class_as_written(&class)))
}

/// The text of a symbol. What holds controls or blanks is none.
fn symbol(memory: &Memory, s: &Structs, symbol: u64) -> Option<String> {
    let length = quarter(&memory.read(symbol.checked_add(s.symbol_length?)?, 2)?, 0)?;
    let length = usize::from(length);
    let bytes = memory.read(symbol.checked_add(s.symbol_body?)?, Some(length).filter(|&n| n > 0 && n <= NAME)?)?;
    let text = String::from_utf8(bytes).ok()?;
    text.chars().all(|c| !c.is_control() && !c.is_whitespace()).then_some(text)
}

/// `a.B` of `a/B`; of a hidden class, `a.B$$Lambda/0x10` of `a/B$$Lambda+0x10`, as the machine writes them.
fn class_as_written(name: &str) -> String {
    name.replace('/', ".").replace("+0x", "/0x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_as_in_maps() {
        assert_eq!(class_as_written("java/util/concurrent/FutureTask"), "java.util.concurrent.FutureTask");
        assert_eq!(class_as_written("Pool$$Lambda$1+0x0000000800c03000"), "Pool$$Lambda$1/0x0000000800c03000");
    }

    #[test]
    fn what_is_no_method_has_no_name() {
        let memory = Memory::of(std::process::id()).unwrap();
        let words = [0_u64; 64];
        let structs = Structs { const_method: Some(8), constants: Some(8), ..Structs::default() };
        let mut methods = Methods::default();
        for address in [0, 1, 8, u64::MAX, words.as_ptr() as u64] {
            assert_eq!(methods.name(&memory, &structs, address), None, "{address:#x}");
        }
    }
}
