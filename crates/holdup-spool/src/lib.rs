//! The spool: blocks with a checksum, appended while recording.
//!
//! ```text
//! file  = magic, block*
//! block = mark u32 | kind u8 | packing u8 | cpu u16 | stored u32 | raw u32 | crc u32 | stored bytes
//! ```
//!
//! All integers are little endian. The checksum covers the block's header before it and its stored bytes, so that
//! everything up to the last complete block can be used, whatever ended the recording. The kinds of block:
//! a [`Header`] and a [`Footer`] as JSON, the kernel's 24-byte [records](records) of one CPU, raw stacks, side
//! information from user space ([`Side`]), and the end of a round, after which nothing older than the previous round
//! follows. A flight recorder's spool holds nothing but a mark: the recording is in [segments] beside it, which are spools of
//! their own and stand each for itself, names, mappings and stacks told again.
//!
//! What the kernel's programs wrote, and what Linux means by its numbers ([`linux`]), is decoded here, so that a spool can
//! be read without root, without BPF, and without the C library that loads it: holdup-record writes spools, and the
//! rest of holdup sees events.
//!
//! *Not* for keeping: a spool is turned into a `.holdup` file, which is smaller and opens at once.

#![forbid(unsafe_code)]

mod argument;
mod convert;
mod format;
mod happening;
mod linux;
mod pack;
mod reader;
pub mod records;
mod segments;
mod side;
mod spans;
mod stack;
#[cfg(test)]
mod tests;
mod writer;

pub use argument::Argument;
pub use format::{Footer, Header};
pub use happening::{Happening, Happenings, Left, What};
pub use reader::{is_spool, read, read_from, read_opened, read_parts};
pub use segments::{reopen, ring_of, segment_name, segments};
pub use side::Side;
pub use stack::encode_stack;
pub use writer::SpoolWriter;
