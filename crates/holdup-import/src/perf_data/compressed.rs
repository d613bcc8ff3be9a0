//! `PERF_RECORD_COMPRESSED` and `COMPRESSED2`: one zstd stream over all such records, holding records.

#[cfg(feature = "zstd")]
mod library;
#[cfg(any(test, not(feature = "zstd")))]
mod pure;

#[cfg(feature = "zstd")]
use library as zstd;
#[cfg(not(feature = "zstd"))]
use pure as zstd;

use super::reader::{Record, Stop, first_record};

/// Room for unpacked bytes: always more than a record's 64 KiB.
const ROOM: usize = 1 << 18;

/// Unpacks records.
pub struct Unpacker {
    stream: zstd::Stream,
    room: Vec<u8>,
    /// Unpacked bytes at the beginning of `room` that are no complete record yet.
    pending: usize,
}

impl Unpacker {
    /// Whether what a record holds may come out with a later one.
    pub const IS_LATE: bool = zstd::IS_LATE;

    /// At the beginning of the stream.
    pub fn new() -> std::io::Result<Self> {
        Ok(Unpacker { stream: zstd::Stream::new()?, room: vec![0; ROOM], pending: 0 })
    }

    /// Unpacks `packed` and gives every record that is complete by then to `each`. The error is a sentence.
    pub fn unpack(&mut self, mut packed: &[u8], mut each: impl FnMut(Record)) -> Result<(), String> {
        loop {
            let room = &mut self.room[self.pending..];
            let (written, more) = self.stream.step(&mut packed, room).map_err(|e| format!("damaged zstd data: {e}"))?;
            self.deliver(self.pending + written, &mut each).map_err(|stop| format!("in unpacked data, {stop}"))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Gives what is left at the end of the stream to `each`. The error is a sentence.
    pub fn finish(&mut self, each: impl FnMut(Record)) -> Result<(), String> {
        self.unpack(zstd::END, each)
    }

    fn deliver(&mut self, filled: usize, each: &mut impl FnMut(Record)) -> Result<(), Stop> {
        let mut at = 0;
        while let Some((record, size)) = first_record(&self.room[at..filled])? {
            each(record);
            at += size;
        }
        self.room.copy_within(at..filled, 0);
        self.pending = filled - at;
        Ok(())
    }
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use ::zstd::stream::raw::{Encoder, Operation, OutBuffer};

    use super::pure;

    /// As perf writes it: one frame, flushed at each record, never ended.
    fn flushed(parts: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut encoder = Encoder::new(1).expect("encoder");
        let pack = |part: &Vec<u8>| {
            let mut room = vec![0; part.len() + 1024];
            let packed = encoder.run_on_buffers(part, &mut room).expect("room");
            assert_eq!(packed.bytes_read, part.len());
            let mut rest = OutBuffer::around_pos(&mut room, packed.bytes_written);
            assert_eq!(encoder.flush(&mut rest).expect("flush"), 0);
            let length = rest.pos();
            room.truncate(length);
            room
        };
        parts.iter().map(pack).collect()
    }

    fn unpack(stream: &mut pure::Stream, mut packed: &[u8], to: &mut Vec<u8>) -> std::io::Result<()> {
        let mut room = [0; 1000];
        loop {
            let (written, more) = stream.step(&mut packed, &mut room)?;
            to.extend_from_slice(&room[..written]);
            if !more {
                return Ok(());
            }
        }
    }

    #[test]
    fn a_stream_unpacks_without_the_library() {
        let noise = (0..400_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let parts = vec![b"one".to_vec(), vec![7; 300_000], noise, Vec::new(), b"one, again: one".to_vec()];
        let (mut stream, mut found) = (pure::Stream::new().expect("stream"), Vec::new());
        for packed in flushed(&parts) {
            // Cut anywhere, as records of other sizes would.
            packed.chunks(777).for_each(|piece| unpack(&mut stream, piece, &mut found).expect("sound"));
        }
        unpack(&mut stream, pure::END, &mut found).expect("the end");
        assert!(found == parts.concat(), "{} bytes instead of {}", found.len(), parts.concat().len());
    }

    #[test]
    fn damage_is_an_error() {
        const { assert!(pure::IS_LATE, "what the window holds comes at the end") };
        let packed = flushed(&[vec![7; 300_000]]).concat();
        let (mut stream, mut found) = (pure::Stream::new().expect("stream"), Vec::new());
        assert!(unpack(&mut stream, b"no zstd at all", &mut found).is_err());
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            // An error or other bytes, never a panic.
            let _ = unpack(&mut pure::Stream::new().expect("stream"), &damaged, &mut Vec::new());
        }
    }
}
