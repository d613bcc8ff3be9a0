//! Appends blocks to a spool.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use holdup_base::output::create_new;
use holdup_trace::{Error, Result};

use crate::format::{Block, Footer, HEADER, Header, Kind, LONGEST, MAGIC, Packing};
use crate::pack::{pack, pack_words};
use crate::side::Side;

/// Bytes of one block of records: the reader's memory for a round is a multiple of it.
const BLOCK: usize = 1 << 20;

/// Appends blocks to a new spool, each by one write.
///
/// I/O errors are handed up as they are: on a full disk what was written stays readable.
#[derive(Debug)]
pub struct SpoolWriter {
    file: File,
    /// Length up to the last complete block.
    length: u64,
    buffer: Vec<u8>,
}

impl SpoolWriter {
    /// Creates the spool, for its owner alone: it holds copies of memory. A file that is there already, or a symbolic
    /// link, is left alone and an error: in a folder that others can write to it may be a trap.
    pub fn create(path: &Path) -> Result<Self> {
        let file = create_new(path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::input(path, "exists already; remove it or choose another name"),
            _ => Error::input(path, format_args!("cannot be created: {e}")),
        })?;
        Self::new(file).map_err(|e| Error::input(path, format_args!("cannot be written: {e}")))
    }

    /// Begins a spool in a file that is empty, and open for appending.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(mut file: File) -> io::Result<Self> {
        file.write_all(&MAGIC)?;
        Ok(SpoolWriter { file, length: MAGIC.len() as u64, buffer: Vec::new() })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Writes what is known at the beginning. Must come first.
    pub fn header(&mut self, header: &Header) -> io::Result<()> {
        self.json(Kind::Header, header)
    }

    /// Writes a CPU's records as the kernel left them.
    pub fn records(&mut self, cpu: u16, records: &[u8]) -> io::Result<()> {
        let longest = BLOCK - BLOCK % crate::records::SIZE;
        records.chunks(longest).try_for_each(|part| self.block(Kind::Records, cpu, part, Packing::Records))
    }

    /// Writes stacks, as many as [`encode_stack`](crate::encode_stack) put together.
    pub fn stacks(&mut self, stacks: &[u8]) -> io::Result<()> {
        if stacks.is_empty() { Ok(()) } else { self.block(Kind::Stacks, 0, stacks, Packing::Words) }
    }

    /// Writes information from user space.
    pub fn side(&mut self, items: &[Side]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for item in items {
            item.encode(&mut bytes);
            if bytes.len() >= BLOCK {
                self.block(Kind::Side, 0, &bytes, Packing::Lz4)?;
                bytes.clear();
            }
        }
        if bytes.is_empty() { Ok(()) } else { self.block(Kind::Side, 0, &bytes, Packing::Lz4) }
    }

    /// Ends a round: nothing that follows is older than the previous round.
    pub fn round(&mut self) -> io::Result<()> {
        self.block(Kind::Round, 0, &[], Packing::None)
    }

    /// Writes what is known at the end. Must come last.
    pub fn footer(&mut self, footer: &Footer) -> io::Result<()> {
        self.json(Kind::Footer, footer)
    }

    /// Writes that the recording is in segments, beside this spool, whose names have that `mark`. Nothing follows it.
    pub fn ring(&mut self, mark: u64) -> io::Result<()> {
        self.block(Kind::Ring, 0, &mark.to_le_bytes(), Packing::None)
    }

    fn json(&mut self, kind: Kind, value: &impl serde::Serialize) -> io::Result<()> {
        let bytes = serde_json::to_vec(value).map_err(io::Error::other)?;
        self.block(kind, 0, &bytes, Packing::None)
    }

    fn block(&mut self, kind: Kind, cpu: u16, raw: &[u8], packing: Packing) -> io::Result<()> {
        if raw.len() > LONGEST {
            return Err(io::Error::other("a block of the spool would be too long"));
        }
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        let packing = self.fill(raw, packing);
        let stored = self.buffer.len() - HEADER;
        let block = Block { kind, packing, cpu, stored, raw: raw.len(), crc: 0 };
        let header = block.encode(&self.buffer[HEADER..]);
        self.buffer[..HEADER].copy_from_slice(&header);
        if let Err(error) = self.file.write_all(&self.buffer) {
            // Half a block is of no use; if this fails too, the reader stops there all the same.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    /// Puts `raw` behind the header; as it is where packing makes it no smaller.
    fn fill(&mut self, raw: &[u8], packing: Packing) -> Packing {
        match packing {
            Packing::None => {}
            Packing::Records => pack(raw, &mut self.buffer),
            Packing::Words => pack_words(raw, &mut self.buffer),
            Packing::Lz4 => {
                self.buffer.resize(HEADER + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                let packed = lz4_flex::block::compress_into(raw, &mut self.buffer[HEADER..]).unwrap_or(raw.len());
                self.buffer.truncate(HEADER + packed);
            }
        }
        if packing != Packing::None && self.buffer.len() - HEADER < raw.len() {
            return packing;
        }
        self.buffer.truncate(HEADER);
        self.buffer.extend_from_slice(raw);
        Packing::None
    }
}
