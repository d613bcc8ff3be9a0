//! Lines that fit the terminal. What is measured is what is shown: foreign text is cleaned before it is broken or cut.

use holdup_base::text::clean;

/// The terminal's width in columns; 80 where there is none, never less than 60.
pub fn width() -> usize {
    if cfg!(test) {
        return 80;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(w, _)| usize::from(w.0))).unwrap_or(80).clamp(60, 140)
}

/// Breaks `text` at spaces; the first line begins with `first`, all others with as many spaces.
pub fn paragraph(first: &str, text: &str) -> String {
    let first = clean(first);
    let indent = first.chars().count();
    let mut out = first.into_owned();
    let mut column = indent;
    for (i, word) in text.split_whitespace().map(clean).enumerate() {
        let length = word.chars().count();
        if i > 0 && column + 1 + length > width() {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += length;
    }
    out
}

/// `text`, cut to `columns` with an ellipsis.
pub fn cut(text: &str, columns: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(columns) {
        None => text.into_owned(),
        Some(_) => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, paragraph};

    #[test]
    fn long_words_stay_whole() {
        let text = format!("a {} b", "x".repeat(300));
        let lines: Vec<String> = paragraph("- ", &text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("  xxx"));
    }

    #[test]
    fn lines_are_as_long_as_they_look() {
        let evil = "a\x1b\x1b\x1b\x1b ".repeat(60);
        let lines: Vec<String> = paragraph("- ", &evil).lines().map(str::to_owned).collect();
        assert!(lines.iter().all(|l| l.chars().count() <= super::width()), "{lines:?}");
        assert_eq!(cut("\x1b\x1b\x1b", 6), "\\x1b\\…");
        assert_eq!(cut("a\nb", 6), "a\\nb");
    }
}
