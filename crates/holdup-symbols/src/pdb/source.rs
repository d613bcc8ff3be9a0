//! A PDB file as `pdb2` reads it: streams that are pages all over the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use pdb2::{SourceSlice, SourceView};

use crate::meter::Meter;

/// A file whose reads the meter is asked about: a stream can name one page a million times.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    /// Bytes in the file.
    len: u64,
    meter: Arc<Meter>,
}

#[derive(Debug)]
struct View(Vec<u8>);

impl Source {
    pub fn new(file: File, len: u64, meter: &Arc<Meter>) -> Source {
        Source { file, len, meter: meter.clone() }
    }
}

impl SourceView<'_> for View {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl pdb2::Source<'static> for Source {
    fn view(&mut self, slices: &[SourceSlice]) -> io::Result<Box<dyn SourceView<'static> + Send + Sync>> {
        let total = slices.iter().fold(0u64, |sum, slice| sum.saturating_add(slice.size as u64));
        // No page belongs to a stream twice.
        if total > self.len || !self.meter.fits(total) || !self.meter.tick() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; total as usize];
        let mut left = &mut bytes[..];
        for slice in slices {
            let (part, rest) = left.split_at_mut_checked(slice.size).ok_or(io::ErrorKind::UnexpectedEof)?;
            self.file.read_exact_at(part, slice.offset)?;
            left = rest;
        }
        Ok(Box::new(View(bytes)))
    }
}
