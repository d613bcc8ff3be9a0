//! Names of inlined functions: a call site names one by its number in the stream of ids (IPI), and a member function its
//! class by its number in the stream of types (TPI).

use pdb2::{FallibleIterator, IdData, IdInformation, TypeData, TypeInformation};
use rustc_hash::FxHashMap;

use super::text::{Piece, Texts};
use crate::demangle::MANGLED_LIMIT;
use crate::meter::Meter;

/// Deepest scope that is shown: namespaces in namespaces. Ids can form a circle.
const SCOPES: usize = 32;

const LF_FUNC_ID: u16 = 0x1601;
const LF_MFUNC_ID: u16 = 0x1602;
const LF_STRING_ID: u16 = 0x1605;

#[derive(Debug, Clone, Copy)]
enum Scope {
    None,
    Id(u32),
    Type(u32),
}

/// All functions, scopes and classes that a PDB has ids for.
#[derive(Debug, Default)]
pub(super) struct Ids {
    ids: FxHashMap<u32, (Scope, Piece)>,
    classes: FxHashMap<u32, Piece>,
    texts: Texts,
}

impl Ids {
    /// Reads the ids; `types` is asked for only if there are member functions. What does not fit has no name.
    pub fn load<'s>(
        ids: &IdInformation<'s>,
        types: impl FnOnce() -> Option<TypeInformation<'s>>,
        meter: &Meter,
    ) -> pdb2::Result<Ids> {
        let mut loaded = Ids::default();
        let mut iter = ids.iter();
        while let Some(item) = iter.next()? {
            if !matches!(item.raw_kind(), LF_FUNC_ID | LF_MFUNC_ID | LF_STRING_ID) {
                continue;
            }
            let (scope, name) = match item.parse() {
                Ok(IdData::Function(f)) => (f.scope.map_or(Scope::None, |id| Scope::Id(id.0)), f.name),
                Ok(IdData::MemberFunction(f)) => (Scope::Type(f.parent.0), f.name),
                Ok(IdData::String(s)) => (Scope::None, s.name),
                _ => continue,
            };
            if !meter.read((64 + name.len()) as u64) {
                break;
            }
            if let Scope::Type(class) = scope {
                loaded.classes.insert(class, Piece::default());
            }
            let name = loaded.texts.keep(name.as_bytes(), MANGLED_LIMIT);
            loaded.ids.insert(item.index().0, (scope, name));
        }
        if !loaded.classes.is_empty()
            && let Some(types) = types()
        {
            loaded.name_classes(&types, meter)?;
        }
        Ok(loaded)
    }

    fn name_classes(&mut self, types: &TypeInformation, meter: &Meter) -> pdb2::Result<()> {
        let mut iter = types.iter();
        while let Some(item) = iter.next()? {
            if !meter.read(0) {
                break;
            }
            let Some(class) = self.classes.get_mut(&item.index().0) else { continue };
            let name = match item.parse() {
                Ok(TypeData::Class(t)) => t.name,
                Ok(TypeData::Union(t)) => t.name,
                Ok(TypeData::Enumeration(t)) => t.name,
                _ => continue,
            };
            if !meter.hold((32 + name.len()) as u64) {
                break;
            }
            *class = self.texts.keep(name.as_bytes(), MANGLED_LIMIT);
        }
        Ok(())
    }

    /// `std::vector<int>::size`; `None` for what another module defines.
    pub fn name(&self, id: u32) -> Option<String> {
        let (mut scope, name) = *self.ids.get(&id)?;
        let mut parts = vec![self.texts.get(name)];
        while let Scope::Id(outer) = scope
            && parts.len() < SCOPES
        {
            let Some(&(next, name)) = self.ids.get(&outer) else { break };
            parts.push(self.texts.get(name));
            scope = next;
        }
        if let Scope::Type(class) = scope {
            parts.extend(self.classes.get(&class).map(|&name| self.texts.get(name)));
        }
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        Some(parts.join("::"))
    }
}
