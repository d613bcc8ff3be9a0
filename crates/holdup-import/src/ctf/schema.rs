//! What the metadata means for reading: a plan for each kind of stream, and what each of its events is used for.

use rustc_hash::FxHashMap;

use super::bits::{Bits, Stop};
use super::compile::{Compiler, HEADER};
use super::metadata::{Clock, EventClass, Metadata, StreamClass};
use super::parser::Fault;
use super::plan::{Plan, Slot, Values};
use super::roles::{Dialect, Role, Use};
use super::types::Type;

/// The first field of each packet.
pub const MAGIC: u32 = 0xc1fc_1fc1;
/// Steps that a plan may have however short the metadata is.
const MIN_BUDGET: usize = 1 << 12;

/// All that is needed to read the streams.
pub struct Schema {
    /// Whether integers are big-endian.
    pub big: bool,
    /// How many kinds of events there are.
    pub kinds: usize,
    opening: Opening,
    streams: Vec<(u64, Stream)>,
}

/// Which of the streams of a kind it is, with the kind's number.
pub type Instance = (Option<u64>, u64);

/// How each packet begins.
struct Opening {
    plan: Plan,
    stream: Option<Slot>,
    instance: Option<Slot>,
}

/// A kind of stream.
pub struct Stream {
    /// How its events are read.
    pub plan: Plan,
    /// The steps of an event's header.
    pub header: u32,
    /// The steps of a packet's context.
    pub context: u32,
    /// What a packet's context tells.
    pub packet: PacketSlots,
    /// Events by number.
    pub events: FxHashMap<u64, Event>,
    /// Turns the clock's ticks into nanoseconds.
    pub clock: Clock,
}

/// Where the fields of a packet's context are.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketSlots {
    pub begin: Option<Slot>,
    pub end: Option<Slot>,
    pub content: Option<Slot>,
    pub size: Option<Slot>,
    pub cpu: Option<Slot>,
    pub discarded: Option<Slot>,
    pub sequence: Option<Slot>,
}

/// A kind of event.
pub struct Event {
    /// Which of all kinds it is, in the metadata's order.
    pub kind: u32,
    /// The steps of its contexts and fields.
    pub body: u32,
    /// What it is used for.
    pub used: Use,
}

impl Schema {
    /// From the metadata, and sentences about what of it cannot be used. An error says why no stream can be read.
    pub fn new(m: &Metadata) -> Result<(Schema, Vec<String>), Fault> {
        let budget = MIN_BUDGET + m.len;
        let dialect = Dialect::of(m);
        let mut faults = Vec::new();
        let mut streams = Vec::new();
        for class in &m.streams {
            match Stream::new(class, m, &dialect, budget, &mut faults) {
                Ok(stream) => streams.push((class.id, stream)),
                Err(fault) => faults.push(format!("stream {}: {fault}", class.id)),
            }
        }
        if streams.is_empty() {
            return Err(faults.into_iter().next().unwrap_or_else(|| "no stream is described".to_owned()));
        }
        let opening = Opening::new(m.packet_header.as_ref(), m.big, budget)?;
        Ok((Schema { big: m.big, kinds: m.events.len(), opening, streams }, faults))
    }

    /// All kinds of events that can be read, and what each is used for.
    pub fn roles(&self) -> impl Iterator<Item = (usize, Role)> {
        let events = self.streams.iter().flat_map(|(_, stream)| stream.events.values());
        events.map(|event| (event.kind as usize, event.used.role))
    }

    /// Reads how a packet begins; the kind of its stream, and which of this kind it is, where that is told. The error is a
    /// sentence.
    pub fn open(&self, bits: &mut Bits, values: &mut Values) -> Result<(&Stream, Option<Instance>), String> {
        self.opening.plan.run(0, bits, values).map_err(|_| "a packet's header is cut".to_owned())?;
        let id = self.opening.stream.map(|slot| values.number(slot));
        let mut found = self.streams.iter().filter(|&&(of, _)| id.is_none_or(|id| id == of));
        let unknown = || format!("the metadata knows no stream {}", id.unwrap_or(0));
        let instance = self.opening.instance.map(|slot| (id, values.number(slot)));
        found.next().map(|(_, stream)| (stream, instance)).ok_or_else(unknown)
    }
}

impl Opening {
    fn new(header: Option<&Type>, big: bool, budget: usize) -> Result<Opening, Fault> {
        const PATH: &str = "trace.packet.header";
        let mut compiler = Compiler::new(big, budget);
        let block = compiler.block();
        if let Some(header) = header {
            compiler.add(block, header, PATH)?;
        }
        let [stream, instance] = ["stream_id", "stream_instance_id"].map(|name| compiler.wanted(PATH, name));
        Ok(Opening { plan: compiler.finish(), stream, instance })
    }
}

impl Stream {
    fn new(
        class: &StreamClass,
        m: &Metadata,
        dialect: &Dialect,
        budget: usize,
        faults: &mut Vec<String>,
    ) -> Result<Stream, Fault> {
        const CONTEXT: &str = "stream.packet.context";
        let mut c = Compiler::new(m.big, budget);
        let (context, header) = (c.block(), c.block());
        if let Some(of) = &class.packet_context {
            c.add(context, of, CONTEXT)?;
        }
        let mut slot = |name| c.wanted(CONTEXT, name);
        let packet = PacketSlots {
            begin: slot("timestamp_begin"),
            end: slot("timestamp_end"),
            content: slot("content_size"),
            size: slot("packet_size"),
            cpu: slot("cpu_id"),
            discarded: slot("events_discarded"),
            sequence: slot("packet_seq_num"),
        };
        if let Some(of) = &class.event_header {
            c.add(header, of, HEADER)?;
        }
        let mut events = FxHashMap::default();
        for (kind, event) in m.events.iter().enumerate().filter(|(_, e)| e.stream == class.id) {
            match Event::new((kind, event), class, dialect, &mut c) {
                Ok(made) => drop(events.insert(event.id, made)),
                Err(fault) => faults.push(format!("event {:?}: {fault}", event.name)),
            }
        }
        let clock = clock_of(class.event_header.as_ref(), m);
        Ok(Stream { plan: c.finish(), header, context, packet, events, clock })
    }

    /// Reads the header of an event: its number in [`EVENT_ID`](super::compile::EVENT_ID), its time in the values' ticks.
    #[inline]
    pub fn event_header(&self, bits: &mut Bits, values: &mut Values) -> Result<(), Stop> {
        self.plan.run(self.header, bits, values)
    }
}

impl Event {
    fn new(
        (kind, event): (usize, &EventClass),
        class: &StreamClass,
        dialect: &Dialect,
        c: &mut Compiler,
    ) -> Result<Event, Fault> {
        c.next_event();
        let body = c.block();
        let parts = [
            (&class.event_context, "stream.event.context"),
            (&event.context, "event.context"),
            (&event.fields, "event.fields"),
        ];
        for (of, path) in parts {
            if let Some(of) = of {
                c.add(body, of, path)?;
            }
        }
        Ok(Event { kind: kind as u32, body, used: dialect.used(&event.name, c) })
    }
}

/// The clock whose readings the event header has: the one that is named there, else the trace's only one.
fn clock_of(header: Option<&Type>, m: &Metadata) -> Clock {
    let name = header.and_then(first_clock);
    let named = name.and_then(|name| m.clocks.iter().find(|c| *c.name == *name));
    let mut clock = named.or(m.clocks.first()).cloned().unwrap_or_default();
    // Times stay readings of the trace's first clock; only another clock is shifted to it.
    clock.offset -= m.clocks.first().map_or(0, |c| c.offset);
    clock
}

fn first_clock(of: &Type) -> Option<std::rc::Rc<str>> {
    match of {
        Type::Integer(i) => i.clock.clone(),
        Type::Enum(e) => e.integer.clock.clone(),
        Type::Struct(s) => s.fields.iter().find_map(|(_, t)| first_clock(t)),
        Type::Variant(v) => v.options.iter().find_map(|(_, t)| first_clock(t)),
        Type::Array(a) => first_clock(&a.element),
        Type::Float(..) | Type::Text => None,
    }
}

impl Clock {
    /// Nanoseconds at a reading; 0 for 0, which stands for no time.
    #[inline]
    pub fn nanos(&self, ticks: u64) -> u64 {
        const NANOS: u64 = 1_000_000_000;
        if ticks == 0 || (self.frequency == NANOS && self.offset == 0) {
            return ticks;
        }
        let nanos = i128::from(ticks) * i128::from(NANOS) / i128::from(self.frequency.max(1));
        u64::try_from(nanos.saturating_add(self.offset)).unwrap_or(0)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock { name: String::new(), frequency: 1_000_000_000, offset: 0 }
    }
}
