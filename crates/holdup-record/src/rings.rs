//! The per-CPU rings of records, mapped into this process.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use holdup_spool::records::{LAP, SIZE};

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

/// One of the two rings of a CPU: that of switches and wake-ups, or that of everything else.
#[derive(Debug, Clone, Copy)]
struct Ring {
    head: usize,
    tail: usize,
    slots: u64,
    /// Where its slots begin in the CPU's memory.
    start: usize,
}

impl Rings {
    /// Bytes of the map's value for `slots` slots of the main ring.
    pub(crate) fn value_size(slots: u64) -> usize {
        SLOTS_AT + (slots + Self::side_slots(slots)) as usize * SIZE
    }

    /// Slots of the side ring beside a main ring of `slots`.
    pub(crate) fn side_slots(slots: u64) -> u64 {
        (slots / 8).max(4096)
    }

    fn both(&self) -> [Ring; 2] {
        let side = SLOTS_AT + self.slots as usize * SIZE;
        [
            Ring { head: word::HEAD, tail: word::TAIL, slots: self.slots, start: SLOTS_AT },
            Ring { head: word::SIDE_HEAD, tail: word::SIDE_TAIL, slots: Self::side_slots(self.slots), start: side },
        ]
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

    /// Whether a ring of `cpu` is more than a quarter full.
    pub(crate) fn is_pressed(&self, cpu: usize) -> bool {
        self.both().iter().any(|r| self.counter(cpu, r.head).saturating_sub(self.counter(cpu, r.tail)) > r.slots / 4)
    }

    fn first_word(&self, cpu: usize, ring: Ring, at: u64) -> u64 {
        let offset = ring.start + (at & (ring.slots - 1)) as usize * SIZE;
        // SAFETY: the slot's index is masked, so this is in the CPU's ring, and 8 divides the offset.
        let slot = unsafe { &*self.start.add(cpu * self.stride + offset).cast::<AtomicU64>() };
        slot.load(Ordering::Acquire)
    }

    /// Appends the complete records of `cpu` to `out` and frees their slots. Reads at most what was there at the
    /// beginning, so that it ends even if the kernel writes faster than this reads.
    pub(crate) fn drain(&self, cpu: usize, out: &mut Vec<u8>) {
        self.both().into_iter().for_each(|ring| self.drain_ring(cpu, ring, out));
    }

    fn drain_ring(&self, cpu: usize, ring: Ring, out: &mut Vec<u8>) {
        let tail = self.counter(cpu, ring.tail);
        let head = self.word(cpu, ring.head).load(Ordering::Acquire).min(tail + ring.slots);
        let is_complete = |at: u64| (self.first_word(cpu, ring, at) & LAP != 0) == (at & ring.slots == 0);
        let complete = (tail..head).find(|&at| !is_complete(at)).unwrap_or(head.max(tail));
        let mut at = tail;
        while at < complete {
            let index = at & (ring.slots - 1);
            let run = (complete - at).min(ring.slots - index);
            let offset = cpu * self.stride + ring.start + index as usize * SIZE;
            // SAFETY: in the CPU's ring; these slots are complete and the kernel leaves them alone until the tail
            // has passed them.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(self.start.add(offset), run as usize * SIZE) });
            at += run;
        }
        self.word(cpu, ring.tail).store(complete, Ordering::Release);
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
