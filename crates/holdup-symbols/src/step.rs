//! One step from a frame to its caller, by call frame information.

use std::time::Duration;

use gimli::{
    CfaRule, Encoding, Evaluation, EvaluationResult, Expression, Location, Register, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, UnwindTableRow, Value, X86_64,
};
use rustc_hash::FxHashMap;

use crate::cfi::{Cfi, Entry, Slice};
use holdup_disasm::Arch;

/// AArch64's frame pointer, link register and stack pointer in DWARF's numbers.
const A64_FP: Register = Register(29);
const A64_LR: Register = Register(30);
const A64_SP: Register = Register(31);

/// Rules kept; beyond, all are forgotten. A rule has 40 bytes.
const CACHE_LIMIT: usize = 1 << 20;
/// Steps of one expression that are evaluated.
const EXPRESSION_LIMIT: u32 = 1000;
/// What finding or evaluating a step may take at no cost to its file: stacks come without end, and most steps take less.
const FREE: Duration = Duration::from_micros(10);

/// The copied part of a stack.
pub(crate) struct Stack<'a> {
    /// The process.
    pub pid: u32,
    pub start: u64,
    pub bytes: &'a [u8],
    /// The word below `start`.
    pub below: Option<u64>,
}

impl Stack<'_> {
    /// The word at an address, if it was copied.
    pub fn read(&self, address: u64) -> Option<u64> {
        if address.checked_add(8) == Some(self.start) {
            return self.below;
        }
        crate::bytes::u64_at(self.bytes, usize::try_from(address.checked_sub(self.start)?).ok()?)
    }
}

/// What is known of a frame's registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    pub arch: Arch,
    pub ip: u64,
    pub sp: u64,
    /// rbp or x29.
    pub bp: u64,
    /// Whether `bp` was found by following the chain of frame pointers: a 0 is its end.
    pub linked: bool,
    /// x30, in the frames where it still holds the return address.
    pub lr: Option<u64>,
    /// Which bits of a code address count: the others can be a pointer authentication code.
    pub mask: u64,
}

impl Registers {
    fn get(&self, register: Register) -> Option<u64> {
        match (self.arch, register) {
            (Arch::X86_64, X86_64::RA) => Some(self.ip),
            (Arch::X86_64, X86_64::RSP) | (Arch::Aarch64, A64_SP) => Some(self.sp),
            (Arch::X86_64, X86_64::RBP) | (Arch::Aarch64, A64_FP) => Some(self.bp),
            (Arch::Aarch64, A64_LR) => self.lr,
            _ => None,
        }
    }

    /// The caller, if this function keeps a frame pointer.
    pub fn by_frame_pointer(&self, stack: &Stack) -> Option<Registers> {
        if self.bp < self.sp || !self.bp.is_multiple_of(8) {
            return None;
        }
        let (bp, ip) = (stack.read(self.bp)?, stack.read(self.bp + 8)?);
        Some(Registers { ip: self.code(ip), sp: self.bp + 16, bp, linked: true, lr: None, ..*self })
    }

    fn code(&self, address: u64) -> u64 {
        if self.arch == Arch::Aarch64 { address & self.mask } else { address }
    }
}

/// Which register an address counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Sp,
    Bp,
}

/// The common form: everything lies at fixed distances from the canonical frame address (CFA).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    base: Base,
    /// CFA = base + this.
    cfa: i32,
    /// Where the return address lies from the CFA; `None`: in the link register.
    ra: Option<i32>,
    /// Where the caller's frame pointer lies from the CFA; `None`: it is unchanged.
    bp: Option<i32>,
}

impl Rule {
    /// The caller's registers.
    pub fn apply(&self, regs: &Registers, stack: &Stack, leaf: bool) -> Option<Registers> {
        let base = match self.base {
            Base::Sp => regs.sp,
            Base::Bp => regs.bp,
        };
        let cfa = base.checked_add_signed(i64::from(self.cfa))?;
        let read = |offset: i32| stack.read(cfa.checked_add_signed(i64::from(offset))?);
        let ip = match self.ra {
            Some(offset) => read(offset)?,
            None => regs.lr?,
        };
        let bp = match self.bp.map(read) {
            None => regs.bp,
            Some(Some(bp)) => bp,
            // In an epilogue the slot can lie below the stack pointer, already popped and not copied.
            Some(None) if leaf => regs.bp,
            Some(None) => return None,
        };
        Some(Registers { ip: regs.code(ip), sp: cfa, bp, linked: false, lr: None, ..*regs })
    }
}

/// What call frame information says of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Follow the rule; `signal`: the caller was interrupted, it made no call.
    Rule { rule: Rule, signal: bool },
    /// It is a program that has to be evaluated each time.
    Program,
    /// This function has no caller.
    End,
    /// Nothing.
    Missing,
}

impl Step {
    /// Whether the caller follows from the stack alone, for two leaves of which `same_pointer` tells whether they have the same frame pointer.
    pub fn is_told_by_the_stack(&self, same_pointer: bool) -> bool {
        match self {
            Step::Rule { rule, .. } => rule.base == Base::Sp || same_pointer,
            Step::End => true,
            Step::Program | Step::Missing => false,
        }
    }
}

/// Steps by file and address.
#[derive(Default)]
pub(crate) struct Steps {
    known: FxHashMap<(usize, u64), Step>,
    context: Box<UnwindContext<usize>>,
}

impl Steps {
    /// The step at an address of the file with this index.
    pub fn get(&mut self, object: usize, vaddr: u64, cfi: &Cfi) -> Step {
        if let Some(&step) = self.known.get(&(object, vaddr)) {
            return step;
        }
        if self.known.len() >= CACHE_LIMIT {
            self.known.clear();
        }
        let step = cfi.meter().timed(FREE, || self.find(vaddr, cfi)).unwrap_or(Step::Missing);
        self.known.insert((object, vaddr), step);
        step
    }

    fn find(&mut self, vaddr: u64, cfi: &Cfi) -> Step {
        match cfi.entry(vaddr) {
            None => Step::Missing,
            Some(Entry::Eh(section, fde)) => {
                let row = fde.unwind_info_for_address(&section, cfi.bases(), &mut self.context, vaddr);
                row.map_or(Step::Missing, |row| translate(row, fde.is_signal_trampoline(), cfi.arch()))
            }
            Some(Entry::Debug(section, fde)) => {
                let row = fde.unwind_info_for_address(&section, cfi.bases(), &mut self.context, vaddr);
                row.map_or(Step::Missing, |row| translate(row, fde.is_signal_trampoline(), cfi.arch()))
            }
        }
    }

    /// Evaluates the rules at an address in full. The caller, and whether a signal interrupted it.
    pub fn evaluate(&mut self, vaddr: u64, cfi: &Cfi, regs: &Registers, stack: &Stack) -> Option<(Registers, bool)> {
        cfi.meter().timed(FREE, || self.run(vaddr, cfi, regs, stack)).flatten()
    }

    fn run(&mut self, vaddr: u64, cfi: &Cfi, regs: &Registers, stack: &Stack) -> Option<(Registers, bool)> {
        match cfi.entry(vaddr)? {
            Entry::Eh(section, fde) => {
                let row = fde.unwind_info_for_address(&section, cfi.bases(), &mut self.context, vaddr).ok()?;
                let next = Program { section: &section, encoding: fde.cie().encoding(), regs, stack }.run(row)?;
                Some((next, fde.is_signal_trampoline()))
            }
            Entry::Debug(section, fde) => {
                let row = fde.unwind_info_for_address(&section, cfi.bases(), &mut self.context, vaddr).ok()?;
                let next = Program { section: &section, encoding: fde.cie().encoding(), regs, stack }.run(row)?;
                Some((next, fde.is_signal_trampoline()))
            }
        }
    }
}

/// DWARF's numbers of (stack pointer, frame pointer, return address).
fn numbers(arch: Arch) -> (Register, Register, Register) {
    match arch {
        Arch::X86_64 => (X86_64::RSP, X86_64::RBP, X86_64::RA),
        Arch::Aarch64 => (A64_SP, A64_FP, A64_LR),
    }
}

fn translate(row: &UnwindTableRow<usize>, signal: bool, arch: Option<Arch>) -> Step {
    let Some(arch) = arch else { return Step::Missing };
    let (sp, fp, ra) = numbers(arch);
    let offset = |rule: Option<RegisterRule<usize>>| match rule {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Some(None),
        Some(RegisterRule::Offset(offset)) => i32::try_from(offset).ok().map(Some),
        Some(_) => None,
    };
    let ra_rule = row.register(ra);
    match (arch, &ra_rule) {
        (_, Some(RegisterRule::Undefined)) | (Arch::X86_64, None) => return Step::End,
        _ => {}
    }
    let &CfaRule::RegisterAndOffset { register, offset: cfa } = row.cfa() else { return Step::Program };
    let base = match register {
        r if r == sp => Base::Sp,
        r if r == fp => Base::Bp,
        _ => return Step::Program,
    };
    let (Ok(cfa), Some(ra), Some(bp)) = (i32::try_from(cfa), offset(ra_rule), offset(row.register(fp))) else {
        return Step::Program;
    };
    if ra.is_none() && arch == Arch::X86_64 {
        return Step::Program;
    }
    Step::Rule { rule: Rule { base, cfa, ra, bp }, signal }
}

/// The rules of a row, with what they work on.
struct Program<'a, S> {
    section: &'a S,
    encoding: Encoding,
    regs: &'a Registers,
    stack: &'a Stack<'a>,
}

impl<'a, S: UnwindSection<Slice<'a>>> Program<'a, S> {
    fn run(&self, row: &UnwindTableRow<usize>) -> Option<Registers> {
        let (sp, fp, ra) = numbers(self.regs.arch);
        let cfa = match row.cfa() {
            &CfaRule::RegisterAndOffset { register, offset } => self.regs.get(register)?.checked_add_signed(offset)?,
            CfaRule::Expression(e) => self.expression(e, None)?,
        };
        let value = |register, same| match row.register(register) {
            None => same,
            Some(rule) => self.register(&rule, cfa, same),
        };
        let ip = self.regs.code(value(ra, self.regs.get(ra))?);
        let bp = value(fp, Some(self.regs.bp)).unwrap_or(self.regs.bp);
        // A signal frame tells where the stack was; elsewhere it is where the CFA says.
        let new_sp = value(sp, None).unwrap_or(cfa);
        let lr = if self.regs.arch == Arch::Aarch64 { value(A64_LR, None) } else { None };
        Some(Registers { ip, sp: new_sp, bp, linked: false, lr, ..*self.regs })
    }

    fn register(&self, rule: &RegisterRule<usize>, cfa: u64, same: Option<u64>) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => same,
            RegisterRule::Offset(offset) => self.stack.read(cfa.checked_add_signed(*offset)?),
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(*offset),
            RegisterRule::Register(register) => self.regs.get(*register),
            RegisterRule::Expression(e) => self.stack.read(self.expression(e, Some(cfa))?),
            RegisterRule::ValExpression(e) => self.expression(e, Some(cfa)),
            _ => None,
        }
    }

    fn expression(&self, e: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        let Expression(bytes) = e.get(self.section).ok()?;
        let mut evaluation = Evaluation::new(bytes, self.encoding);
        evaluation.set_max_iterations(EXPRESSION_LIMIT);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.regs.get(register)?);
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let word = self.stack.read(address)?;
                    let value = if size < 8 { word & ((1 << (8 * u32::from(size))) - 1) } else { word };
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_below_is_read_where_it_was_copied() {
        let bytes: Vec<u8> = [5_u64, 6].into_iter().flat_map(u64::to_le_bytes).collect();
        let read = |below, address| Stack { pid: 1, start: 0x1000, bytes: &bytes, below }.read(address);
        assert_eq!([0xff8, 0x1000, 0x1008].map(|at| read(Some(4), at)), [Some(4), Some(5), Some(6)]);
        assert_eq!((read(None, 0xff8), read(Some(4), 0xff0), read(Some(4), u64::MAX)), (None, None, None));
    }
}
