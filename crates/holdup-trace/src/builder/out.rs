//! Where the tables are collected.

use std::path::PathBuf;

use crate::background::Background;
use crate::event_tables::MakeFillers;
use crate::filler::Filler;
use crate::{Result, Table};

/// Where the tables are collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// In memory: for sources that are known to be small.
    Memory,
    /// In unnamed files in this folder: memory stays bounded whatever the source's size.
    Folder(PathBuf),
    /// In memory as long as they are short, then in unnamed files in this folder: for sources of unknown size that are
    /// read but not kept.
    MemoryThenFolder(PathBuf),
}

/// Makes the tables of one trace.
pub(super) struct Maker {
    destination: Destination,
    background: Background,
}

impl Maker {
    /// For a trace that is collected in `destination`.
    pub fn new(destination: &Destination) -> Self {
        Maker { destination: destination.clone(), background: Background::default() }
    }
}

impl MakeFillers for Maker {
    fn large<T: Table>(&self) -> Result<Filler<T>> {
        match &self.destination {
            Destination::Memory => self.small(),
            Destination::Folder(dir) => Filler::in_file(dir, self.background.clone()),
            Destination::MemoryThenFolder(dir) => Ok(Filler::overflowing(dir, self.background.clone())),
        }
    }

    fn small<T: Table>(&self) -> Result<Filler<T>> {
        Ok(Filler::in_memory())
    }
}
