//! PHP, 7.3 and newer, built without threads (as all that serve pages are): its frames hang on `executor_globals`.
//!
//! What differs between versions is read from the program itself. The rest, in bytes: a frame (`zend_execute_data`) has
//! its function at 24, flags of the call at 42 and its caller at 48; a function (`zend_function`) its type at 0, its name at 8
//! and its class at 16; a class its name at 8; a text (`zend_string`) its type at 4, its length at 16 and its characters at 24.

use holdup_symbols::Exports;
use holdup_trace::Image;

use crate::frames::{Entries, Frames, Function, Head, Listed, NAME, PATH, Place};
use crate::memory::{Memory, half, word};

/// What is wanted of an interpreter's file, in this order.
const WANTED: [&str; 3] = ["executor_globals", "execute_ex", "zend_is_executing"];
/// Bytes of that last one that are looked at: it compares the innermost frame with none, and returns.
const LOOKED_AT: u64 = 32;
/// `ZEND_CALL_TOP`, in the byte at 42: an evaluation began with the call.
const TOP: u8 = 1 << 1;
/// `IS_STRING`, in the lowest bits of what a text says that it is.
const IS_STRING: u32 = 6;
/// Where functions of the language may have their file's name, and behind it their first line and their last: 152 in 8.2.
const FILES: [usize; 5] = [152, 144, 160, 136, 128];
/// Bytes of a function that are read.
const FUNCTION: usize = 176;
/// The type of a function that is compiled into the program, and of those in the language.
const INTERNAL: u8 = 1;
const USER: [u8; 2] = [2, 4];

/// What stands for the file of what is compiled into the program.
const INSIDE: &str = "[php]";

/// Whether a file of this name may be one: `php8.2`, `php-fpm8.2`, `libphp8.2.so`.
pub(crate) fn may_be(base: &str) -> bool {
    base.starts_with("php") || base.starts_with("libphp")
}

/// The interpreter that `image` maps; see [`Interpreter::find`](crate::interpreter::Interpreter::find).
pub(crate) fn find(image: &Image) -> Result<Option<Place>, String> {
    let Some(exports) = Exports::of_live(image) else { return Ok(None) };
    let [globals, Some((evaluation, size)), Some((asks, _))] = exports.find(WANTED) else { return Ok(None) };
    let Some(shift) = exports.shift(image) else { return Ok(None) };
    let Some((globals, _)) = globals else { return Err("frames of a PHP with threads are not known".into()) };
    let Some(current) = innermost(&exports.bytes(asks, LOOKED_AT)) else {
        return Err("where this PHP keeps its frames could not be told".into());
    };
    let [runtime, evaluation] = [globals, evaluation].map(|at| at.wrapping_add(shift));
    let frames = Frames { current, ..FRAMES };
    let evaluation = (evaluation, evaluation.saturating_add(size));
    Ok(Some(Place::Listed(Listed { runtime, evaluation, frames })))
}

const FRAMES: Frames = Frames {
    interpreters: 0,
    next_interpreter: None,
    threads: 0,
    next_thread: 0,
    thread_id: 0,
    id_through: None,
    current: 0,
    through: None,
    previous: 48,
    stride: 0,
    code: 24,
    instruction: 0,
    bytecode: 0,
    entry: 42,
    entries: Entries::Flagged,
    size: 56,
    flag: TOP,
    single: true,
};

/// Where `executor_globals` has the innermost frame, by the code that asks whether there is one, on x86-64: `cmpq $0, OFFSET(REGISTER)`.
fn innermost(code: &[u8]) -> Option<u32> {
    let compares = |bytes: &&[u8]| matches!(bytes, [0x48 | 0x49, 0x83, 0xb8..=0xbf, _, _, _, _, 0]);
    let offset = half(code.windows(8).find(compares)?, 3)?;
    (offset % 8 == 0 && offset < 1 << 14).then_some(offset)
}

/// What lies at `address`, if it may be a function.
pub(crate) fn head(memory: &Memory, address: u64) -> Option<Head> {
    let bytes = memory.read(address, FUNCTION)?;
    let (name, class) = (word(&bytes, 8)?, word(&bytes, 16)?);
    if bytes[0] == INTERNAL {
        return (name != 0).then_some(Head { name, class, file: 0, line: 0, lines: 0 });
    }
    let of_file = |at: &usize| {
        let (file, first, last) = (word(&bytes, *at)?, half(&bytes, at + 8)?, half(&bytes, at + 12)?);
        (first <= last && is_text(memory, file)).then_some((file, first))
    };
    let (file, line) = FILES.iter().find_map(of_file).filter(|_| USER.contains(&bytes[0]))?;
    Some(Head { name, class, file, line, lines: 0 })
}

pub(crate) fn function(memory: &Memory, head: Head) -> Option<Function> {
    let file = if head.file == 0 { INSIDE.to_owned() } else { text(memory, head.file, PATH)? };
    // What a file does outside of functions.
    let name = if head.name == 0 { "{main}".to_owned() } else { text(memory, head.name, NAME)? };
    let class = (head.class != 0).then(|| text(memory, memory.word(head.class.checked_add(8)?)?, NAME)).flatten();
    let name = class.map_or(name.clone(), |class| format!("{class}::{name}"));
    (!name.is_empty()).then_some(Function { name, file, line: head.line })
}

fn is_text(memory: &Memory, address: u64) -> bool {
    address != 0 && text(memory, address, 1).is_some_and(|text| !text.is_empty())
}

/// The first `limit` bytes of a text, which may say anything of itself.
fn text(memory: &Memory, address: u64, limit: usize) -> Option<String> {
    let head = memory.read(address, 24)?;
    let length = word(&head, 16)?;
    if half(&head, 4)? & 0xf != IS_STRING {
        return None;
    }
    memory.text(address.checked_add(24)?, length, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_innermost_frame_is_stands_in_the_code() {
        // lea executor_globals(%rip), %rax; cmpq $0, 0x1e8(%rax); setne %al; ret
        let code = b"\x48\x8d\x05\xa9\xff\x29\x00\x48\x83\xb8\xe8\x01\x00\x00\x00\x0f\x95\xc0\xc3";
        assert_eq!(innermost(code), Some(488));
        assert_eq!(innermost(&code[..14]), None);
        let mut hostile = *code;
        hostile[13] = 0xff;
        assert_eq!(innermost(&hostile), None, "so far from its begin");
    }

    #[test]
    fn files_are_known_by_their_names() {
        assert!(["php8.2", "php-fpm8.2", "libphp8.2.so", "php"].map(may_be).iter().all(|is| *is));
        assert!(!may_be("python3") && !may_be("sphp"));
    }
}
