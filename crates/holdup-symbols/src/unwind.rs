//! [`StackUnwinder`]: the callers of a thread, from a copy of its registers and the top of its stack.
//!
//! ```text
//!     raw.ip ──▶ image ──▶ file ──▶ .eh_frame entry ──▶ step ──▶ caller's ip, sp, bp ──▶ …
//!                                      (steps are kept by file and address)
//! ```
//!
//! A walk ends *complete* when the entry of a function says that it has no caller (`_start`, `clone3`), when a
//! return address or the frame pointer that leads to it is 0, or in a function in which Go begins a stack of its own. It ends
//! *cut* when the copy ends or a frame makes no sense.

use std::sync::Arc;

use holdup_trace::{Image, Leaf, Note, RawStack, Unwinder, interpreted_address};
use rustc_hash::FxHashMap;

use crate::compiled::{Compiled, CompiledFrame};
use crate::held::Held;
use crate::objects::{Objects, image_at, is_file};
use crate::sources::Sources;
use crate::step::{Registers, Stack, Step, Steps};
use crate::vdso;
use holdup_disasm::Arch;

/// More frames are not believed.
const FRAME_LIMIT: usize = 4096;

/// Recovers user call chains from copied stacks, for programs with and without frame pointers.
///
/// Files, and the rules to step from one address to its caller, are kept between stacks and between processes: use one
/// unwinder for all of them.
pub struct StackUnwinder {
    objects: Objects,
    steps: Steps,
    /// (index of the file, address in its terms) → whether a call ends there.
    calls: FxHashMap<(usize, u64), bool>,
    /// The same → whether it lies in a function in which a stack begins.
    beginnings: FxHashMap<(usize, u64), bool>,
    /// By process.
    compiled: FxHashMap<u32, Compiled>,
}

impl Default for StackUnwinder {
    fn default() -> Self {
        StackUnwinder::new()
    }
}

/// Where a frame's code is.
#[derive(Clone, Copy)]
struct Place {
    object: usize,
    vaddr: u64,
}

enum Next {
    /// The caller, and whether its address is that of an instruction interrupted by a signal rather than of a return.
    Frame(Registers, bool),
    Complete,
    Cut,
}

impl StackUnwinder {
    /// For stacks of processes on this machine.
    pub fn new() -> StackUnwinder {
        StackUnwinder::of(Objects::new(true))
    }

    /// Asks servers for the files that this machine lacks.
    #[must_use]
    pub fn with(mut self, sources: &Sources) -> StackUnwinder {
        self.objects.set_remote(sources.debuginfod());
        self
    }

    /// Unwinds through files that are gone by those that are kept open.
    #[must_use]
    pub fn holding(mut self, held: Vec<Held>) -> StackUnwinder {
        self.objects.set_held(held);
        self
    }

    /// Takes what is known of the code that the process `pid` compiled while it ran, and the numbers of methods that its interpreter ran,
    /// by where they lie.
    pub fn told_by(&mut self, pid: u32, frames: Vec<CompiledFrame>, methods: FxHashMap<u64, u32>) {
        self.compiled.insert(pid, Compiled::new(frames, methods));
    }

    pub(crate) fn of(objects: Objects) -> StackUnwinder {
        StackUnwinder {
            objects,
            steps: Steps::default(),
            calls: FxHashMap::default(),
            beginnings: FxHashMap::default(),
            compiled: FxHashMap::default(),
        }
    }

    fn place(&mut self, images: &[Arc<Image>], address: u64) -> Option<Place> {
        let image = image_at(images, address)?;
        let object = self.objects.index(image)?;
        let vaddr = self.objects.get(object).vaddr(image, address)?;
        Some(Place { object, vaddr })
    }

    fn arch(&mut self, images: &[Arc<Image>], ip: u64) -> Option<Arch> {
        match self.place(images, ip) {
            // 32-bit code keeps other registers: there is nothing to walk with.
            Some(place) => self.objects.get(place.object).arch(),
            None => Arch::host(),
        }
    }

    /// One frame further. `exact`: the address is that of an instruction, not of the one after a call.
    fn next(&mut self, images: &[Arc<Image>], stack: &Stack, regs: &Registers, exact: bool) -> Next {
        let lookup = if exact { regs.ip } else { regs.ip.wrapping_sub(1) };
        let place = self.place(images, lookup);
        if !exact && place.is_some_and(|p| self.is_beginning(p)) {
            return Next::Complete;
        }
        let step = match place {
            Some(p) => self.steps.get(p.object, p.vaddr, self.objects.get(p.object).cfi()),
            None => Step::Missing,
        };
        let stepped = match step {
            Step::End => return Next::Complete,
            Step::Missing => return self.without_information(images, stack, regs, exact, place),
            Step::Rule { rule, signal } => rule.apply(regs, stack, exact).map(|next| (next, signal)),
            Step::Program => place.and_then(|p| {
                let cfi = self.objects.get(p.object).cfi();
                self.steps.evaluate(p.vaddr, cfi, regs, stack)
            }),
        };
        match stepped {
            Some((next, _)) if next.ip == 0 => Next::Complete,
            // Only a leaf can have left the stack pointer where its caller has it.
            Some((next, signal)) if next.sp > regs.sp || exact && next.sp == regs.sp && next.ip != regs.ip => {
                Next::Frame(next, signal)
            }
            _ => self.by_frame_pointer(images, stack, regs),
        }
    }

    /// Whether one step leads from `leaf` to the same caller as from where `raw` was copied, with the same stack.
    fn step_is_the_same(&mut self, images: &[Arc<Image>], raw: &RawStack, leaf: Leaf) -> bool {
        let same_pointer = raw.bp == leaf.bp;
        match (self.place(images, raw.ip), self.place(images, leaf.ip)) {
            (Some(a), Some(b)) => {
                let [a, b] = [a, b].map(|p| self.steps.get(p.object, p.vaddr, self.objects.get(p.object).cfi()));
                a == b && a.is_told_by_the_stack(same_pointer)
            }
            (None, None) => match self.compiled.get(&raw.pid) {
                Some(all) => all.frames_alike(raw.ip, leaf.ip, same_pointer),
                None => same_pointer,
            },
            _ => false,
        }
    }

    /// A frame without call frame information: hand-written assembler, code compiled at run time, Go without debug
    /// information.
    fn without_information(
        &mut self,
        images: &[Arc<Image>],
        stack: &Stack,
        regs: &Registers,
        leaf: bool,
        place: Option<Place>,
    ) -> Next {
        if place.is_none()
            && let Some(all) = self.compiled.get(&stack.pid)
        {
            let callers = all.callers(regs, stack, leaf).into_iter().flatten();
            // What lies on a stack can be any number: only code calls.
            let mut likely =
                callers.filter(|next| next.sp > regs.sp && image_at(images, next.ip.wrapping_sub(1)).is_some());
            if let Some(next) = likely.find(|next| self.is_call(images, next.ip)) {
                return Next::Frame(next, false);
            }
        }
        if leaf && let Some(next) = self.return_of_leaf(images, stack, regs, place) {
            return Next::Frame(next, false);
        }
        if regs.bp == 0 && regs.linked {
            // `_start` and clone's child clear it.
            return Next::Complete;
        }
        self.by_frame_pointer(images, stack, regs)
    }

    fn by_frame_pointer(&mut self, images: &[Arc<Image>], stack: &Stack, regs: &Registers) -> Next {
        let Some(next) = regs.by_frame_pointer(stack) else { return Next::Cut };
        if next.ip == 0 {
            return Next::Complete;
        }
        // Nobody has called a function in which a stack begins.
        let is_frame = self.is_call(images, next.ip)
            || self.place(images, next.ip.wrapping_sub(1)).is_some_and(|place| self.is_beginning(place));
        if is_frame { Next::Frame(next, false) } else { Next::Cut }
    }

    /// Whether a stack begins in the function at `place`.
    fn is_beginning(&mut self, Place { object, vaddr }: Place) -> bool {
        let file = self.objects.get(object);
        // Only there symbols are worth reading for it.
        file.is_go()
            && *self
                .beginnings
                .entry((object, vaddr))
                .or_insert_with(|| file.function(vaddr).and_then(|f| f.name).is_some_and(|name| begins_stack(&name)))
    }

    /// Whether a call can have been before `address`.
    fn is_call(&mut self, images: &[Arc<Image>], address: u64) -> bool {
        self.follows_call(images, address).unwrap_or_else(|| written_at_run_time(images, address))
    }

    /// A leaf that has not pushed anything: its return address is where the call put it.
    fn return_of_leaf(
        &mut self,
        images: &[Arc<Image>],
        stack: &Stack,
        regs: &Registers,
        place: Option<Place>,
    ) -> Option<Registers> {
        let next = match regs.arch {
            Arch::X86_64 => Registers { ip: stack.read(regs.sp)?, sp: regs.sp.wrapping_add(8), ..*regs },
            Arch::Aarch64 => Registers { ip: regs.lr?, lr: None, ..*regs },
        };
        let linkage = place.is_some_and(|p| self.objects.get(p.object).is_linkage(p.vaddr));
        let known = self.follows_call(images, next.ip);
        known.unwrap_or(linkage && image_at(images, next.ip).is_some()).then_some(next)
    }

    /// Whether the instruction before `address` is a call; `None` if its bytes cannot be read.
    pub(crate) fn follows_call(&mut self, images: &[Arc<Image>], address: u64) -> Option<bool> {
        let place = self.place(images, address.wrapping_sub(1))?;
        let at = (place.object, place.vaddr.checked_add(1)?);
        if let Some(&known) = self.calls.get(&at) {
            return Some(known);
        }
        let object = self.objects.get(place.object);
        let bytes = object.bytes_before(at.1, 7)?;
        let call = ends_with_call(object.arch()?, &bytes);
        self.calls.insert(at, call);
        Some(call)
    }

    fn walk(&mut self, images: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
        let mut frames = vec![raw.ip];
        let Some(arch) = self.arch(images, raw.ip) else { return (frames, false) };
        let stack = Stack { pid: raw.pid, start: raw.sp, bytes: &raw.bytes, below: raw.below };
        let lr = (arch == Arch::Aarch64).then_some(raw.lr);
        let mask = images.last().map_or(u64::MAX, |i| u64::MAX >> i.end.leading_zeros());
        let mut regs = Registers { arch, ip: raw.ip, sp: raw.sp, bp: raw.bp, linked: false, lr, mask };
        let mut exact = true;
        while frames.len() < FRAME_LIMIT {
            let method = || self.compiled.get(&raw.pid).and_then(|all| all.interpreted(&regs, &stack, exact));
            if let Some(function) = pointed(raw, regs.bp).or_else(method)
                && let Some(last) = frames.last_mut()
            {
                *last = interpreted_address(function);
            }
            match self.next(images, &stack, &regs, exact) {
                Next::Complete => return (frames, true),
                Next::Cut => break,
                Next::Frame(next, signal) => {
                    frames.push(next.ip);
                    (regs, exact) = (next, signal);
                }
            }
        }
        // A last address in no known file was a guess that led nowhere.
        if frames.len() > 1 && image_at(images, regs.ip.wrapping_sub(1)).is_none() {
            frames.pop();
        }
        (frames, false)
    }
}

impl Unwinder for StackUnwinder {
    fn unwind(&mut self, images: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
        if raw.ip == 0 {
            return (Vec::new(), false);
        }
        let walk = crate::guarded(|| self.walk(images, raw));
        walk.unwrap_or_else(|| (vec![raw.ip], false))
    }

    fn shares_callers(&mut self, images: &[Arc<Image>], raw: &RawStack, leaf: Leaf) -> bool {
        raw.ip == leaf.ip && raw.bp == leaf.bp
            || crate::guarded(|| self.step_is_the_same(images, raw, leaf)).unwrap_or(true)
    }

    fn notes(&self) -> Vec<Note> {
        self.objects.problems()
    }
}

/// The function to which the frame with this pointer leads.
fn pointed(raw: &RawStack, pointer: u64) -> Option<u32> {
    raw.interpreted.pointed.iter().find(|frame| frame.pointer == pointer).map(|frame| frame.function)
}

/// Whether an address can be that of code without a file, which a compiler in the program wrote: its bytes are not there to
/// be looked at. What has a file that cannot be read is not meant: its call could have been checked.
fn written_at_run_time(images: &[Arc<Image>], address: u64) -> bool {
    match image_at(images, address.wrapping_sub(1)) {
        Some(image) => !is_file(&image.path) && image.path != vdso::NAME,
        None => image_at(images, address).is_none() && address >> 47 == 0,
    }
}

/// Whether a goroutine, or a stack on which Go schedules, begins in the function, or it goes over to such a stack: what called it lies on
/// another one.
fn begins_stack(function: &str) -> bool {
    const GO: &[&str] = &["goexit", "mcall", "systemstack", "morestack", "clone", "rt0_go"];
    let own = function.strip_prefix("runtime.").map(|name| name.strip_suffix(".abi0").unwrap_or(name));
    own.is_some_and(|name| GO.contains(&name))
}

/// Whether 7 bytes end with a call instruction.
fn ends_with_call(arch: Arch, bytes: &[u8]) -> bool {
    match arch {
        Arch::X86_64 => {
            let indirect = |len: &usize| bytes[7 - len] == 0xff && bytes[8 - len] >> 3 & 7 == 2;
            bytes[2] == 0xe8 || (2..=7).any(|len| indirect(&len))
        }
        Arch::Aarch64 => {
            let word = u32::from_le_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
            word >> 26 == 0b10_0101 || word & 0xfe60_0000 == 0xd620_0000
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    const CODE: u64 = 0x7f10_0000_0000;
    const STACK: u64 = 0x7ffc_0000_0000;

    /// A walk through frames of (where they return to), linked by frame pointers, whose code is an image of this path.
    fn walk(path: &str, returns: &[u64], last: u64) -> (Vec<u64>, bool) {
        let image = Image { start: CODE, end: CODE + 0x10000, path: path.into(), ..Image::default() };
        // Each frame: the caller's frame pointer, the return address, two words of its own.
        let frame = |(i, &ip): (usize, &u64)| {
            let next = if i + 1 == returns.len() { last } else { STACK + 32 * (i as u64 + 1) };
            [next, ip, 7, 7].into_iter().flat_map(u64::to_le_bytes)
        };
        let bytes = returns.iter().enumerate().flat_map(frame).collect();
        let raw = RawStack { ip: CODE + 16, sp: STACK, bp: STACK, bytes, ..RawStack::default() };
        StackUnwinder::new().unwind(&[Arc::new(image)], &raw)
    }

    #[test]
    fn frames_of_code_written_at_run_time_are_followed_to_the_end() {
        let all = [CODE + 0x100, CODE + 0x200, CODE + 0x300];
        for path in ["//anon", "/memfd:doublemapper", "/dev/zero"] {
            assert_eq!(walk(path, &all, 0), (vec![CODE + 16, all[0], all[1], all[2]], true), "{path}");
        }
        // A file that cannot be read, and the kernel's own code, could have been looked at.
        for path in ["/no/such/file", vdso::NAME] {
            assert_eq!(walk(path, &all, 0), (vec![CODE + 16], false), "{path}");
        }
    }

    #[test]
    fn stacks_of_go_begin_where_it_makes_them() {
        for name in
            ["runtime.goexit", "runtime.goexit.abi0", "runtime.mcall", "runtime.systemstack.abi0", "runtime.clone.abi0"]
        {
            assert!(begins_stack(name), "{name}");
        }
        for name in ["runtime.goexit0", "runtime.mstart", "main.mcall", "mcall", "runtime.futex.abi0", "clone"] {
            assert!(!begins_stack(name), "{name}");
        }
    }

    #[test]
    fn frame_pointers_that_lead_nowhere_end_a_walk() {
        let once = [CODE + 0x100, CODE + 0x200];
        for last in [STACK, STACK - 64, STACK + 3, u64::MAX, u64::MAX - 7, STACK + (1 << 40)] {
            let (frames, complete) = walk("//anon", &once, last);
            assert!(!complete && frames.len() <= 3 && frames[0] == CODE + 16, "{last:#x}: {frames:x?}");
        }
        // Data is not an address.
        assert_eq!(walk("//anon", &[CODE + 0x100, 1 << 50], 0), (vec![CODE + 16, CODE + 0x100], false));
    }
}
