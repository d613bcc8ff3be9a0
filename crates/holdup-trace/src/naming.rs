//! Names frames, and keeps the code of the functions that matter with its source lines.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::run_time::is_interpreted;
use crate::tables::{Code, Codes, Frame, LineRow, Lines, LocationRow, Locations};
use crate::{Dictionary, FrameId, Image, Location, Names, SpaceId, Stacks, StringId, Symbolizer, Table};

/// Longest function whose code is kept, in bytes.
const CODE_LIMIT: usize = 64 << 10;

/// What a source itself calls addresses.
pub(crate) struct Given<'a> {
    /// By process and address; functions of interpreters are nobody's.
    pub names: FxHashMap<(u32, u64), Vec<Location>>,
    /// The process of each space.
    pub processes: &'a [u32],
}

/// Of a source that names nothing.
pub(crate) const NOTHING_GIVEN: Given = Given { names: FxHashMap::with_hasher(FxBuildHasher), processes: &[] };

impl Given<'_> {
    fn at(&self, space: SpaceId, address: u64) -> Option<&Vec<Location>> {
        if is_interpreted(address) && space != SpaceId::KERNEL {
            return self.names.get(&(0, address));
        }
        self.names.get(&(*self.processes.get(space.index())?, address))
    }
}

/// Names every frame, and keeps the code of every function that is a stack's leaf; of the kernel's only `with_kernel`:
/// code that was moved at boot has the addresses in it.
pub(crate) fn name_frames(
    stacks: &Stacks,
    spaces: &[Vec<Arc<Image>>],
    given: &Given,
    strings: &mut Dictionary,
    mut symbolizer: Option<&mut dyn Symbolizer>,
    with_kernel: bool,
) -> Names {
    let mut locations = Locations::default();
    let mut kept = Kept::default();
    let leaves = leaf_frames(stacks);
    let none = Vec::new();
    for (index, &is_leaf) in leaves.iter().enumerate() {
        let frame = FrameId(index as u32);
        let Some(Frame { space, address }) = stacks.frame(frame) else { continue };
        let images = spaces.get(space.index()).unwrap_or(&none);
        let found = match (given.at(space, address), &mut symbolizer) {
            (Some(locations), symbolizer) => demangled(locations, symbolizer.as_deref()),
            (None, Some(symbolizer)) => symbolizer.locate(space == SpaceId::KERNEL, images, address),
            (None, None) => continue,
        };
        if let Some(symbolizer) = &mut symbolizer
            && let Some(outer) = found
                .last()
                .filter(|_| is_leaf && !is_interpreted(address) && (with_kernel || space != SpaceId::KERNEL))
            && kept.functions.insert((space, address - outer.offset.min(address)))
        {
            let names = (strings.intern(&outer.function), strings.intern(&outer.module));
            kept.add(names, (space, address), images, strings, *symbolizer);
        }
        for l in found {
            let (function, module) = (strings.intern(&l.function), strings.intern(&l.module));
            let file = strings.intern(&l.file);
            locations.push(LocationRow { frame, function, module, file, line: l.line, offset: l.offset });
        }
    }
    Names::new(locations, kept.codes, kept.lines, stacks.frame_count())
}

/// The source's own names, in the form in which a symbolizer gives them.
fn demangled(locations: &[Location], symbolizer: Option<&dyn Symbolizer>) -> Vec<Location> {
    let mut locations = locations.to_vec();
    if let Some(symbolizer) = symbolizer {
        locations.iter_mut().for_each(|l| l.function = symbolizer.demangle(&l.function));
    }
    locations
}

/// What is kept of functions.
#[derive(Default)]
struct Kept {
    codes: Codes,
    lines: Lines,
    functions: FxHashSet<(SpaceId, u64)>,
    /// Function, module and bytes: a program that runs many times has its lines once.
    lined: FxHashSet<(StringId, StringId, StringId)>,
}

impl Kept {
    /// Keeps the function around an address.
    fn add(
        &mut self,
        (function, module): (StringId, StringId),
        (space, address): (SpaceId, u64),
        images: &[Arc<Image>],
        strings: &mut Dictionary,
        symbolizer: &mut dyn Symbolizer,
    ) {
        let kernel = space == SpaceId::KERNEL;
        let Some((start, bytes)) = symbolizer.code(kernel, images, address, CODE_LIMIT) else { return };
        let code = strings.intern(&bytes.iter().map(|b| format!("{b:02x}")).collect::<String>());
        self.codes.push(Code { function, module, start, bytes: code });
        if kernel || !self.lined.insert((function, module, code)) {
            return;
        }
        for l in symbolizer.lines(images, start, bytes.len()) {
            let (inlined, file) = (strings.intern(&l.inlined), strings.intern(&l.file));
            self.lines.push(LineRow { function, module, code, offset: l.offset, inlined, file, line: l.line });
        }
    }
}

/// Which frames are the innermost of some stack, or of its user part: where an interrupt came, the kernel's frames lie
/// above an instruction that other samples have as their leaf.
fn leaf_frames(stacks: &Stacks) -> Vec<bool> {
    let (nodes, frames) = stacks.tables();
    let space = |frame: crate::FrameId| frames.space.get(frame.index());
    let mut inner = vec![true; nodes.len()];
    for (parent, frame) in nodes.parent.iter().zip(&nodes.frame) {
        let Some(caller) = parent.index().checked_sub(1).filter(|i| *i < nodes.len()) else { continue };
        if space(nodes.frame[caller]) == space(*frame) {
            inner[caller] = false;
        }
    }
    let mut leaves = vec![false; frames.len()];
    for (frame, _) in nodes.frame.iter().zip(inner).filter(|(_, leaf)| *leaf) {
        if let Some(slot) = leaves.get_mut(frame.index()) {
            *slot = true;
        }
    }
    leaves
}
