//! One file from a server, by HTTP/1.1: a request, redirections, a body whose end is known.
//!
//! Not hyper, which the full build has: it needs a runtime around it, and a build without drivers does not have its client.
//! `httparse`, which reads the head here, is the part of it that is hard to get right.

use std::io::{Read, Write};
use std::time::Instant;

use super::stream::Stream;
use super::url::Url;

/// Redirections that are followed.
const REDIRECTIONS: usize = 5;
/// Longest head of a response, and how many lines it may have.
const HEAD: usize = 32 << 10;
const HEADERS: usize = 100;
/// Longest line before a part of a body.
const CHUNK_LINE: usize = 256;

/// What a server answered.
pub(super) enum Answer {
    /// The file.
    Body(Body),
    /// There is no such file.
    Missing,
    /// Another status.
    Refused(u16),
}

/// The bytes of a file, as they come.
pub(super) struct Body {
    stream: Stream,
    /// What came with the head.
    ahead: Vec<u8>,
    /// How many bytes of `ahead` were handed on.
    used: usize,
    left: Left,
    /// What the server says that it has, in bytes.
    pub length: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// So many bytes.
    Bytes(u64),
    /// Parts with their lengths before them; so many bytes of this part. `first`: none was begun.
    Chunk {
        bytes: u64,
        first: bool,
    },
    /// All until the connection ends.
    ToTheEnd,
    Nothing,
}

/// What matters of the head of a response.
struct Head {
    status: u16,
    location: Option<String>,
    length: Option<u64>,
    chunked: bool,
    encoding: Option<String>,
}

/// Asks for a file; the error is a sentence without the address.
pub(super) fn get(url: &Url, deadline: Instant) -> Result<Answer, String> {
    let mut url = url.clone();
    for _ in 0..=REDIRECTIONS {
        let mut stream = Stream::open(&url, deadline)?;
        let (host, path) = (url.authority(), &url.path);
        // Packed bodies are not asked for: what they unpack to cannot be known before.
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: holdup/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n\
             Connection: close\r\n\r\n",
            env!("CARGO_PKG_VERSION")
        );
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(|e| lost(&e))?;
        let (head, ahead) = read_head(&mut stream)?;
        match head.status {
            200 => return Ok(Answer::Body(body(stream, head, ahead)?)),
            301 | 302 | 303 | 307 | 308 => {
                let location = head.location.ok_or("it answers with a redirection to nowhere")?;
                let next = url.join(&location)?;
                if url.tls && !next.tls {
                    return Err("it leads from https to http, which is not followed".into());
                }
                url = next;
            }
            404 | 410 => return Ok(Answer::Missing),
            status => return Ok(Answer::Refused(status)),
        }
    }
    Err(format!("it leads from one address to another more than {REDIRECTIONS} times"))
}

fn lost(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => "it takes too long".into(),
        std::io::ErrorKind::UnexpectedEof => "the connection ended too early".into(),
        _ => format!("the connection is lost ({error})"),
    }
}

/// The head, and what came behind it.
fn read_head(stream: &mut Stream) -> Result<(Head, Vec<u8>), String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part).map_err(|e| lost(&e))?;
        bytes.extend_from_slice(part.get(..read).unwrap_or_default());
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&bytes).map_err(|e| format!("it does not answer with HTTP ({e})"))?;
        if let httparse::Status::Complete(end) = parsed {
            let head = head(&response)?;
            return Ok((head, bytes.split_off(end)));
        }
        if read == 0 || bytes.len() > HEAD {
            return Err("it does not answer with HTTP".into());
        }
    }
}

fn head(response: &httparse::Response) -> Result<Head, String> {
    let value = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
        found.and_then(|h| std::str::from_utf8(h.value).ok()).map(|v| v.trim().to_owned())
    };
    let length = value("content-length").map(|v| v.parse().map_err(|_| format!("it says that the length is {v:?}")));
    Ok(Head {
        status: response.code.unwrap_or(0),
        location: value("location"),
        length: length.transpose()?,
        chunked: value("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")),
        encoding: value("content-encoding").filter(|v| !v.eq_ignore_ascii_case("identity")),
    })
}

fn body(stream: Stream, head: Head, ahead: Vec<u8>) -> Result<Body, String> {
    if let Some(encoding) = head.encoding {
        return Err(format!("it packs the answer ({encoding:?}), though it was asked not to"));
    }
    let left = match head.length {
        _ if head.chunked => Left::Chunk { bytes: 0, first: true },
        Some(length) => Left::Bytes(length),
        None => Left::ToTheEnd,
    };
    Ok(Body { stream, ahead, used: 0, left, length: head.length.filter(|_| !head.chunked) })
}

impl Body {
    /// The next bytes, 0 at the end; the error is a sentence.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
        if let Left::Chunk { bytes: 0, first } = self.left {
            let bytes = self.chunk_length(first)?;
            self.left = if bytes == 0 { Left::Nothing } else { Left::Chunk { bytes, first: false } };
        }
        let limit = match self.left {
            Left::Bytes(bytes) | Left::Chunk { bytes, .. } => {
                into.len().min(usize::try_from(bytes).unwrap_or(usize::MAX))
            }
            Left::ToTheEnd => into.len(),
            Left::Nothing => 0,
        };
        if limit == 0 {
            return Ok(0);
        }
        let read = self.raw(into.get_mut(..limit).unwrap_or_default())?;
        match &mut self.left {
            Left::Bytes(_) | Left::Chunk { .. } if read == 0 => return Err("the connection ended too early".into()),
            Left::Bytes(bytes) | Left::Chunk { bytes, .. } => *bytes = bytes.saturating_sub(read as u64),
            Left::ToTheEnd | Left::Nothing => {}
        }
        Ok(read)
    }

    fn raw(&mut self, into: &mut [u8]) -> Result<usize, String> {
        let ahead = self.ahead.get(self.used..).unwrap_or_default();
        if !ahead.is_empty() {
            let length = ahead.len().min(into.len());
            for (to, from) in into.iter_mut().zip(ahead) {
                *to = *from;
            }
            self.used += length;
            return Ok(length);
        }
        self.stream.read(into).map_err(|e| lost(&e))
    }

    /// The line before a part: its length in hexadecimal digits. Before all but the first stands the end of the one before.
    fn chunk_length(&mut self, first: bool) -> Result<u64, String> {
        let mut line = self.line()?;
        if !first && line.is_empty() {
            line = self.line()?;
        }
        let digits = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16).map_err(|_| "a part of the answer has no length".into())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        while line.len() < CHUNK_LINE {
            let mut byte = [0];
            if self.raw(&mut byte)? == 0 {
                break;
            }
            match byte {
                [b'\n'] => return Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
                [byte] => line.push(byte),
            }
        }
        Err("a part of the answer has no length".into())
    }
}
