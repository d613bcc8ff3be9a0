//! Perf events: CPU samples for the BPF program, and a buffer that tells of new mappings of code.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const CPU_CYCLES: u64 = 0;
const CPU_CLOCK: u64 = 0;
const DUMMY: u64 = 9;
const SAMPLE_TID_TIME: u64 = 1 << 1 | 1 << 2;
const ATTR_SIZE: usize = 112;

mod flag {
    pub(super) const EXCLUDE_IDLE: u64 = 1 << 7;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const FREQ: u64 = 1 << 10;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
    pub(super) const BUILD_ID: u64 = 1 << 34;
}

/// An open perf event.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

/// The parts of `perf_event_attr` that are used.
#[derive(Debug, Default, Clone, Copy)]
struct Attr {
    kind: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    flags: u64,
}

impl Event {
    fn open(attr: Attr, cpu: usize) -> io::Result<Event> {
        let mut words = [0u64; ATTR_SIZE / 8];
        words[0] = u64::from(attr.kind) | (ATTR_SIZE as u64) << 32;
        words[1] = attr.config;
        words[2] = attr.period;
        words[3] = attr.sample_type;
        words[5] = attr.flags;
        words[11] = (libc::CLOCK_MONOTONIC as u64) << 32;
        const CLOEXEC: libc::c_ulong = 8;
        // SAFETY: `words` is a perf_event_attr of the size that it tells and lives through the call.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, words.as_ptr(), -1, cpu as i32, -1, CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Samples `freq` times a second on `cpu`: by cycles if the machine counts them, else by the CPU's clock.
    pub(crate) fn sampling(cpu: usize, freq: u32, cycles: bool) -> io::Result<Event> {
        let (kind, config) = if cycles { (TYPE_HARDWARE, CPU_CYCLES) } else { (TYPE_SOFTWARE, CPU_CLOCK) };
        let flags = flag::FREQ | flag::EXCLUDE_IDLE;
        Event::open(Attr { kind, config, period: freq.into(), sample_type: SAMPLE_TID_TIME, flags }, cpu)
    }

    /// A descriptor of its own for libbpf, whose links close what they are given.
    pub(crate) fn duplicate(&self) -> io::Result<i32> {
        self.0.try_clone().map(IntoRawFd::into_raw_fd)
    }

    pub(crate) fn raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// Whether the machine has a hardware cycle counter.
pub(crate) fn has_cycles() -> bool {
    Event::sampling(0, 1, true).is_ok()
}

/// A CPU's buffer of records about mappings and execs.
#[derive(Debug)]
pub(crate) struct Mappings {
    _event: Event,
    start: *mut u8,
    tail: u64,
}

impl Mappings {
    const PAGES: usize = 128;
    const DATA: usize = Self::PAGES * 4096;

    /// Opens the buffer; without build ids on kernels that do not know them here (before 5.12).
    pub(crate) fn open(cpu: usize) -> io::Result<Mappings> {
        let flags = flag::MMAP | flag::MMAP2 | flag::COMM | flag::COMM_EXEC | flag::SAMPLE_ID_ALL | flag::USE_CLOCKID;
        let attr = Attr { kind: TYPE_SOFTWARE, config: DUMMY, sample_type: SAMPLE_TID_TIME, flags, ..Attr::default() };
        let with_build_id = Attr { flags: flags | flag::BUILD_ID, ..attr };
        let event = Event::open(with_build_id, cpu).or_else(|_| Event::open(attr, cpu))?;
        // SAFETY: a new shared mapping of the event's buffer at an address of the kernel's choice.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 4096 + Self::DATA, access, libc::MAP_SHARED, event.raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mappings { _event: event, start: start.cast(), tail: 0 })
    }

    fn control(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= 4096);
        // SAFETY: within the control page, aligned, shared with the kernel and only accessed atomically.
        unsafe { &*self.start.add(offset).cast::<AtomicU64>() }
    }

    /// Calls `record` with each record's type, misc bits and body.
    pub(crate) fn drain(&mut self, record: &mut dyn FnMut(u32, u16, &[u8])) {
        const DATA_HEAD: usize = 1024;
        const DATA_TAIL: usize = 1032;
        let head = self.control(DATA_HEAD).load(Ordering::Acquire);
        let mut bytes = Vec::new();
        while self.tail < head {
            let header = self.word(self.tail);
            let size = (header >> 48) as usize;
            if size < 8 || size as u64 > head - self.tail {
                self.tail = head;
                break;
            }
            bytes.clear();
            (1..size.div_ceil(8)).for_each(|i| bytes.extend(self.word(self.tail + i as u64 * 8).to_ne_bytes()));
            record(header as u32, (header >> 32) as u16, &bytes);
            self.tail += size as u64;
        }
        self.control(DATA_TAIL).store(self.tail, Ordering::Release);
    }

    /// The word at a position of the data; records are multiples of 8 bytes and may wrap around.
    fn word(&self, at: u64) -> u64 {
        let offset = at as usize & (Self::DATA - 1) & !7;
        // SAFETY: masked into the data area, aligned; the kernel writes only beyond what it announced in data_head.
        unsafe { self.start.add(4096 + offset).cast::<u64>().read_volatile() }
    }
}

impl Drop for Mappings {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), 4096 + Self::DATA) };
    }
}
