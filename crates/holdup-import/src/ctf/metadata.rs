//! A trace's `metadata`: plain text, or packets of it, as LTTng writes it.

use super::parser::{Block, Fault, Parser, Value};
use super::types::Type;

/// The first bytes of a packet of metadata, in the writer's byte order.
const PACKET_MAGIC: u32 = 0x75d1_1d57;
/// Bytes before the text in a packet of metadata.
const PACKET_HEADER: usize = 37;
/// More metadata than this is damage.
pub const MAX_METADATA: u64 = 64 << 20;

/// What the metadata says.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Whether integers are big-endian.
    pub big: bool,
    /// What each packet begins with.
    pub packet_header: Option<Type>,
    /// What the tracer said of the machine and of itself.
    pub env: Vec<(String, String)>,
    /// The clocks.
    pub clocks: Vec<Clock>,
    /// The kinds of streams.
    pub streams: Vec<StreamClass>,
    /// The kinds of events.
    pub events: Vec<EventClass>,
    /// Declarations that could not be read, and what was wrong with the first.
    pub faults: (u32, Option<Fault>),
    /// Length of the text.
    pub len: usize,
}

/// A clock.
#[derive(Debug, Clone)]
pub struct Clock {
    /// Its name.
    pub name: String,
    /// Ticks in a second.
    pub frequency: u64,
    /// Nanoseconds from its origin to that of the others.
    pub offset: i128,
}

/// A kind of stream.
#[derive(Debug, Default)]
pub struct StreamClass {
    /// Its number.
    pub id: u64,
    /// What each event begins with.
    pub event_header: Option<Type>,
    /// What follows the header of each event.
    pub event_context: Option<Type>,
    /// What follows the header of each packet.
    pub packet_context: Option<Type>,
}

/// A kind of event.
#[derive(Debug)]
pub struct EventClass {
    /// Its number in its kind of stream.
    pub id: u64,
    /// The stream's number.
    pub stream: u64,
    /// Its name.
    pub name: String,
    /// What follows the stream's context.
    pub context: Option<Type>,
    /// What comes last.
    pub fields: Option<Type>,
}

/// Whether a file that begins so is the metadata of a trace.
pub fn is_metadata(head: &[u8]) -> bool {
    head.starts_with(b"/* CTF 1.") || packet_order(head).is_some()
}

/// Whether a packet of metadata is big-endian; `None` if it is no such packet.
fn packet_order(bytes: &[u8]) -> Option<bool> {
    let magic = bytes.first_chunk::<4>()?;
    match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
        (PACKET_MAGIC, _) => Some(false),
        (_, PACKET_MAGIC) => Some(true),
        _ => None,
    }
}

/// The text of the metadata, and how many bytes behind damage were left out. The error is a sentence.
pub fn text(bytes: &[u8]) -> Result<(String, usize), Fault> {
    if packet_order(bytes).is_none() {
        return Ok((String::from_utf8_lossy(bytes).into_owned(), 0));
    }
    let mut text = Vec::new();
    let mut rest = bytes;
    while let Some(big) = packet_order(rest) {
        let number = |at: usize| {
            let bytes = rest.get(at..)?.first_chunk::<4>()?;
            Some(if big { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) } as usize / 8)
        };
        let (Some(content), Some(packet)) = (number(24), number(28)) else { break };
        if rest.get(32..34).is_some_and(|schemes| schemes != [0, 0]) {
            return Err("is compressed or encrypted".to_owned());
        }
        let Some(part) = rest.get(PACKET_HEADER..content) else { break };
        text.extend_from_slice(part);
        // A last packet may be cut to its content.
        rest = rest.get(packet.max(content)..).unwrap_or(&[]);
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), rest.len()))
}

impl Metadata {
    /// Reads the text. A declaration that cannot be read is counted and left out.
    pub fn parse(text: &str) -> Metadata {
        let mut metadata = Metadata { len: text.len(), ..Metadata::default() };
        let mut parser = Parser::new(text);
        while !parser.is_at_end() {
            let declared = parser.top_level();
            if let Err(fault) = declared.and_then(|block| metadata.take(block)) {
                let (count, first) = &mut metadata.faults;
                *count += 1;
                first.get_or_insert_with(|| format!("line {}: {fault}", line(text, parser.at())));
            }
        }
        metadata
    }

    fn take(&mut self, declared: Option<(&str, Block)>) -> Result<(), Fault> {
        let Some((kind, block)) = declared else { return Ok(()) };
        match kind {
            "trace" => {
                self.big = block.big_endian().unwrap_or(false);
                self.packet_header = block.typed("packet.header");
            }
            "env" => self.env.extend(block.all().filter_map(|(name, value)| match value {
                Value::Text(text) => Some((name.to_owned(), text.clone())),
                _ => None,
            })),
            "clock" => self.clocks.push(clock(&block)),
            "stream" => self.streams.push(StreamClass {
                id: number(&block, "id")?,
                event_header: block.typed("event.header"),
                event_context: block.typed("event.context"),
                packet_context: block.typed("packet.context"),
            }),
            "event" => self.events.push(EventClass {
                id: number(&block, "id")?,
                stream: number(&block, "stream_id")?,
                name: block.text("name").unwrap_or("").to_owned(),
                context: block.typed("context"),
                fields: block.typed("fields"),
            }),
            _ => {}
        }
        Ok(())
    }

    /// What the tracer said of `name`.
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&b| b == b'\n').count() + 1
}

/// A number that is 0 where it is not given.
fn number(block: &Block, name: &str) -> Result<u64, Fault> {
    u64::try_from(block.number(name).unwrap_or(0)).map_err(|_| format!("{name} is below 0"))
}

fn clock(block: &Block) -> Clock {
    const NANOS: i128 = 1_000_000_000;
    let frequency = block.number("freq").and_then(|f| u64::try_from(f).ok()).filter(|&f| f != 0);
    let frequency = frequency.unwrap_or(NANOS as u64);
    let of = |name: &str| block.number(name).unwrap_or(0);
    let offset = of("offset_s") * NANOS + of("offset") * NANOS / i128::from(frequency);
    Clock { name: block.text("name").unwrap_or("").to_owned(), frequency, offset }
}
