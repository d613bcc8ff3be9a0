//! `print!` and `println!` of a script: to standard error, because standard output is for results.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdup_base::text::{escape, is_unsafe};
use rune::{ContextError, Module};

use super::limits::{MOST_PRINTED, Size};

/// The functions, for the script of one thread.
pub(super) fn module() -> Result<Module, ContextError> {
    let printed = Arc::new(AtomicUsize::new(0));
    let mut module = Module::with_crate_item("std", ["io"])?;
    for (name, end) in [("print", ""), ("println", "\n")] {
        let printed = Arc::clone(&printed);
        module.function(name, move |text: &str| print(&printed, text, end)).build()?;
    }
    Ok(module)
}

/// Prints what still may be. A terminal or pipe that is gone is no reason to end a run.
fn print(printed: &AtomicUsize, text: &str, end: &str) {
    let length = text.len() + end.len();
    let before = printed.fetch_add(length, Ordering::Relaxed);
    let shown = if before + length <= MOST_PRINTED {
        shown(text) + end
    } else if before <= MOST_PRINTED {
        format!("holdup: the script printed more than {}; the rest is left out\n", Size(MOST_PRINTED))
    } else {
        // The count stays where it is, and never overflows.
        printed.fetch_sub(length, Ordering::Relaxed);
        return;
    };
    let _ = std::io::stderr().write_all(shown.as_bytes());
}

/// The text, with nothing in it that acts on a terminal but newlines and tabs.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) && c != '\n' && c != '\t' { escape(c, &mut shown) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_shown() {
        assert_eq!(shown("a\tb\n\x1b]0;owned\x07"), "a\tb\n\\x1b]0;owned\\x07");
    }

    #[test]
    fn the_count_stops_at_the_most() {
        let printed = AtomicUsize::new(MOST_PRINTED - 1);
        print(&printed, "", "");
        assert_eq!(printed.load(Ordering::Relaxed), MOST_PRINTED - 1);
        for _ in 0..3 {
            print(&printed, "xx", "\n");
            assert_eq!(printed.load(Ordering::Relaxed), MOST_PRINTED + 2);
        }
    }
}
