//! The one writer of text for people: every character that this program prints on a terminal or into a pipe goes through
//! here, and what could act there does not pass.
//!
//! A name of a thread, process, file or symbol may hold an escape sequence. Here nobody has to remember where a name
//! comes from: the writer escapes every control character but the newline, and every character that turns the direction
//! of text. Styles of our own pass because they carry a number that nobody outside knows.
//!
//! `xtask tidy` allows `println!`, `stdout()` and their like in this file alone.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use anstream::ColorChoice;
pub use anstyle::AnsiColor;
use holdup_base::text::{escape, is_unsafe};

/// Prints a line on standard error.
macro_rules! say {
    ($($text:tt)*) => { $crate::text::screen::line($crate::text::screen::stderr(), format_args!($($text)*)) };
}

/// Prints a line on standard output; what goes wrong there is noticed by what is printed last.
macro_rules! show {
    ($($text:tt)*) => { $crate::text::screen::line($crate::text::screen::stdout(), format_args!($($text)*)) };
}

pub(crate) use {say, show};

/// How a part of a line looks. `{STYLE}text{STYLE:#}`, as with `anstyle`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style(anstyle::Style);

impl Style {
    /// Nothing special.
    pub const PLAIN: Style = Style(anstyle::Style::new());
    /// For what is read first.
    pub const BOLD: Style = Style(anstyle::Style::new().bold());
    /// For what is read last.
    pub const DIM: Style = Style(anstyle::Style::new().dimmed());

    /// In a color of the terminal's palette.
    pub const fn color(color: AnsiColor) -> Style {
        Style(anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(color))))
    }

    /// Also bold.
    pub const fn bold(self) -> Style {
        Style(self.0.bold())
    }
}

impl Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequence = if f.alternate() { self.0.render_reset().to_string() } else { self.0.render().to_string() };
        let pass = pass();
        sequence.split_terminator('\x1b').skip(1).try_for_each(|s| write!(f, "\x1b{pass:016x}{s}"))
    }
}

/// What marks an escape sequence as ours; new in each process.
fn pass() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    static PASS: OnceLock<u64> = OnceLock::new();
    *PASS.get_or_init(|| std::hash::RandomState::new().build_hasher().finish())
}

/// A stream of text for people.
#[derive(Debug)]
pub struct Screen<W: Write> {
    inner: W,
    /// Whether styles are shown; else they are left out.
    styled: bool,
    /// What stands for a character that would act.
    escape: fn(char, &mut String),
    /// The start of a character whose other bytes come with the next write.
    rest: Vec<u8>,
}

/// Standard output.
pub fn stdout() -> Screen<io::StdoutLock<'static>> {
    let styled = styled(anstream::AutoStream::choice(&io::stdout()));
    Screen { inner: io::stdout().lock(), styled, escape, rest: Vec::new() }
}

/// Standard error.
pub fn stderr() -> Screen<io::StderrLock<'static>> {
    let styled = styled(anstream::AutoStream::choice(&io::stderr()));
    Screen { inner: io::stderr().lock(), styled, escape, rest: Vec::new() }
}

/// JSON on its way to `inner`: outside of strings it is ASCII, so that what would act stands in a string and has an
/// escape there that says the same.
pub fn json<W: Write>(inner: W) -> Screen<W> {
    let escape = |c: char, out: &mut String| {
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
    };
    Screen { inner, styled: false, escape, rest: Vec::new() }
}

/// Standard output for what is no text: whoever reads it is a program that asked for this format.
pub fn bytes() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

/// Text on its way to a file, without styles.
pub fn plain<W: Write>(inner: W) -> Screen<W> {
    Screen { inner, styled: false, escape, rest: Vec::new() }
}

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a program of ours draws on the whole terminal: then nothing else does.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether a person looks at standard error: progress is for them.
pub fn is_watched() -> bool {
    io::stderr().is_terminal() && !TAKEN.load(Ordering::Relaxed)
}

/// Calls `show` with the whole terminal, which is as it was afterwards, whatever happens.
///
/// # Errors
/// If the terminal cannot be used so, or what `show` says.
pub fn with_all_of_it<T>(show: impl FnOnce(&mut ratatui::DefaultTerminal) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut terminal = ratatui::try_init()?;
    TAKEN.store(true, Ordering::Relaxed);
    let shown = show(&mut terminal);
    TAKEN.store(false, Ordering::Relaxed);
    ratatui::restore();
    shown
}

/// Replaces the line that the cursor is in, without ending it; empty text removes it.
pub fn redraw(text: &str) {
    let mut out = io::stderr().lock();
    let _ = write!(out, "\r\x1b[K{}", holdup_base::text::clean(text));
    let _ = out.flush();
}

/// Removes the last `lines` lines on standard error.
pub fn erase(lines: usize) {
    let _ = write!(io::stderr().lock(), "\x1b[{lines}A\x1b[J");
}

/// Brings the cursor to the start of a line, whatever another program has left in the one that it is in: as many spaces as
/// the terminal is wide end in the next line unless they began at the first column.
pub fn begin_line() {
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stderr()) {
        let mut out = io::stderr().lock();
        let _ = write!(out, "{:width$}\r", "", width = usize::from(width.0));
        let _ = out.flush();
    }
}

/// Prints one line; a reader that went away is no failure here.
pub fn line(mut out: Screen<impl Write>, text: fmt::Arguments<'_>) {
    let _ = writeln!(out, "{text}");
}

fn styled(choice: anstream::ColorChoice) -> bool {
    !matches!(choice, anstream::ColorChoice::Never)
}

impl<W: Write> Screen<W> {
    fn put(&mut self, text: &str) -> io::Result<()> {
        if !text.contains(|c| c != '\n' && is_unsafe(c)) {
            return self.inner.write_all(text.as_bytes());
        }
        let own = format!("\x1b{:016x}", pass());
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix(&own) {
                let end = after.find('m').map_or(after.len(), |at| at + 1);
                if self.styled {
                    clean.push('\x1b');
                    clean.push_str(&after[..end]);
                }
                rest = &after[end..];
                continue;
            }
            match c {
                '\n' => clean.push('\n'),
                c if is_unsafe(c) => (self.escape)(c, &mut clean),
                c => clean.push(c),
            }
            rest = &rest[c.len_utf8()..];
        }
        self.inner.write_all(clean.as_bytes())
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    /// A style of ours is one piece of a write; a character may be split between two.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut left = all.as_slice();
        loop {
            match std::str::from_utf8(left) {
                Ok(text) => return self.put(text),
                Err(error) => {
                    let (good, bad) = left.split_at(error.valid_up_to());
                    self.put(&String::from_utf8_lossy(good))?;
                    let Some(wrong) = error.error_len() else {
                        self.rest = bad.to_vec();
                        return Ok(());
                    };
                    self.put("\u{fffd}")?;
                    left = &bad[wrong..];
                }
            }
        }
    }

    /// Formats first, so that a style is never split between two writes.
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        match text.as_str() {
            Some(text) => self.write_all(text.as_bytes()),
            None => self.write_all(text.to_string().as_bytes()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(styled: bool, write: impl FnOnce(&mut Screen<&mut Vec<u8>>)) -> String {
        let mut bytes = Vec::new();
        write(&mut Screen { inner: &mut bytes, styled, escape, rest: Vec::new() });
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn styles_pass_where_they_are_wanted() {
        let print =
            |out: &mut Screen<&mut Vec<u8>>| writeln!(out, "{}x{:#}", Style::BOLD, Style::BOLD).expect("memory");
        assert_eq!(shown(true, print), "\x1b[1mx\x1b[0m\n");
        assert_eq!(shown(false, print), "x\n");
    }

    #[test]
    fn nothing_else_acts_on_the_terminal() {
        let evil = "\x1b[31m\x1b]0;title\x07\r\u{9b}2J\u{202e}\x1b0000000000000000[8m";
        for styled in [true, false] {
            let text = shown(styled, |out| write!(out, "{}{evil}{:#}", Style::PLAIN, Style::PLAIN).expect("memory"));
            assert_eq!(text, "\\x1b[31m\\x1b]0;title\\x07\\r\\x9b2J\\u{202e}\\x1b0000000000000000[8m");
        }
    }

    #[test]
    fn json_says_the_same_after_it() {
        let value = "a\x1b\u{9b}\u{202e}\u{e0041}\"é\n";
        let mut bytes = Vec::new();
        serde_json::to_writer_pretty(json(&mut bytes), &[value]).expect("memory");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text, "[\n  \"a\\u001b\\u009b\\u202e\\udb40\\udc41\\\"é\\n\"\n]");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).expect("JSON")[0], value);
    }

    #[test]
    fn characters_may_come_in_parts() {
        let text = shown(true, |out| "aé\u{202e}z".bytes().for_each(|b| out.write_all(&[b]).expect("memory")));
        assert_eq!(text, "aé\\u{202e}z");
        assert_eq!(shown(true, |out| out.write_all(b"a\xffb").expect("memory")), "a\u{fffd}b");
    }
}
