//! Images: files of code, where they lie, and which PDBs belong to them.

use holdup_trace::PdbId;

use super::fields::Fields;
use super::record::{Guid, Record};

/// `ImageId`: what KernelTraceControl adds to a log when it is merged.
const IMAGE_ID: Guid = [0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde];

/// What such an event is called; `None` for events of others.
pub fn name_of(guid: &Guid, opcode: u8) -> Option<&'static str> {
    let name = match opcode {
        0 => "ImageId",
        32 => "ImageId/DbgID_None",
        36 => "ImageId/DbgID_RSDS",
        37 => "ImageId/DbgID_ILRSDS",
        64 => "ImageId/FileVersion",
        _ => return None,
    };
    (*guid == IMAGE_ID).then_some(name)
}

/// Whether it tells an image's PDB.
pub fn is_pdb(guid: &Guid, opcode: u8) -> bool {
    opcode == 36 && *guid == IMAGE_ID
}

/// An image, as a record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Where it begins in memory.
    pub base: u64,
    /// How many bytes it has there.
    pub size: u64,
    /// The process; 0 for the kernel.
    pub pid: u32,
    /// The file's path.
    pub path: String,
}

impl Image {
    /// From a record of the image group, or of that which was there before.
    pub fn parse(record: &Record) -> Option<Image> {
        let mut at = Fields::new(record.body, record.wide);
        let (base, size) = (at.pointer()?, at.pointer()?);
        let pid = if record.version >= 1 { at.u32()? } else { 0 };
        if record.version >= 2 {
            // Checksum, time stamp, signature; default base; four reserved words.
            at.skip(12)?;
            at.skip_pointers(1)?;
            at.skip(16)?;
        }
        let pid = if is_kernel(base, record.wide) { 0 } else { pid };
        Some(Image { base, size, pid, path: at.wide_text() })
    }
}

/// Which PDB belongs to the image at an address of a process.
pub fn parse_pdb(record: &Record) -> Option<((u32, u64), PdbId)> {
    let mut at = Fields::new(record.body, record.wide);
    let (base, pid) = (at.pointer()?, at.u32()?);
    let (guid, age) = (at.guid()?, at.u32()?);
    let pid = if is_kernel(base, record.wide) { 0 } else { pid };
    Some(((pid, base), PdbId::from_windows(guid, age, &at.text())))
}

/// Whether an address is the kernel's: the upper half.
#[inline]
pub fn is_kernel(address: u64, wide: bool) -> bool {
    address >= if wide { 1 << 63 } else { 1 << 31 }
}
