//! Sections of debug information, as its reader wants them.

use std::sync::Arc;

use gimli::{EndianArcSlice, LittleEndian, SectionId};

use crate::elf::Elf;
use crate::metered::Metered;

pub(crate) type Reader = Metered<EndianArcSlice<LittleEndian>>;

/// A section by its name in the file; `id` says how it is read.
pub(crate) fn section(elf: &Elf, name: &str, id: SectionId) -> Reader {
    let data: Arc<[u8]> = elf.shared(name).unwrap_or_default();
    Metered::new(EndianArcSlice::new(data, LittleEndian), elf.meter(), weight(id))
}

/// Bytes that may stay in memory after one read of a section: rows of line tables have 24 and take a byte, ranges 24 and
/// take two reads, functions about 130 and take several. Of most reads nothing stays.
fn weight(id: SectionId) -> u64 {
    match id {
        SectionId::DebugInfo | SectionId::DebugTypes => 32,
        SectionId::DebugLine | SectionId::DebugAbbrev => 24,
        SectionId::DebugRanges | SectionId::DebugRngLists | SectionId::DebugAranges => 24,
        _ => 0,
    }
}
