//! Messages of protocol buffers, written front to back.

/// Bytes that are kept free for the length of a message: as Perfetto's own writers do, so that nothing is moved.
const LENGTH: usize = 4;

/// A message that comes into being.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds all fields of another message.
    pub fn append(&mut self, other: &Message) {
        self.0.extend(&other.0);
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// An integer, of any type but `sint`; negative ones as 64 bits.
    pub fn number(&mut self, field: u32, n: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(n);
    }

    /// A `double`.
    pub fn double(&mut self, field: u32, n: f64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(n.to_le_bytes());
    }

    /// A string or bytes.
    pub fn text(&mut self, field: u32, text: impl AsRef<[u8]>) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(text.as_ref().len() as u64);
        self.0.extend(text.as_ref());
    }

    /// A message of its own.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        self.varint(u64::from(field) << 3 | 2);
        let at = self.0.len();
        self.0.extend([0; LENGTH]);
        write(self);
        let mut len = self.0.len() - at - LENGTH;
        for (i, byte) in self.0[at..at + LENGTH].iter_mut().enumerate() {
            *byte = (len & 0x7f) as u8 | if i + 1 < LENGTH { 0x80 } else { 0 };
            len >>= 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn fields_as_the_encoding_has_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |m| m.number(1, 1));
        assert_eq!(message.bytes(), b"\x08\x96\x01\x12\x07testing\x1a\x82\x80\x80\x00\x08\x01");
    }
}
