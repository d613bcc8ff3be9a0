//! Processes, threads and images as they come and go, and what they are called.

use holdup_trace::{ExecEvent, ExitEvent, ForkEvent, Image as Mapped, MapEvent, NameEvent, ProcessEvent, TraceBuilder};
use rustc_hash::FxHashMap;

use super::drivers::Drivers;
use super::existing::{Existing, hook};
use super::image::Image;
use super::process::{Process, Thread};
use super::record::Record;

/// Who is there now.
pub struct People<'a> {
    existing: &'a Existing,
    /// The program of each process.
    programs: FxHashMap<u32, String>,
    /// The process of each thread.
    processes: FxHashMap<u32, u32>,
    /// Images by process, address, size and path: a program that loads a library often has one.
    images: FxHashMap<(u32, u64, u64, String), u32>,
    /// The kernel's.
    pub drivers: Drivers,
}

impl<'a> People<'a> {
    /// Before the log's first event.
    pub fn new(existing: &'a Existing) -> Self {
        People {
            drivers: Drivers::default(),
            existing,
            programs: FxHashMap::default(),
            processes: FxHashMap::default(),
            images: FxHashMap::default(),
        }
    }

    /// Tells of all that was there at `time`, when the log began.
    pub fn introduce(&mut self, time: u64, builder: &mut TraceBuilder) {
        // The trace begins with its first event: let that be when the log did.
        let name = builder.string("Idle");
        builder.push(time, ProcessEvent { pid: 0, name });
        for process in self.existing.processes() {
            self.process(time, process, builder);
        }
        for thread in self.existing.threads() {
            self.thread(time, thread, builder);
        }
        for image in self.existing.images() {
            self.image(time, image, builder);
        }
    }

    /// The process of a thread; 0 if nobody knows.
    #[inline]
    pub fn process_of(&self, tid: u32) -> u32 {
        self.processes.get(&tid).copied().unwrap_or(0)
    }

    /// Whether it is a thread of a process that is known.
    pub fn knows(&self, tid: u32) -> bool {
        self.processes.contains_key(&tid)
    }

    /// A record of something that comes or goes. `None` if it is too short.
    pub fn change(&mut self, time: u64, what: u16, record: &Record, builder: &mut TraceBuilder) -> Option<()> {
        match what {
            hook::PROCESS_START => {
                let process = Process::parse(record)?;
                // The number may have been another's.
                builder.push(time, ExecEvent { pid: process.pid });
                self.process(time, &process, builder);
            }
            hook::THREAD_START => {
                let thread = Thread::parse(record)?;
                let Thread { pid, tid, .. } = thread;
                // A new process has nothing of its parent's mapped, so it is no fork of it.
                let parent = record.tid.unwrap_or(0);
                builder.push(time, ForkEvent { parent_pid: pid, parent, pid, tid });
                self.thread(time, &thread, builder);
            }
            hook::THREAD_END => {
                let tid = Thread::parse(record)?.tid;
                builder.push(time, ExitEvent { tid });
            }
            hook::THREAD_NAME => self.thread(time, &Thread::parse_name(record)?, builder),
            hook::IMAGE_LOAD | hook::PROCESS_LOAD => self.image(time, &Image::parse(record)?, builder),
            _ => {}
        }
        Some(())
    }

    fn process(&mut self, time: u64, process: &Process, builder: &mut TraceBuilder) {
        let name = builder.string(&process.name);
        builder.push(time, ProcessEvent { pid: process.pid, name });
        self.programs.insert(process.pid, process.name.clone());
    }

    fn thread(&mut self, time: u64, thread: &Thread, builder: &mut TraceBuilder) {
        let &Thread { pid, tid, ref name } = thread;
        // Every CPU has an idle thread, and all of them are number 0.
        if tid == 0 {
            return;
        }
        let name = match (name.as_str(), self.programs.get(&pid)) {
            ("", Some(program)) => builder.string(program),
            ("", None) => builder.string(&format!("process {pid}")),
            (own, _) => builder.string(own),
        };
        self.processes.insert(tid, pid);
        builder.push(time, NameEvent { pid, tid, name });
    }

    fn image(&mut self, time: u64, image: &Image, builder: &mut TraceBuilder) {
        let &Image { base, size, pid, ref path } = image;
        let existing = self.existing;
        if pid == 0 {
            self.drivers.add(image);
        }
        let number = self.images.entry((pid, base, size, path.clone())).or_insert_with(|| {
            let build_id = existing.pdb(pid, base).and_then(|pdb| pdb.to_build_id());
            let end = base.saturating_add(size);
            builder.image(Mapped { start: base, end, file_offset: 0, path: path.clone(), build_id, pid })
        });
        builder.push(time, MapEvent { pid, image: *number });
    }
}
