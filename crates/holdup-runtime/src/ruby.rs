//! Ruby (CRuby), 3.1 and 3.3: its frames lie one behind the other in a stack of the thread's own, the innermost first.
//!
//! ```text
//! ruby_current_vm_ptr -> VM -> main thread -> thread (whose thread_id is ours) -> execution context -> frame, frame, ...
//! ```
//!
//! What is equal in both, in bytes: a VM has its main thread at 40, from which the others of the main ractor hang in a ring; an execution context has its stack at 0, the length of that in
//! words at 8 and the innermost frame at 16; a frame has its sequence of instructions (0 for a function in C) at 16 and at 32
//! where its flags are; a sequence has its body at 16, and that the path at 64, the label at 80 and the first line at 88.

use holdup_symbols::Exports;
use holdup_trace::Image;

use crate::frames::{Entries, Frames, Function, Head, Listed, NAME, PATH, Place};
use crate::memory::{Memory, half, word};

/// What is wanted of an interpreter's file, in this order.
const WANTED: [&str; 3] = ["ruby_current_vm_ptr", "rb_vm_exec", "ruby_version"];

/// `VM_FRAME_FLAG_FINISH`: an evaluation began with the call.
const FINISH: u8 = 0x20;
/// In the first word of an object: its type, and of those that are the machine's own which they are.
const TYPE: u64 = 0x1f;
const STRING: u64 = 0x05;
const ARRAY: u64 = 0x07;
const OWN: u64 = 0x1a;
const OWN_TYPE: u64 = 0xf << 12;
const SEQUENCE: u64 = 7 << 12;
/// `FL_USER1`: a string that does not lie in its object, an array that does.
const USER_1: u64 = 1 << 13;
/// Bytes of a sequence's body that are read.
const BODY: usize = 96;
/// The evaluation's own function begins so close behind the one that it calls, if the two stand together.
const TOGETHER: u64 = 64;
/// Shorter functions are none that runs all instructions.
const LONG: u64 = 4096;

/// How one keeps its texts and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    /// Where the characters of a string begin that lie in its object.
    inside: u64,
    /// Its length stands before them, and not among its flags.
    has_length: bool,
    /// The first line is a number of the language.
    line_is_object: bool,
}

/// Whether a file of this name may be one: `ruby`, `ruby3.1`, `libruby-3.1.so.3.1`.
pub(crate) fn may_be(base: &str) -> bool {
    base.starts_with("libruby") || base.starts_with("ruby")
}

/// The interpreter that `image` maps; see [`Interpreter::find`](crate::interpreter::Interpreter::find).
pub(crate) fn find(image: &Image) -> Result<Option<(Place, Code)>, String> {
    let Some(exports) = Exports::of_live(image) else { return Ok(None) };
    let [Some((machine, _)), Some(evaluation), Some((version, _))] = exports.find(WANTED) else { return Ok(None) };
    let Some(shift) = exports.shift(image) else { return Ok(None) };
    let version = exports.bytes(version, 4);
    let Some((frames, code)) = layout(&version) else {
        return Err(format!(
            "frames of Ruby {} are not known",
            String::from_utf8_lossy(&version).trim_end_matches('.')
        ));
    };
    let (start, end) = whole(&exports, evaluation);
    let [runtime, start, end] = [machine, start, end].map(|at| at.wrapping_add(shift));
    Ok(Some((Place::Listed(Listed { runtime, evaluation: (start, end), frames }), code)))
}

/// By the first characters of a version.
fn layout(version: &[u8]) -> Option<(Frames, Code)> {
    match version {
        b"3.1." => Some((IN_3_1, Code { inside: 16, has_length: false, line_is_object: true })),
        b"3.3." => Some((IN_3_3, Code { inside: 24, has_length: true, line_is_object: false })),
        _ => None,
    }
}

const IN_3_1: Frames = Frames {
    interpreters: 0,
    next_interpreter: None,
    threads: 40,
    next_thread: 0,
    thread_id: 80,
    id_through: None,
    current: 40,
    through: Some(16),
    previous: 0,
    stride: 64,
    code: 16,
    instruction: 0,
    bytecode: 0,
    entry: 32,
    entries: Entries::Pointed,
    size: 40,
    flag: FINISH,
    single: false,
};

const IN_3_3: Frames = Frames { thread_id: 16, id_through: Some(40), current: 48, stride: 56, ..IN_3_1 };

/// The function that `rb_vm_exec` calls to run instructions has no exported name, but is much longer than all others that it calls. The
/// two are taken together, as compilers leave them.
fn whole(exports: &Exports, (start, size): (u64, u64)) -> (u64, u64) {
    let end = start.saturating_add(size);
    let is_before = |(from, to): &(u64, u64)| to - from >= LONG && *to <= start && start - to < TOGETHER;
    let code = exports.bytes(start, size);
    let mut called = calls(&code, start).filter_map(|callee| exports.function(callee));
    called.find(is_before).map_or((start, end), |(from, _)| (from, end))
}

/// What may be addresses of functions that code calls, on x86-64.
fn calls(code: &[u8], start: u64) -> impl Iterator<Item = u64> + '_ {
    let calls = code.windows(5).zip(5..).filter(|(bytes, _)| bytes[0] == 0xe8);
    calls.filter_map(move |(bytes, end)| {
        Some(start.wrapping_add(end).wrapping_add_signed((half(bytes, 1)? as i32).into()))
    })
}

impl Code {
    /// What lies at `address`, if it says that it is a sequence of instructions.
    pub(crate) fn head(&self, memory: &Memory, address: u64) -> Option<Head> {
        let bytes = memory.read(address, 24)?;
        let flags = word(&bytes, 0)?;
        if flags & (TYPE | OWN_TYPE) != OWN | SEQUENCE {
            return None;
        }
        let body = memory.read(word(&bytes, 16)?, BODY)?;
        let line = word(&body, 88)?;
        let line = if self.line_is_object { line >> 1 } else { line & 0xffff_ffff };
        Some(Head { name: word(&body, 80)?, class: 0, file: word(&body, 64)?, line: line as u32, lines: 0 })
    }

    pub(crate) fn function(&self, memory: &Memory, head: Head) -> Option<Function> {
        let name = self.text(memory, head.name, NAME)?;
        let of = |path| self.text(memory, path, PATH);
        let file = of(head.file).or_else(|| paths(memory, head.file)?.into_iter().find_map(of))?;
        let line = if head.line <= i32::MAX as u32 { head.line } else { 0 };
        (!name.is_empty()).then_some(Function { name, file, line })
    }

    /// The first `limit` bytes of a string object, which may say anything of itself.
    fn text(&self, memory: &Memory, address: u64, limit: usize) -> Option<String> {
        let head = memory.read(address, 32)?;
        let flags = word(&head, 0)?;
        if flags & TYPE != STRING {
            return None;
        }
        let is_elsewhere = flags & USER_1 != 0;
        let length = if is_elsewhere || self.has_length { word(&head, 16)? } else { flags >> 14 & 0x1f };
        let at = if is_elsewhere { word(&head, 24)? } else { address.checked_add(self.inside)? };
        memory.text(at, length, limit)
    }
}

/// What an array of two has: the whole path, which may be none, and the path as it was given.
fn paths(memory: &Memory, address: u64) -> Option<[u64; 2]> {
    let head = memory.read(address, 40)?;
    let flags = word(&head, 0)?;
    if flags & TYPE != ARRAY {
        return None;
    }
    let pair = if flags & USER_1 != 0 { head[16..32].to_vec() } else { memory.read(word(&head, 32)?, 16)? };
    Some([word(&pair, 8)?, word(&pair, 0)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_code_calls_is_told_by_its_bytes() {
        // nop; call +0x10; call -8; a call that is cut
        let code = b"\x90\xe8\x10\x00\x00\x00\xe8\xf8\xff\xff\xff\xe8\x00";
        assert_eq!(calls(code, 0x1000).collect::<Vec<_>>(), [0x1016, 0x1003]);
        assert_eq!(calls(&[0xe8; 5], u64::MAX - 9).count(), 1, "beyond the end of addresses");
    }

    #[test]
    fn files_and_versions_are_known() {
        assert!(["ruby", "ruby3.1", "libruby-3.1.so.3.1", "libruby.so.3.3"].map(may_be).iter().all(|is| *is));
        assert!(!may_be("jruby"));
        assert_eq!(layout(b"3.1.").map(|(frames, _)| frames.stride), Some(64));
        assert!([b"3.2.".as_slice(), b"2.7.", b""].iter().all(|version| layout(version).is_none()));
    }

    /// Objects of this process.
    #[test]
    fn texts_may_say_anything_of_themselves() {
        let memory = Memory::of(std::process::id()).expect("own memory");
        let old = Code { inside: 16, has_length: false, line_is_object: true };
        let new = Code { inside: 24, has_length: true, line_is_object: false };
        let text = |code: &Code, object: &[u64]| code.text(&memory, object.as_ptr() as u64, 5);
        let letters = u64::from_le_bytes(*b"fetch???");
        assert_eq!(text(&old, &[STRING | 5 << 14, 0, letters, 0]).as_deref(), Some("fetch"));
        assert_eq!(text(&new, &[STRING, 0, 5, letters]).as_deref(), Some("fetch"));
        assert_eq!(text(&new, &[STRING, 0, u64::MAX, letters]).as_deref(), Some("fetch…"));
        let elsewhere = [STRING | USER_1, 0, 3, std::ptr::from_ref(&letters) as u64];
        assert_eq!(text(&old, &elsewhere).as_deref(), Some("fet"));
        assert_eq!(text(&old, &[STRING | USER_1, 0, 3, 8]), None);
        assert_eq!(text(&old, &[ARRAY, 0, letters, 0]), None);
        assert_eq!(old.head(&memory, [0u64, 0, 0].as_ptr() as u64), None);
    }
}
