//! CPython, 3.8 to 3.13: where its frames are, and what the functions in them are called.
//!
//! An [`Interpreter`] says where a process keeps its frames; the recorder's programs in the kernel walk them when they take a
//! stack, and [`Names`] reads the functions that they met.

mod layout;
mod names;

use holdup_trace::Image;

use crate::memory::{Memory, word};
use crate::open;
use layout::{Code, Version};
pub use layout::{Entries, Frames};
pub use names::{Function, Names};

/// What is wanted of an interpreter's file, in this order.
const NAMES: [&str; 4] = ["_PyRuntime", "_PyEval_EvalFrameDefault", "PyCode_Type", "Py_Version"];

/// A Python in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Address of `_PyRuntime`.
    pub runtime: u64,
    /// First address of the function that evaluates frames, and the first one behind it.
    pub evaluation: (u64, u64),
    /// Where the frames are.
    pub frames: Frames,
    /// The process in which it was found.
    pid: u32,
    code: Code,
    /// What each code object says that it is.
    code_type: u64,
}

/// Whether a file of this path may be an interpreter: `python3.11`, `libpython3.8.so.1.0`. It is opened only then.
pub fn may_be(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    base.starts_with("libpython3") || base.starts_with("python")
}

impl Interpreter {
    /// The interpreter that `image` maps. `None` if it is not one.
    ///
    /// # Errors
    /// A sentence, if it is one whose frames cannot be read.
    pub fn find(image: &Image) -> Result<Option<Interpreter>, String> {
        let Some(exports) = open(image) else { return Ok(None) };
        let [Some((runtime, _)), Some((evaluation, size)), Some((code_type, _)), number] = exports.find(NAMES) else {
            return Ok(None);
        };
        let Some(shift) = exports.shift(image) else { return Ok(None) };
        let number = number.and_then(|(at, _)| Some(u32::from_le_bytes(exports.bytes(at, 4).try_into().ok()?)));
        let version = number.map(Version::from_number).or_else(|| Version::from_path(&image.path));
        let Some(version) = version.or_else(|| Version::from_constants(&exports.constants())) else {
            return Err("which version of Python it is could not be told".into());
        };
        let [runtime, evaluation, code_type] = [runtime, evaluation, code_type].map(|at| at.wrapping_add(shift));
        let memory = Memory::of(image.pid);
        let Some((frames, code)) = layout::of(version, |length| memory.as_ref()?.read(runtime, length)) else {
            return Err(format!("frames of Python {version} are not known"));
        };
        let evaluation = (evaluation, evaluation.saturating_add(size));
        Ok(Some(Interpreter { runtime, evaluation, frames, pid: image.pid, code, code_type }))
    }
}
