//! The answer as data: `holdup.disasm/1`.

use serde::Serialize;

use crate::idiom::IdiomKind;

/// An annotated function.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Annotated {
    /// `holdup.disasm/1`.
    pub schema: &'static str,
    /// The trace.
    pub trace: String,
    /// The function, demangled.
    pub function: String,
    /// The file that holds its code.
    pub module: String,
    /// The machine's architecture.
    pub arch: String,
    /// Samples in this function itself.
    pub samples: u64,
    /// Samples of the whole trace.
    pub samples_total: u64,
    /// The function's share of them.
    pub share: f64,
    /// Other functions that match, those with most samples first.
    pub others: Vec<Other>,
    /// Whether the code is in the trace; else `instructions` are the addresses with samples.
    pub has_code: bool,
    /// By address.
    pub instructions: Vec<InstructionRow>,
    /// Short loops, by their first address.
    pub loops: Vec<LoopFacts>,
    /// What to know for reading this.
    pub notes: Vec<String>,
}

/// Another function that matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Other {
    /// The function.
    pub function: String,
    /// Its module.
    pub module: String,
    /// Samples in it.
    pub samples: u64,
}

/// One instruction, or one address where the code is not known.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct InstructionRow {
    /// Its address in one of the processes that ran it.
    pub address: String,
    /// Distance from the function's start.
    pub offset: u64,
    /// Disassembled; empty if the code is not in the trace.
    pub text: String,
    /// Samples on it.
    pub samples: u64,
    /// Their share of the function's.
    pub share: f64,
    /// `file.c:12`; empty if unknown.
    pub source: String,
    /// The file's whole path.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// The text of that line, where the file is at hand.
    pub source_text: String,
    /// The function inlined here; empty if none is.
    pub inlined: String,
    /// Indices of the loops that it is part of.
    pub loops: Vec<usize>,
}

/// A short loop.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct LoopFacts {
    /// Its first address.
    pub from: String,
    /// Its last instruction.
    pub to: String,
    /// How many instructions it has.
    pub instructions: usize,
    /// Samples in it.
    pub samples: u64,
    /// Their share of the function's.
    pub share: f64,
    /// Whether it waits for another CPU.
    pub spins: bool,
    /// What it does that could be done faster, where that is certain.
    pub idiom: Option<IdiomKind>,
    /// What it does.
    pub text: String,
}
