//! V8 as it is in Node.js, 18 to 26: its frames, interpreted and compiled, lie on the machine's stack.
//!
//! ```text
//!   frame pointer ─▶ caller's frame pointer
//!             - 8    context
//!             - 16   function ─▶ shared ─▶ name, or scope ─▶ name, where it begins
//!                                       └▶ script ─▶ file, text
//! ```
//!
//! What differs between versions is read from the tables that the program exports for debuggers (`v8dbg_…`). The rest, in bytes: an object
//! begins with its map, which has the type at 12; a text has its length at 12 and its characters at 16; a script its text at 8 and its name
//! at 16. Addresses of objects have 1 in their lowest bits, numbers are in the upper half of a word.

mod text;

use holdup_symbols::{Exports, named_by_place};
use holdup_trace::{Image, RawStack};

use crate::frames::{Function, Head, NAME, OnStack, PATH, Place};
use crate::memory::{Memory, word};

/// What is wanted of an interpreter's file, in this order.
const WANTED: [&str; 6] = [
    "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
    "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
    "v8dbg_class_SharedFunctionInfo__raw_function_token_offset__int16_t",
    "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
    "v8dbg_type_Script__SCRIPT_TYPE",
    "v8dbg_scopeinfo_idx_first_vars",
];
/// In what functions share, the name and the script lie so far before the offset of the function's first word: of all versions, this is the
/// one whose table always has the same name.
const NAME_BEFORE: u32 = 28;
const SCRIPT_BEFORE: u32 = 12;
/// Words of a scope: how many variables it has, and, where they come later, its begin in the text.
const VARIABLES: usize = 3;
const BEGIN: usize = 4;
const FIRST_AFTER_BEGIN: u32 = 5;
/// Up to so many variables have their names in the scope; more have a table.
const NAMED_INSIDE: usize = 75;
/// Scopes with more variables are not read.
const MOST_VARIABLES: usize = 4096;
/// Where a text is searched for the line: further in, it is not.
const SEARCHED: usize = 256 << 10;

/// How one keeps its functions: offsets in bytes, and types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    shared: u64,
    shared_type: u16,
    name: u64,
    script: u64,
    scope_type: u16,
    script_type: u16,
    first_variable: u32,
}

/// Whether a file of this name may be one: `node`, `nodejs`, `libnode.so.108`.
pub(crate) fn may_be(base: &str) -> bool {
    base == "node" || base == "nodejs" || base.starts_with("libnode.so")
}

/// The interpreter that `image` maps; see [`Interpreter::find`](crate::interpreter::Interpreter::find).
pub(crate) fn find(image: &Image) -> Option<(Place, Code)> {
    let exports = Exports::of_live(image)?;
    let constant = |at: Option<(u64, u64)>| Some(u32::from_le_bytes(exports.bytes(at?.0, 4).try_into().ok()?));
    let [shared, shared_type, token, scope_type, script_type, first_variable] = exports.find(WANTED).map(constant);
    let token = token?;
    let code = Code {
        shared: shared?.into(),
        shared_type: shared_type? as u16,
        name: token.checked_sub(NAME_BEFORE)?.into(),
        script: token.checked_sub(SCRIPT_BEFORE)?.into(),
        scope_type: scope_type? as u16,
        script_type: script_type? as u16,
        first_variable: first_variable?.min(16),
    };
    let on_stack = OnStack { shared: shared?, shared_type: code.shared_type };
    Some((Place::OnStack(on_stack), code))
}

/// What may be frames on a stack, and the functions to which they would lead: (frame pointer, function). Linear.
pub fn pointers(stack: &RawStack) -> impl Iterator<Item = (u64, u64)> + '_ {
    let words = stack.bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
    let inside =
        words.zip((0..).map(|at| stack.sp + 8 * at)).filter(|(pointer, at)| pointer > at).map(|(pointer, _)| pointer);
    // The innermost frame's pointer is in the register; a frame is told once, however often its pointer was kept.
    let mut seen = rustc_hash::FxHashSet::default();
    std::iter::once(stack.bp).chain(inside).filter_map(move |pointer| {
        let at = usize::try_from(pointer.checked_sub(stack.sp)?.checked_sub(16)?).ok()?;
        let (function, context) = (word(&stack.bytes, at)?, word(&stack.bytes, at + 8)?);
        let is_frame = pointer % 8 == 0 && is_object(function) && is_object(context) && seen.insert(pointer);
        is_frame.then_some((pointer, function))
    })
}

impl Code {
    /// What lies at `address`, if it says that it is a function with a script.
    pub(crate) fn head(&self, memory: &Memory, address: u64) -> Option<Head> {
        let shared = object(memory, address, self.shared)?;
        let bytes = memory.read(shared - 1, self.script as usize + 8)?;
        let (name, script) = (word(&bytes, self.name as usize)?, word(&bytes, self.script as usize)?);
        let is_function = kind(memory, shared)? == self.shared_type && kind(memory, script)? == self.script_type;
        is_function.then_some(Head { name, class: shared, file: script, line: 0, lines: 0 })
    }

    /// Whether it has the same yet that functions share: that stays where it is while there is one.
    pub(crate) fn is_still(&self, memory: &Memory, address: u64, head: Head) -> bool {
        object(memory, address, self.shared) == Some(head.class)
    }

    pub(crate) fn function(&self, memory: &Memory, head: Head) -> Option<Function> {
        let (name, begin) = self
            .scope(memory, head.name)
            .unwrap_or_else(|| (text::read(memory, head.name, NAME).unwrap_or_default(), None));
        let file = object(memory, head.file, 16).and_then(|name| text::read(memory, name, PATH)).unwrap_or_default();
        let file = file.strip_prefix("file://").unwrap_or(&file).to_owned();
        let text = object(memory, head.file, 8);
        let line = text.zip(begin).and_then(|(text, begin)| text::line(memory, text, begin, SEARCHED)).unwrap_or(0);
        Some(Function { name: named_by_place(&name, &file, line), file, line })
    }

    /// The name that a function has in its scope, or else the one that its place suggests, and where it begins.
    fn scope(&self, memory: &Memory, scope: u64) -> Option<(String, Option<usize>)> {
        if kind(memory, scope)? != self.scope_type {
            return None;
        }
        let words = |from: usize, count: usize| memory.read(scope - 1 + 8 * from as u64, 8 * count);
        let head = words(0, BEGIN + 1)?;
        let variables = number(word(&head, 8 * VARIABLES)?).filter(|count| *count <= MOST_VARIABLES)?;
        let names = if variables < NAMED_INSIDE { variables } else { 1 };
        // A word about a class may come first.
        let tail = words(1 + self.first_variable as usize + names + variables, 6)?;
        let own = (0..2).find(|at| word(&tail, 8 * at).is_some_and(is_object))?;
        let texts = [own, own + 2].map(|at| word(&tail, 8 * at).and_then(|at| text::read(memory, at, NAME)));
        let name = texts.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or_default();
        let begins_before = self.first_variable >= FIRST_AFTER_BEGIN;
        let begin = if begins_before { word(&head, 8 * BEGIN) } else { word(&tail, 8 * (own + 3)) };
        Some((name, begin.and_then(number)))
    }
}

fn is_object(word: u64) -> bool {
    word & 3 == 1
}

/// The number in a word.
fn number(word: u64) -> Option<usize> {
    (word as u32 == 0).then_some((word >> 32) as usize)
}

/// The object at an offset in another one.
fn object(memory: &Memory, of: u64, offset: u64) -> Option<u64> {
    if !is_object(of) {
        return None;
    }
    memory.word((of - 1).checked_add(offset)?).filter(|word| is_object(*word))
}

/// The type of an object.
fn kind(memory: &Memory, of: u64) -> Option<u16> {
    const TYPE: u64 = 12;
    let map = object(memory, of, 0)?;
    Some(memory.word((map - 1).checked_add(TYPE)?)? as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: u64 = 0x7ffc_0000_0000;

    fn stack(bp: u64, words: &[u64]) -> RawStack {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        RawStack { sp: STACK, bp, bytes, ..RawStack::default() }
    }

    #[test]
    fn frames_are_known_by_what_lies_below_their_pointers() {
        let (f, g, context) = (0x2000_0001, 0x3000_0001, 0x4000_0001);
        // The innermost frame, whose pointer is in the register; its caller's; one with a mark in place of the context.
        let words = [f, context, STACK + 48, 7, g, context, STACK + 80, 7, g, 12, STACK + 8, 7];
        let found: Vec<_> = pointers(&stack(STACK + 16, &words)).collect();
        assert_eq!(found, [(STACK + 16, f), (STACK + 48, g)]);
        for hostile in [0, 1, STACK, STACK + 8, STACK + 17, STACK + 4096, u64::MAX] {
            assert!(!pointers(&stack(hostile, &words)).any(|(pointer, _)| pointer == hostile), "{hostile:#x}");
        }
    }

    #[test]
    fn files_are_known_by_their_names() {
        assert!(["node", "nodejs", "libnode.so.108"].map(may_be).iter().all(|is| *is));
        assert!(!may_be("node_exporter") && !may_be("python3"));
    }

    #[test]
    fn words_are_numbers_or_objects() {
        assert_eq!((number(5 << 32), number(5 << 32 | 1)), (Some(5), None));
        assert!(is_object(0x1001) && !is_object(0x1003) && !is_object(0x1000));
    }
}
