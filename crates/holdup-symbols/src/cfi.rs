//! Call frame information: where functions begin and end, and how to step from one to its caller.

use std::sync::{Arc, OnceLock};

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    UnwindSection, Vendor,
};

use crate::elf::Elf;
use crate::meter::Meter;
use crate::metered::Metered;
use holdup_disasm::Arch;

pub(crate) type Slice<'a> = Metered<EndianSlice<'a, LittleEndian>>;
type Fde<'a> = FrameDescriptionEntry<Slice<'a>>;

/// Bytes of the index for each read: an entry has 24, and takes at least three reads.
const INDEX_WEIGHT: u64 = 8;

/// `.eh_frame` and `.debug_frame` of a file.
#[derive(Debug)]
pub(crate) struct Cfi {
    eh_frame: Option<Arc<[u8]>>,
    header: Option<Arc<[u8]>>,
    debug_frame: Option<Arc<[u8]>>,
    bases: BaseAddresses,
    /// Where `.eh_frame` is loaded.
    start: u64,
    arch: Option<Arch>,
    meter: Arc<Meter>,
    /// (first address, end, offset of the entry), sorted, where the file has no index of its own.
    eh_index: OnceLock<Vec<(u64, u64, usize)>>,
    debug_index: OnceLock<Vec<(u64, u64, usize)>>,
}

/// An entry found: in which of the two sections.
pub(crate) enum Entry<'a> {
    Eh(EhFrame<Slice<'a>>, Fde<'a>),
    Debug(DebugFrame<Slice<'a>>, Fde<'a>),
}

impl Entry<'_> {
    /// First address and length of the function (or of the part of it) that the entry describes.
    pub fn range(&self) -> (u64, u64) {
        let (Entry::Eh(_, fde) | Entry::Debug(_, fde)) = self;
        (fde.initial_address(), fde.len())
    }
}

impl Cfi {
    /// Reads the sections; `debug` is a separate debug file, which can have `.debug_frame`.
    pub fn load(elf: &Elf, debug: Option<&Elf>) -> Cfi {
        let addr = |name| elf.section(name).map_or(0, |s| s.addr);
        let bases = BaseAddresses::default()
            .set_eh_frame(addr(".eh_frame"))
            .set_eh_frame_hdr(addr(".eh_frame_hdr"))
            .set_text(addr(".text"))
            .set_got(addr(".got"));
        let debug_frame = elf.shared(".debug_frame").or_else(|| debug.and_then(|d| d.shared(".debug_frame")));
        let (eh_frame, header) = (elf.shared(".eh_frame"), elf.shared(".eh_frame_hdr"));
        let arch = elf.arch.filter(|_| elf.is_64);
        let start = addr(".eh_frame");
        Cfi {
            eh_frame,
            header,
            debug_frame,
            bases,
            start,
            arch,
            meter: elf.meter().clone(),
            eh_index: OnceLock::new(),
            debug_index: OnceLock::new(),
        }
    }

    /// For a file that may not cost more.
    pub fn none(meter: &Arc<Meter>) -> Cfi {
        let (eh_index, debug_index) = (OnceLock::new(), OnceLock::new());
        let (bases, meter) = (BaseAddresses::default(), meter.clone());
        Cfi {
            eh_frame: None,
            header: None,
            debug_frame: None,
            bases,
            start: 0,
            arch: None,
            meter,
            eh_index,
            debug_index,
        }
    }

    /// The machine, if it is one that can be unwound.
    pub fn arch(&self) -> Option<Arch> {
        self.arch
    }

    pub fn bases(&self) -> &BaseAddresses {
        &self.bases
    }

    /// The entry that covers `addr`.
    pub fn entry(&self, addr: u64) -> Option<Entry<'_>> {
        self.arch?;
        self.eh_entry(addr).or_else(|| self.debug_entry(addr))
    }

    fn eh_entry(&self, addr: u64) -> Option<Entry<'_>> {
        let section = |weight| {
            let mut section = EhFrame::from(self.reader(self.eh_frame.as_deref()?, weight));
            section.set_address_size(8);
            self.set_vendor(|v| section.set_vendor(v));
            Some(section)
        };
        let (indexed, section) = (section(INDEX_WEIGHT)?, section(0)?);
        let fde = match self.header.as_deref().and_then(|h| self.header_lookup(h, &section, addr)) {
            Some(found) => found?,
            None => {
                let index = self.eh_index.get_or_init(|| index(&indexed, &self.bases));
                let offset = find(index, addr)?;
                section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?
            }
        };
        fde.contains(addr).then_some(Entry::Eh(section, fde))
    }

    /// `None` if the header has no usable table, `Some(None)` if the address is not in it.
    fn header_lookup<'a>(
        &'a self,
        header: &'a [u8],
        section: &EhFrame<Slice<'a>>,
        addr: u64,
    ) -> Option<Option<Fde<'a>>> {
        let header = EhFrameHdr::from(self.reader(header, 0)).parse(&self.bases, 8).ok()?;
        let pointer = header.table()?.lookup(addr, &self.bases).ok()?;
        // gimli's own subtraction overflows on a damaged table.
        let offset =
            pointer.direct().ok().and_then(|p| p.checked_sub(self.start)).and_then(|o| usize::try_from(o).ok());
        let entry = |o: usize| section.fde_from_offset(&self.bases, o.into(), EhFrame::cie_from_offset).ok();
        Some(offset.and_then(entry))
    }

    fn debug_entry(&self, addr: u64) -> Option<Entry<'_>> {
        let section = |weight| {
            let mut section = DebugFrame::from(self.reader(self.debug_frame.as_deref()?, weight));
            section.set_address_size(8);
            self.set_vendor(|v| section.set_vendor(v));
            Some(section)
        };
        let (indexed, section) = (section(INDEX_WEIGHT)?, section(0)?);
        let index = self.debug_index.get_or_init(|| index(&indexed, &self.bases));
        let offset = find(index, addr)?;
        let fde = section.fde_from_offset(&self.bases, offset.into(), DebugFrame::cie_from_offset).ok()?;
        fde.contains(addr).then_some(Entry::Debug(section, fde))
    }

    /// What reading costs.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    fn reader<'a>(&self, bytes: &'a [u8], weight: u64) -> Slice<'a> {
        Metered::new(EndianSlice::new(bytes, LittleEndian), &self.meter, weight)
    }

    fn set_vendor(&self, set: impl FnOnce(Vendor)) {
        if self.arch == Some(Arch::Aarch64) {
            set(Vendor::AArch64);
        }
    }
}

fn index<'a, S>(section: &S, bases: &BaseAddresses) -> Vec<(u64, u64, usize)>
where
    S: UnwindSection<Slice<'a>>,
{
    let mut index = Vec::new();
    let mut entries = section.entries(bases);
    // An entry that cannot be read ends the list: what follows it cannot be found.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(fde) = partial.parse(S::cie_from_offset) {
            index.push((fde.initial_address(), fde.end_address(), fde.offset()));
        }
    }
    index.sort_unstable();
    index
}

fn find(index: &[(u64, u64, usize)], addr: u64) -> Option<usize> {
    let after = index.partition_point(|&(start, ..)| start <= addr);
    index[..after].last().filter(|&&(_, end, _)| addr < end).map(|&(.., offset)| offset)
}
