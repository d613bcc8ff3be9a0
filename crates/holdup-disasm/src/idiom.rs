//! What a hot loop does that could be done faster, where its instructions leave no doubt.
//!
//! Only innermost loops with one way back and no call are judged: of others one would have to know which way is taken. What
//! moves an address is followed by constant steps; an address that is made in any other way is not spoken of.

use super::purpose::Purpose;
use super::{Instruction, Kind, Memory, Operation, Registers};

/// Something that a loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idiom {
    /// Divides whole numbers, which takes the processor some tens of cycles.
    Divides {
        /// Whether the divisor is the same in every turn, so that a multiplication could stand for it.
        by_same: bool,
    },
    /// Reads from an address that it read in the turn before: no turn can begin before the last one's read has ended.
    Chases,
    /// Looks at elements of `bytes` each, one in each turn, until one is found.
    Scans {
        /// 1, 2, 4 or 8.
        bytes: u16,
    },
    /// Moves on by a cache line or more in each turn, and uses little of it.
    Strides {
        /// From turn to turn.
        bytes: u64,
        /// How many of them are used.
        used: u64,
    },
    /// Copies a byte in each turn.
    CopiesBytes,
    /// Counts the ones or the zeros of a word, one in each turn.
    CountsBits,
    /// Reads one place in memory in each turn, and changes it.
    Updates,
}

/// Of a processor's cache, in bytes; on some it is more, never less.
const LINE: u64 = 64;
/// A loop that uses more of a line than this makes some use of it.
const LITTLE: u64 = LINE / 4;

/// What can be said of a loop: the first that applies of these. O(instructions²), of which there are few.
pub(super) fn of(body: Vec<&Instruction>) -> Option<Idiom> {
    let others = body.iter().any(|c| matches!(c.kind, Kind::Call { .. } | Kind::Pause) || c.atomic.is_some());
    if others {
        return None;
    }
    let body = Body(body);
    body.divides()
        .or_else(|| body.chases())
        .or_else(|| body.strides())
        .or_else(|| body.scans())
        .or_else(|| body.copies())
        .or_else(|| body.counts_bits())
        .or_else(|| body.updates())
}

/// The instructions of a loop in order of address.
struct Body<'a>(Vec<&'a Instruction>);

/// Accesses by the same registers.
#[derive(Default)]
struct Stream {
    address: Option<Memory>,
    /// From turn to turn.
    advance: i64,
    /// All accesses together.
    used: u64,
    /// Cache lines within one advance, by number.
    lines: Vec<u64>,
}

impl<'a> Body<'a> {
    fn divides(&self) -> Option<Idiom> {
        let division = self.0.iter().find(|c| is_division(c))?;
        Some(Idiom::Divides { by_same: self.is_by_same(division) })
    }

    /// Whether the divisor is a register that nobody changes. (x86-64 divides rdx:rax; where it stands elsewhere is not known.)
    fn is_by_same(&self, division: &Instruction) -> bool {
        let implied = Registers::general(0).with(Registers::general(2));
        let divisor = division.reads.without(implied);
        let x86 = implied.without(division.writes).is_empty();
        x86 && division.memory.is_none() && !divisor.is_empty() && !divisor.meets(self.written())
    }

    fn chases(&self) -> Option<Idiom> {
        let next = |c: &&&Instruction| c.load && !c.store && self.address(c).each().any(|r| self.is_chain(r));
        self.0.iter().find(next).map(|_| Idiom::Chases)
    }

    /// Whether the register gets nothing but what was read through it, directly or by way of others of which the same is true.
    fn is_chain(&self, register: Registers) -> bool {
        let (mut chain, mut loads) = (register, false);
        loop {
            let mut grown = chain;
            for c in self.0.iter().filter(|c| c.writes.meets(chain)) {
                let one = c.writes.each().count() == 1;
                if c.operation != Operation::Move || !one || c.step.is_some() {
                    return false;
                }
                if !c.load {
                    // What nobody changes is no link: it would begin anew there.
                    if !c.reads.each().all(|r| self.written().meets(r)) {
                        return false;
                    }
                    grown = grown.with(c.reads);
                } else if self.address(c).meets(chain) {
                    loads = true;
                } else {
                    return false;
                }
            }
            if grown == chain {
                return loads;
            }
            chain = grown;
        }
    }

    fn strides(&self) -> Option<Idiom> {
        let wide = |s: &Stream| s.advance.unsigned_abs() >= LINE;
        let streams = self.streams()?;
        let mut wide = streams.iter().filter(|s| wide(s));
        // Two may be parts of the same lines.
        let (Some(one), None) = (wide.next(), wide.next()) else { return None };
        let (bytes, lines) = (one.advance.unsigned_abs(), one.lines.len() as u64);
        let little = one.used > 0 && one.used <= LITTLE * lines && bytes >= LINE * lines;
        little.then_some(Idiom::Strides { bytes, used: one.used })
    }

    fn scans(&self) -> Option<Idiom> {
        let streams = self.streams()?;
        let [one] = streams.as_slice() else { return None };
        let load = self.only(|c| c.load || c.store)?;
        let each = load.width.is_power_of_two() && one.advance.unsigned_abs() == u64::from(load.width);
        let general = self.0.iter().all(|c| c.reads.with(c.writes).is_general());
        let purpose = Purpose::of(self.0.clone());
        let stepped = purpose.carried().each().all(|r| self.step(r).is_some());
        let found = load.load && !load.store && load.width <= 8;
        (each && general && stepped && found && self.is_asked(load)).then_some(Idiom::Scans { bytes: load.width })
    }

    fn copies(&self) -> Option<Idiom> {
        let streams = self.streams()?;
        let [a, b] = streams.as_slice() else { return None };
        let load = self.only(|c| c.load)?;
        let store = self.only(|c| c.store)?;
        let value = store.reads.without(self.address(store));
        let same = self.only_writer(value).is_some_and(|w| w.address == load.address && w.writes == value);
        let bytes = load.width == 1 && store.width == 1 && a.advance == b.advance && a.advance.unsigned_abs() == 1;
        let rest = self.written().without(value).each().all(|r| self.step(r).is_some());
        (same && bytes && rest && load.address != store.address).then_some(Idiom::CopiesBytes)
    }

    /// Takes the lowest one, or sets the lowest zero (`x & x - 1`, `x | x + 1`), and does nothing with its place.
    fn counts_bits(&self) -> Option<Idiom> {
        let takes = |c: &&&Instruction| self.is_next_bit(c) && self.only_writer(c.writes).is_some();
        let bits = self.0.iter().find(takes)?;
        let beside = self.written().without(bits.writes.with(bits.reads));
        let counted = !beside.is_empty() && beside.each().all(|r| self.only_writer(r).is_some_and(is_count));
        let alone = self.0.iter().all(|c| !c.load && !c.store);
        (counted && alone && self.is_straight()).then_some(Idiom::CountsBits)
    }

    /// A sum in memory: no turn can begin before the last one's has been written, and other CPUs may have the line meanwhile.
    fn updates(&self) -> Option<Idiom> {
        let stays = |c: &Instruction| !c.on_stack && c.memory.is_some() && !self.address(c).meets(self.written());
        let is_read = |store: &Instruction| self.0.iter().any(|c| c.load && c.memory == store.memory);
        let changes = self.0.iter().any(|c| c.store && stays(c) && is_read(c));
        (changes && self.is_straight()).then_some(Idiom::Updates)
    }

    /// `x &= x - 1` or `x |= x + 1`, in one instruction or two.
    fn is_next_bit(&self, c: &Instruction) -> bool {
        let neighbour = match c.operation {
            Operation::ClearLowest => return c.reads == c.writes,
            Operation::And => -1,
            Operation::Or => 1,
            _ => return false,
        };
        let made = self.only_writer(c.reads.without(c.writes));
        let address = made.filter(|m| m.operation == Operation::Address).and_then(|m| m.memory);
        address.is_some_and(|m| m.displacement == neighbour && m.index.is_none() && m.registers() == c.writes)
    }

    /// Whether a branch is decided by what `load` reads: it stands behind a comparison with that.
    fn is_asked(&self, load: &Instruction) -> bool {
        let compares = |c: &Instruction| {
            let read = c.address == load.address || c.memory.is_none() && c.reads.meets(load.writes);
            read && c.writes.is_empty()
        };
        let branches = |c: &Instruction| matches!(c.kind, Kind::Branch { conditional: true, .. });
        self.0.windows(2).any(|pair| compares(pair[0]) && branches(pair[1]))
    }

    /// All accesses, by the registers of their addresses. `None` where turns differ, or an address moves by no constant.
    fn streams(&self) -> Option<Vec<Stream>> {
        if !self.is_straight() {
            return None;
        }
        let mut streams: Vec<Stream> = Vec::new();
        for c in self.0.iter().filter(|c| c.load || c.store) {
            let memory = c.memory.filter(|m| !m.thread_local && c.width > 0)?;
            let advance = self.advance(&memory)?;
            let at = match streams.iter().position(|s| alike_address(s, &memory)) {
                Some(at) => at,
                None => {
                    streams.push(Stream { address: Some(memory), advance, ..Stream::default() });
                    streams.len() - 1
                }
            };
            streams[at].add(c, self.moved(&memory, c));
        }
        Some(streams)
    }

    /// By how much the address moves from turn to turn.
    fn advance(&self, memory: &Memory) -> Option<i64> {
        let scaled = |(register, scale): (Registers, i64)| match register.meets(self.written()) {
            true => self.step(register)?.checked_mul(scale),
            false => Some(0),
        };
        parts(memory).map(scaled).try_fold(0_i64, |sum, part| sum.checked_add(part?))
    }

    /// By how much it has moved already in this turn, when `c` accesses it.
    fn moved(&self, memory: &Memory, c: &Instruction) -> i64 {
        let before = |register| self.only_writer(register).filter(|w| w.address < c.address);
        let moves = parts(memory).filter_map(|(register, scale)| before(register)?.step?.checked_mul(scale));
        moves.fold(memory.displacement, i64::wrapping_add)
    }

    /// Whether all instructions are done in every turn: neighbours, of which none jumps forward within the loop.
    fn is_straight(&self) -> bool {
        let Some(first) = self.0.first() else { return false };
        let inside = |target: u64| self.0.iter().any(|c| c.address == target);
        let within = |c: &Instruction| matches!(c.kind, Kind::Branch { target: Some(t), .. } if inside(t));
        let known = self.0.iter().all(|c| !matches!(c.kind, Kind::Branch { target: None, .. }));
        let back = self
            .0
            .iter()
            .filter(|c| within(c))
            .all(|c| matches!(c.kind, Kind::Branch { target: Some(t), .. } if t == first.address));
        let once = self.0.iter().filter(|c| within(c)).count() == 1 && self.0.last().is_some_and(|c| within(c));
        known && back && once && self.0.windows(2).all(|pair| pair[0].end() == pair[1].address)
    }

    fn written(&self) -> Registers {
        self.0.iter().fold(Registers::NONE, |all, c| all.with(c.writes))
    }

    /// What is added to a register in each turn, if nothing else happens to it.
    fn step(&self, register: Registers) -> Option<i64> {
        self.only_writer(register)?.step
    }

    /// The registers of an address.
    fn address(&self, c: &Instruction) -> Registers {
        c.memory.map_or(Registers::NONE, |m| m.registers())
    }

    /// The instruction that changes one of `registers`, if there is one only.
    fn only_writer(&self, registers: Registers) -> Option<&'a Instruction> {
        self.only(|c| c.writes.meets(registers))
    }

    fn only(&self, is: impl Fn(&Instruction) -> bool) -> Option<&'a Instruction> {
        let mut all = self.0.iter().copied().filter(|c| is(c));
        all.next().filter(|_| all.next().is_none())
    }
}

impl Stream {
    fn add(&mut self, c: &Instruction, offset: i64) {
        self.used += u64::from(c.width);
        let advance = self.advance.unsigned_abs();
        if let Ok(advance) = i64::try_from(advance.max(1)) {
            let line = offset.rem_euclid(advance).unsigned_abs() / LINE;
            if !self.lines.contains(&line) {
                self.lines.push(line);
            }
        }
    }
}

fn alike_address(stream: &Stream, memory: &Memory) -> bool {
    stream.address.is_some_and(|a| (a.base, a.index, a.scale) == (memory.base, memory.index, memory.scale))
}

/// The registers of an address, and by what each is multiplied.
fn parts(memory: &Memory) -> impl Iterator<Item = (Registers, i64)> {
    let base = Memory { index: None, ..*memory }.registers();
    let index = Memory { base: None, ..*memory }.registers();
    [(base, 1), (index, i64::from(memory.scale))].into_iter().filter(|(r, _)| !r.is_empty())
}

/// Whether it moves a register, of any width, on by a constant.
fn is_count(c: &Instruction) -> bool {
    c.reads == c.writes && c.operation == Operation::Add
}

/// Whether it divides whole numbers. (Compilers multiply instead where the divisor is a constant.)
fn is_division(c: &Instruction) -> bool {
    c.operation == Operation::Divide
}
