//! What a short loop is for: looking at one place until somebody changes it, or working its way through memory.
//!
//! Both read and branch. What tells them apart is what each turn hands to the next. Who waits reads the same address
//! again and decides by what is there; at most a counter limits how often. Who works moves a pointer, sums, or follows
//! a list, whose next address is what was read last:
//!
//! ```text
//!     again: mov (%rdi),%eax      looks            again: mov (%rdi),%rdi      walks: %rdi comes from %rdi
//!            test %eax,%eax                               test %rdi,%rdi
//!            je  again                                    jne again
//! ```
//!
//! Values are followed once around the loop in the order of addresses, as if no branch inside were taken: short loops
//! have hardly any.

use super::{Atomic, Instruction, Kind, Operation, Registers};

/// How far before a branch the comparison may stand.
const NEAR: usize = 3;

/// What the registers of a loop do.
pub(super) struct Purpose<'a> {
    body: Vec<&'a Instruction>,
    /// Registers whose value depends on what it was a turn before.
    carried: Registers,
    /// By instruction: what its registers hold before it.
    before: Vec<Values>,
}

/// Which registers hold what.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    /// Something made from a carried register.
    carried: Registers,
    /// Something made from what was read in this turn.
    looked: Registers,
}

impl<'a> Purpose<'a> {
    /// O(registers × instructions).
    pub(super) fn of(body: Vec<&'a Instruction>) -> Self {
        let written = body.iter().fold(Registers::NONE, |all, c| all.with(c.writes));
        let comes_back = |r: &Registers| turn(&body, Values { carried: *r, ..Values::default() }).1.carried.meets(*r);
        let carried = written.each().filter(comes_back).fold(Registers::NONE, Registers::with);
        // The second turn knows what the first has read.
        let (_, once) = turn(&body, Values { carried, looked: Registers::NONE });
        let (before, _) = turn(&body, Values { carried: carried.with(once.carried), ..once });
        Purpose { body, carried, before }
    }

    /// Whether each turn only reads the same places again, and goes on as long as it finds the same there.
    pub(super) fn looks(&self) -> bool {
        let quiet = |c: &&Instruction| !c.store && c.atomic.is_none() && !is_call(c);
        self.body.iter().all(quiet) && self.is_decided_by_memory() && self.is_idle()
    }

    /// Whether it tries to put a fixed value where somebody else's is, and does nothing but that: taking a lock.
    /// (An exchange whose new value is made from the old one adds or links something: that is work.)
    pub(super) fn acquires(&self) -> bool {
        let mut tries = self.at().filter(|(c, _)| c.store && c.atomic.is_some()).peekable();
        let other = self.body.iter().any(|c| c.store && c.atomic.is_none() && !c.on_stack);
        !other
            && tries.peek().is_some()
            && tries.all(|(c, values)| is_exchange_of_constant(c, values))
            && self.is_decided_by_memory()
            && self.is_idle()
    }

    /// Whether it does nothing that anybody would want to have done.
    pub(super) fn is_quiet(&self) -> bool {
        let acts = |c: &Instruction| is_call(c) || (c.store && c.atomic.is_none() && !c.on_stack);
        !self.body.iter().any(|c| acts(c)) && self.is_idle()
    }

    /// Registers whose value depends on what it was a turn before.
    pub(super) const fn carried(&self) -> Registers {
        self.carried
    }

    fn at(&self) -> impl Iterator<Item = (&'a Instruction, Values)> + '_ {
        self.body.iter().copied().zip(self.before.iter().copied())
    }

    /// Whether every address is the same in each turn, and nothing but a count goes from turn to turn.
    fn is_idle(&self) -> bool {
        let moves = |c: &Instruction, values: Values| {
            (c.load || c.store) && c.memory.is_some_and(|m| m.registers().meets(values.carried))
        };
        !self.at().any(|(c, values)| moves(c, values)) && self.carried.each().all(|r| self.counts(r))
    }

    /// Whether a register only limits the number of turns: one instruction changes it, and a branch asks for it.
    fn counts(&self, register: Registers) -> bool {
        let writes = |c: &Instruction| c.writes.meets(register) && c.atomic.is_none();
        let mut writers = self.body.iter().enumerate().filter(|(_, c)| writes(c));
        // What the exchange itself leaves there is what it found.
        let Some((at, one)) = writers.next() else { return true };
        let branches = |c: &&Instruction| matches!(c.kind, Kind::Branch { conditional: true, .. });
        let asked = self.body.get(at + 1).is_some_and(branches)
            || self.body.iter().any(|c| c.writes.is_empty() && c.reads.meets(register) && c.memory.is_none());
        writers.next().is_none() && !one.load && asked
    }

    /// Whether a branch is decided by what was read in this turn.
    fn is_decided_by_memory(&self) -> bool {
        let asks = |at: usize| {
            let (c, values) = (self.body[at], self.before[at]);
            let compares = c.load && c.writes.is_empty() && !c.reads.meets(values.carried);
            let tries =
                c.store && c.atomic.is_some_and(|a| a == Atomic::CompareExchange) || c.operation == Operation::SetBit;
            compares || tries || (c.reads.meets(values.looked) && !c.reads.meets(values.carried) && !c.load)
        };
        let branches = |at: &usize| matches!(self.body[*at].kind, Kind::Branch { conditional: true, .. });
        (0..self.body.len()).filter(branches).any(|at| (at.saturating_sub(NEAR)..=at).any(asks))
    }
}

/// Follows the values through one turn: what they are before each instruction, and at the end.
fn turn(body: &[&Instruction], mut values: Values) -> (Vec<Values>, Values) {
    let mut before = Vec::with_capacity(body.len());
    for c in body {
        before.push(values);
        let pass = |of: Registers, is: bool| if is { of.with(c.writes) } else { of.without(c.writes) };
        let carried = c.reads.meets(values.carried);
        let looked = c.load || c.reads.meets(values.looked);
        values = Values { carried: pass(values.carried, carried), looked: pass(values.looked, looked) };
    }
    (before, values)
}

/// Whether the new value does not come from the old one.
fn is_exchange_of_constant(exchange: &Instruction, values: Values) -> bool {
    let address = exchange.memory.map_or(Registers::NONE, |m| m.registers());
    // Of a compare-and-exchange what it expects is overwritten: it may well be what was found.
    let expected = if exchange.atomic == Some(Atomic::CompareExchange) { exchange.writes } else { Registers::NONE };
    let new = exchange.reads.without(address).without(expected);
    let replaces = exchange.atomic != Some(Atomic::ReadModifyWrite)
        || matches!(exchange.operation, Operation::Exchange | Operation::SetBit);
    replaces && !new.meets(values.looked) && !new.meets(values.carried)
}

fn is_call(c: &Instruction) -> bool {
    matches!(c.kind, Kind::Call { .. })
}
