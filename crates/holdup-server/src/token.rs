//! The secret that every address of the page begins with.

use std::fmt;
use std::io;

/// 128 random bits, or a secret of somebody's.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// # Errors
    /// If the system has no randomness to give.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
        Ok(Token(bytes.iter().map(|b| format!("{b:02x}")).collect()))
    }

    /// One that somebody else has made.
    pub(crate) fn of(secret: String) -> Self {
        Token(secret)
    }

    /// Whether it is the same; how long that takes tells nothing of where they differ.
    pub(crate) fn is(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        own.len() == other.len() && own.iter().zip(other).fold(0, |d, (a, b)| d | (a ^ b)) == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn each_is_another() {
        let (one, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert!(
            one.is(&one.to_string()) && !one.is(&other.to_string()) && !one.is("") && !one.is(&one.to_string()[1..])
        );
    }
}
