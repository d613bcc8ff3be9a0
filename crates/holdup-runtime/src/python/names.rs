//! Functions by their code objects, read from a process's memory once each.

use rustc_hash::FxHashMap;

use super::{Interpreter, Memory, word};

/// Longest name that is kept, in characters; longer ones end in an ellipsis.
const NAME: usize = 200;
/// The same of a path.
const PATH: usize = 1000;
/// Functions that are told apart, and code objects that are remembered: a program may make as many as it likes.
const FUNCTIONS: usize = 1 << 16;
const CODES: usize = 1 << 18;
/// Processes whose memory is open at the same time.
const OPEN: usize = 16;

/// A function of Python.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its qualified name; before 3.11 the name alone. Any characters.
    pub name: String,
    /// Its file. Any characters.
    pub file: String,
    /// The line in which it begins.
    pub line: u32,
}

/// A code object that was read: where its strings were tells whether another one lies there by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    name: u64,
    file: u64,
    line: u32,
    number: u32,
}

/// The functions of all processes.
#[derive(Debug, Default)]
pub struct Names {
    /// By the address space's layout, which processes share that were forked from each other, and address.
    codes: FxHashMap<(u64, u64), Seen>,
    numbers: FxHashMap<Function, u32>,
    memory: Vec<(u32, Option<Memory>)>,
    /// Frames whose function could not be read: the process had ended, or what lay there was not a function.
    pub unread: u64,
    /// Frames that were asked for.
    pub asked: u64,
}

impl Names {
    /// The number of the function whose code object lies at `code` in `pid`, whose address space has this layout: from 1 on,
    /// and 0 if it cannot be known. The function is there if it is a new one.
    pub fn number(&mut self, python: &Interpreter, pid: u32, layout: u64, code: u64) -> (u32, Option<&Function>) {
        self.asked += 1;
        let known = self.codes.get(&(layout, code)).copied();
        // What has ended may have been forked from the one in which the interpreter was found, which has the same there.
        let mut found = None;
        for pid in [pid, python.pid] {
            found = found.or_else(|| Some((pid, seen(self.memory(pid)?, python, code)?)));
        }
        let Some((pid, head)) = found else {
            // What ran a moment ago is gone.
            self.unread += u64::from(known.is_none());
            return (known.map_or(0, |known| known.number), None);
        };
        if let Some(known) = known.filter(|known| Seen { number: known.number, ..head } == *known) {
            return (known.number, None);
        }
        let function = self.memory(pid).and_then(|memory| function(memory, python, head));
        let Some(function) = function.filter(|_| self.numbers.len() < FUNCTIONS) else {
            self.unread += 1;
            return (0, None);
        };
        if self.codes.len() >= CODES {
            self.codes.clear();
        }
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(function.clone()).or_insert(next);
        self.codes.insert((layout, code), Seen { number, ..head });
        let new = (number == next).then(|| self.numbers.get_key_value(&function).map(|(function, _)| function));
        (number, new.flatten())
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

/// What lies at `address`, if it says that it is a code object.
fn seen(memory: &Memory, python: &Interpreter, address: u64) -> Option<Seen> {
    let bytes = memory.read(address, python.code.size())?;
    if word(&bytes, 8)? != python.code_type {
        return None;
    }
    let line = word(&bytes, python.code.line)? as u32;
    Some(Seen { name: word(&bytes, python.code.name)?, file: word(&bytes, python.code.file)?, line, number: 0 })
}

fn function(memory: &Memory, python: &Interpreter, seen: Seen) -> Option<Function> {
    let (name, file) = (text(memory, python, seen.name, NAME)?, text(memory, python, seen.file, PATH)?);
    let line = if seen.line <= i32::MAX as u32 { seen.line } else { 0 };
    (!name.is_empty()).then_some(Function { name, file, line })
}

/// The first `limit` characters of a string object, which may say anything of itself.
fn text(memory: &Memory, python: &Interpreter, address: u64, limit: usize) -> Option<String> {
    let head = memory.read(address, 40)?;
    let (length, state) = (word(&head, 16)?, word(&head, 32)?);
    let (width, compact, ascii) = (state as usize >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !compact || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let shown = length.min(limit as u64) as usize;
    let start = if ascii { python.code.ascii } else { python.code.other };
    let bytes = memory.read(address.checked_add(start as u64)?, shown * width)?;
    let character = |bytes: &[u8]| {
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let mut text: String = bytes.chunks_exact(width).map(character).collect();
    if length > limit as u64 {
        text.push('…');
    }
    Some(text)
}
