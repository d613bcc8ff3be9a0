//! CPython, 3.8 to 3.13.

mod layout;
pub(crate) mod lines;

use holdup_symbols::Exports;
use holdup_trace::Image;

use crate::frames::{Function, Head, Listed, NAME, PATH, Place};
use crate::memory::{Memory, word};
use layout::Version;

/// What is wanted of an interpreter's file, in this order.
const WANTED: [&str; 4] = ["_PyRuntime", "_PyEval_EvalFrameDefault", "PyCode_Type", "Py_Version"];

/// How one keeps its functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    offsets: layout::Code,
    /// What each code object says that it is.
    code_type: u64,
}

/// Whether a file of this name may be one: `python3.11`, `libpython3.8.so.1.0`.
pub(crate) fn may_be(base: &str) -> bool {
    base.starts_with("libpython3") || base.starts_with("python")
}

/// The interpreter that `image` maps; see [`Interpreter::find`](crate::interpreter::Interpreter::find).
pub(crate) fn find(image: &Image) -> Result<Option<(Place, Code)>, String> {
    let Some(exports) = Exports::of_live(image) else { return Ok(None) };
    let [Some((runtime, _)), Some((evaluation, size)), Some((code_type, _)), number] = exports.find(WANTED) else {
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
    let Some((frames, offsets)) = layout::of(version, |length| memory.as_ref()?.read(runtime, length)) else {
        return Err(format!("frames of Python {version} are not known"));
    };
    let evaluation = (evaluation, evaluation.saturating_add(size));
    Ok(Some((Place::Listed(Listed { runtime, evaluation, frames }), Code { offsets, code_type })))
}

impl Code {
    /// What lies at `address`, if it says that it is a code object.
    pub(crate) fn head(&self, memory: &Memory, address: u64) -> Option<Head> {
        let at = &self.offsets;
        let bytes = memory.read(address, at.size())?;
        if word(&bytes, 8)? != self.code_type {
            return None;
        }
        let line = word(&bytes, at.line)? as u32;
        let lines = at.lines.map_or(Some(0), |lines| word(&bytes, lines))?;
        Some(Head { name: word(&bytes, at.name)?, class: 0, file: word(&bytes, at.file)?, line, lines })
    }

    pub(crate) fn function(&self, memory: &Memory, head: Head) -> Option<Function> {
        let (name, file) = (self.text(memory, head.name, NAME)?, self.text(memory, head.file, PATH)?);
        let line = if head.line <= i32::MAX as u32 { head.line } else { 0 };
        (!name.is_empty()).then_some(Function { name, file, line })
    }

    /// The first `limit` characters of a string object, which may say anything of itself.
    fn text(&self, memory: &Memory, address: u64, limit: usize) -> Option<String> {
        let head = memory.read(address, 40)?;
        let (length, state) = (word(&head, 16)?, word(&head, 32)?);
        let (width, compact, ascii) = (state as usize >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if !compact || !matches!(width, 1 | 2 | 4) {
            return None;
        }
        let shown = length.min(limit as u64) as usize;
        let start = if ascii { self.offsets.ascii } else { self.offsets.other };
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
}
