//! Lines that fit the terminal.

/// The terminal's width in columns; 80 where there is none, never less than 60.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(w, _)| usize::from(w.0))).unwrap_or(80).clamp(60, 140)
}

/// Breaks `text` at spaces; the first line begins with `first`, all others with as many spaces.
pub fn paragraph(first: &str, text: &str) -> String {
    let indent = first.chars().count();
    let mut out = first.to_owned();
    let mut column = indent;
    for (i, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if i > 0 && column + 1 + length > width() {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// `text`, cut to `columns` with an ellipsis.
pub fn cut(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        None => text.to_owned(),
        Some(_) => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::paragraph;

    #[test]
    fn long_words_stay_whole() {
        let text = format!("a {} b", "x".repeat(300));
        let lines: Vec<String> = paragraph("- ", &text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("  xxx"));
    }
}
