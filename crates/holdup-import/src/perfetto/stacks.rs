//! Interned call stacks become chains, and the names that their frames come with are given to the builder.
//!
//! A frame has a mapping and an address in it, or a name alone (the kernel's, and what is interpreted). Those get an address
//! of their own, where no code can lie.

use std::rc::Rc;

use holdup_trace::{ChainId, Image, Location, MapEvent};
use rustc_hash::{FxHashMap, FxHashSet};

use super::place::Place;
use super::sequence::{Frame, Interned, List, Mapping};
use crate::bytes::text;
use crate::linux::kernel::Kernel;

/// Addresses for frames of the kernel that have none: it maps nothing there.
const KERNEL_NAMES: u64 = 0xffff_f000_0000_0000;
/// Addresses for other frames that have none: no processor takes them.
const USER_NAMES: u64 = 1 << 56;
/// Between two of them: a caller's address is moved into the call.
const DISTANCE: u64 = 16;
/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;

/// What became of frames so far.
#[derive(Debug, Default)]
pub struct Stacks {
    /// The numbers of frames without an address, by what identifies them.
    nameless: FxHashMap<(bool, String, String, u64), u64>,
    /// Which mappings each process is known to have.
    mapped: FxHashSet<(u32, u64, u64)>,
    /// Which addresses of each process have a name.
    named: FxHashSet<(u32, u64)>,
    /// Stacks that no packet defined.
    pub undefined: u64,
}

impl Stacks {
    /// The chain of an interned stack in process `pid`, without what a tracepoint put on top of it, and its first instruction.
    pub fn chain(&mut self, iid: u64, pid: u32, interned: &mut Interned, kernel: &mut Kernel) -> (ChainId, u64) {
        if iid == 0 {
            return (ChainId::NONE, 0);
        }
        if let Some(&chain) = interned.chains.get(&(iid, pid)) {
            return chain;
        }
        let Some(stack) = interned.stacks.get(&iid) else {
            self.undefined += 1;
            return (ChainId::NONE, 0);
        };
        let places: Vec<Rc<Place>> =
            stack.clone().iter().rev().filter_map(|&frame| self.place(frame, pid, interned, kernel)).collect();
        // Each with those that are inlined into it, the innermost first.
        let codes: Vec<&[Rc<Place>]> = places.chunk_by(|inner, outer| inner.is_inlined_in(outer)).collect();
        let is_of_a_probe = |code: &&&[Rc<Place>]| code.iter().any(|place| place.is_of_a_probe());
        let probe = codes.iter().take_while(is_of_a_probe).count();
        let addresses = |of_kernel: bool| {
            let part = codes[probe..].iter().map(|code| &code[0]).filter(|place| place.kernel == of_kernel).enumerate();
            // The builder moves callers' return addresses into the call, where these are already.
            part.map(|(depth, place)| place.address.saturating_add(u64::from(depth > 0))).collect::<Vec<_>>()
        };
        let (of_kernel, of_user) = (addresses(true), addresses(false));
        let ip = of_kernel.first().or(of_user.first()).copied().unwrap_or(0);
        for code in codes {
            let owner = if code[0].kernel { 0 } else { pid };
            let is_named = code.iter().any(|place| place.location.is_some());
            if is_named && self.named.insert((owner, code[0].address)) {
                let locations = code.iter().filter_map(|place| place.location.clone()).collect();
                kernel.sink.builder.name(owner, code[0].address, locations);
            }
        }
        let chain = kernel.sink.builder.chain(pid, &of_kernel, &of_user);
        interned.chains.insert((iid, pid), (chain, ip));
        (chain, ip)
    }

    /// Where an interned frame of process `pid` lies; `None` if no packet defined it. Many stacks share their outer frames.
    fn place(&mut self, frame: u64, pid: u32, interned: &mut Interned, kernel: &mut Kernel) -> Option<Rc<Place>> {
        if let Some(place) = interned.places.get(&(frame, pid)) {
            return Some(Rc::clone(place));
        }
        let place = Rc::new(self.locate(*interned.frames.get(&frame)?, pid, interned, kernel));
        interned.places.insert((frame, pid), Rc::clone(&place));
        Some(place)
    }

    fn locate(&mut self, frame: Frame, pid: u32, interned: &Interned, kernel: &mut Kernel) -> Place {
        let nothing = Mapping::default();
        let mapping = interned.mappings.get(&frame.mapping).unwrap_or(&nothing);
        let function = text(interned.string(List::Functions, frame.function));
        let path = path(mapping, interned);
        let of_kernel = frame.kernel || is_kernel(&path) || frame.address >= KERNEL;
        let module = if of_kernel { "[kernel]".to_owned() } else { path };
        // What is interpreted has an offset of its own kind, which may lead out of the mapping; where nothing is mapped, the
        // address is the frame's. No code lies so low as an offset does.
        const LOWEST: u64 = 4096;
        let (address, known) = if mapping.start < mapping.end {
            let address = frame.address.wrapping_sub(mapping.bias).wrapping_add(mapping.start);
            (address, (mapping.start..mapping.end).contains(&address))
        } else {
            (frame.address, frame.address >= LOWEST && (frame.address >= KERNEL) == of_kernel)
        };
        let address = if known { address } else { self.own_address(of_kernel, &module, &function, frame.address) };
        let owner = if of_kernel { 0 } else { pid };
        if mapping.start < mapping.end && self.mapped.insert((owner, mapping.start, mapping.end)) {
            self.map(mapping, &module, owner, interned, kernel);
        }
        let location = (!function.is_empty()).then(|| {
            let file = text(interned.string(List::Sources, frame.source));
            Location { function, module, file, line: frame.line, offset: 0 }
        });
        Place { kernel: of_kernel, address, location }
    }

    fn own_address(&mut self, kernel: bool, module: &str, function: &str, offset: u64) -> u64 {
        let next = self.nameless.len() as u64;
        let key = (kernel, module.to_owned(), function.to_owned(), offset);
        let number = *self.nameless.entry(key).or_insert(next);
        let base = if kernel { KERNEL_NAMES } else { USER_NAMES };
        base.saturating_add(number.saturating_mul(DISTANCE))
    }

    fn map(&mut self, mapping: &Mapping, path: &str, pid: u32, interned: &Interned, kernel: &mut Kernel) {
        let id = interned.string(List::BuildIds, mapping.build_id);
        let build_id = (!id.is_empty()).then(|| id.to_vec());
        let &Mapping { start, end, file_offset, .. } = mapping;
        let image = Image { start, end, file_offset, path: path.to_owned(), build_id, pid };
        let image = kernel.sink.builder.image(image);
        // When it was mapped is not said.
        kernel.sink.maybe_timed(0, MapEvent { pid, image });
    }
}

/// The path of a mapped file: its parts are interned one by one, without slashes, or as a whole.
fn path(mapping: &Mapping, interned: &Interned) -> String {
    let parts = mapping.path.iter().map(|&part| interned.string(List::Paths, part)).filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.map(text).collect();
    match &parts[..] {
        [whole] if whole.starts_with(['/', '[']) || is_kernel(whole) => whole.clone(),
        [] => String::new(),
        parts => format!("/{}", parts.join("/")),
    }
}

fn is_kernel(path: &str) -> bool {
    matches!(path, "kernel" | "/kernel" | "vmlinux") || path.starts_with("[kernel")
}
