//! A complete trace.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use crate::tables::{Locks, LossRow, Span, Spans, StackNodes, Thread, Threads};
use crate::{
    Cpu, Dictionary, EventTables, Image, Loss, Meta, Names, Stacks, Store, StringId, Symbolizer, Table, TakeTables,
    ThreadIdx,
};

/// A trace: facts, dictionaries, tables. Rows of each table are in time order.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Facts about the whole.
    pub meta: Meta,
    /// Strings.
    pub strings: Dictionary,
    /// Call stacks.
    pub stacks: Stacks,
    /// Names of frames.
    pub names: Names,
    /// Threads; row 0 is the idle task.
    pub threads: Threads,
    /// Locks; row 0 is "no lock".
    pub locks: Locks,
    /// What happened: the large tables. A trace lends their fields as its own.
    pub events: EventTables,
}

impl Deref for Trace {
    type Target = EventTables;

    fn deref(&self) -> &EventTables {
        &self.events
    }
}

impl Trace {
    /// The thread's row; `None` for [`ThreadIdx::NONE`] and damaged ids.
    pub fn thread(&self, thread: ThreadIdx) -> Option<Thread> {
        (thread.index() < self.threads.len()).then(|| self.threads.row(thread.index()))
    }

    /// The string's text.
    pub fn text(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// Adds spans that were told elsewhere, in any order.
    ///
    /// # Errors
    /// If the trace's own are damaged.
    pub fn add_spans(&mut self, more: impl IntoIterator<Item = Span>) -> crate::Result<()> {
        let mut all: Vec<Span> = self.events.spans.iter().collect::<crate::Result<_>>()?;
        all.extend(more);
        all.sort_by_key(|span| span.t);
        let mut table = Spans::default();
        all.into_iter().for_each(|span| table.push(span));
        self.events.spans = Store::from_table(table);
        Ok(())
    }

    /// Adds losses that were found out later.
    ///
    /// # Errors
    /// If the trace's own are damaged.
    pub fn add_losses(&mut self, more: impl IntoIterator<Item = LossRow>) -> crate::Result<()> {
        let mut table = self.events.losses.load()?;
        more.into_iter().for_each(|loss| table.push(loss));
        self.events.losses = Store::from_table(table);
        Ok(())
    }

    /// The share of its CPUs that the host took from a virtual machine meanwhile; 0 if that is not known.
    pub fn stolen_share(&self) -> f64 {
        self.meta.stolen_cpu_s.map_or(0.0, |stolen| (stolen / self.meta.cpu_seconds().max(1e-9)).clamp(0.0, 1.0))
    }

    /// Hands over all tables in the order of [`table_docs`](crate::table_docs): the event tables, then the dictionaries. Strings are no
    /// table.
    ///
    /// # Errors
    /// What `to` says.
    pub fn tables<W: TakeTables>(&self, to: &mut W) -> Result<(), W::Error> {
        self.events.take(to)?;
        to.dictionary(&self.threads, Some(0))?;
        to.dictionary(&self.locks, Some(0))?;
        let (nodes, frames) = self.stacks.tables();
        to.dictionary(nodes, Some(1))?;
        to.dictionary(frames, Some(0))?;
        let (locations, codes, lines) = self.names.tables();
        to.dictionary(locations, None)?;
        to.dictionary(codes, None)?;
        to.dictionary(lines, None)
    }

    /// Rows of each event table, by name.
    pub fn row_counts(&self) -> BTreeMap<String, u64> {
        let stacks = [(StackNodes::NAME, self.stacks.len() as u64)];
        let counts = self.events.row_counts().into_iter().chain(stacks);
        counts.map(|(name, rows)| (name.to_owned(), rows)).collect()
    }

    /// The losses, in words.
    pub fn losses(&self) -> crate::Result<Vec<Loss>> {
        self.losses
            .iter()
            .map(|row| {
                let row = row?;
                let cpu = (row.cpu != Cpu::NONE).then_some(row.cpu.0);
                let (from_s, to_s) = (row.from.seconds(), row.to.seconds());
                Ok(Loss { kind: row.kind, what: self.text(row.what).to_owned(), cpu, from_s, to_s, count: row.count })
            })
            .collect()
    }

    /// Names all frames anew, for a trace that was read without names on the machine that made it.
    pub fn symbolize(&mut self, symbolizer: &mut dyn Symbolizer) -> crate::Result<()> {
        let images = self.images.load()?;
        let mut spaces: Vec<Vec<Arc<Image>>> = vec![Vec::new()];
        for row in images.rows() {
            if spaces.len() <= row.space.index() {
                spaces.resize(row.space.index() + 1, Vec::new());
            }
            let build_id = crate::decode_build_id(self.text(row.build_id));
            let (start, end, file_offset) = (row.start, row.end, row.file_offset);
            let path = self.text(row.path).to_owned();
            let images = &mut spaces[row.space.index()];
            images.retain(|i| i.end <= start || i.start >= end);
            let at = images.partition_point(|i| i.start < start);
            images.insert(at, Arc::new(Image { start, end, file_offset, path, build_id, pid: 0 }));
        }
        self.names = crate::naming::name_frames(
            &self.stacks,
            &spaces,
            &crate::naming::NOTHING_GIVEN,
            &mut self.strings,
            Some(symbolizer),
            true,
        );
        Ok(())
    }
}
