//! Who and what was there when the log began. Windows tells it at the log's beginning or at its end, and a log of a ring has only its end:
//! so all that is told anywhere, and did not begin within the log, was there before.

use holdup_trace::PdbId;
use rustc_hash::FxHashMap;

use super::image::{self, Image};
use super::process::{Process, Thread};
use super::record::{Record, Source};

/// Hooks of what begins, ends, or is there; between the first and the last of a group are those that say so in a log's begin or end.
pub mod hook {
    pub const PROCESS_START: u16 = 0x0301;
    pub const PROCESS_LAST: u16 = 0x0304;
    pub const THREAD_START: u16 = 0x0501;
    pub const THREAD_END: u16 = 0x0502;
    pub const THREAD_LAST: u16 = 0x0504;
    pub const THREAD_NAME: u16 = 0x0548;
    pub const IMAGE_LOAD: u16 = 0x140a;
    pub const IMAGE_UNLOAD: u16 = 0x1402;
    pub const IMAGE_LAST: u16 = 0x1404;
    /// Loads were of the process group before Windows 8.
    pub const PROCESS_LOAD: u16 = 0x030a;
}

/// The earliest that was told of something: when, and whether it began then.
#[derive(Debug)]
struct First<T> {
    time: u64,
    began: bool,
    what: T,
}

/// The earliest of everything, by what it is.
#[derive(Debug)]
struct Firsts<K, T>(FxHashMap<K, First<T>>);

impl<K, T> Default for Firsts<K, T> {
    fn default() -> Self {
        Firsts(FxHashMap::default())
    }
}

impl<K: std::hash::Hash + Eq + Ord + Copy, T> Firsts<K, T> {
    fn told(&mut self, key: K, time: u64, began: bool, what: T) {
        match self.0.get_mut(&key) {
            Some(first) if first.time <= time => {}
            Some(first) => *first = First { time, began, what },
            None => drop(self.0.insert(key, First { time, began, what })),
        }
    }

    /// What had not begun within the log, in an order of its own.
    fn before(&self) -> Vec<&T> {
        let mut all: Vec<_> = self.0.iter().filter(|(_, first)| !first.began).collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        all.into_iter().map(|(_, first)| &first.what).collect()
    }
}

/// Who and what was there.
#[derive(Debug, Default)]
pub struct Existing {
    processes: Firsts<u32, Process>,
    threads: Firsts<u32, Thread>,
    images: Firsts<(u32, u64), Image>,
    pdbs: FxHashMap<(u32, u64), PdbId>,
}

impl Existing {
    /// A record. `None` if it is one of these and too short.
    pub fn see(&mut self, record: &Record) -> Option<()> {
        let time = record.time?;
        let hook = match record.source {
            Source::Hook(hook) => hook,
            Source::Classic(guid, opcode) if image::is_pdb(&guid, opcode) => {
                let (at, pdb) = image::parse_pdb(record)?;
                self.pdbs.insert(at, pdb);
                return Some(());
            }
            _ => return Some(()),
        };
        match hook {
            hook::PROCESS_START..=hook::PROCESS_LAST => {
                let process = Process::parse(record)?;
                self.processes.told(process.pid, time, hook == hook::PROCESS_START, process);
            }
            hook::THREAD_START..=hook::THREAD_LAST => {
                let thread = Thread::parse(record)?;
                self.threads.told(thread.tid, time, hook == hook::THREAD_START, thread);
            }
            hook::IMAGE_UNLOAD..=hook::IMAGE_LAST | hook::IMAGE_LOAD | hook::PROCESS_LOAD => {
                let image = Image::parse(record)?;
                let began = matches!(hook, hook::IMAGE_LOAD | hook::PROCESS_LOAD);
                self.images.told((image.pid, image.base), time, began, image);
            }
            _ => {}
        }
        Some(())
    }

    /// Processes that were there before.
    pub fn processes(&self) -> Vec<&Process> {
        self.processes.before()
    }

    /// Threads that were there before.
    pub fn threads(&self) -> Vec<&Thread> {
        self.threads.before()
    }

    /// Images that were there before.
    pub fn images(&self) -> Vec<&Image> {
        self.images.before()
    }

    /// The PDB of the image that begins at `base` of a process.
    pub fn pdb(&self, pid: u32, base: u64) -> Option<&PdbId> {
        self.pdbs.get(&(pid, base))
    }
}
