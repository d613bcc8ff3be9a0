//! One Parquet file: row groups as they come, the footer at the end.
//!
//! ```text
//!   PAR1  row group: column's pages, column's pages, …   row group …   footer  its length  PAR1
//! ```

use std::io::Write;

use arrow_array::RecordBatch;

use super::columns::{Column, LZ4_RAW, Pages};
use super::thrift::{Element, Writer};
use crate::Result;

const MAGIC: &[u8] = b"PAR1";
/// Rows of a page: what a reader unpacks at once.
const PAGE: usize = 1 << 16;
/// Rows of a row group: its packed pages are in memory until it is complete.
const GROUP: usize = 16 * PAGE;

/// A file that is being written.
pub struct File<'a> {
    columns: &'a [Column],
    out: &'a mut dyn Write,
    /// Bytes written.
    at: u64,
    rows: u64,
    pages: Vec<Pages>,
    in_group: usize,
    groups: Vec<Group>,
}

/// A row group that is written.
struct Group {
    rows: usize,
    at: u64,
    columns: Vec<Written>,
}

/// A column of it.
struct Written {
    length: u64,
    unpacked: u64,
    limits: Option<(u64, u64)>,
}

impl<'a> File<'a> {
    /// Begins it.
    ///
    /// # Errors
    /// If `out` takes no more; so do all below.
    pub fn new(columns: &'a [Column], out: &'a mut dyn Write) -> Result<Self> {
        out.write_all(MAGIC)?;
        let at = MAGIC.len() as u64;
        let pages = columns.iter().map(|_| Pages::default()).collect();
        Ok(File { columns, out, at, rows: 0, pages, in_group: 0, groups: Vec::new() })
    }

    /// Appends rows, whose columns are those of the file.
    pub fn append(&mut self, rows: &RecordBatch) -> Result<()> {
        for from in (0..rows.num_rows()).step_by(PAGE) {
            let part = rows.slice(from, PAGE.min(rows.num_rows() - from));
            for ((column, pages), values) in self.columns.iter().zip(&mut self.pages).zip(part.columns()) {
                column.append(values, pages)?;
            }
            self.in_group += part.num_rows();
            if self.in_group >= GROUP {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let mut group = Group { rows: self.in_group, at: self.at, columns: Vec::new() };
        for pages in &mut self.pages {
            let Pages { bytes, unpacked, limits } = std::mem::take(pages);
            self.out.write_all(&bytes)?;
            group.columns.push(Written { length: bytes.len() as u64, unpacked, limits });
            self.at += bytes.len() as u64;
        }
        self.rows += self.in_group as u64;
        self.in_group = 0;
        self.groups.push(group);
        Ok(())
    }

    /// Writes the footer, with what else is known of the table by name.
    pub fn finish(mut self, facts: &[(String, String)]) -> Result<()> {
        if self.in_group > 0 {
            self.end_group()?;
        }
        let footer = self.footer(facts);
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        Ok(self.out.flush()?)
    }

    fn footer(&self, facts: &[(String, String)]) -> Vec<u8> {
        let mut to = Writer::default();
        to.i32(1, 2);
        to.list(2, Element::Struct, self.columns.len() + 1);
        to.open();
        to.binary(4, b"schema");
        to.i32(5, self.columns.len() as i32);
        to.close();
        self.columns.iter().for_each(|column| column.describe(&mut to));
        to.i64(3, self.rows.cast_signed());
        to.list(4, Element::Struct, self.groups.len());
        for (i, group) in self.groups.iter().enumerate() {
            self.describe(i, group, &mut to);
        }
        to.list(5, Element::Struct, facts.len());
        for (key, value) in facts {
            to.open();
            to.binary(1, key.as_bytes());
            to.binary(2, value.as_bytes());
            to.close();
        }
        to.binary(6, concat!("holdup version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // The order by which least and greatest were found: that of the types.
        to.list(7, Element::Struct, self.columns.len());
        for _ in self.columns {
            to.open();
            to.begin(1);
            to.close();
            to.close();
        }
        to.finish()
    }

    fn describe(&self, index: usize, group: &Group, to: &mut Writer) {
        to.open();
        to.list(1, Element::Struct, group.columns.len());
        let mut at = group.at;
        for (column, Written { length, unpacked, limits }) in self.columns.iter().zip(&group.columns) {
            to.open();
            to.i64(2, 0);
            to.begin(3);
            let (of, encoding) = column.stored_as();
            to.i32(1, of);
            to.list(2, Element::I32, 1);
            to.number(encoding);
            to.list(3, Element::Binary, 1);
            to.bytes(column.field.name().as_bytes());
            to.i32(4, LZ4_RAW);
            to.i64(5, group.rows as i64);
            to.i64(6, unpacked.cast_signed());
            to.i64(7, length.cast_signed());
            to.i64(9, at.cast_signed());
            to.begin(12);
            to.i64(3, 0);
            if let Some((least, most)) = limits {
                to.binary(5, &column.bound(*most));
                to.binary(6, &column.bound(*least));
            }
            to.close();
            to.close();
            to.close();
            at += length;
        }
        to.i64(2, group.columns.iter().map(|c| c.unpacked).sum::<u64>().cast_signed());
        to.i64(3, group.rows as i64);
        to.i64(5, group.at.cast_signed());
        to.i64(6, (at - group.at).cast_signed());
        to.i16(7, i16::try_from(index).unwrap_or(i16::MAX));
        to.close();
    }
}
