//! A server of files for tests: one request after the other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What a server says to a path; it may write as long as it likes.
pub type Handler = Box<dyn Fn(&str, &mut TcpStream) + Send>;

/// A server on the loopback device.
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    end: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: Handler) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, end) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (log, ended) = (asked.clone(), end.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let mut stream = stream.unwrap();
                let Some(path) = request(&mut stream) else { continue };
                log.lock().unwrap().push(path.clone());
                handler(&path, &mut stream);
            }
        });
        Server { url: format!("http://{address}"), asked, end }
    }

    /// The paths that were asked for since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.contains("\r\nHost: 127.0.0.1:") && head.contains("\r\nAccept-Encoding: identity\r\n"), "{head}");
    Some(head.strip_prefix("GET ")?.split(' ').next()?.to_owned())
}

/// Clients may have gone: they need not hear all.
pub fn say(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(b"\r\n\r\n"))
        .and_then(|()| stream.write_all(body));
}

pub fn with_length(stream: &mut TcpStream, body: &[u8]) {
    say(stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}", body.len()), body);
}

pub fn not_found(stream: &mut TcpStream) {
    say(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 4", b"none");
}
