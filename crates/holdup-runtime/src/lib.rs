//! Asks the language runtimes of live processes for names. No BPF, no `unsafe`: what a process says here is as hostile as all it says.
#![forbid(unsafe_code)]

mod frames;
pub mod interpreter;
pub mod jvm;
mod memory;
mod php;
mod python;

use std::path::PathBuf;

use holdup_symbols::Exports;
pub use holdup_symbols::Held;
use holdup_trace::Image;

/// The file as its process mapped it: by the mapping itself, or, for want of the capability, by its path there.
fn open(image: &Image) -> Option<Exports> {
    let Image { pid, start, end, .. } = image;
    let mapped = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
    let there = PathBuf::from(format!("/proc/{pid}/root{}", image.path));
    [mapped, there].iter().find_map(|path| Exports::open(path).ok())
}
