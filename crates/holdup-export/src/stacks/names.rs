//! The names that paths are made of, each once.

use holdup_analysis::label;
use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

/// A name, by its number.
pub type NameId = u32;

/// A name, and where it is in the source, if it is a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Named {
    /// The name, as the trace has it.
    pub name: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The module; empty if it is no function.
    pub module: String,
}

/// Gives names numbers.
pub struct Names<'a> {
    trace: &'a Trace,
    names: Vec<Named>,
    known: FxHashMap<Named, NameId>,
    /// The names at each frame, the outermost first; `None` while nobody asked.
    frames: Vec<Option<Box<[NameId]>>>,
}

impl<'a> Names<'a> {
    /// None yet.
    pub fn new(trace: &'a Trace) -> Self {
        let frames = vec![None; trace.stacks.frame_count()];
        Names { trace, names: Vec::new(), known: FxHashMap::default(), frames }
    }

    /// All names, by number.
    pub fn finish(self) -> Vec<Named> {
        self.names
    }

    /// The number of a name that is no function; `instead` stands for an empty one.
    pub fn plain(&mut self, name: &str, instead: &str) -> NameId {
        let name = if name.trim().is_empty() { instead } else { name };
        self.add(Named { name: name.to_owned(), ..Named::default() })
    }

    /// A process.
    pub fn process(&mut self, name: StringId) -> NameId {
        self.plain(self.trace.text(name), "(process without a name)")
    }

    /// A thread's process and the thread.
    pub fn of_thread(&mut self, thread: ThreadIdx) -> [NameId; 2] {
        let process = self.plain(label::process_name(self.trace, thread), "(process without a name)");
        let tid = self.trace.thread(thread).map_or(0, |t| t.tid);
        let name = label::thread_name(self.trace, thread);
        [process, self.plain(&format!("{name} ({tid})"), "")]
    }

    /// Adds the frames of a stack to `path`, the outermost first, with what is inlined; a stand-in where there is no stack.
    pub fn frames(&mut self, stack: StackId, path: &mut Vec<NameId>) {
        let mut frames: Vec<FrameId> = self.trace.stacks.frames(stack).collect();
        // The innermost ones may be those through which the recorder was called.
        let own = frames.iter().take_while(|f| self.is_recorder(**f)).count();
        frames.drain(..own);
        if frames.is_empty() {
            path.push(self.plain("(no stack)", ""));
        }
        for frame in frames.into_iter().rev() {
            path.extend_from_slice(self.at(frame));
        }
    }

    fn is_recorder(&self, frame: FrameId) -> bool {
        let mut locations = self.trace.names.locations(frame).peekable();
        locations.peek().is_some() && locations.all(|l| label::is_recorder(self.trace.text(l.function)))
    }

    fn at(&mut self, frame: FrameId) -> &[NameId] {
        if self.frames.len() <= frame.index() {
            self.frames.resize(frame.index() + 1, None);
        }
        if self.frames[frame.index()].is_none() {
            self.frames[frame.index()] = Some(self.look_up(frame));
        }
        self.frames[frame.index()].as_deref().unwrap_or_default()
    }

    fn look_up(&mut self, frame: FrameId) -> Box<[NameId]> {
        let trace = self.trace;
        let mut locations: Vec<LocationRow> = trace.names.locations(frame).collect();
        locations.retain(|l| !trace.text(l.function).is_empty());
        if locations.is_empty() {
            let address = trace.stacks.frame(frame).map_or(0, |f| f.address);
            return [self.plain(&format!("{address:#x}"), "")].into();
        }
        let [name, file, module] = [|l: &LocationRow| l.function, |l: &LocationRow| l.file, |l: &LocationRow| l.module]
            .map(|of| move |l: &LocationRow| trace.text(of(l)).to_owned());
        locations.iter().rev().map(|l| self.add(Named { name: name(l), file: file(l), module: module(l) })).collect()
    }

    fn add(&mut self, named: Named) -> NameId {
        if let Some(&id) = self.known.get(&named) {
            return id;
        }
        // As many as there are different names in memory: fewer than 2^32.
        let id = self.names.len() as NameId;
        self.names.push(named.clone());
        self.known.insert(named, id);
        id
    }
}
