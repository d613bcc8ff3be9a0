//! Which characters of a foreign name may be shown, and what stands for the others.
//!
//! A thread may be called `ESC ]0;…` (sets a terminal's title), `CR` (writes over the line), or contain a character that
//! turns the direction of what follows. Such characters are shown as escapes, so that one sees that they are there.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether `c` does something other than to appear: control characters, those that turn the direction of text, those
/// that nobody sees. Newline and tab too: a name has none.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction: marks, embeddings, overrides, isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Other line ends.
            | '\u{2028}' | '\u{2029}'
            // Without width: joiners, the byte order mark, soft hyphen, fillers, annotations, tags.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
        // No character at all; also forbidden in XML.
        || u32::from(c) & 0xfffe == 0xfffe
}

/// `text` with an escape (`\x1b`, `\u{202e}`) for each unsafe character. O(length); copies only if there is one.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Appends what stands for an unsafe character.
pub fn escape(c: char, out: &mut String) {
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

/// Whether a file's name is that of a program or library, of whichever version or kind: `python3` is python3, python3.11 and
/// python3-dbg, but no python3x.
pub fn is_version_of(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(['.', '-']) || rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for name in ["kworker/0:1", "Übersetzer", "日本語", "a b", "✓", "العربية"] {
            assert!(matches!(clean(name), Cow::Borrowed(same) if same == name), "{name}");
        }
    }

    #[test]
    fn what_acts_is_shown_as_an_escape() {
        assert_eq!(clean("a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(clean("a\r\n\tb\x7f"), "a\\r\\n\\tb\\x7f");
        assert_eq!(clean("\u{9b}31m"), "\\x9b31m");
        assert_eq!(clean("exe\u{202e}gpj"), "exe\\u{202e}gpj");
        assert_eq!(clean("a\u{2066}b\u{200b}"), "a\\u{2066}b\\u{200b}");
        assert_eq!(clean("\u{ffff}\u{1fffe}"), "\\u{ffff}\\u{1fffe}");
    }

    #[test]
    fn no_character_of_c0_and_c1_passes() {
        let all: String = (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32).collect();
        assert!(clean(&all).chars().all(|c| c.is_ascii_graphic()));
    }
}
