//! Functions by where they lie, read from a process's memory once each.

use rustc_hash::FxHashMap;

use super::Interpreter;
use crate::frames::{Function, Head};
use crate::memory::Memory;

/// Functions that are told apart, and places that are remembered: a program may make as many as it likes.
const FUNCTIONS: usize = 1 << 16;
const PLACES: usize = 1 << 18;
/// Processes whose memory is open at the same time.
const OPEN: usize = 16;

/// Where a frame runs: the function's address, and in the bits above it which unit of two bytes of it, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spot(u64);

impl Spot {
    const ADDRESS: u64 = (1 << 48) - 1;

    /// Of a word as the programs in the kernel leave it, without what else it tells.
    pub fn of(word: u64) -> Spot {
        Spot(word)
    }

    fn code(self) -> u64 {
        self.0 & Spot::ADDRESS
    }

    fn instruction(self) -> Option<u16> {
        ((self.0 >> 48) as u16).checked_sub(1)
    }
}

/// The functions of all processes.
#[derive(Debug, Default)]
pub struct Names {
    /// By the address space's layout, which processes share that were forked from each other.
    places: FxHashMap<(u64, Spot), (Head, u32)>,
    numbers: FxHashMap<Function, u32>,
    memory: Vec<(u32, Option<Memory>)>,
}

/// A function that was met in a frame.
#[derive(Debug)]
pub struct Met<'n> {
    /// From 1 on; 0 if it cannot be known: the process has ended, or what lies there is no function.
    pub number: u32,
    /// Whether the interpreter evaluates it; else it is compiled into the program.
    pub evaluated: bool,
    /// What it is, if it was not met before.
    pub new: Option<&'n Function>,
}

impl Met<'_> {
    fn again(number: u32, head: Option<Head>) -> Self {
        Met { number, evaluated: head.is_none_or(|head| head.is_evaluated()), new: None }
    }
}

impl Names {
    /// What runs at `spot` in `pid`, whose address space has this layout.
    pub fn meet(&mut self, of: &Interpreter, pid: u32, layout: u64, spot: Spot) -> Met<'_> {
        let known = self.places.get(&(layout, spot)).copied();
        // What has ended may have been forked from the one in which the interpreter was found, which has the same there.
        let mut found = None;
        for pid in std::iter::once(pid).chain(Some(of.pid).filter(|other| *other != pid)) {
            found = found.or_else(|| Some((pid, of.code.head(self.memory(pid)?, spot.code())?)));
        }
        let Some((pid, head)) = found else {
            // What ran a moment ago is gone.
            return known.map_or(Met::again(0, None), |(head, number)| Met::again(number, Some(head)));
        };
        // Another one may lie there by now.
        if let Some((_, number)) = known.filter(|(known, _)| *known == head) {
            return Met::again(number, Some(head));
        }
        let function = self.memory(pid).and_then(|memory| of.code.function(memory, head, spot.instruction()));
        let Some(function) = function.filter(|_| self.numbers.len() < FUNCTIONS) else {
            return Met::again(0, Some(head));
        };
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(function.clone()).or_insert(next);
        self.places.insert((layout, spot), (head, number));
        let new = (number == next).then(|| self.numbers.get_key_value(&function).map(|(function, _)| function));
        Met { new: new.flatten(), ..Met::again(number, Some(head)) }
    }

    /// All functions so far, with their numbers, in no order.
    pub fn unsorted(&self) -> impl Iterator<Item = (u32, &Function)> {
        self.numbers.iter().map(|(function, &number)| (number, function))
    }

    /// Closes the memory of all processes: numbers are given again.
    pub fn close(&mut self) {
        self.memory.clear();
    }

    fn memory(&mut self, pid: u32) -> Option<&Memory> {
        let at = self.memory.iter().position(|(open, _)| *open == pid).unwrap_or_else(|| {
            if self.memory.len() >= OPEN {
                self.memory.remove(0);
            }
            self.memory.push((pid, Memory::of(pid)));
            self.memory.len() - 1
        });
        self.memory[at].1.as_ref()
    }
}
