//! A small HTTP server: what it does is in the path of each request.
//!
//! - `/echo…` sends the request back.
//! - `/status/503` answers with that status.
//! - `/store`: `POST` keeps a body, `GET` brings all of them, a line each.
//! - `/paced` answers one request after another, [`PACE`] each: 250 a second in all.
//! - `/close` answers and then closes the connection without a word about it.
//! - `/drop` closes it without an answer; `/never` keeps it without one; `/noise` answers with what is no HTTP.
//! - `/part` closes it in the middle of the body.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long `/paced` works on a request.
pub const PACE: Duration = Duration::from_millis(4);

/// A server that runs until the test's process ends, or [`HttpServer::kill`].
#[derive(Clone)]
pub struct HttpServer {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    stored: Vec<String>,
    requests: Vec<String>,
    connections: Vec<TcpStream>,
    accepted: usize,
    is_dead: bool,
    /// When `/paced` is done with what it has.
    free_at: Option<Instant>,
}

/// Starts one.
pub fn start() -> HttpServer {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port can be had");
    let port = listener.local_addr().expect("it has an address").port();
    let server = HttpServer { port, state: Arc::default() };
    let accepting = server.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut state = accepting.state.lock().expect("no one panicked");
            if state.is_dead {
                return;
            }
            state.accepted += 1;
            state.connections.push(stream.try_clone().expect("a socket can be shared"));
            drop(state);
            let serving = accepting.clone();
            std::thread::spawn(move || serving.serve(stream));
        }
    });
    server
}

impl HttpServer {
    /// How often a request began with this line.
    pub fn seen(&self, first_line: &str) -> usize {
        let state = self.state.lock().expect("no one panicked");
        state.requests.iter().filter(|line| line.starts_with(first_line)).count()
    }

    /// Connections that came so far.
    pub fn accepted(&self) -> usize {
        self.state.lock().expect("no one panicked").accepted
    }

    /// Waits until that many came: a client is connected before its server knows.
    pub fn wait_for(&self, connections: usize) {
        while self.accepted() < connections {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Closes all connections and takes no more.
    pub fn kill(&self) {
        let mut state = self.state.lock().expect("no one panicked");
        state.is_dead = true;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the thread that accepts, which closes the port as it ends.
        while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Waits for its turn, and then for as long as the work takes. Turns are handed out beforehand: sleeping too long costs
    /// the server nothing while requests wait.
    fn work(&self) {
        let now = Instant::now();
        let mut state = self.state.lock().expect("no one panicked");
        let done = state.free_at.unwrap_or(now).max(now) + PACE;
        state.free_at = Some(done);
        drop(state);
        std::thread::sleep(done.saturating_duration_since(Instant::now()));
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut stream = stream;
        loop {
            let (head, body) = read_request(&mut reader)?;
            let first = head.lines().next()?.to_owned();
            self.state.lock().ok()?.requests.push(first.clone());
            let mut words = first.split(' ');
            let (method, target) = (words.next()?, words.next()?);
            match target.split(['?', '/']).nth(1)? {
                "status" => {
                    let status = target.trim_start_matches("/status/");
                    respond(&mut stream, status, "because the test says so")?;
                }
                "store" if method == "POST" => {
                    self.state.lock().ok()?.stored.push(body);
                    respond(&mut stream, "201", "")?;
                }
                "store" => {
                    let all = self.state.lock().ok()?.stored.join("\n");
                    respond(&mut stream, "200", &all)?;
                }
                "paced" => {
                    self.work();
                    respond(&mut stream, "200", "")?;
                }
                "close" => {
                    respond(&mut stream, "200", "bye")?;
                    stream.shutdown(Shutdown::Both).ok()?;
                    return None;
                }
                "drop" => return stream.shutdown(Shutdown::Both).ok(),
                "never" => {}
                "noise" => stream.write_all(b"SSH-2.0-nothing\r\n\r\n").ok()?,
                "part" => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").ok()?;
                    return stream.shutdown(Shutdown::Both).ok();
                }
                _ => respond(&mut stream, "200", &format!("{head}\n{body}"))?,
            }
        }
    }
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    let length = body.len();
    stream
        .write_all(
            format!(
                "HTTP/1.1 {status} As Told\r\nServer: holdup-test/1.2 (here)\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
        .ok()
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(line);
        head.push('\n');
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8_lossy(&body).into_owned()))
}
