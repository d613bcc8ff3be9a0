//! All CPUs' events in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use holdup_trace::{ChainId, Result, TraceBuilder};

use super::cpu_stream::CpuStream;
use super::description::Description;
use super::file::File;
use super::pages::{Missed, Record};
use super::points::{Kinds, Use};
use crate::linux::Instant;
use crate::linux::kernel::Kernel;
use crate::linux::lifecycle::Processes;
use crate::linux::tracepoint::Current;

/// After so many events the builder is told that nothing older follows.
const ROUND: u64 = 1 << 16;

/// An import under way.
pub struct Merge<'b> {
    /// What the file says about itself.
    pub description: Description,
    /// The CPUs.
    pub streams: Vec<CpuStream>,
    /// What is known of the machine.
    pub kernel: Kernel<'b>,
    /// What events are used for.
    pub kinds: Kinds,
    /// Events that are too short, or at a time that cannot be.
    pub damaged: u64,
    processes: Processes,
    file: File,
    /// The event at hand, and the addresses of its stack.
    raw: Vec<u8>,
    stack: (Vec<u64>, Vec<u64>),
    /// Events that pages say are missing.
    pub missed: u64,
}

/// Reads all buffers of `file`.
pub fn read<'b>(file: File, description: Description, builder: &'b mut TraceBuilder) -> Result<Merge<'b>> {
    let streams = |b: &super::description::Buffer| {
        let (page_size, packed) = (b.page_size, b.packed);
        b.cpus.iter().map(move |&data| CpuStream::new(data, page_size, packed)).collect::<Vec<_>>()
    };
    let merge = Merge {
        streams: description.buffers.iter().flat_map(streams).collect(),
        kinds: Kinds::new(&description.formats, description.long),
        kernel: Kernel::new(builder),
        description,
        damaged: 0,
        processes: Processes::default(),
        file,
        raw: Vec::new(),
        stack: (Vec::new(), Vec::new()),
        missed: 0,
    };
    merge.run()
}

impl Merge<'_> {
    fn run(mut self) -> Result<Self> {
        let mut heads: Vec<Option<Record>> = Vec::new();
        for stream in &mut self.streams {
            heads.push(stream.next(&mut self.file, &self.description));
        }
        let first = |(at, head): (usize, &Option<Record>)| head.as_ref().map(|r| Reverse((r.time, at)));
        let mut queue: BinaryHeap<_> = heads.iter().enumerate().filter_map(first).collect();
        let mut count = 0_u64;
        while let Some(Reverse((_, at))) = queue.pop() {
            if let Some(record) = heads[at].take() {
                self.raw.clear();
                self.raw.extend_from_slice(self.streams[at].bytes(&record));
                self.tell_missed(at);
                heads[at] = self.streams[at].next(&mut self.file, &self.description);
                self.take_stacks(at, &mut heads[at]);
                self.event(at, record.time);
            }
            if let Some(next) = &heads[at] {
                queue.push(Reverse((next.time, at)));
            }
            count += 1;
            if count.is_multiple_of(ROUND) {
                self.kernel.sink.finish_round()?;
            }
        }
        Ok(self)
    }

    /// Nanoseconds of the buffer's clock.
    fn nanoseconds(&self, time: u64) -> u64 {
        match self.description.cycles {
            Some((factor, shift)) => ((u128::from(time) * u128::from(factor)) >> shift) as u64,
            None => time,
        }
    }

    /// Stacks follow the event that they belong to, in the same CPU's buffer.
    fn take_stacks(&mut self, at: usize, head: &mut Option<Record>) {
        self.stack.0.clear();
        self.stack.1.clear();
        let owner = self.kinds.of(&self.raw).map(|k| k.tid(&self.raw));
        while let Some(record) = head {
            let raw = self.streams[at].bytes(record);
            let Some(kind) = self.kinds.of(raw).filter(|k| Some(k.tid(raw)) == owner) else { return };
            match kind.used {
                Use::KernelStack(callers) => callers.read(raw, &mut self.stack.0),
                Use::UserStack(callers) => callers.read(raw, &mut self.stack.1),
                _ => return,
            }
            self.kinds.count(raw);
            *head = self.streams[at].next(&mut self.file, &self.description);
        }
    }

    fn event(&mut self, stream: usize, time: u64) {
        let at = Instant { time: self.nanoseconds(time), cpu: self.streams[stream].cpu };
        let Merge { raw, kinds, kernel, processes, stack: (in_kernel, in_user), damaged, description, .. } = self;
        in_kernel.drain(..description.functions.of_tracer(in_kernel));
        description.functions.name(in_kernel, kernel.sink.builder);
        let Some(kind) = kinds.count(raw) else { return };
        if !kernel.is_plausible(at) {
            *damaged += 1;
            return;
        }
        let tid = kind.tid(raw);
        let current = Current { pid: processes.of(tid).unwrap_or(u32::MAX), tid };
        let chain = |_, builder: &mut TraceBuilder| match (&in_kernel[..], &in_user[..]) {
            ([], []) => ChainId::NONE,
            (in_kernel, in_user) => builder.chain(processes.of(tid).unwrap_or(tid), in_kernel, in_user),
        };
        match &kind.used {
            Use::Point(point) => *damaged += u64::from(kernel.tracepoint(point, (at, current), raw, chain).is_none()),
            Use::Life(life) => kernel.lifecycle(*life, at, tid, raw, processes),
            Use::KernelStack(_) | Use::UserStack(_) | Use::Counted => {}
        }
    }

    fn tell_missed(&mut self, stream: usize) {
        let Some((since, missed, seen)) = self.streams[stream].missed.take() else { return };
        let (since, seen) = (self.nanoseconds(since), self.nanoseconds(seen));
        let at = Instant { time: seen, cpu: self.streams[stream].cpu };
        // The kernel does not always say how many.
        let count = if let Missed::Count(n) = missed { n } else { 1 };
        self.missed = self.missed.saturating_add(count);
        if self.kernel.is_plausible(at) {
            let span = if since == 0 { 0 } else { seen.saturating_sub(since) };
            self.kernel.lost(at, span, count, "events that found the kernel's buffer full");
        }
    }
}
