//! Interpreters: where they keep the frames of the functions that they run, and what those are called.
//!
//! An [`Interpreter`] says where a process keeps its frames; the recorder's programs in the kernel walk them when they take a
//! stack, and [`Names`] reads the functions that they met. To add a language: a module that finds its interpreter and reads its
//! functions, and its lines in [`may_be`], [`Interpreter::find`] and `Code`.

mod names;

use holdup_trace::Image;

pub use names::{Met, Names, Spot};

use crate::frames::Head;
pub use crate::frames::{Entries, Frames, Function, Listed, OnStack, Place};
use crate::memory::Memory;
pub use crate::v8::pointers;
use crate::{php, python, ruby, v8};

/// An interpreter in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Where its frames are.
    pub place: Place,
    /// The process in which it was found.
    pub(crate) pid: u32,
    /// How functions are read.
    pub(crate) code: Code,
}

/// How a language keeps its functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Python(python::Code),
    Php,
    Ruby(ruby::Code),
    V8(v8::Code),
}

impl Code {
    /// What lies at `address`, if it says that it is a function.
    fn head(&self, memory: &Memory, address: u64) -> Option<Head> {
        match self {
            Code::Python(code) => code.head(memory, address),
            Code::Php => php::head(memory, address),
            Code::Ruby(code) => code.head(memory, address),
            Code::V8(code) => code.head(memory, address),
        }
    }

    /// Whether the function that was at `address` is there yet.
    fn is_still(&self, memory: &Memory, address: u64, head: Head) -> bool {
        match self {
            Code::V8(code) => code.is_still(memory, address, head),
            _ => self.head(memory, address) == Some(head),
        }
    }

    fn function(&self, memory: &Memory, head: Head) -> Option<Function> {
        match self {
            Code::Python(code) => code.function(memory, head),
            Code::Php => php::function(memory, head),
            Code::Ruby(code) => code.function(memory, head),
            Code::V8(code) => code.function(memory, head),
        }
    }
}

/// Whether a file of this path may be an interpreter. It is opened only then.
pub fn may_be(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    python::may_be(base) || php::may_be(base) || ruby::may_be(base) || v8::may_be(base)
}

impl Interpreter {
    /// The interpreter that `image` maps. `None` if it is not one.
    ///
    /// # Errors
    /// A sentence, if it is one whose frames cannot be read.
    pub fn find(image: &Image) -> Result<Option<Interpreter>, String> {
        let base = image.path.rsplit('/').next().unwrap_or(&image.path);
        let found = if php::may_be(base) {
            php::find(image)?.map(|place| (place, Code::Php))
        } else if ruby::may_be(base) {
            ruby::find(image)?.map(|(place, code)| (place, Code::Ruby(code)))
        } else if v8::may_be(base) {
            v8::find(image).map(|(place, code)| (place, Code::V8(code)))
        } else {
            python::find(image)?.map(|(place, code)| (place, Code::Python(code)))
        };
        Ok(found.map(|(place, code)| Interpreter { place, pid: image.pid, code }))
    }
}
