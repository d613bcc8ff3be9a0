//! gzip around a trace of any kind.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// gzip of traces is smaller than what is inside by a factor of 3 to 30; the format allows 1032, which only nonsense reaches.
const LARGEST_FACTOR: u64 = 400;
/// So many bytes come out whatever the factor.
const ALWAYS: u64 = 256 << 20;

/// What `packed` holds. Reading fails where that is too much to be a trace.
pub fn unpack<'r>(packed: impl Read + 'r) -> Box<dyn Read + 'r> {
    Box::new(unpacked(packed, ALWAYS))
}

fn unpacked<R: Read>(packed: R, always: u64) -> Unpacked<R> {
    let packed = Counted { from: BufReader::with_capacity(1 << 17, packed), count: 0 };
    Unpacked { decoder: MultiGzDecoder::new(packed), count: 0, always }
}

/// Whether `head` begins as gzip does.
pub fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b, 8])
}

/// The first bytes inside gzip; `None` if `head` is not gzip.
pub fn peek(head: &[u8]) -> Option<Vec<u8>> {
    if !is_gzip(head) {
        return None;
    }
    let mut unpacked = vec![0; super::HEAD_BYTES];
    let mut gzip = MultiGzDecoder::new(head);
    let mut len = 0;
    while let Ok(n @ 1..) = gzip.read(&mut unpacked[len..]) {
        len += n;
    }
    unpacked.truncate(len);
    Some(unpacked)
}

struct Counted<R> {
    from: BufReader<R>,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(to)?;
        self.count += n as u64;
        Ok(n)
    }
}

impl<R: Read> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.count += n as u64;
        self.from.consume(n);
    }
}

struct Unpacked<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    count: u64,
    always: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(to)?;
        self.count += n as u64;
        let packed = self.decoder.get_ref().count;
        if self.count > self.always && self.count / LARGEST_FACTOR > packed {
            let what = format!(
                "{} bytes came out of {packed}: no trace is packed so well, so it is not unpacked further",
                self.count
            );
            return Err(io::Error::other(what));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(bytes: &mut dyn Read) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        io::copy(bytes, &mut gzip).expect("memory");
        gzip.finish().expect("memory")
    }

    #[test]
    fn what_was_packed_comes_out() {
        let mut both = packed(&mut &b"first "[..]);
        both.write_all(&packed(&mut &b"second"[..])).expect("memory");
        let mut text = String::new();
        unpack(&both[..]).read_to_string(&mut text).expect("sound");
        assert_eq!((text.as_str(), peek(&both).as_deref()), ("first second", Some(&b"first second"[..])));
    }

    #[test]
    fn a_bomb_is_not_unpacked_to_its_end() {
        let bomb = packed(&mut io::repeat(0).take(4 << 20));
        let e = io::copy(&mut unpacked(&bomb[..], 1 << 20), &mut io::sink()).expect_err("a bomb");
        assert!(e.to_string().contains("no trace is packed so well"), "{e}");
    }
}
