//! Words and signs of an expression.

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    In,
    /// `==`, `!=`, `=~`, `!~`, `<`, `<=`, `>`, `>=`
    Sign(&'static str),
    /// A bare or quoted word.
    Word(String),
}

/// Where something is wrong, in characters from the start, and what.
pub(super) type Wrong = (usize, String);

const SIGNS: &[(&str, Token)] = &[
    ("(", Token::Open),
    (")", Token::Close),
    ("&&", Token::And),
    ("||", Token::Or),
    ("==", Token::Sign("==")),
    ("!=", Token::Sign("!=")),
    ("=~", Token::Sign("=~")),
    ("!~", Token::Sign("!~")),
    ("<=", Token::Sign("<=")),
    (">=", Token::Sign(">=")),
    ("<", Token::Sign("<")),
    (">", Token::Sign(">")),
    ("=", Token::Sign("==")),
    ("!", Token::Not),
];

/// Splits `text` into tokens with their positions. O(length).
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Wrong> {
    let mut found = Vec::new();
    let (mut rest, mut at) = (text, 0);
    while let Some(c) = rest.chars().next() {
        let (token, length) = if c.is_whitespace() {
            (None, c.len_utf8())
        } else if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            (Some(token.clone()), sign.len())
        } else if c == '"' || c == '\'' {
            let (word, length) = quoted(rest, c).ok_or_else(|| (at, format!("the quote {c} is not closed")))?;
            (Some(Token::Word(word)), length)
        } else {
            let length = rest.find(ends_word).unwrap_or(rest.len());
            if length == 0 {
                return Err((at, format!("{c} means nothing here; write && or ||, and put texts with it in quotes")));
            }
            (Some(word(&rest[..length])), length)
        };
        found.extend(token.map(|t| (at, t)));
        at += rest[..length].chars().count();
        rest = &rest[length..];
    }
    Ok(found)
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "()=!<>&|\"'~".contains(c)
}

fn word(text: &str) -> Token {
    match text.to_lowercase().as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "in" => Token::In,
        _ => Token::Word(text.to_owned()),
    }
}

/// The text between quotes and its length with them. A backslash before the quote is removed; before anything else it
/// stays, for regular expressions.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return Some((word, i + c.len_utf8()));
        }
        if c == quote {
            word.pop();
        }
        escaped = c == '\\' && !escaped;
        word.push(c);
    }
    None
}
