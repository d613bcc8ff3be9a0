//! The methods behind what stacks show of a machine: those that its interpreter ran, and those that its compilers put into others.

use std::sync::Arc;
use std::time::Instant;

use holdup_symbols::InlinedFunctions;
use rustc_hash::{FxHashMap, FxHashSet};

use super::methods::Methods;
use super::scopes::Scopes;
use super::structs::Structs;
use crate::memory::Memory;

/// Places in compiled code that are kept: 24 bytes each, and at worst some 500 for the methods there.
const PLACES: usize = 1 << 17;
/// Methods of the interpreter that are kept.
const METHODS: usize = 1 << 16;

/// What stacks of a process held, since it was asked last.
#[derive(Debug, Clone, Default)]
pub struct Met {
    /// Addresses in memory for compiled code.
    pub code: FxHashSet<u64>,
    /// What lies where frames of the interpreter have their method.
    pub methods: FxHashSet<u64>,
}

/// What is known of the methods of a process.
#[derive(Debug, Clone, Default)]
pub struct Insides {
    /// By compiled code.
    pub inlined: InlinedFunctions,
    /// Names of methods, by where they lie.
    pub methods: FxHashMap<u64, Arc<str>>,
    /// Found at first.
    structs: Option<Structs>,
    names: Methods,
}

impl Insides {
    /// Reads what there is to know of what was `met`, from the memory of the process, which is not asked for anything. Nothing where that
    /// may not be read.
    pub fn learn(&mut self, pid: u32, met: Met, until: Instant) {
        let Some(memory) = Memory::of(pid) else { return };
        self.structs = self.structs.take().or_else(|| Structs::of(pid, &memory));
        let Some(structs) = &self.structs else { return };
        for method in met.methods {
            if self.methods.len() >= METHODS || Instant::now() >= until {
                break;
            }
            self.methods.extend(self.names.name(&memory, structs, method).map(|name| (method, name)));
        }
        let mut addresses: Vec<u64> = met.code.into_iter().collect();
        addresses.sort_unstable();
        if let Some(scopes) = Scopes::new(&memory, structs) {
            let room = PLACES.saturating_sub(self.inlined.points());
            self.inlined.add(scopes.of(&addresses, &mut self.names, room, until));
        }
    }
}
