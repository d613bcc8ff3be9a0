//! Takes packets one by one and turns them into events.

use std::io::Read;

use holdup_trace::{ChainId, LossKind, LostEvent, Nanos, Result, TraceBuilder};
use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use super::ftrace::Ftrace;
use super::join::{Join, Taken, sample};
use super::names::Counts;
use super::packets::{Packets, Part, Stop};
use super::processes::Processes;
use super::sequence::{Sequence, Timebase, execution, task};
use super::stacks::Stacks;
use super::system;
use super::wire::{Fields, Value};
use crate::linux::Instant;
use crate::linux::cpus::cpu;
use crate::linux::kernel::Kernel;
use crate::unpack::{self, Packing};

/// Greatest content of one compressed packet. The tracing service makes them of half a megabyte.
const MOST_UNPACKED: u64 = 128 << 20;

/// Fields of a packet, after the published schema.
mod number {
    pub const FTRACE: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCKS: u32 = 6;
    pub const PROCESS_STATS: u32 = 9;
    pub const TRACE_CONFIG: u32 = 33;
    pub const FTRACE_STATS: u32 = 34;
    pub const TRACE_STATS: u32 = 35;
    pub const MARKER: u32 = 36;
    pub const SYSTEM: u32 = 45;
    pub const DEFLATE: u32 = 50;
    pub const TRACK: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    pub const CPUS: u32 = 67;
    pub const SERVICE: u32 = 69;
    pub const ZSTD: u32 = 133;
    pub const STACK_SAMPLE: u32 = 135;
}

/// Bits of `sequence_flags`.
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// Buffers are flushed so often before what they held is complete: what was under way during the first is in by the second.
const FLUSHES: u8 = 2;

/// An import under way.
pub struct Session<'b> {
    /// What is known of the machine.
    pub kernel: Kernel<'b>,
    /// Packets by their data.
    pub counts: Counts,
    /// ftrace's events.
    pub ftrace: Ftrace,
    /// What the trace says of itself and of its machine.
    pub system: system::System,
    /// Which process each thread belongs to.
    pub processes: Processes,
    /// Stacks that wait for their events.
    pub join: Join,
    /// Call stacks.
    pub stacks: Stacks,
    /// What was lost or left out, by reason.
    pub lost: Lost,
    clocks: Clocks,
    sequences: FxHashMap<u32, Sequence>,
    has_tree: bool,
    flushes: u8,
    /// Whether the service says when it has read all buffers.
    tells_reads: bool,
}

/// What was lost or left out.
#[derive(Debug, Default)]
pub struct Lost {
    /// Packets that are cut or whose time is not known.
    pub damaged: u64,
    /// Packets that refer to interned data that was lost.
    pub stateless: u64,
    /// Packets of other machines.
    pub foreign: u64,
    /// Compressed packets inside compressed ones, or too large.
    pub nested: u64,
    /// Stacks that the profiler passed over.
    pub skipped: u64,
}

/// What a packet says of itself, beside its data.
#[derive(Debug, Clone, Copy, Default)]
struct Envelope<'a> {
    time: Option<u64>,
    clock: u32,
    sequence: u32,
    flags: u64,
    cleared: bool,
    dropped: bool,
    interned: Option<&'a [u8]>,
    defaults: Option<&'a [u8]>,
    foreign: bool,
    data: Option<(u32, &'a [u8])>,
}

impl<'a> Envelope<'a> {
    /// `None` if the packet is cut.
    fn parse(packet: &'a [u8]) -> Option<Self> {
        let mut envelope = Envelope::default();
        let mut fields = Fields::new(packet);
        for (number, value) in &mut fields {
            match (number, value) {
                (8, value) => envelope.time = Some(value.number()),
                (10, value) => envelope.sequence = value.low(),
                (12, Value::Bytes(data)) => envelope.interned = Some(data),
                (13, value) => envelope.flags = value.number(),
                (41, value) => envelope.cleared = value.number() != 0,
                (42, value) => envelope.dropped = value.number() != 0,
                (58, value) => envelope.clock = value.low(),
                (59, Value::Bytes(data)) => envelope.defaults = Some(data),
                (98, value) => envelope.foreign = value.number() != 0,
                (_, Value::Bytes(data)) => envelope.data = Some((number, data)),
                _ => {}
            }
        }
        fields.rest().is_empty().then_some(envelope)
    }
}

impl<'b> Session<'b> {
    /// An import into `builder`.
    pub fn new(builder: &'b mut TraceBuilder) -> Self {
        Session {
            kernel: Kernel::new(builder),
            counts: Counts::default(),
            ftrace: Ftrace::default(),
            system: system::System::default(),
            processes: Processes::default(),
            join: Join::default(),
            stacks: Stacks::default(),
            lost: Lost::default(),
            clocks: Clocks::default(),
            sequences: FxHashMap::default(),
            has_tree: false,
            flushes: 0,
            tells_reads: false,
        }
    }

    /// Takes a packet.
    pub fn packet(&mut self, packet: &[u8]) -> Result<()> {
        match Envelope::parse(packet) {
            Some(Envelope { data: Some((kind @ (number::DEFLATE | number::ZSTD), packed)), .. }) => {
                self.counts.add(kind, 1);
                let packing = if kind == number::ZSTD { Packing::Zstd } else { Packing::Zlib };
                match unpack::stream(packing, packed) {
                    Ok(unpacked) => self.unpacked(Packets::new(unpacked.take(MOST_UNPACKED))),
                    Err(_) => {
                        self.lost.damaged += 1;
                        Ok(())
                    }
                }
            }
            Some(envelope) => self.plain(&envelope),
            None => {
                self.lost.damaged += 1;
                Ok(())
            }
        }
    }

    fn unpacked(&mut self, mut packets: Packets<impl Read>) -> Result<()> {
        loop {
            match packets.next() {
                Ok(Some(Part::Packet(packet))) => match Envelope::parse(packet) {
                    Some(Envelope { data: Some((number::DEFLATE | number::ZSTD, _)), .. }) => self.lost.nested += 1,
                    Some(envelope) => self.plain(&envelope)?,
                    None => self.lost.damaged += 1,
                },
                Ok(Some(Part::TooLong)) => self.lost.nested += 1,
                Ok(Some(Part::Other)) => {}
                Ok(None) => return Ok(()),
                Err(Stop::Cut(_) | Stop::NoField | Stop::Io(_)) => {
                    self.lost.damaged += 1;
                    return Ok(());
                }
            }
        }
    }

    fn plain(&mut self, packet: &Envelope) -> Result<()> {
        if packet.foreign {
            self.lost.foreign += 1;
            return Ok(());
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        let lost = packet.dropped && sequence.seen;
        sequence.broken |= packet.dropped;
        if packet.cleared || packet.flags & CLEARED != 0 {
            sequence.clear();
        }
        sequence.seen = true;
        if let Some(defaults) = packet.defaults {
            sequence.defaults(defaults);
        }
        if let Some(interned) = packet.interned {
            sequence.interned.add(interned);
        }
        let Some((number, data)) = packet.data else { return Ok(()) };
        self.counts.add(number, 1);
        if sequence.broken && packet.flags & NEEDS_STATE != 0 {
            self.lost.stateless += 1;
            return Ok(());
        }
        let clock = if packet.clock == 0 { sequence.clock } else { packet.clock };
        let since = sequence.last;
        let time = packet.time.map(|time| self.clocks.time(time, clock, packet.sequence));
        if let Some(Some(time)) = time {
            sequence.last = sequence.last.max(time);
        }
        if lost {
            self.dropped(number, time.flatten(), since);
        }
        self.data(number, data, packet, time)
    }

    /// `time` is the packet's by the trace's clock: the outer `None` if it has none, the inner one if it cannot be told.
    fn data(&mut self, number: u32, data: &[u8], packet: &Envelope, time: Option<Option<u64>>) -> Result<()> {
        match number {
            number::FTRACE => self.ftrace.bundle(data, &mut self.kernel, &self.processes),
            number::CLOCKS => self.clocks.snapshot(data, packet.sequence),
            number::PROCESS_TREE => {
                let first = !std::mem::replace(&mut self.has_tree, true) || packet.time.is_none();
                self.processes.tree(data, first, &mut self.kernel);
            }
            number::PROCESS_STATS => self.processes.stats(data, &mut self.kernel),
            number::TRACK => self.processes.track(data, &mut self.kernel),
            number::TRACE_CONFIG => self.ftrace.calls.with_exits |= system::System::asks_for_exits(data),
            number::FTRACE_STATS => self.system.ftrace_stats(data),
            number::TRACE_STATS => self.system.trace_stats(data),
            number::SYSTEM => {
                self.system.info(data, self.kernel.sink.builder.meta_mut());
                self.ftrace.states = self.system.states();
            }
            number::CPUS => self.system.cpus(data, self.kernel.sink.builder.meta_mut()),
            number::PERF_SAMPLE | number::STACK_SAMPLE => match time.flatten() {
                Some(time) => self.stack(number, data, time, packet.sequence),
                None => self.lost.damaged += 1,
            },
            number::SERVICE => return self.service(data),
            number::MARKER if !self.tells_reads => return self.finish_round(),
            _ => {}
        }
        Ok(())
    }

    /// The writer of this packet had no room for some before it.
    fn dropped(&mut self, number: u32, time: Option<u64>, since: u64) {
        let sink = &mut self.kernel.sink;
        let time = time.unwrap_or_else(|| sink.latest());
        let span = time.saturating_sub(if since == 0 { sink.start().unwrap_or(time) } else { since });
        match number {
            number::FTRACE => {
                let at = Instant { time, cpu: u32::MAX };
                self.kernel.lost(at, span, 1, "packets of events without room in the trace's buffer (at least)");
            }
            number::PERF_SAMPLE | number::STACK_SAMPLE => self.lost_stacks(time, u32::MAX, span, 1),
            _ => {}
        }
    }

    fn lost_stacks(&mut self, time: u64, of: u32, span: u64, count: u64) {
        let sink = &mut self.kernel.sink;
        let what = sink.builder.string(holdup_trace::LOST_STACKS);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let event = LostEvent { kind: LossKind::Stacks, cpu: cpu(of), span: Nanos(span), count, what };
        sink.maybe_timed(time, event);
    }

    /// A `PerfSample` or `StackSample`.
    fn stack(&mut self, number: u32, data: &[u8], time: u64, of: u32) {
        let Some(sequence) = self.sequences.get_mut(&of) else { return };
        let base = if number == number::PERF_SAMPLE { sequence.timebase } else { Timebase::Unknown };
        let mut s = Sample { cpu: u32::MAX, ..Sample::default() };
        match number {
            number::PERF_SAMPLE => s.read_perf(data),
            _ => s.read_stack(data, sequence),
        }
        if s.lost > 0 {
            self.lost_stacks(time, s.cpu, 0, s.lost);
            return;
        }
        if s.skipped {
            self.lost.skipped += 1;
        }
        // Numbers that no thread has are those that writers of tracks give to the idle tasks.
        const MAX_TID: u32 = 1 << 22;
        if !self.kernel.sink.is_plausible(time) || s.tid >= MAX_TID {
            self.lost.damaged += u64::from(s.tid < MAX_TID);
            return;
        }
        if s.pid != 0 && s.pid != s.tid {
            self.processes.add((s.pid, s.tid), "", false, &mut self.kernel);
        }
        let (chain, ip) = self.stacks.chain(s.stack, s.pid, &mut sequence.interned, &mut self.kernel);
        let taken = Taken { time, cpu: s.cpu, tid: s.tid, chain, ip, base, rounds: 0 };
        match base {
            Timebase::Counter(period) => {
                self.system.sampled(period, self.kernel.sink.builder.meta_mut());
                sample(&taken, &mut self.kernel.sink);
            }
            Timebase::Switch | Timebase::Waking | Timebase::Unknown if chain != ChainId::NONE => self.join.add(taken),
            _ => {}
        }
    }

    /// What the tracing service did. Where it has read all buffers after they were flushed twice, what was written before the
    /// first of these flushes is in the trace.
    fn service(&mut self, message: &[u8]) -> Result<()> {
        for (number, value) in Fields::new(message).filter(|(_, value)| value.number() != 0) {
            match (number, value) {
                (3, _) => self.flushes = self.flushes.saturating_add(1),
                (4, _) => {
                    self.tells_reads = true;
                    if self.flushes >= FLUSHES {
                        self.flushes = 0;
                        self.finish_round()?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn finish_round(&mut self) -> Result<()> {
        self.settle(false);
        self.kernel.sink.finish_round()?;
        self.ftrace.calls.kept(self.kernel.sink.builder);
        Ok(())
    }

    /// Completes what is held with what became known.
    pub fn settle(&mut self, last: bool) {
        self.processes.finish_round(&mut self.kernel);
        self.ftrace.calls.finish_round(self.kernel.sink.builder);
        self.join.finish_round(&mut self.kernel.sink, last);
    }
}

/// What a sample says.
#[derive(Debug, Default)]
struct Sample {
    cpu: u32,
    pid: u32,
    tid: u32,
    stack: u64,
    lost: u64,
    skipped: bool,
}

impl Sample {
    fn read_perf(&mut self, message: &[u8]) {
        for (number, value) in Fields::new(message) {
            match number {
                1 => self.cpu = value.low(),
                2 => self.pid = value.low(),
                3 => self.tid = value.low(),
                4 => self.stack = value.number(),
                17 => self.lost = value.number(),
                18 => self.skipped = true,
                _ => {}
            }
        }
    }

    fn read_stack(&mut self, message: &[u8], sequence: &Sequence) {
        for (number, value) in Fields::new(message) {
            match number {
                1 => (self.tid, self.pid) = task(value.bytes()),
                2 => (self.tid, self.pid) = sequence.interned.tasks.get(&value.number()).copied().unwrap_or_default(),
                3 => self.cpu = execution(value.bytes()),
                4 => self.cpu = sequence.interned.executions.get(&value.number()).copied().unwrap_or(u32::MAX),
                6 => self.stack = value.number(),
                _ => {}
            }
        }
    }
}
