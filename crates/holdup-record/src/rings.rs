//! The per-CPU rings of records, mapped into this process.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use holdup_trace::spool::records::{LAP, SIZE};

use crate::layout::{SLOTS_AT, word};

/// Maps all rings. Dropping it unmaps them.
#[derive(Debug)]
pub(crate) struct Rings {
    start: *mut u8,
    length: usize,
    /// Bytes from one CPU's ring to the next.
    stride: usize,
    slots: u64,
    cpus: usize,
}

impl Rings {
    /// Bytes of the map's value for `slots` slots.
    pub(crate) fn value_size(slots: u64) -> usize {
        SLOTS_AT + slots as usize * SIZE
    }

    /// Maps the rings of the map `fd`, which has `cpus` values of [`value_size`](Self::value_size) bytes.
    pub(crate) fn map(fd: BorrowedFd<'_>, cpus: usize, slots: u64) -> std::io::Result<Self> {
        let stride = Self::value_size(slots).next_multiple_of(8);
        let length = (stride * cpus).next_multiple_of(4096);
        // SAFETY: a new shared mapping at an address of the kernel's choice; `fd` is an array map with BPF_F_MMAPABLE.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Rings { start: start.cast(), length, stride, slots, cpus })
    }

    pub(crate) fn cpus(&self) -> usize {
        self.cpus
    }

    fn word(&self, cpu: usize, index: usize) -> &AtomicU64 {
        assert!(cpu < self.cpus && (index + 1) * 8 <= SLOTS_AT);
        // SAFETY: in bounds by the assertion, aligned since the mapping and the stride are, and only accessed
        // atomically on this side.
        unsafe { &*self.start.add(cpu * self.stride + index * 8).cast::<AtomicU64>() }
    }

    /// A counter of the header; see [`word`].
    pub(crate) fn counter(&self, cpu: usize, index: usize) -> u64 {
        self.word(cpu, index).load(Ordering::Relaxed)
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// How many slots are waiting to be read.
    pub(crate) fn waiting(&self, cpu: usize) -> u64 {
        self.counter(cpu, word::HEAD).saturating_sub(self.counter(cpu, word::TAIL))
    }

    fn first_word(&self, cpu: usize, at: u64) -> u64 {
        let offset = SLOTS_AT + (at & (self.slots - 1)) as usize * SIZE;
        // SAFETY: the slot's index is masked, so this is in the CPU's ring, and 8 divides the offset.
        let slot = unsafe { &*self.start.add(cpu * self.stride + offset).cast::<AtomicU64>() };
        slot.load(Ordering::Acquire)
    }

    /// Appends the complete records of `cpu` to `out` and frees their slots. Reads at most what was there at the
    /// beginning, so that it ends even if the kernel writes faster than this reads.
    pub(crate) fn drain(&self, cpu: usize, out: &mut Vec<u8>) {
        let tail = self.counter(cpu, word::TAIL);
        let head = self.word(cpu, word::HEAD).load(Ordering::Acquire).min(tail + self.slots);
        let mut complete = tail;
        while complete < head && (self.first_word(cpu, complete) & LAP != 0) == (complete & self.slots == 0) {
            complete += 1;
        }
        let mut at = tail;
        while at < complete {
            let index = at & (self.slots - 1);
            let run = (complete - at).min(self.slots - index);
            let offset = cpu * self.stride + SLOTS_AT + index as usize * SIZE;
            // SAFETY: in the CPU's ring; these slots are complete and the kernel leaves them alone until the tail
            // has passed them.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(self.start.add(offset), run as usize * SIZE) });
            at += run;
        }
        self.word(cpu, word::TAIL).store(complete, Ordering::Release);
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
