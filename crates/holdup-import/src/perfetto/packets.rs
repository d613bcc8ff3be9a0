//! Cuts a stream of bytes into packets, through one buffer that is used over and over.

use std::io::{self, Read};

use super::wire::varint;

/// Read at once, and the buffer's size for ordinary packets.
const CHUNK: usize = 1 << 18;
/// Greatest packet that is read. The tracing service cuts its own at a hundredth of it.
pub const LONGEST: usize = 64 << 20;
/// A tag and a length take no more.
const HEADER: usize = 20;
/// The field of a trace that holds a packet, and its tag.
const PACKET: u64 = 1;

/// What comes next in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A packet's content.
    Packet(&'a [u8]),
    /// A packet that is too long to be one, and was passed over.
    TooLong,
    /// Something of a trace that is no packet.
    Other,
}

/// Why nothing more can be read.
#[derive(Debug)]
pub enum Stop {
    /// The input ended inside a packet of this many bytes.
    Cut(u64),
    /// These are no fields.
    NoField,
    /// The input failed.
    Io(io::Error),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Cut(size) => write!(f, "the input ends inside a packet of {size} bytes"),
            Stop::NoField => f.write_str("a packet was expected, and something else is there"),
            Stop::Io(e) => write!(f, "reading failed: {e}"),
        }
    }
}

/// Packets from a stream.
pub struct Packets<R> {
    from: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

/// A field of the outermost message: whether it is a packet, the length of its header, and of its content.
type Head = (bool, usize, u64);

fn head(bytes: &[u8]) -> Result<Option<Head>, Stop> {
    let cut = |rest: &[u8]| if rest.len() >= HEADER { Err(Stop::NoField) } else { Ok(None) };
    let Some((tag, rest)) = varint(bytes) else { return cut(bytes) };
    let tag_len = bytes.len() - rest.len();
    match tag & 7 {
        2 if tag >> 3 != 0 => match varint(rest) {
            Some((len, rest)) => Ok(Some((tag >> 3 == PACKET, bytes.len() - rest.len(), len))),
            None => cut(bytes),
        },
        0 if tag >> 3 > PACKET => match varint(rest) {
            Some((_, after)) => Ok(Some((false, tag_len, (rest.len() - after.len()) as u64))),
            None => cut(bytes),
        },
        1 if tag >> 3 > PACKET => Ok(Some((false, tag_len, 8))),
        5 if tag >> 3 > PACKET => Ok(Some((false, tag_len, 4))),
        _ => Err(Stop::NoField),
    }
}

impl<R: Read> Packets<R> {
    /// Packets of `from`.
    pub fn new(from: R) -> Self {
        Packets { from, buffer: Vec::new(), start: 0, end: 0, offset: 0 }
    }

    /// Where in the stream the next packet begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What comes next, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Part<'_>>, Stop> {
        if self.end - self.start < HEADER {
            self.fill(HEADER)?;
        }
        let (is_packet, header, len) = match head(&self.buffer[self.start..self.end])? {
            Some(head) => head,
            None if self.start == self.end => return Ok(None),
            None => return Err(Stop::Cut((self.end - self.start) as u64)),
        };
        self.advance(header);
        let size = usize::try_from(len).unwrap_or(usize::MAX);
        if size > LONGEST {
            self.skip(len)?;
            return Ok(Some(Part::TooLong));
        }
        if self.end - self.start < size {
            self.fill(size)?;
        }
        let from = self.start;
        if self.end - from < size {
            return Err(Stop::Cut(len));
        }
        self.advance(size);
        let content = &self.buffer[from..from + size];
        Ok(Some(if is_packet { Part::Packet(content) } else { Part::Other }))
    }

    fn advance(&mut self, by: usize) {
        self.start += by;
        self.offset += by as u64;
    }

    /// Moves what is left to the buffer's beginning and reads at least `wanted` bytes if there are as many. The buffer
    /// grows with what was read, never ahead of it by more than its own size.
    fn fill(&mut self, wanted: usize) -> Result<(), Stop> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            if self.end == self.buffer.len() {
                if self.end >= wanted && self.end > 0 {
                    return Ok(());
                }
                let more = self.buffer.len().clamp(CHUNK, LONGEST);
                self.buffer.resize(self.buffer.len() + more, 0);
            }
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(()),
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Stop::Io(e)),
            }
        }
    }

    fn skip(&mut self, len: u64) -> Result<(), Stop> {
        let mut left = len;
        while left > 0 {
            if self.start == self.end {
                self.fill(1)?;
            }
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.start);
            if part == 0 {
                return Err(Stop::Cut(len));
            }
            self.advance(part);
            left -= part as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<Vec<u8>>, usize, Option<String>) {
        let (mut packets, mut found, mut others) = (Packets::new(bytes), Vec::new(), 0);
        loop {
            match packets.next() {
                Ok(Some(Part::Packet(packet))) => found.push(packet.to_vec()),
                Ok(Some(_)) => others += 1,
                Ok(None) => return (found, others, None),
                Err(stop) => return (found, others, Some(stop.to_string())),
            }
        }
    }

    #[test]
    fn packets_of_any_length() {
        let long = vec![7; CHUNK * 3];
        let mut bytes = b"\x0a\x02hi\x0a\x82\x00yo\x12\x01x\x18\x05\x0a".to_vec();
        bytes.extend([0x80, 0x80, 0x30]);
        bytes.extend(&long);
        bytes.extend(b"\x0a\x00");
        let (packets, others, stop) = all(&bytes);
        assert_eq!((packets.len(), others, stop), (4, 2, None));
        assert_eq!(
            (&packets[0][..], &packets[1][..], packets[2] == long, packets[3].len()),
            (&b"hi"[..], &b"yo"[..], true, 0)
        );
    }

    #[test]
    fn what_is_cut_or_no_packet_ends_it() {
        assert!(all(b"\x0a\x02hi\x0a\x05yo").2.is_some_and(|s| s.contains("inside a packet of 5")));
        assert!(all(b"\x0a\x02hi\x0b").2.is_some_and(|s| s.contains("something else")));
        assert!(all(b"\x0a\x02hi\x0a\x80").2.is_some_and(|s| s.contains("ends inside")));
    }

    #[test]
    fn a_packet_that_claims_too_much_is_passed_over_or_cut() {
        let (packets, _, stop) = all(b"\x0a\x02hi\x0a\xff\xff\xff\xff\x7fyo");
        assert!(packets.len() == 1 && stop.is_some_and(|s| s.contains("ends inside")));
    }
}
