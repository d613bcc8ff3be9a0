//! One round: everything from the kernel's buffers into the spool.

use std::cell::RefCell;
use std::io;

use holdup_runtime::Held;
use holdup_spool::{Side, SpoolWriter, encode_stack};
use holdup_trace::{Error, LOST_STACKS, LossKind, Nanos, Result};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use crate::asking::Asking;
use crate::budget::Reading;
use crate::holding;
use crate::interpreters::Interpreters;
use crate::layout::{KernelStack, word};
use crate::met::Meetings;
use crate::options::Status;
use crate::perf::Mappings;
use crate::rings::Rings;
use crate::subjects;
use crate::trigger::Triggers;

/// Stacks are written in blocks of about this many bytes.
const STACK_BLOCK: usize = 1 << 20;

/// Records of a CPU in a round, in bytes, for which room is kept.
const USUAL: usize = 1 << 20;

/// How long a CPU may have been back when that is seen, in nanoseconds.
const TWO_LOOKS: u64 = 200_000_000;

/// Stacks on their way into the spool, what names their interpreted frames, and what is to be named of Java.
pub(crate) struct Stacks {
    blocks: Vec<Vec<u8>>,
    pub(crate) interpreters: Interpreters,
    pub(crate) held: Vec<Held>,
    met: Meetings,
}

impl Stacks {
    pub(crate) fn new(interpreters: Interpreters) -> Stacks {
        Stacks { blocks: Vec::new(), interpreters, held: Vec::new(), met: Meetings::default() }
    }
}

/// The kernel's buffers.
pub(crate) struct Buffers<'a> {
    rings: Rings,
    stacks: RingBuffer<'a>,
    incoming: &'a RefCell<Stacks>,
    mappings: Vec<(usize, Mappings)>,
    records: Vec<u8>,
    lost: Vec<u64>,
    lost_stacks: u64,
    /// When the previous round began.
    before: u64,
}

impl<'a> Buffers<'a> {
    /// `incoming` is where stacks are put meanwhile.
    pub(crate) fn new(
        rings: Rings,
        stacks: &'a MapHandle,
        incoming: &'a RefCell<Stacks>,
        mappings: Vec<(usize, Mappings)>,
    ) -> Result<Self> {
        let mut builder = RingBufferBuilder::new();
        let bad = |e| Error::Unsupported(format!("The buffer for stacks cannot be mapped: {e}"));
        let keep = |bytes: &[u8]| {
            collect(&mut incoming.borrow_mut(), bytes);
            0
        };
        builder.add(stacks, keep).map_err(bad)?;
        let stacks = builder.build().map_err(bad)?;
        let lost = vec![0; rings.cpus()];
        Ok(Buffers { rings, stacks, incoming, mappings, records: Vec::new(), lost, lost_stacks: 0, before: 0 })
    }

    /// Writes a round as of time `t`. Stacks come after records, so that those that a record names are there. What was written
    /// is shown to `triggers`, mappings to `asking`.
    pub(crate) fn round(
        &mut self,
        t: u64,
        side: &mut Vec<Side>,
        spool: &mut SpoolWriter,
        asking: &mut Asking,
        mut triggers: Option<&mut Triggers>,
    ) -> io::Result<()> {
        for cpu in 0..self.rings.cpus() {
            self.records.clear();
            self.rings.drain(cpu, &mut self.records);
            spool.records(cpu as u16, &self.records)?;
            if let Some(triggers) = &mut triggers {
                triggers.records(cpu as u16, &self.records);
            }
        }
        // A round that came late is as long as a ring; its room is given back.
        self.records.clear();
        self.records.shrink_to(USUAL);
        for (cpu, mappings) in &mut self.mappings {
            crate::mappings::drain(*cpu, mappings, side);
        }
        subjects::see(side);
        asking.see(side);
        {
            let incoming = &mut *self.incoming.borrow_mut();
            incoming.interpreters.look(side);
            incoming.met.see(side);
            holding::see(&mut incoming.held, side);
        }
        let _ = self.stacks.consume();
        {
            let incoming = &mut *self.incoming.borrow_mut();
            for block in incoming.blocks.drain(..) {
                spool.stacks(&block)?;
            }
            incoming.interpreters.new_functions(side);
            asking.meet(incoming.met.take());
        }
        self.losses(t, side);
        self.before = t;
        spool.side(side)?;
        if let Some(triggers) = triggers {
            triggers.side(side);
        }
        side.clear();
        spool.round()
    }

    /// A CPU came back: its buffer of mappings is another one, and what was mapped there meanwhile is not known.
    pub(crate) fn come_back(&mut self, cpu: usize, mappings: Mappings, t: u64, side: &mut Vec<Side>) {
        self.mappings.retain(|(other, _)| *other != cpu);
        self.mappings.push((cpu, mappings));
        let (kind, what) = (LossKind::Mappings, "mappings of code, when the CPU came back".into());
        side.push(Side::Lost { kind, t, cpu: cpu as u16, span: TWO_LOOKS, count: 1, what });
    }

    /// Files of programs that may be gone.
    pub(crate) fn held(&self) -> Vec<Held> {
        self.incoming.borrow().held.clone()
    }

    /// What names interpreted frames.
    pub(crate) fn interpreters(&self) -> impl std::ops::Deref<Target = Interpreters> + '_ {
        std::cell::Ref::map(self.incoming.borrow(), |incoming| &incoming.interpreters)
    }

    /// Whether a ring fills so fast that there is no time to sleep.
    pub(crate) fn is_pressed(&self) -> bool {
        (0..self.rings.cpus()).any(|cpu| self.rings.is_pressed(cpu))
    }

    fn losses(&mut self, t: u64, side: &mut Vec<Side>) {
        let span = t.saturating_sub(self.before);
        for cpu in 0..self.rings.cpus() {
            let lost = self.rings.counter(cpu, word::LOST);
            let count = (lost - self.lost[cpu]).min(u32::MAX.into()) as u32;
            if count > 0 {
                self.lost[cpu] = lost;
                let kind = LossKind::Events;
                side.push(Side::Lost { kind, t, cpu: cpu as u16, span, count, what: "records (buffer full)".into() });
            }
        }
        let lost_stacks = self.sum(word::LOST_STACKS);
        if lost_stacks > self.lost_stacks {
            let count = (lost_stacks - self.lost_stacks).min(u32::MAX.into()) as u32;
            self.lost_stacks = lost_stacks;
            let kind = LossKind::Stacks;
            side.push(Side::Lost { kind, t, cpu: u16::MAX, span, count, what: LOST_STACKS.into() });
        }
    }

    fn sum(&self, index: usize) -> u64 {
        (0..self.rings.cpus()).map(|cpu| self.rings.counter(cpu, index)).sum()
    }

    /// What recording has cost so far; `reader_s` is this process's part.
    pub(crate) fn reading(&self, reader_s: f64, interruption: Nanos, breakpoint: Nanos) -> Reading {
        Reading::of(|index| self.sum(index), reader_s, interruption, breakpoint)
    }

    /// The counters of now.
    pub(crate) fn status(&self) -> Status {
        Status {
            events: self.sum(word::TAIL) + self.sum(word::SIDE_TAIL),
            lost: self.sum(word::LOST),
            stacks: self.sum(word::CAPTURED_STACKS),
            lost_stacks: self.sum(word::LOST_STACKS),
            limited_stacks: self.sum(word::LIMITED_STACKS),
            ..Status::default()
        }
    }
}

/// Repacks a stack from the ring buffer.
fn collect(incoming: &mut Stacks, bytes: &[u8]) {
    let Some(kernel) = KernelStack::new(bytes) else { return };
    let Stacks { blocks, interpreters, met, .. } = incoming;
    let mut stack = kernel.to_raw();
    met.stack(&stack);
    if let Some((layout, words, complete)) = kernel.interpreted() {
        interpreters.name(&mut stack, layout, &words, complete);
    } else {
        interpreters.point(&mut stack);
    }
    if blocks.last().is_none_or(|b| b.len() > STACK_BLOCK) {
        blocks.push(Vec::with_capacity(STACK_BLOCK + (80 << 10)));
    }
    if let Some(block) = blocks.last_mut() {
        encode_stack(block, kernel.hash(), &stack);
    }
}
