//! Functions by where they lie, read from a process's memory once each.

use rustc_hash::FxHashMap;

use super::Interpreter;
use crate::frames::{Function, Head};
use crate::memory::Memory;
use crate::python::lines;

/// Functions that are told apart, each of its lines for one, and places that are remembered: a program may make as many as it likes.
const FUNCTIONS: usize = 1 << 16;
const PLACES: usize = 1 << 18;
/// Bytes of what was read that are remembered.
const BYTES: usize = 16 << 20;
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
    /// By layout and address, and how many bytes those are.
    read: FxHashMap<(u64, u64), Read>,
    bytes: usize,
    /// By layout and what its place held: closures of one function lie in many places.
    functions: FxHashMap<(u64, Head), Function>,
    numbers: FxHashMap<Function, u32>,
    memory: Vec<(u32, Option<Memory>)>,
    /// What was met since memory was opened, by process: it is read later than it ran in any case.
    just: FxHashMap<(u32, Spot), (u32, Option<Head>)>,
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

/// What was read of a function.
#[derive(Debug)]
struct Read {
    head: Head,
    begins: Function,
    /// The table of its lines; empty if there is none.
    lines: Vec<u8>,
}

impl Read {
    fn of(memory: &Memory, head: Head, begins: Function) -> Read {
        let lines = (head.lines != 0).then(|| lines::read(memory, head.lines)).flatten().unwrap_or_default();
        Read { head, begins, lines }
    }

    /// The function in the line of its `instruction`-th unit of two bytes.
    fn at(&self, instruction: Option<u16>) -> Function {
        let line = instruction.and_then(|at| lines::find(&self.lines, self.begins.line, at.into()));
        Function { line: line.unwrap_or(self.begins.line), ..self.begins.clone() }
    }

    fn size(&self) -> usize {
        self.begins.name.len() + self.begins.file.len() + self.lines.len()
    }
}

impl Names {
    /// What runs at `spot` in `pid`, whose address space has this layout.
    pub fn meet(&mut self, of: &Interpreter, pid: u32, layout: u64, spot: Spot) -> Met<'_> {
        if let Some(&(number, head)) = self.just.get(&(pid, spot)) {
            return Met::again(number, head);
        }
        let known = self.places.get(&(layout, spot)).copied();
        let mut is_still = |head| self.memory(pid).is_some_and(|memory| of.code.is_still(memory, spot.code(), head));
        if let Some((head, number)) = known.filter(|(head, _)| is_still(*head)) {
            self.just.insert((pid, spot), (number, Some(head)));
            return Met::again(number, Some(head));
        }
        // What has ended may have been forked from the one in which the interpreter was found, which has the same there.
        let mut live = None;
        for pid in std::iter::once(pid).chain(Some(of.pid).filter(|other| *other != pid)) {
            live = live.or_else(|| Some((pid, of.code.head(self.memory(pid)?, spot.code())?)));
        }
        // Another function may lie there by now. What is gone was the one that lay there last.
        let is_there = |head: Head| live.is_none_or(|(_, now)| now == head);
        if let Some(&(head, number)) = self.places.get(&(layout, spot)).filter(|(head, _)| is_there(*head)) {
            return Met::again(number, Some(head));
        }
        let place = (layout, spot.code());
        if !self.read.get(&place).is_some_and(|read| is_there(read.head)) {
            let read = live.and_then(|(pid, head)| self.read(of, pid, layout, head));
            let Some(read) = read else {
                let head = live.map(|(_, head)| head);
                self.just.insert((pid, spot), (0, head));
                return Met::again(0, head);
            };
            self.keep(place, read);
        }
        self.number((layout, spot))
    }

    /// What lies there, of which the process's memory has told this much.
    fn read(&mut self, of: &Interpreter, pid: u32, layout: u64, head: Head) -> Option<Read> {
        let known = self.functions.get(&(layout, head)).cloned();
        let is_new = known.is_none();
        let memory = self.memory(pid)?;
        let begins = known.or_else(|| of.code.function(memory, head))?;
        let read = Read::of(memory, head, begins);
        if is_new {
            if self.functions.len() >= FUNCTIONS {
                self.functions.clear();
            }
            self.functions.insert((layout, head), read.begins.clone());
        }
        Some(read)
    }

    fn keep(&mut self, place: (u64, u64), read: Read) {
        if self.bytes >= BYTES || self.read.len() >= FUNCTIONS {
            self.read.clear();
            self.bytes = 0;
        }
        self.bytes += read.size();
        let before = self.read.insert(place, read);
        self.bytes -= before.map_or(0, |before| before.size());
    }

    /// Of a function that was read.
    fn number(&mut self, place: (u64, Spot)) -> Met<'_> {
        let (layout, spot) = place;
        let Some(read) = self.read.get(&(layout, spot.code())) else { return Met::again(0, None) };
        let (head, function) = (read.head, read.at(spot.instruction()));
        let is_full = self.numbers.len() >= FUNCTIONS && !self.numbers.contains_key(&function);
        if is_full {
            return Met::again(0, Some(head));
        }
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(function.clone()).or_insert(next);
        self.places.insert(place, (head, number));
        let new = (number == next).then(|| self.numbers.get_key_value(&function).map(|(function, _)| function));
        Met { new: new.flatten(), ..Met::again(number, Some(head)) }
    }

    /// All functions so far, with their numbers, in no order.
    pub fn unsorted(&self) -> impl Iterator<Item = (u32, &Function)> {
        self.numbers.iter().map(|(function, &number)| (number, function))
    }

    /// Closes the memory of all processes: numbers are given again, and other functions may lie where some did.
    pub fn close(&mut self) {
        self.memory.clear();
        self.just.clear();
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
