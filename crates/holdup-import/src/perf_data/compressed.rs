//! `PERF_RECORD_COMPRESSED` and `COMPRESSED2`: one zstd stream over all such records, holding records.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::reader::{Record, Stop, first_record};

/// Room for unpacked bytes: always more than a record's 64 KiB.
const ROOM: usize = 1 << 18;

/// Unpacks records.
pub struct Unpacker {
    decoder: Decoder<'static>,
    room: Vec<u8>,
    /// Unpacked bytes at the beginning of `room` that are no complete record yet.
    pending: usize,
}

impl Unpacker {
    /// At the beginning of the stream.
    pub fn new() -> std::io::Result<Self> {
        Ok(Unpacker { decoder: Decoder::new()?, room: vec![0; ROOM], pending: 0 })
    }

    /// Unpacks `packed` and gives every record that is complete by then to `each`. The error is a sentence.
    pub fn unpack(&mut self, packed: &[u8], mut each: impl FnMut(Record)) -> Result<(), String> {
        let mut input = InBuffer::around(packed);
        loop {
            let mut output = OutBuffer::around_pos(self.room.as_mut_slice(), self.pending);
            self.decoder.run(&mut input, &mut output).map_err(|e| format!("damaged zstd data: {e}"))?;
            let filled = output.pos();
            let done = input.pos() == packed.len() && filled < ROOM;
            self.deliver(filled, &mut each).map_err(|stop| format!("in unpacked data, {stop}"))?;
            if done {
                return Ok(());
            }
        }
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
