//! By the C library, which gives out all that a flushed stream holds.

use std::io;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Whether bytes may come out later than with the input that holds them.
pub const IS_LATE: bool = false;
/// What has to follow the last input.
pub const END: &[u8] = &[];

/// A stream that is unpacked.
pub struct Stream(Decoder<'static>);

impl Stream {
    /// At its beginning.
    pub fn new() -> io::Result<Self> {
        Ok(Stream(Decoder::new()?))
    }

    /// Takes of `packed` what it can; how many bytes it wrote to `room`, and whether there is more without more input.
    pub fn step(&mut self, packed: &mut &[u8], room: &mut [u8]) -> io::Result<(usize, bool)> {
        let mut input = InBuffer::around(packed);
        let mut output = OutBuffer::around(&mut *room);
        self.0.run(&mut input, &mut output)?;
        let (read, written) = (input.pos(), output.pos());
        *packed = &packed[read..];
        Ok((written, !packed.is_empty() || written == room.len()))
    }
}
