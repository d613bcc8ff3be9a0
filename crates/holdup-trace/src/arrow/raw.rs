//! The columns of one batch, unpacked straight into the memory of the batch before it.
//!
//! Arrow's own decoder makes new buffers for each batch, fills them with zeros, unpacks a frame beside them and copies:
//! together that takes three times as long as unpacking. Here a block of lz4 goes where its column is read from.

use std::io::Read;

use arrow_ipc::{Block, RecordBatch, root_as_message};
use arrow_schema::{ArrowError, Schema};
use lz4_flex::block::decompress_into;

use super::bad;
use crate::Column;

/// Most bytes that one byte of lz4 unpacks to.
const LZ4_RATIO: usize = 256;
/// Bytes by which a buffer may be longer than its values.
const PADDING: usize = 64;
const FRAME_MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

/// A batch as it is stored, and room to unpack it.
#[derive(Default)]
pub struct RawBatch {
    /// The stored bytes, message and body.
    bytes: Vec<u8>,
    /// By field: where its values are in `bytes`.
    values: Vec<(usize, usize)>,
    rows: usize,
    packed: bool,
    unpacked: Vec<u8>,
}

impl RawBatch {
    /// Room for `length` stored bytes.
    pub(super) fn room(&mut self, length: usize) -> &mut [u8] {
        self.bytes.resize(length, 0);
        &mut self.bytes
    }

    /// Finds the columns of the batch whose bytes, head and body, are in the room.
    pub(super) fn open(&mut self, block: &Block, schema: &Schema) -> Result<(), ArrowError> {
        let head = usize::try_from(block.metaDataLength()).map_err(|_| bad("a batch has a negative length"))?;
        let (message, body) = self.bytes.split_at_checked(head).ok_or_else(|| bad("a batch without a body"))?;
        let message = message.strip_prefix(&[0xff; 4]).unwrap_or(message);
        let message =
            root_as_message(message.get(4..).unwrap_or_default()).map_err(|e| bad(format!("a batch: {e}")))?;
        let batch = message.header_as_record_batch().ok_or_else(|| bad("a message that is no batch"))?;
        self.rows = usize::try_from(batch.length()).map_err(|_| bad("a negative number of rows"))?;
        self.packed = batch.compression().is_some();
        self.values = columns(&batch, schema, body.len())?;
        self.values.iter_mut().for_each(|(start, _)| *start += head);
        Ok(())
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the values of field `index` to `to`.
    pub(crate) fn column<C: Column>(&mut self, index: usize, to: &mut Vec<C>) -> Result<(), ArrowError> {
        let &(start, length) = self.values.get(index).ok_or_else(|| bad("a column is missing"))?;
        let stored = &self.bytes[start..start + length];
        let wanted = self.rows.checked_mul(C::WIDTH).ok_or_else(|| bad("too many rows"))?;
        let bytes = if self.packed { unpack(stored, wanted, &mut self.unpacked)? } else { stored };
        let values = bytes.get(..wanted).ok_or_else(|| bad("a column is shorter than its batch"))?;
        to.reserve_exact(self.rows);
        C::load_all(values, to);
        Ok(())
    }
}

/// Where each field's values are. All are of fixed width and without gaps: two buffers each.
fn columns(batch: &RecordBatch, schema: &Schema, body: usize) -> Result<Vec<(usize, usize)>, ArrowError> {
    let buffers: Vec<_> = batch.buffers().into_iter().flatten().collect();
    if buffers.len() != 2 * schema.fields().len() || batch.nodes().into_iter().flatten().any(|n| n.null_count() != 0) {
        return Err(bad("a batch of other columns than its table's"));
    }
    let place = |buffer: &&arrow_ipc::Buffer| {
        let start = usize::try_from(buffer.offset()).ok()?;
        let length = usize::try_from(buffer.length()).ok()?;
        start.checked_add(length).filter(|end| *end <= body).map(|_| (start, length))
    };
    let values = buffers.iter().skip(1).step_by(2);
    values.map(|b| place(b).ok_or_else(|| bad("a buffer ends behind its batch"))).collect()
}

/// The first column that cannot be read this way: all are of fixed width, and have two buffers.
pub(super) fn other_column(schema: &Schema) -> Option<&str> {
    schema.fields().iter().find(|f| !f.data_type().is_primitive()).map(|f| f.name().as_str())
}

/// A packed buffer: its unpacked length, and a frame of lz4; or -1, and the bytes themselves.
fn unpack<'a>(stored: &'a [u8], wanted: usize, room: &'a mut Vec<u8>) -> Result<&'a [u8], ArrowError> {
    let Some((claim, frame)) = stored.split_first_chunk() else {
        return if wanted == 0 { Ok(&[]) } else { Err(bad("an empty buffer")) };
    };
    let claim = match i64::from_le_bytes(*claim) {
        -1 => return Ok(frame),
        claim => usize::try_from(claim).map_err(|_| bad("a buffer of negative length"))?,
    };
    if claim > frame.len().saturating_mul(LZ4_RATIO) || claim > wanted.saturating_add(PADDING) {
        return Err(bad("a buffer claims to be longer than it can be"));
    }
    if room.len() < claim {
        room.resize(claim, 0);
    }
    let length = unpack_frame(frame, &mut room[..claim])?;
    Ok(&room[..length])
}

/// Unpacks a frame; returns how many bytes that are. Frames whose blocks build on one another go through the
/// library's reader of frames.
fn unpack_frame(frame: &[u8], to: &mut [u8]) -> Result<usize, ArrowError> {
    let broken = || bad("a damaged lz4 frame");
    let flags = *frame.strip_prefix(&FRAME_MAGIC).and_then(|rest| rest.first()).ok_or_else(broken)?;
    let (independent, checksums, sized, dictionary) = (flags & 0x20, flags & 0x10, flags & 0x08, flags & 0x01);
    if independent == 0 || dictionary != 0 {
        return read_all(lz4_flex::frame::FrameDecoder::new(frame), to).map_err(|e| bad(format!("lz4: {e}")));
    }
    let mut at = if sized == 0 { 7 } else { 15 };
    let mut filled = 0;
    loop {
        let size = frame.get(at..).and_then(|rest| rest.first_chunk()).ok_or_else(broken)?;
        let size = u32::from_le_bytes(*size);
        let (plain, length) = (size >> 31 == 1, (size & 0x7fff_ffff) as usize);
        at += 4;
        if length == 0 {
            return Ok(filled);
        }
        let block = frame.get(at..at + length).ok_or_else(broken)?;
        at += length + if checksums == 0 { 0 } else { 4 };
        filled += if plain {
            to.get_mut(filled..filled + length).ok_or_else(broken)?.copy_from_slice(block);
            length
        } else {
            decompress_into(block, &mut to[filled..]).map_err(|e| bad(format!("lz4: {e}")))?
        };
    }
}

/// Fills `to` as far as it goes.
fn read_all(mut from: impl Read, to: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn frame(bytes: &[u8], mode: lz4_flex::frame::BlockMode) -> Vec<u8> {
        let info = lz4_flex::frame::FrameInfo::new().block_mode(mode).block_checksums(true);
        let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).expect("memory takes all");
        encoder.finish().expect("a frame")
    }

    #[test]
    fn frames_of_all_kinds_unpack() {
        let texts = [b"a".to_vec(), vec![7; 300_000], (0..200_000_u32).flat_map(u32::to_le_bytes).collect()];
        for text in texts {
            let independent = frame(&text, lz4_flex::frame::BlockMode::Independent);
            let mut room = vec![0; text.len()];
            assert_eq!(unpack_frame(&independent, &mut room).expect("sound"), text.len());
            assert_eq!(room, text);
            // Too little room, and every cut, is an error and no panic.
            assert!(unpack_frame(&independent, &mut vec![0; text.len() - 1]).is_err() || text.len() == 1);
            for cut in [0, 3, 6, 10, independent.len() / 2] {
                assert!(unpack_frame(&independent[..cut], &mut room).is_err(), "cut at {cut}");
            }
        }
        let linked = frame(b"one two one two", lz4_flex::frame::BlockMode::Linked);
        let mut room = [0; 15];
        assert_eq!((unpack_frame(&linked, &mut room).expect("sound"), &room), (15, b"one two one two"));
    }

    #[test]
    fn a_claim_is_not_believed() {
        let mut stored = (1_i64 << 40).to_le_bytes().to_vec();
        stored.extend(frame(b"x", lz4_flex::frame::BlockMode::Independent));
        assert!(unpack(&stored, 1 << 40, &mut Vec::new()).is_err());
        assert!(unpack(&(-5_i64).to_le_bytes(), 8, &mut Vec::new()).is_err());
    }
}
