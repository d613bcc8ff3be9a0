//! Many short texts in one.

/// Where a text is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Piece {
    at: u32,
    len: u32,
}

/// Texts behind each other.
#[derive(Debug, Default)]
pub(super) struct Texts(String);

impl Texts {
    /// Keeps at most `limit` bytes of a text; what is not UTF-8 in it is replaced.
    pub fn keep(&mut self, text: &[u8], limit: usize) -> Piece {
        let text = String::from_utf8_lossy(text.get(..limit).unwrap_or(text));
        let (Ok(at), Ok(len)) = (u32::try_from(self.0.len()), u32::try_from(text.len())) else {
            return Piece::default();
        };
        self.0.push_str(&text);
        Piece { at, len }
    }

    pub fn get(&self, piece: Piece) -> &str {
        let at = piece.at as usize;
        self.0.get(at..at.saturating_add(piece.len as usize)).unwrap_or_default()
    }
}
