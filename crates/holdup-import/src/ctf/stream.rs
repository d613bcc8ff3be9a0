//! One file of a trace, read event by event through a window that moves over its packets.

use std::io::{self, Read, SeekFrom};

use super::bits::{Bits, Stop};
use super::compile::EVENT_ID;
use super::plan::{Slot, Values};
use super::schema::{Event, Instance, MAGIC, Schema, Stream};
use crate::input::ReadSeek;

/// Bytes of a packet that are in memory at once, as long as no event is longer.
const WINDOW: usize = 1 << 17;
/// No event is longer.
const MAX_EVENT: usize = 16 << 20;
/// Steps that a byte justifies: fields of no bits can be written down, and repeated.
const STEPS_PER_BYTE: u64 = 64;
/// An average event, to estimate how many are missing.
const TYPICAL_EVENT: u64 = 32;

/// The packet that is being read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Packet {
    /// Where in the file it begins.
    pub offset: u64,
    /// Bits from its beginning to the end of its last event.
    content: u64,
    /// Bytes to the next packet.
    size: u64,
    /// The CPU; `u32::MAX` if it is not told.
    pub cpu: u32,
    /// Nanoseconds at its end; 0 if that is not told.
    pub end: u64,
    discarded: Option<u64>,
    sequence: Option<u64>,
}

/// The next event: where its body begins, and when and what it is.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Nanoseconds; 0 for no time.
    pub time: u64,
    id: u64,
    start: u64,
    body: u64,
}

/// What a packet says of those before it.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// Nanoseconds at its end.
    pub time: u64,
    /// Nanoseconds since the end of the packet before.
    pub span: u64,
    /// The CPU.
    pub cpu: u32,
    /// Events that the tracer had no room for.
    pub events: u64,
    /// Packets that it overwrote.
    pub packets: u64,
}

/// What became of a step forward.
pub enum Next {
    /// There is an event.
    Event(Head),
    /// A packet ended, and with it this is known.
    Gap(Gap),
    /// No more.
    End,
}

/// A file of events.
pub struct Source<'s> {
    schema: &'s Schema,
    file: Box<dyn ReadSeek>,
    /// Length of the file.
    size: u64,
    kind: Option<&'s Stream>,
    /// The packet that is being read.
    pub packet: Packet,
    /// The packet before it, in this file or the one that it continues.
    pub before: Option<Packet>,
    /// Which of the streams of its kind it is; files of one follow each other.
    pub instance: Option<Instance>,
    window: Vec<u8>,
    /// The byte of the packet at which the window begins.
    base: u64,
    at: u64,
    steps: u64,
    /// What was read last.
    pub values: Values,
    /// What was wrong first, and how many bytes were left out for that.
    pub damage: Option<String>,
    pub left_out: u64,
}

impl<'s> Source<'s> {
    /// A file of `size` bytes, from its beginning.
    pub fn new(schema: &'s Schema, file: Box<dyn ReadSeek>, size: u64) -> Self {
        Source {
            schema,
            file,
            size,
            kind: None,
            packet: Packet::default(),
            before: None,
            instance: None,
            window: Vec::new(),
            base: 0,
            at: 0,
            steps: 0,
            values: Values::new(),
            damage: None,
            left_out: 0,
        }
    }

    /// Nanoseconds at the beginning of the first packet; 0 if it does not say.
    pub fn begin(&mut self) -> io::Result<u64> {
        self.open()?;
        Ok(self.kind.map_or(0, |kind| kind.clock.nanos(self.values.ticks)))
    }

    /// The next event, or what a packet's end tells. An error is one of reading.
    pub fn next(&mut self) -> io::Result<Next> {
        loop {
            if let Some(kind) = self.kind
                && self.at < self.packet.content
            {
                match self.head(kind)? {
                    Ok(head) => return Ok(Next::Event(head)),
                    Err(what) => self.give_up(&what),
                }
            }
            let gap = if self.kind.is_some() { self.gap() } else { None };
            if !self.open()? {
                self.kind = None;
                self.window = Vec::new();
                return Ok(gap.map_or(Next::End, Next::Gap));
            }
            if let Some(gap) = gap {
                return Ok(Next::Gap(gap));
            }
        }
    }

    /// What the packet that ends knows of what was lost since the one before it ended.
    fn gap(&mut self) -> Option<Gap> {
        let (before, now) = (self.before.replace(self.packet), self.packet);
        // Without a packet before it, a counter tells of what came before the trace, unless it is the very first.
        let first = Packet { discarded: Some(0), sequence: None, end: 0, ..now };
        let before = before.or((now.sequence.unwrap_or(0) == 0).then_some(first))?;
        let since = |now: Option<u64>, before: Option<u64>| now.zip(before).map_or(0, |(n, b)| n.saturating_sub(b));
        let events = since(now.discarded, before.discarded);
        let packets = since(now.sequence, before.sequence).saturating_sub(1);
        let span = if before.end == 0 { 0 } else { now.end.saturating_sub(before.end) };
        (events > 0 || packets > 0).then_some(Gap { time: now.end, span, cpu: now.cpu, events, packets })
    }

    /// Goes to the next packet. False at the end of the file.
    fn open(&mut self) -> io::Result<bool> {
        let offset = self.packet.offset + self.packet.size;
        let cpu = self.packet.cpu;
        self.packet = Packet { offset, content: 0, size: self.size.saturating_sub(offset), cpu, ..Packet::default() };
        if offset >= self.size {
            return Ok(false);
        }
        (self.at, self.base, self.kind) = (0, 0, None);
        self.steps = WINDOW as u64 * STEPS_PER_BYTE;
        self.packet.content = self.packet.size.saturating_mul(8);
        self.file.seek(SeekFrom::Start(offset))?;
        self.window.clear();
        self.fill(0, WINDOW)?;
        let schema = self.schema;
        let magic = self.bits().integer(32, schema.big);
        if magic != Ok(MAGIC.into()) {
            self.give_up("a packet does not begin with the number that all packets begin with");
            return Ok(true);
        }
        let mut bits =
            Bits { window: &self.window, base: 0, at: 0, end: self.window.len() as u64 * 8, steps: self.steps };
        match schema.open(&mut bits, &mut self.values) {
            Ok((kind, instance)) => {
                self.instance = instance;
                let read = kind.plan.run(kind.context, &mut bits, &mut self.values);
                self.at = bits.at;
                match read {
                    Ok(()) => self.enter(kind),
                    Err(_) => self.give_up("a packet's context is cut"),
                }
            }
            Err(what) => self.give_up(&what),
        }
        Ok(true)
    }

    /// Believes what the packet's context says, as far as the file bears it out.
    fn enter(&mut self, kind: &'s Stream) {
        let slots = kind.packet;
        let value = |slot: Option<Slot>| slot.map(|slot| self.values.number(slot));
        let there = self.packet.size;
        let size = value(slots.size).filter(|&bits| bits != 0).map_or(there, |bits| bits / 8);
        let content = value(slots.content).filter(|&bits| bits != 0).unwrap_or(size.saturating_mul(8));
        let begin = value(slots.begin).unwrap_or(self.values.ticks);
        let end = value(slots.end).map_or(0, |ticks| kind.clock.nanos(ticks));
        let cpu = value(slots.cpu).map_or(u32::MAX, |cpu| u32::try_from(cpu).unwrap_or(u32::MAX));
        let (discarded, sequence) = (value(slots.discarded), value(slots.sequence));
        if size == 0 || content > size.saturating_mul(8) || content < self.at {
            return self.give_up("a packet's sizes contradict each other");
        }
        if size > there {
            let what = format!(
                "the packet at byte {} claims {size} bytes, and the file ends after {there}",
                self.packet.offset
            );
            self.damage.get_or_insert(what);
            self.left_out += size - there;
        }
        let content = content.min(there.saturating_mul(8));
        self.packet = Packet { content, size: size.min(there), cpu, end, discarded, sequence, ..self.packet };
        self.values.ticks = begin;
        self.kind = Some(kind);
    }

    /// Leaves out the rest of a packet.
    fn give_up(&mut self, what: &str) {
        let offset = self.packet.offset + self.at / 8;
        self.damage.get_or_insert_with(|| format!("{what}, at byte {offset}"));
        self.left_out += self.packet.content.saturating_sub(self.at) / 8;
        self.at = self.packet.content;
    }

    /// How many events may have been in what was left out.
    pub fn events_left_out(&self) -> u64 {
        self.left_out.div_ceil(TYPICAL_EVENT)
    }

    fn bits(&self) -> Bits<'_> {
        let end = (self.base + self.window.len() as u64).saturating_mul(8).min(self.packet.content);
        Bits { window: &self.window, base: self.base * 8, at: self.at, end, steps: self.steps }
    }

    /// Reads the header of the next event.
    #[inline]
    fn head(&mut self, kind: &'s Stream) -> io::Result<Result<Head, String>> {
        let start = self.at;
        let ticks = self.values.ticks;
        loop {
            let end = (self.base + self.window.len() as u64).saturating_mul(8).min(self.packet.content);
            let mut bits = Bits { window: &self.window, base: self.base * 8, at: start, end, steps: self.steps };
            match kind.event_header(&mut bits, &mut self.values) {
                Ok(()) => {
                    let (body, steps) = (bits.at, bits.steps);
                    (self.at, self.steps) = (body, steps);
                    let time = kind.clock.nanos(self.values.ticks);
                    return Ok(Ok(Head { time, id: self.values.number(EVENT_ID), start, body }));
                }
                Err(Stop::Short) if self.more(start / 8)? => self.values.ticks = ticks,
                Err(stop) => return Ok(Err(stop.to_string())),
            }
        }
    }

    /// Reads the event that `head` announced. The values and the window then hold its fields. `None` if it is damaged.
    #[inline]
    pub fn body(&mut self, head: &Head) -> io::Result<Option<&'s Event>> {
        let Some(kind) = self.kind else { return Ok(None) };
        let Some(event) = kind.events.get(&head.id) else {
            self.at = head.start;
            self.give_up(&format!("an event has the number {}, which the metadata does not know", head.id));
            return Ok(None);
        };
        loop {
            let end = (self.base + self.window.len() as u64).saturating_mul(8).min(self.packet.content);
            let mut bits = Bits { window: &self.window, base: self.base * 8, at: head.body, end, steps: self.steps };
            match kind.plan.run(event.body, &mut bits, &mut self.values) {
                Ok(()) if bits.at > head.start => {
                    (self.at, self.steps) = (bits.at, bits.steps);
                    return Ok(Some(event));
                }
                Err(Stop::Short) if self.more(head.start / 8)? => {}
                stopped => {
                    let what = stopped.err().map_or_else(|| "an event has no bits".to_owned(), |stop| stop.to_string());
                    self.at = head.start;
                    self.give_up(&what);
                    return Ok(None);
                }
            }
        }
    }

    /// Brings more of the packet into the window, which then begins at its byte `from`. False if all of it is there.
    #[inline(never)]
    fn more(&mut self, from: u64) -> io::Result<bool> {
        let have = self.base + self.window.len() as u64;
        if have.saturating_mul(8) >= self.packet.content {
            return Ok(false);
        }
        let kept = usize::try_from(have.saturating_sub(from)).unwrap_or(usize::MAX).min(self.window.len());
        // Half of the window was one event: the next one may be as long.
        let room = if kept > self.window.len() / 2 { self.window.len().saturating_mul(2) } else { self.window.len() };
        if room > MAX_EVENT {
            return Ok(false);
        }
        let before = kept;
        self.window.drain(..self.window.len() - kept);
        self.base = have - kept as u64;
        self.fill(kept, room.max(WINDOW))?;
        self.steps = self.steps.max(self.window.len() as u64 * STEPS_PER_BYTE);
        Ok(self.window.len() > before)
    }

    /// Fills the window up to `room` bytes, behind the `kept` that are in it.
    fn fill(&mut self, kept: usize, room: usize) -> io::Result<()> {
        let left = self.packet.size.saturating_sub(self.base + kept as u64);
        let wanted = (room.saturating_sub(kept) as u64).min(left);
        self.file.by_ref().take(wanted).read_to_end(&mut self.window)?;
        Ok(())
    }

    /// The bytes of the text or run in `slot`, of elements of `width` bytes.
    #[inline]
    pub fn bytes(&self, slot: Slot, width: usize) -> &[u8] {
        let (start, count) = self.values.place(slot);
        let end = start.saturating_add(count.saturating_mul(width));
        self.window.get(start..end).unwrap_or(&[])
    }
}
