//! Sums made once, block by block of the rows, from which any window is answered: those of the blocks that lie in it, and rows only where a
//! block lies across its border.
//!
//! ```text
//!   rows in time order   ├── block ──┼── block ──┼── block ──┼── block ──┤
//!   window                      ├─────────────────────────────────┤
//!                           rows      sums        sums        rows
//! ```
//!
//! The groups are those by all columns that the question groups by or picks values of. A level of a tree, or the rows with some value, are some
//! of these groups, merged.

use super::Result;
use super::group::{Cell, Keys, Stop};
use super::measure::{self, Measure, Tally, numbers};
use super::narrow::{Narrow, matching};
use super::relation::{Column, Rows};
use super::selection::Selection;

/// Rows in a block: two of them are looked through for a window.
const BLOCK: usize = 1 << 17;
/// With more groups than these the sums would take more than the rows.
const MOST_GROUPS: usize = 1 << 18;
/// The same of all blocks together, in cells.
const MOST_CELLS: usize = 1 << 23;

/// Sums of a view's rows by block and group.
pub(super) struct Cube {
    /// By row.
    ids: Vec<u32>,
    /// A row of each group.
    first: Vec<u32>,
    /// Columns whose values are summed; `None` counts rows.
    measured: Vec<Option<String>>,
    blocks: Vec<Block>,
}

struct Block {
    /// Positions among the view's rows.
    from: usize,
    to: usize,
    begins: (u64, u64),
    ends: (u64, u64),
    /// The groups that have rows here.
    groups: Vec<u32>,
    /// For each of them a cell by column that is measured.
    cells: Vec<Cell>,
}

/// How a block lies to a window.
enum Lies {
    Inside,
    Across,
    Outside,
}

impl Block {
    fn to(&self, (from, to): (u64, u64)) -> Lies {
        match () {
            () if self.begins.0 >= to || self.ends.1 < from => Lies::Outside,
            () if self.begins.1 < to && self.ends.0 >= from => Lies::Inside,
            () => Lies::Across,
        }
    }
}

/// What is looked at of each row.
struct Sources<'v> {
    rows: Rows<'v>,
    span: [&'v [u64]; 2],
    values: Vec<Option<&'v [u64]>>,
}

impl<'v> Sources<'v> {
    fn of(view: &'v Selection, measured: &[Option<String>]) -> Self {
        let column = |name: &str| numbers(&view.relation, name);
        Sources {
            rows: view.rows(),
            span: view.table.span().map(column),
            values: measured.iter().map(|name| name.as_deref().map(column)).collect(),
        }
    }

    fn row(&self, position: usize) -> usize {
        match self.rows {
            Rows::All(_) => position,
            Rows::Some(rows) => rows[position] as usize,
        }
    }

    /// Adds a row to the cells of its group.
    #[inline]
    fn add(&self, row: usize, cells: &mut [Cell]) {
        for (cell, values) in cells.iter_mut().zip(&self.values) {
            cell.add(values.map_or(0, |values| values[row]));
        }
    }
}

impl Cube {
    /// The sums of `view` by `by` for `measures`; `None` where there are none to go by. O(rows) for each column.
    pub(super) fn new(view: &Selection, by: &[String], measures: &[Measure]) -> Result<Option<Self>> {
        if view.table.weight().is_some() || measures.is_empty() || !measures.iter().all(Measure::is_sum) {
            return Ok(None);
        }
        let mut measured: Vec<Option<String>> = Vec::new();
        for column in measures.iter().map(|m| m.column().map(str::to_owned)) {
            if !measured.contains(&column) {
                measured.push(column);
            }
        }
        let stop = Stop::default();
        let columns: Vec<&Column> = by.iter().map(|b| view.relation.column(b)).collect();
        let keys = Keys::of(&columns, view.rows(), &stop)?;
        if keys.groups > MOST_GROUPS || keys.groups == 0 {
            return Ok(None);
        }
        let first = keys.first_rows(view.rows(), keys.groups);
        let mut cube = Cube { first, ids: keys.ids.into_owned(), measured, blocks: Vec::new() };
        let sources = Sources::of(view, &cube.measured);
        let (mut sums, rows, mut cells) = (Vec::new(), view.rows().len(), 0);
        for from in (0..rows).step_by(BLOCK) {
            let block = cube.block(&sources, from, rows.min(from + BLOCK), &mut sums);
            cells += block.cells.len();
            cube.blocks.push(block);
            if cells > MOST_CELLS {
                return Ok(None);
            }
        }
        Ok(Some(cube))
    }

    fn block(&self, sources: &Sources, from: usize, to: usize, sums: &mut Vec<Cell>) -> Block {
        let (width, [begin, end]) = (self.measured.len(), sources.span);
        sums.clear();
        sums.resize(self.first.len() * width, Cell::default());
        let (mut begins, mut ends) = ((u64::MAX, 0), (u64::MAX, 0));
        for position in from..to {
            let row = sources.row(position);
            begins = (begins.0.min(begin[row]), begins.1.max(begin[row]));
            ends = (ends.0.min(end[row]), ends.1.max(end[row]));
            let at = self.ids[row] as usize * width;
            sources.add(row, &mut sums[at..at + width]);
        }
        let here = |group: &u32| sums[*group as usize * width].rows > 0;
        let groups: Vec<u32> = (0..self.first.len() as u32).filter(here).collect();
        let cells = groups.iter().flat_map(|&g| &sums[g as usize * width..][..width]).copied().collect();
        Block { from, to, begins, ends, groups, cells }
    }

    /// Whether it has sums of all that `measures` need.
    pub(super) fn has(&self, measures: &[Measure]) -> bool {
        measures.iter().all(|m| m.is_sum() && self.measured.iter().any(|c| c.as_deref() == m.column()))
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let cells: usize = self.blocks.iter().map(|b| b.cells.len() * size_of::<Cell>() + 4 * b.groups.len()).sum();
        4 * (self.ids.len() + self.first.len()) + cells
    }

    /// By group and measured column, of the rows in `window`.
    fn sums(&self, view: &Selection, window: Option<(u64, u64)>, stop: &Stop) -> Result<Vec<Cell>> {
        let width = self.measured.len();
        let sources = Sources::of(view, &self.measured);
        let mut sums = vec![Cell::default(); self.first.len() * width];
        let (from, to) = window.unwrap_or((0, u64::MAX));
        let [begin, end] = sources.span;
        for block in &self.blocks {
            stop.check()?;
            match window.map_or(Lies::Inside, |window| block.to(window)) {
                Lies::Outside => {}
                Lies::Inside => {
                    for (group, cells) in block.groups.iter().zip(block.cells.chunks_exact(width)) {
                        let sums = &mut sums[*group as usize * width..][..width];
                        sums.iter_mut().zip(cells).for_each(|(sum, cell)| sum.absorb(cell));
                    }
                }
                Lies::Across => {
                    for row in (block.from..block.to).map(|position| sources.row(position)) {
                        if begin[row] < to && end[row] >= from {
                            sources.add(row, &mut sums[self.ids[row] as usize * width..][..width]);
                        }
                    }
                }
            }
        }
        Ok(sums)
    }

    /// The groups by `by` of the rows in `narrow`, with how many rows that are.
    pub(super) fn group(
        &self,
        view: &Selection,
        by: &[String],
        measures: &[Measure],
        narrow: &Narrow,
        stop: &Stop,
    ) -> Result<Grouped> {
        let width = self.measured.len();
        let sums = self.sums(view, narrow.window, stop)?;
        let present = |group: &usize| sums[group * width].rows > 0;
        let mut rows: Vec<u32> = (0..self.first.len()).filter(present).map(|group| self.first[group]).collect();
        for (column, wanted) in &narrow.values {
            rows = matching(&view.relation, column, Rows::Some(&rows), wanted);
        }
        let columns: Vec<&Column> = by.iter().map(|b| view.relation.column(b)).collect();
        let keys = Keys::of(&columns, Rows::Some(&rows), stop)?;
        let mut tallies: Vec<Tally> =
            self.measured.iter().map(|name| (name.as_deref(), vec![Cell::default(); keys.groups])).collect();
        for &row in &rows {
            let (here, group) = (keys.ids[row as usize] as usize, self.ids[row as usize] as usize);
            for ((_, cells), sum) in tallies.iter_mut().zip(&sums[group * width..]) {
                cells[here].absorb(sum);
            }
        }
        let (groups, measured) = measure::of_sums(&view.relation, measures, &tallies);
        let first = keys.first_rows(Rows::Some(&rows), groups.len());
        let matched: u64 = tallies.first().map_or(0, |(_, cells)| cells.iter().map(|c| c.rows).sum());
        let first = groups.iter().map(|&g| first[g as usize]).collect();
        Ok(Grouped { groups, first, measured, matched: matched as usize })
    }
}

/// Groups with what was measured of them.
pub(super) struct Grouped {
    pub(super) groups: Vec<u32>,
    /// A row of each.
    pub(super) first: Vec<u32>,
    pub(super) measured: Vec<Column>,
    pub(super) matched: usize,
}

impl Narrow {
    /// The columns of which values are picked.
    pub(super) fn columns(&self) -> impl Iterator<Item = &String> {
        self.values.iter().map(|(column, _)| column)
    }
}
