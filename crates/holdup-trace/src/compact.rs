//! A trace without what nothing in it refers to: stacks, frames, names and strings that were needed before a window was cut out.

use crate::names::Names;
use crate::refer::Refer;
use crate::tables::{Code, Codes, Frames, LineRow, Lines, LocationRow, Locations, StackNode, StackNodes};
use crate::{FrameId, Result, StackId, Stacks, StringId, Table, Trace};

/// Takes out what no row refers to, and the code and source lines of functions for which `keep` says no. Ids of stacks, frames
/// and strings become others. All tables are in memory afterwards.
///
/// # Errors
/// If a table is damaged.
pub fn compact(trace: &mut Trace, keep: impl Fn(&Code) -> bool) -> Result<()> {
    trace.events.load()?;
    prune_stacks(trace);
    prune_names(trace, keep);
    prune_strings(trace);
    Ok(())
}

/// Which ids are used, and then their new ones.
struct Used<I> {
    new: Vec<Option<u32>>,
    next: u32,
    wrap: fn(u32) -> I,
}

impl<I> Used<I> {
    fn new(count: usize, first: u32, wrap: fn(u32) -> I) -> Self {
        Used { new: vec![None; count], next: first, wrap }
    }

    fn mark(&mut self, index: usize) {
        if let Some(new) = self.new.get_mut(index) {
            *new = Some(0);
        }
    }

    fn is_marked(&self, index: usize) -> bool {
        self.new.get(index).is_some_and(Option::is_some)
    }

    /// Gives what is used the next numbers, in the old order.
    fn number(&mut self) {
        for new in self.new.iter_mut().flatten() {
            *new = self.next;
            self.next += 1;
        }
    }

    fn get(&self, index: usize) -> Option<I> {
        self.new.get(index).copied().flatten().map(self.wrap)
    }
}

/// Marks or renumbers stacks; a stack's index is its id less one.
struct StackIds {
    used: Used<StackId>,
    renumber: bool,
}

impl Refer for StackIds {
    fn stack(&mut self, id: &mut StackId) {
        let Some(index) = id.index().checked_sub(1) else { return };
        match self.renumber {
            false => self.used.mark(index),
            true => *id = self.used.get(index).unwrap_or_default(),
        }
    }
}

struct StringIds {
    used: Used<StringId>,
    renumber: bool,
}

impl Refer for StringIds {
    fn string(&mut self, id: &mut StringId) {
        match self.renumber {
            false => self.used.mark(id.index()),
            true => *id = self.used.get(id.index()).unwrap_or_default(),
        }
    }
}

fn prune_stacks(trace: &mut Trace) {
    let mut ids = StackIds { used: Used::new(trace.stacks.len(), 1, StackId), renumber: false };
    trace.events.refer(&mut ids);
    let (nodes, frames) = trace.stacks.tables();
    // A caller has a smaller number than who it called.
    for i in (0..nodes.len()).rev().filter(|&i| nodes.parent[i].0 != 0) {
        if ids.used.is_marked(i) {
            ids.used.mark(nodes.parent[i].index() - 1);
        }
    }
    let mut used_frames = Used::new(frames.len(), 0, FrameId);
    let marked = (0..nodes.len()).filter(|&i| ids.used.is_marked(i));
    marked.for_each(|i| used_frames.mark(nodes.frame[i].index()));
    ids.used.number();
    used_frames.number();
    let (mut kept_nodes, mut kept_frames) = (StackNodes::default(), Frames::default());
    for (i, StackNode { parent, frame }) in nodes.rows().enumerate() {
        if let (true, Some(frame)) = (ids.used.is_marked(i), used_frames.get(frame.index())) {
            let parent = parent.index().checked_sub(1).and_then(|p| ids.used.get(p)).unwrap_or_default();
            kept_nodes.push(StackNode { parent, frame });
        }
    }
    let frame_rows = frames.rows().enumerate().filter(|(i, _)| used_frames.is_marked(*i));
    frame_rows.for_each(|(_, row)| kept_frames.push(row));
    let (locations, codes, lines) = trace.names.tables();
    let mut kept = Locations::default();
    for row in locations.rows() {
        if let Some(frame) = used_frames.get(row.frame.index()) {
            kept.push(LocationRow { frame, ..row });
        }
    }
    trace.names = Names::new(kept, codes.clone(), lines.clone(), kept_frames.len());
    trace.stacks = Stacks::from_tables(kept_nodes, kept_frames);
    ids.renumber = true;
    trace.events.refer(&mut ids);
}

fn prune_names(trace: &mut Trace, keep: impl Fn(&Code) -> bool) {
    let (locations, codes, lines) = trace.names.tables();
    let (mut kept, mut kept_lines) = (Codes::default(), Lines::default());
    codes.rows().filter(|code| keep(code)).for_each(|code| kept.push(code));
    let has_code = |line: &LineRow| {
        kept.rows().any(|c| c.bytes == line.code && c.function == line.function && c.module == line.module)
    };
    // Lines of one code stand together.
    let (mut last, mut held) = (None, false);
    for line in lines.rows() {
        let of = (line.code, line.function, line.module);
        if last != Some(of) {
            (last, held) = (Some(of), has_code(&line));
        }
        if held {
            kept_lines.push(line);
        }
    }
    trace.names = Names::new(locations.clone(), kept, kept_lines, trace.stacks.frame_count());
}

fn prune_strings(trace: &mut Trace) {
    let mut ids = StringIds { used: Used::new(trace.strings.iter().count(), 0, StringId), renumber: false };
    // The empty string is the first.
    ids.used.mark(0);
    trace.refer(&mut ids);
    ids.used.number();
    let mut strings = crate::Dictionary::empty_for_reading();
    for (i, text) in trace.strings.iter().enumerate() {
        if ids.used.is_marked(i) {
            strings.append(text);
        }
    }
    trace.strings = strings;
    ids.renumber = true;
    trace.refer(&mut ids);
}

impl Trace {
    /// Shows `to` all ids of the trace's tables.
    pub(crate) fn refer(&mut self, to: &mut dyn Refer) {
        self.events.refer(to);
        self.threads.refer(to);
        self.locks.refer(to);
        self.names.refer(to);
    }
}
