//! In Rust alone, for WebAssembly. What the window may still refer to is held back, so bytes come late.

use std::io::{self, Read};

use ruzstd::decoding::FrameDecoder;

/// Whether bytes may come out later than with the input that holds them.
pub const IS_LATE: bool = true;
/// What has to follow the last input: an empty block that says it is the last, and room for a checksum.
pub const END: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
/// Bytes before each block.
const BLOCK_HEADER: usize = 3;

/// A stream that is unpacked block by block: one block unpacks to no more than 128 KiB.
pub struct Stream {
    frame: FrameDecoder,
    begun: bool,
    input: Vec<u8>,
}

impl Stream {
    /// At its beginning.
    pub fn new() -> io::Result<Self> {
        Ok(Stream { frame: FrameDecoder::new(), begun: false, input: Vec::new() })
    }

    /// Takes of `packed` what it can; how many bytes it wrote to `room`, and whether there is more without more input.
    pub fn step(&mut self, packed: &mut &[u8], room: &mut [u8]) -> io::Result<(usize, bool)> {
        self.input.extend_from_slice(packed);
        *packed = &[];
        if !self.begun {
            if self.input.is_empty() {
                return Ok((0, false));
            }
            let mut rest = self.input.as_slice();
            self.frame.init(&mut rest).map_err(io::Error::other)?;
            let read = self.input.len() - rest.len();
            self.input.drain(..read);
            self.begun = true;
        }
        let written = self.frame.read(room)?;
        if written > 0 {
            return Ok((written, true));
        }
        let Some(block) = self.whole_block().filter(|_| !self.frame.is_finished()) else { return Ok((0, false)) };
        let (read, written) = self.frame.decode_from_to(&self.input[..block], room).map_err(io::Error::other)?;
        self.input.drain(..read);
        Ok((written, true))
    }

    /// The length of the next block, if all of it is there.
    fn whole_block(&self) -> Option<usize> {
        let header = self.input.first_chunk::<BLOCK_HEADER>()?;
        let word = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let run = (word >> 1) & 3 == 1;
        let content = if run { 1 } else { (word >> 3) as usize };
        let length = BLOCK_HEADER + content;
        (length <= self.input.len()).then_some(length)
    }
}
