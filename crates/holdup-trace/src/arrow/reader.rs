//! Reads an Arrow file batch by batch. Unlike Arrow's own reader it believes no length before it has compared it with
//! the file's: a damaged one would end the process, because a failed allocation is no panic.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, Schema};

use super::raw::{RawBatch, other_column};
use super::{Section, bad};

/// Most bytes that one byte of lz4 unpacks to.
const LZ4_RATIO: u64 = 256;
/// The length at the file's end and the magic behind it.
const TRAILER: u64 = 10;

/// An opened Arrow file: its batches can be read in any order, by several threads at once.
pub struct ArrowReader {
    section: Section,
    decoder: FileDecoder,
    blocks: Vec<Block>,
    schema: Arc<Schema>,
}

impl ArrowReader {
    pub(crate) fn new(mut section: Section) -> Result<Self, ArrowError> {
        let mut trailer = [0; TRAILER as usize];
        let end = section.len.checked_sub(TRAILER).ok_or_else(|| bad("too short"))?;
        section.seek(SeekFrom::Start(end))?;
        section.read_exact(&mut trailer)?;
        let length = read_footer_length(trailer)?;
        let start = end.checked_sub(length as u64).ok_or_else(|| bad("its footer is longer than the table"))?;
        let bytes = section.exactly(start, length)?;
        let footer = root_as_footer(&bytes).map_err(|e| bad(format!("its footer: {e}")))?;
        let schema = try_fb_to_schema(footer.schema().ok_or_else(|| bad("without a schema"))?)?;
        let blocks: Vec<Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        let schema = Arc::new(schema);
        let decoder = FileDecoder::new(schema.clone(), footer.version());
        Ok(ArrowReader { section, decoder, blocks, schema })
    }

    /// How many batches there are.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The batch with this number; `None` behind the last.
    pub(crate) fn batch(&self, index: usize) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(block) = self.blocks.get(index) else { return Ok(None) };
        let (offset, head, body) = self.place(block)?;
        let bytes = self.section.clone().exactly(offset, (head + body) as usize)?;
        check_buffers(&bytes, head as usize)?;
        self.decoder.read_record_batch(block, &Buffer::from_vec(bytes))
    }

    /// Reads the batch with this number into `raw`; false behind the last.
    pub(crate) fn read_raw(&self, index: usize, raw: &mut RawBatch) -> Result<bool, ArrowError> {
        let Some(block) = self.blocks.get(index) else { return Ok(false) };
        if let Some(name) = other_column(&self.schema) {
            return Err(bad(format!("column {name} holds no numbers of fixed width: written by another program?")));
        }
        let (offset, head, body) = self.place(block)?;
        let mut section = self.section.clone();
        section.seek(SeekFrom::Start(offset))?;
        section.read_exact(raw.room((head + body) as usize))?;
        raw.open(block, &self.schema)?;
        Ok(true)
    }

    /// The number of the column called `name`, and its type.
    pub(crate) fn field(&self, name: &str) -> Option<(usize, &arrow_schema::DataType)> {
        self.schema.column_with_name(name).map(|(i, field)| (i, field.data_type()))
    }

    /// Where a batch is, and how long its head and body are.
    fn place(&self, block: &Block) -> Result<(u64, u64, u64), ArrowError> {
        let lengths = (u64::try_from(block.offset()), u64::try_from(block.bodyLength()));
        let ((Ok(offset), Ok(body)), Ok(head)) = (lengths, u64::try_from(block.metaDataLength())) else {
            return Err(bad("a batch has a negative length"));
        };
        let ends = body.checked_add(head).and_then(|n| n.checked_add(offset));
        if ends.is_none_or(|end| end > self.section.len) {
            return Err(bad("a batch ends behind the table"));
        }
        Ok((offset, head, body))
    }
}

/// No buffer claims to unpack to more than its bytes can.
fn check_buffers(bytes: &[u8], head: usize) -> Result<(), ArrowError> {
    let (message, body) = bytes.split_at(head);
    let message = message.strip_prefix(&[0xff; 4]).unwrap_or(message);
    let message = root_as_message(message.get(4..).unwrap_or_default()).map_err(|e| bad(format!("a batch: {e}")))?;
    let Some(batch) = message.header_as_record_batch().filter(|b| b.compression().is_some()) else { return Ok(()) };
    for buffer in batch.buffers().into_iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok().filter(|&s| s <= body.len());
        let stored = start.and_then(|s| body[s..].get(..usize::try_from(buffer.length()).ok()?));
        let stored = stored.ok_or_else(|| bad("a buffer ends behind its batch"))?;
        if let Some(claim) = stored.first_chunk() {
            let claim = i64::from_le_bytes(*claim);
            if claim > 0 && claim as u64 > stored.len() as u64 * LZ4_RATIO {
                return Err(bad("a buffer claims to be longer than it can be"));
            }
        }
    }
    Ok(())
}
