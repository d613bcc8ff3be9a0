//! Where the tables are collected.

use std::path::PathBuf;

use crate::event_tables::MakeFillers;
use crate::store::Filler;
use crate::{Result, Table};

/// Where the tables are collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// In memory: for sources that are known to be small.
    Memory,
    /// In unnamed files in this folder: memory stays bounded whatever the source's size.
    Folder(PathBuf),
}

impl MakeFillers for Destination {
    fn large<T: Table>(&self) -> Result<Filler<T>> {
        match self {
            Destination::Memory => self.small(),
            Destination::Folder(dir) => Filler::in_file(dir),
        }
    }

    fn small<T: Table>(&self) -> Result<Filler<T>> {
        Ok(Filler::in_memory())
    }
}
