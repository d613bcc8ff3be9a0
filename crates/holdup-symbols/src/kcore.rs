//! Kernel code, from /proc/kcore where the kernel lets us.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::bytes::{u16_at, u32_at, u64_at};

/// The running kernel's memory.
#[derive(Debug)]
pub(crate) struct KernelCode {
    file: File,
    /// (address, size, offset in the file)
    ranges: Vec<(u64, u64, u64)>,
}

impl KernelCode {
    /// `None` without privilege, under lockdown, or where the kernel has no kcore.
    pub fn open() -> Option<KernelCode> {
        let file = File::open("/proc/kcore").ok()?;
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0).ok()?;
        let (table, count) = (u64_at(&header, 32)?, u16_at(&header, 56)?);
        let mut bytes = vec![0; usize::from(count) * 56];
        file.read_exact_at(&mut bytes, table).ok()?;
        let load = |h: &[u8]| {
            let range = (u64_at(h, 16)?, u64_at(h, 32)?, u64_at(h, 8)?);
            (u32_at(h, 0)? == 1).then_some(range)
        };
        let ranges = bytes.chunks_exact(56).filter_map(load).collect();
        Some(KernelCode { file, ranges })
    }

    /// Bytes at a kernel address.
    pub fn read(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let inside = |&&(start, size, _): &&(u64, u64, u64)| addr >= start && addr - start < size;
        let &(start, size, offset) = self.ranges.iter().find(inside)?;
        let mut bytes = vec![0; len.min(size - (addr - start)).min(16 << 20) as usize];
        self.file.read_exact_at(&mut bytes, offset.checked_add(addr - start)?).ok()?;
        Some(bytes)
    }
}
