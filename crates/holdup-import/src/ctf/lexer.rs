//! Words, numbers, texts and signs of TSDL, the language of a trace's `metadata` (CTF 1.8, section 7).

/// The smallest parts of TSDL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword or a name.
    Word(&'a str),
    /// An integer without its sign.
    Number(u64),
    /// What stood in quotes.
    Text(String),
    /// One character.
    Sign(char),
    /// `:=`
    Assign,
    /// `...`
    Dots,
    /// No more.
    End,
}

/// Splits text into tokens, one at a time.
#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// From the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Lexer { text, at: 0 }
    }

    /// The byte at which the next token begins, or the space before it.
    pub fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next token.
    pub fn next(&mut self) -> Token<'a> {
        self.skip_space();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Token::End };
        match first {
            'a'..='z' | 'A'..='Z' | '_' => Token::Word(self.take(|c| c.is_ascii_alphanumeric() || c == '_')),
            '0'..='9' => number(self.take(|c| c.is_ascii_alphanumeric())),
            '"' | '\'' => self.quoted(first),
            _ if rest.starts_with(":=") => self.sign(2, Token::Assign),
            _ if rest.starts_with("...") => self.sign(3, Token::Dots),
            _ => self.sign(first.len_utf8(), Token::Sign(first)),
        }
    }

    fn sign(&mut self, len: usize, token: Token<'a>) -> Token<'a> {
        self.at += len;
        token
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    fn skip_space(&mut self) {
        loop {
            self.take(char::is_whitespace);
            let rest = self.rest();
            let skipped = match rest.get(..2) {
                Some("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                Some("//") => rest.find('\n').unwrap_or(rest.len()),
                _ => return,
            };
            self.at += skipped;
        }
    }

    fn quoted(&mut self, quote: char) -> Token<'a> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        let mut len = self.rest().len();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    len = at + 1;
                    break;
                }
                '\\' => text.extend(chars.next().map(|(_, c)| escaped(c))),
                c => text.push(c),
            }
        }
        self.at += len;
        Token::Text(text)
    }
}

fn escaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        c => c,
    }
}

/// `12`, `0x1fUL`, `017`. What is none of these is a sign that nothing expects.
fn number(text: &str) -> Token<'_> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, base) = match digits {
        "0" => ("0", 10),
        d if d.starts_with("0x") || d.starts_with("0X") => (d.get(2..).unwrap_or(""), 16),
        d if d.starts_with('0') => (d, 8),
        d => (d, 10),
    };
    u64::from_str_radix(digits, base).map_or(Token::Sign('?'), Token::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| Some(lexer.next()).filter(|t| *t != Token::End)).collect()
    }

    #[test]
    fn all_kinds() {
        use Token::{Assign, Dots, Number, Sign, Text, Word};
        let text = "/* a */ event.x := struct { // b\n 0x1fUL ... 017u, \"a\\\"b\" ; -0 }";
        let expected = [
            Word("event"),
            Sign('.'),
            Word("x"),
            Assign,
            Word("struct"),
            Sign('{'),
            Number(31),
            Dots,
            Number(15),
            Sign(','),
            Text("a\"b".into()),
            Sign(';'),
            Sign('-'),
            Number(0),
            Sign('}'),
        ];
        assert_eq!(tokens(text), expected);
    }

    #[test]
    fn what_is_cut_or_foreign_ends() {
        assert_eq!(tokens("/* never"), []);
        assert_eq!(tokens("\"never\\"), [Token::Text("never".into())]);
        assert_eq!(tokens("é 99999999999999999999"), [Token::Sign('é'), Token::Sign('?')]);
    }
}
