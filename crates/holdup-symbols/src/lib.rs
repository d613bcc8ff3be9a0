//! Addresses to functions, source lines, inline frames and instructions; copied stacks to call chains.
//!
//! - [`Symbols`] names addresses: kernel functions, functions of ELF files with their inlined functions and source
//!   lines, functions compiled at run time.
//! - [`StackUnwinder`] recovers the callers of a thread from a copy of its stack, for programs that were built
//!   without frame pointers.
//!
//! # Choices
//! - **`addr2line` over `wholesym` and `blazesym`.** wholesym is async, brings its own file discovery and HTTP, and
//!   blazesym decides alone which symbol to believe; here the rules matter (a stripped library's exported names are
//!   believed only inside their sizes, the bounds of unnamed functions come from call frame information). ELF headers
//!   and symbol tables are so simple that they are read by hand, with every access checked; DWARF is not, so `gimli`
//!   and `addr2line` read it.
//! - **`gimli` alone for unwinding, not `framehop`.** framehop is faster still, but evaluates no expression that reads
//!   memory, so it cannot step out of a signal handler or of a function that realigns its stack (every GCC function
//!   with AVX locals), looks up the frame under a signal one byte too low, and silently falls back to the frame
//!   pointer, so that one cannot know whether a chain is complete.
//! - **`cpp_demangle` behind a pass of our own.** Its parser backtracks without bound; what one name may cost is found out
//!   before, see `demangle/cost.rs`.
//! - **`pdb2` without `pdb-addr2line`.** The latter follows scopes and inlined calls by recursion, which a damaged file
//!   can make endless; what is needed of it is a few flat tables.
//! - **Reading over mapping.** Mapping a file needs `unsafe`, and a file truncated under a mapping kills the process.
//!   Only the sections in use are read.
//!
//! # Bounds
//! Files are chosen by those who are recorded, and read by root. What each may cost is bounded, in memory that stays in
//! use and in CPU time, for itself and with all others; names are bounded in length and work. [`Symbols::notes`] says
//! what was left out. Only regular files are opened, and links below another process's root stay there.
//!
//! What this crate is *not* for: deciding which frames matter. Of the network it knows only the servers that it is told of
//! ([`Sources`]); what they give is bounded and compared with the id that was asked for (`fetch.rs`).

#![forbid(unsafe_code)]

mod bytes;
mod cfi;
mod compiled;
mod debuginfod;
mod demangle;
mod dwarf;
mod dwo;
mod elf;
mod exports;
mod fetch;
mod files;
mod find;
mod gopclntab;
mod held;
mod inlined;
mod jit;
mod kcore;
mod kernel;
mod kernel_files;
#[cfg(test)]
mod limits_tests;
mod meter;
mod metered;
mod nameless;
mod names;
mod object;
mod objects;
mod panics;
mod pdb;
mod probes;
mod sections;
mod sources;
mod step;
mod symbol_path;
mod symbols;
mod symtab;
mod unpack;
mod unwind;
mod vdso;
mod windows;

use panics::guarded;

pub use compiled::{CompiledFrame, Layout, METHOD, PROLOGUE};
pub use exports::Exports;
pub use held::Held;
pub use inlined::{Chain, InlinedCode, InlinedFunctions};
pub use jit::perf_map_line;
pub use probes::{Probeable, Usdt};
pub use sources::Sources;
pub use symbols::{Kernel, Symbols, named_by_place};
pub use unwind::StackUnwinder;
