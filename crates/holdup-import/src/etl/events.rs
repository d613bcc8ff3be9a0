//! The kernel's records become events.

use holdup_trace::{BlockIoEvent, Cpu, LossKind, LostEvent, Nanos, Result, TraceBuilder, WakeContext};

use super::clock::Clock;
use super::fields::Fields;
use super::held::{Fate, Held, Walk, What};
use super::keys::Keys;
use super::merge::Consumer;
use super::people::People;
use super::record::{Record, Source};
use super::scan::Scan;
use super::waits;
use crate::bytes::{u32_at, u64_at};
use crate::linux::irq::UNKNOWN_SOURCE;

/// Hooks that become events.
pub mod hook {
    pub const SWITCH: u16 = 0x0524;
    pub const READY: u16 = 0x0532;
    pub const SAMPLE: u16 = 0x0f2e;
    pub const ISR: [u16; 2] = [0x0f32, 0x0f43];
    pub const DPC: [u16; 2] = [0x0f42, 0x0f44];
    pub const TIMER_DPC: u16 = 0x0f45;
    pub const STACK: u16 = 0x1820;
    pub const STACK_KEYS: [u16; 2] = [0x1825, 0x1826];
    pub const DISK: [u16; 2] = [0x010a, 0x010b];
}

/// A round lasts until so much time has passed or so many events have come: as long as a stack may be late.
const ROUND: Nanos = Nanos(500_000_000);
const ROUND_EVENTS: usize = 80_000;
/// Shorter rounds cost more than they save.
const FEWEST: usize = 4096;

/// A CPU so far.
#[derive(Debug, Clone, Copy, Default)]
struct Processor {
    /// Who runs.
    running: Option<u32>,
    /// When its last record was.
    last: u64,
    /// Records that are missing since.
    missing: u64,
}

/// The second pass under way.
pub struct Events<'a> {
    builder: &'a mut TraceBuilder,
    clock: Clock,
    keys: &'a Keys,
    people: People<'a>,
    held: Held,
    cpus: Vec<Processor>,
    /// When the round began, how many events it has, and when the one before ended.
    round: (u64, usize),
    before: u64,
    /// Stacks that came to no event that is kept.
    pub homeless: u64,
    /// Records that are too short.
    pub damaged: u64,
    /// Records missing on CPUs.
    pub missing: u64,
}

impl<'a> Events<'a> {
    /// Events of a log that was scanned, and has a header, into `builder`.
    pub fn new(scan: &'a Scan, clock: Clock, builder: &'a mut TraceBuilder) -> Self {
        let start = scan.span.map_or(0, |(from, _)| from);
        let mut people = People::new(&scan.existing);
        people.introduce(start, builder);
        let with_dpcs = hook::DPC.iter().any(|&dpc| scan.counts.of(dpc) > 0);
        Events {
            builder,
            clock,
            keys: &scan.keys,
            people,
            held: Held::new(with_dpcs),
            cpus: Vec::new(),
            round: (start, 0),
            before: 0,
            homeless: 0,
            damaged: 0,
            missing: 0,
        }
    }

    /// Hands on all that is held. `end` is the log's last instant.
    pub fn finish(&mut self, end: u64) {
        self.held.release(u64::MAX, self.builder);
        for cpu in 0..self.cpus.len() {
            self.fill_gap(cpu as u16, end);
        }
    }

    /// What is missing, if anything is, of which nobody knows when and on which CPU it was.
    pub fn lost(&mut self, end: u64, kind: LossKind, count: u64, what: &str) {
        if count > 0 {
            let (cpu, what) = (Cpu::NONE, self.builder.string(what));
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.builder.push(end, LostEvent { kind, cpu, span: Nanos(0), count, what });
        }
    }

    fn cpu(&mut self, cpu: u16) -> &mut Processor {
        let at = usize::from(cpu);
        if at >= self.cpus.len() {
            self.cpus.resize(at + 1, Processor::default());
        }
        &mut self.cpus[at]
    }

    fn fill_gap(&mut self, cpu: u16, time: u64) {
        let known = self.cpu(cpu);
        let (missing, last) = (std::mem::take(&mut known.missing), known.last);
        if missing == 0 {
            return;
        }
        known.running = None;
        self.missing = self.missing.saturating_add(missing);
        let span = Nanos(if last == 0 { 0 } else { time.saturating_sub(last) });
        let what = self.builder.string("records of a CPU");
        let count = u32::try_from(missing).unwrap_or(u32::MAX);
        self.builder.push(time, LostEvent { kind: LossKind::Events, cpu: Cpu(cpu), span, count, what });
    }

    /// Ends a round if it is time: what was held in the one before has waited long enough.
    fn next_round(&mut self, time: u64) -> Result<()> {
        let (began, events) = self.round;
        let is_long = Nanos(time.saturating_sub(began)) >= ROUND && events >= FEWEST;
        if !is_long && events < ROUND_EVENTS {
            return Ok(());
        }
        self.held.release(self.before, self.builder);
        self.before = time;
        self.round = (time, 0);
        self.builder.finish_round()
    }

    /// What a record of the kernel means; `None` if it is too short.
    #[inline]
    fn kernel(&mut self, hook: u16, at: At, record: &Record) -> Option<()> {
        match hook {
            hook::SAMPLE => self.sample(at, record),
            hook::STACK => self.stack(at, record),
            hook::SWITCH => self.switch(at, record),
            hook::READY => self.ready(at, record),
            hook::TIMER_DPC => self.interrupted(at, record, WakeContext::Timer),
            _ if hook::DPC.contains(&hook) => self.interrupted(at, record, WakeContext::SoftIrq),
            _ if hook::ISR.contains(&hook) => self.interrupted(at, record, WakeContext::HardIrq),
            _ if hook::STACK_KEYS.contains(&hook) => self.stack_key(at, record),
            _ if hook::DISK.contains(&hook) => self.disk(at, record),
            _ => self.people.change(at.time, hook, record, self.builder),
        }
    }

    fn sample(&mut self, at: At, record: &Record) -> Option<()> {
        let mut fields = Fields::new(record.body, record.wide);
        let (ip, tid) = (fields.pointer()?, fields.u32()?);
        let owner = (self.people.process_of(tid), Some(tid));
        self.held.push((at.ticks, at.time), at.cpu, owner, What::Sample(ip));
        Some(())
    }

    fn stack(&mut self, at: At, record: &Record) -> Option<()> {
        let (ticks, pid, tid) = (u64_at(record.body, 0)?, u32_at(record.body, 8)?, u32_at(record.body, 12)?);
        let mut fields = Fields::new(record.body.get(16..)?, record.wide);
        let walk = Walk { ticks, cpu: at.cpu, pid, tid, wide: record.wide };
        self.give(walk, std::iter::from_fn(|| fields.pointer()));
        Some(())
    }

    fn stack_key(&mut self, at: At, record: &Record) -> Option<()> {
        let mut fields = Fields::new(record.body, record.wide);
        let (ticks, pid, tid, key) = (fields.u64()?, fields.u32()?, fields.u32()?, fields.pointer()?);
        let keys = self.keys;
        let frames = keys.get(key, at.ticks).unwrap_or(&[]);
        let walk = Walk { ticks, cpu: at.cpu, pid, tid, wide: record.wide };
        self.give(walk, frames.iter().copied());
        Some(())
    }

    fn give(&mut self, walk: Walk, frames: impl Iterator<Item = u64>) {
        if self.held.stack(walk, frames) == Fate::Homeless {
            self.homeless += 1;
        }
    }

    fn switch(&mut self, at: At, record: &Record) -> Option<()> {
        let (next, prev) = (u32_at(record.body, 0)?, u32_at(record.body, 4)?);
        let [_, _, _, _, reason, _, state, _] = *record.body.get(8..)?.first_chunk::<8>()?;
        self.cpu(at.cpu).running = Some(next);
        let (state, io_wait, syscall) = match prev {
            0 => (holdup_trace::SwitchState::Runnable, false, -1),
            _ => waits::of(state, reason),
        };
        let owner = (self.people.process_of(next), Some(next));
        self.held.push((at.ticks, at.time), at.cpu, owner, What::Switch { prev, state, io_wait, syscall });
        Some(())
    }

    fn ready(&mut self, at: At, record: &Record) -> Option<()> {
        const FROM_DPC: u8 = 1;
        let wakee = u32_at(record.body, 0)?;
        let from_dpc = *record.body.get(6)? & FROM_DPC != 0;
        let waker = self.cpu(at.cpu).running;
        let (context, source) = match waker {
            _ if from_dpc => (WakeContext::SoftIrq, UNKNOWN_SOURCE),
            // The idle thread wakes nobody.
            None | Some(0) => (WakeContext::Unknown, UNKNOWN_SOURCE),
            Some(_) => (WakeContext::Task, 0),
        };
        let owner = (waker.map_or(0, |tid| self.people.process_of(tid)), waker);
        self.held.push((at.ticks, at.time), at.cpu, owner, What::Wake { wakee, context, source, settled: !from_dpc });
        Some(())
    }

    /// A service routine or DPC is over, and tells when it began.
    fn interrupted(&mut self, at: At, record: &Record, context: WakeContext) -> Option<()> {
        let mut fields = Fields::new(record.body, record.wide);
        let (began, routine) = (fields.u64()?, fields.pointer()?);
        if began > at.ticks {
            return Some(());
        }
        let source = match context {
            WakeContext::SoftIrq => self.people.drivers.source(routine),
            WakeContext::HardIrq => fields.skip(1).and_then(|()| fields.u8()).map_or(UNKNOWN_SOURCE, u16::from),
            _ => 0,
        };
        self.held.interrupted(at.cpu, began, (context, source));
        Some(())
    }

    /// A disk has done something, and tells how long that took.
    fn disk(&mut self, at: At, record: &Record) -> Option<()> {
        let mut fields = Fields::new(record.body, record.wide);
        let (number, _flags, bytes, _reserved) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let place = fields.u64()?;
        fields.skip_pointers(2)?;
        let took = self.clock.length(fields.u64()?);
        let tid = fields.u32().or(record.tid).unwrap_or(0);
        let tid = if self.people.knows(tid) { tid } else { 0 };
        let event = BlockIoEvent { device: number, sector: place / 512, bytes, tid, issue: false };
        self.builder.push(at.time, event);
        let issued = at.time.saturating_sub(took);
        // What was issued before the rounds that are open can't be put in order any more.
        if issued > self.before {
            self.builder.push(issued, BlockIoEvent { issue: true, ..event });
        }
        Some(())
    }
}

/// When and where a record was logged.
#[derive(Debug, Clone, Copy)]
struct At {
    ticks: u64,
    /// The same in nanoseconds.
    time: u64,
    cpu: u16,
}

impl Consumer for Events<'_> {
    fn record(&mut self, cpu: u16, ticks: u64, record: &Record) -> Result<()> {
        let (Some(time), Source::Hook(hook)) = (self.clock.time(ticks), record.source) else { return Ok(()) };
        if self.cpu(cpu).missing > 0 {
            self.fill_gap(cpu, time);
        }
        self.cpu(cpu).last = time;
        self.round.1 += 1;
        if self.kernel(hook, At { ticks, time, cpu }, record).is_none() {
            self.damaged += 1;
        }
        self.next_round(time)
    }

    fn gap(&mut self, cpu: u16, count: u64) {
        let missing = &mut self.cpu(cpu).missing;
        *missing = missing.saturating_add(count);
    }
}
