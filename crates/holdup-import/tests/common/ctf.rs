//! A writer of CTF as LTTng's kernel tracer writes it, in either byte order, for what the sample traces lack.

use std::io::Read;

use holdup_import::Input;
use holdup_trace::{Destination, Result, Trace, TraceBuilder};

/// Names and bytes of a folder's files.
pub type Files = Vec<(String, Vec<u8>)>;

/// A folder of packed fixtures, unpacked.
pub fn fixture_files(folder: &str) -> Files {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(super::fixture(folder)).expect("the fixture is in the repository") {
        let path = entry.expect("an entry").path();
        let mut bytes = Vec::new();
        let packed = std::fs::File::open(&path).expect("a file");
        flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).expect("sound gzip");
        files.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), bytes));
    }
    files.sort();
    files
}

/// Imports files as a folder.
pub fn import_files(files: Files) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    Input::from_files("test".as_ref(), files).import(&mut builder)?;
    builder.finish(None)
}

/// Bits in either order.
pub struct Bits {
    pub bytes: Vec<u8>,
    len: usize,
    big: bool,
}

impl Bits {
    pub fn new(big: bool) -> Self {
        Bits { bytes: Vec::new(), len: 0, big }
    }

    pub fn align(&mut self, bits: usize) -> &mut Self {
        self.len = self.len.next_multiple_of(bits);
        self.bytes.resize(self.len.div_ceil(8), 0);
        self
    }

    /// The lowest `bits` of `value`: lowest first, or highest first.
    pub fn put(&mut self, value: u64, bits: usize) -> &mut Self {
        for i in 0..bits {
            let (from, to) = if self.big { (bits - 1 - i, 7 - self.len % 8) } else { (i, self.len % 8) };
            if self.len.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().expect("just pushed") |= ((value >> from & 1) as u8) << to;
            self.len += 1;
        }
        self
    }

    pub fn text(&mut self, text: &str, len: usize) -> &mut Self {
        for i in 0..len {
            self.put(text.as_bytes().get(i).copied().unwrap_or(0).into(), 8);
        }
        self
    }
}

/// A packet: what is at its ends, and its events.
pub struct Packet {
    pub cpu: u64,
    pub begin: u64,
    pub end: u64,
    pub sequence: u64,
    pub discarded: u64,
    pub events: Bits,
}

/// Bits of a packet's header and context.
const HEAD: usize = 8 * (4 + 4 + 6 * 8 + 4);

impl Packet {
    /// Without events.
    pub fn new(big: bool, cpu: u64, begin: u64, end: u64) -> Self {
        let mut events = Bits::new(big);
        // Alignment counts from the packet's beginning.
        events.put(0, HEAD % 64);
        Packet { cpu, begin, end, sequence: 0, discarded: 0, events }
    }

    /// An event's header: compact where its number allows, which holds 27 bits of the time.
    pub fn event(&mut self, id: u64, time: u64) -> &mut Bits {
        self.events.align(8);
        if id < 31 {
            return self.events.put(id, 5).put(time, 27);
        }
        self.events.put(31, 5).align(8).put(id, 32).put(time, 64)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let content = HEAD + self.events.len - HEAD % 64;
        let size = (content / 8 + 16).next_multiple_of(64);
        let mut head = Bits::new(self.events.big);
        head.put(0xc1fc_1fc1, 32).put(0, 32).put(self.begin, 64).put(self.end, 64);
        head.put(content as u64, 64)
            .put(8 * size as u64, 64)
            .put(self.sequence, 64)
            .put(self.discarded, 64)
            .put(self.cpu, 32);
        let mut bytes = head.bytes;
        bytes.extend(&self.events.bytes[HEAD % 64 / 8..]);
        bytes.resize(size, 0);
        bytes
    }
}

/// Numbers of events in [`metadata`].
pub const SWITCH: u64 = 1;
pub const WAKING: u64 = 100;
pub const SEQUENCE: u64 = 2;
pub const VARIANT: u64 = 3;
pub const FUTEX: u64 = 4;
pub const FUTEX_EXIT: u64 = 5;

/// The text of the metadata.
pub fn metadata(big: bool) -> String {
    include_str!("lttng.tsdl").replace("BYTE_ORDER", if big { "be" } else { "le" })
}

/// Metadata in packets.
pub fn packets(text: &str, big: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in text.as_bytes().chunks(1000) {
        let mut head = Bits::new(big);
        head.put(0x75d1_1d57, 32).text("", 16).put(0, 32);
        head.put(8 * (37 + part.len()) as u64, 32).put(8 * 1100, 32).put(0, 24).put(1, 8).put(8, 8);
        let packet = bytes.len();
        bytes.extend(&head.bytes);
        bytes.extend(part);
        bytes.resize(packet + 1100, 0);
    }
    bytes
}
