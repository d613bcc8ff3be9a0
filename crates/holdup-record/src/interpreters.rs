//! Frames of interpreters: tells the programs in the kernel where processes keep them, and names the functions that they met.

use holdup_runtime::interpreter::{Function, Interpreter, Met, Names, Place, Spot, may_be, pointers};
use holdup_spool::Side;
use holdup_trace::{Image, InterpretedFrame, PointedFrame, RawStack};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustc_hash::FxHashMap;

use crate::caps::Raised;
use crate::layout::InterpreterWords;
use crate::{clock, proc};

/// In place of a function: behind it begins a call of the evaluation loop.
const SHIM: u64 = 1;
/// One frame without a name in so many is not worth a word.
const FEW: u64 = 20;
/// Frames of a stack that may lead to functions.
const MOST_POINTED: usize = 256;
/// Address spaces with an interpreter that are remembered, as many as the kernel's map has room for.
const MOST: usize = 4096;

/// The interpreters of the machine.
pub(crate) struct Interpreters {
    /// By the layout of their address spaces.
    found: FxHashMap<u64, Option<Interpreter>>,
    map: MapHandle,
    names: Names,
    /// Layouts of processes with frames on the machine's stack, and whether one led to a function.
    on_stack: FxHashMap<u32, (u64, bool)>,
    /// Frames that were to be named, and those of them that could not be.
    asked: u64,
    unread: u64,
    /// Functions that the next round tells.
    new: Vec<Side>,
    /// Why frames of some are missing.
    problems: Vec<String>,
}

impl Interpreters {
    pub(crate) fn new(map: MapHandle) -> Interpreters {
        let (found, names, on_stack) = Default::default();
        Interpreters { found, map, names, on_stack, asked: 0, unread: 0, new: Vec::new(), problems: Vec::new() }
    }

    /// Looks for interpreters among new mappings. A file is read once for each program that is started.
    pub(crate) fn look(&mut self, side: &[Side]) {
        let images = side.iter().filter_map(|item| match item {
            Side::Map { image, .. } if may_be(&image.path) => Some(image),
            _ => None,
        });
        let mut raised = None;
        for image in images {
            raised.get_or_insert_with(Raised::all);
            self.look_at(image);
        }
        self.names.close();
    }

    fn look_at(&mut self, image: &Image) {
        // What was forked from a process has its layout, and its interpreter.
        let Some(layout) = proc::layout(image.pid) else { return };
        if self.found.len() >= MOST || self.on_stack.len() >= MOST {
            self.found.clear();
            self.on_stack.clear();
        }
        if !matches!(self.found.get(&layout), Some(Some(_))) {
            let found = self.find(image, layout);
            self.found.insert(layout, found);
        }
        if matches!(self.found.get(&layout), Some(Some(Interpreter { place: Place::OnStack(_), .. }))) {
            self.on_stack.insert(image.pid, (layout, false));
        }
    }

    /// Looks into the file, and tells the programs in the kernel.
    fn find(&mut self, image: &Image, layout: u64) -> Option<Interpreter> {
        let found = Interpreter::find(image).unwrap_or_else(|problem| {
            let problem = format!("{}: {problem}; its functions have no names", image.path);
            if self.problems.len() < 4 && !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
            None
        });
        if let Some(found) = &found {
            let _ = self.map.update(&layout.to_ne_bytes(), &InterpreterWords::of(&found.place).bytes(), MapFlags::ANY);
        }
        found
    }

    /// How many were found.
    pub(crate) fn count(&self) -> u64 {
        self.found.values().flatten().count() as u64
    }

    /// Puts the frames into a stack: `words` as the kernel's programs left them, of an address space with this layout.
    pub(crate) fn name(&mut self, stack: &mut RawStack, layout: u64, words: &[u64], complete: bool) {
        let Interpreters { found, names, asked, unread, new, .. } = self;
        let Some(Some(interpreter)) = found.get(&layout) else { return };
        let Place::Listed(place) = interpreter.place else { return };
        let to = &mut stack.interpreted;
        (to.evaluation, to.complete) = (place.evaluation, complete);
        let _raised = Raised::all();
        // What is no function of the language has no frame here, but one of the machine.
        for &word in words.iter().filter(|&&word| word != 0) {
            if word == SHIM {
                if let Some(last) = to.frames.last_mut() {
                    last.entry = true;
                }
                continue;
            }
            let Met { number, evaluated, new: function } =
                names.meet(interpreter, stack.pid, layout, Spot::of(word & !1));
            new.extend(function.map(|function| told(number, function)));
            (*asked, *unread) = (*asked + 1, *unread + u64::from(number == 0));
            to.frames.push(InterpretedFrame { function: number, entry: evaluated && word & 1 == 1 });
        }
    }

    /// Says which functions the frames on a stack lead to. A process is known before the programs in the kernel know it.
    pub(crate) fn point(&mut self, stack: &mut RawStack) {
        let Interpreters { found, names, on_stack, new, .. } = self;
        let Some((layout, is_named)) = on_stack.get_mut(&stack.pid) else { return };
        let Some(Some(interpreter)) = found.get(layout) else { return };
        let _raised = Raised::all();
        let mut pointed = Vec::new();
        for (pointer, address) in pointers(stack).take(MOST_POINTED) {
            let Met { number, new: function, .. } = names.meet(interpreter, stack.pid, *layout, Spot::of(address));
            new.extend(function.map(|function| told(number, function)));
            pointed.extend((number != 0).then_some(PointedFrame { pointer, function: number }));
        }
        *is_named |= !pointed.is_empty();
        stack.interpreted.pointed = pointed;
    }

    /// The processes in which that led to functions.
    pub(crate) fn named(&self) -> Vec<u32> {
        self.on_stack.iter().filter(|(_, (_, is_named))| *is_named).map(|(pid, _)| *pid).collect()
    }

    /// The functions that were met since.
    pub(crate) fn new_functions(&mut self, side: &mut Vec<Side>) {
        side.append(&mut self.new);
    }

    /// All functions, for a segment that stands for itself.
    pub(crate) fn all_functions(&self, side: &mut Vec<Side>) {
        side.extend(self.names.unsorted().map(|(number, f)| told(number, f)));
    }

    /// What is missing, in sentences.
    pub(crate) fn notes(&self) -> Vec<String> {
        // What ends at once, or is imported and forgotten, leaves a few in any recording.
        let (unread, asked) = (self.unread, self.asked);
        let unread = (unread * FEW > asked).then(|| {
            format!("{unread} of {asked} interpreted functions have no names: they were gone when they were to be read")
        });
        self.problems.iter().cloned().chain(unread).collect()
    }
}

fn told(number: u32, f: &Function) -> Side {
    Side::Function { t: clock::now(), number, name: f.name.clone(), file: f.file.clone(), line: f.line }
}
