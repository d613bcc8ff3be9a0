//! The events of one CPU, a piece of the file at a time.

use super::description::{CpuData, Description};
use super::file::{Damage, File};
use super::pages::{Missed, Page, Record};
use crate::unpack;

/// Pages that are read at once where they are not packed.
const PAGES_AT_ONCE: u64 = 16;

/// One CPU's events, in order.
pub struct CpuStream {
    /// The CPU.
    pub cpu: u32,
    /// What the kernel could not keep: since when, how many, and when that was seen. To be taken by who reads.
    pub missed: Option<(u64, Missed, u64)>,
    /// Pages that are damaged.
    pub damaged: u64,
    /// Why reading ended too early.
    pub broken: Option<Damage>,
    next: u64,
    end: u64,
    page_size: usize,
    packed: bool,
    /// Packed pieces still to come; `None` before the first.
    pieces: Option<u32>,
    piece: Vec<u8>,
    /// Where the page begins in `piece`.
    page_at: usize,
    page: Option<Page>,
    last: u64,
}

impl CpuStream {
    /// Before the first event.
    pub fn new(data: CpuData, page_size: u32, packed: bool) -> Self {
        CpuStream {
            cpu: data.cpu,
            missed: None,
            damaged: 0,
            broken: None,
            next: data.offset,
            end: data.offset.saturating_add(data.size),
            page_size: page_size as usize,
            packed,
            pieces: None,
            piece: Vec::new(),
            page_at: 0,
            page: None,
            last: 0,
        }
    }

    /// Bytes of the file that were not read.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }

    /// The bytes of a record that was just read.
    pub fn bytes(&self, record: &Record) -> &[u8] {
        self.piece.get(self.page_at..).and_then(|page| page.get(record.bytes.clone())).unwrap_or(&[])
    }

    /// The next event; `None` at the end, also where that comes too early.
    pub fn next(&mut self, file: &mut File, d: &Description) -> Option<Record> {
        loop {
            let Some(page) = &mut self.page else {
                self.next_page(file, d)?;
                continue;
            };
            let bytes = self.piece.get(self.page_at..).unwrap_or(&[]);
            match page.next(bytes.get(..self.page_size).unwrap_or(bytes)) {
                Ok(Some(record)) => {
                    self.last = record.time;
                    return Some(record);
                }
                Ok(None) => self.leave_page(),
                Err(_) => {
                    self.damaged += 1;
                    self.missed = Some((self.last, Missed::Some, self.last));
                    self.leave_page();
                }
            }
        }
    }

    fn leave_page(&mut self) {
        self.page = None;
        self.page_at = self.page_at.saturating_add(self.page_size);
    }

    /// Begins the next page that can be read; `None` if there is none.
    fn next_page(&mut self, file: &mut File, d: &Description) -> Option<()> {
        if self.page_at >= self.piece.len() {
            self.page_at = 0;
            self.piece.clear();
            match self.next_piece(file, d) {
                Ok(piece) => self.piece = piece?,
                Err(damage) => {
                    self.broken = Some(damage);
                    return None;
                }
            }
        }
        let bytes = self.piece.get(self.page_at..).unwrap_or(&[]);
        match Page::new(bytes.get(..self.page_size).unwrap_or(bytes), d.page) {
            Some(page) => {
                if page.missed != Missed::Nothing {
                    self.missed = Some((self.last, page.missed, page.time()));
                }
                self.page = Some(page);
            }
            None => {
                self.damaged += 1;
                self.leave_page();
            }
        }
        Some(())
    }

    /// The next pages; `None` at the end.
    fn next_piece(&mut self, file: &mut File, d: &Description) -> Result<Option<Vec<u8>>, Damage> {
        if !self.packed {
            let size = (self.end - self.next).min(PAGES_AT_ONCE * self.page_size as u64);
            file.jump(self.next)?;
            self.next += size;
            return if size == 0 { Ok(None) } else { file.take(size.min(file.len() - file.at()).max(1)).map(Some) };
        }
        file.jump(self.next)?;
        let left = match self.pieces {
            Some(left) => left,
            None => file.u32()?,
        };
        self.pieces = Some(left.saturating_sub(1));
        if left == 0 || file.at() >= self.end {
            return Ok(None);
        }
        let (packed, plain) = (file.u32()?, file.u32()?);
        let bytes = file.take(packed.into())?;
        self.next = file.at();
        unpack::whole(d.packing, &bytes, plain).map(Some).map_err(|what| Damage { at: self.next, what })
    }
}
