//! A Redis server without files.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use holdup_testing::Need;

use super::certificate::Certificate;
use super::{Server, directory, free_port, program};

/// What [`start`] needs.
pub const NEEDS: &[Need] = &[Need::Program("redis-server")];

/// What it needs with a certificate.
pub fn needs_of_tls() -> [Need<'static>; 2] {
    let libraries = program("redis-server", &[]).and_then(|redis| Command::new("ldd").arg(redis).output().ok());
    let is_here = libraries.is_some_and(|o| String::from_utf8_lossy(&o.stdout).contains("libssl"));
    [NEEDS[0], Need::Other { name: "redis-server that was built with TLS", is_here }]
}

/// A server on [`Server::port`] that asks for `password`, if there is one, and with a certificate speaks TLS alone.
///
/// # Errors
/// Why it can't be had here: not installed, or what it printed last.
pub fn start(password: Option<&str>, certificate: Option<&Certificate>) -> Result<Server, String> {
    let redis = program("redis-server", &[]).ok_or("there is no redis-server")?;
    let dir = directory("redis");
    let port = free_port();
    let mut line: Vec<String> = vec![redis.display().to_string()];
    let dir_name = dir.path().display().to_string();
    let port_text = port.to_string();
    let port_flag = if certificate.is_some() { "--tls-port" } else { "--port" };
    if certificate.is_some() {
        line.extend(["--port", "0", "--tls-auth-clients", "no"].map(str::to_owned));
    }
    for (flag, path) in certificate.iter().flat_map(|c| [("--tls-cert-file", &c.chain), ("--tls-key-file", &c.key)]) {
        line.extend([flag.to_owned(), path.display().to_string()]);
    }
    for pair in [[port_flag, &port_text], ["--bind", "127.0.0.1"], ["--save", ""], ["--dir", &dir_name]] {
        line.extend(pair.map(str::to_owned));
    }
    if let Some(password) = password {
        line.extend(["--requirepass".to_owned(), password.to_owned()]);
    }
    Server::start(&line, dir, port, Duration::from_secs(30))
}

/// Waits until a server without a password has looked up that many keys more: until then a program that was just started may
/// still be about to connect. Returns early when `goes_on` says that nobody will ask any more.
pub fn wait_for_lookups(server: &Server, more: u64, mut goes_on: impl FnMut() -> bool) {
    let before = lookups(server);
    while goes_on() && lookups(server) < before + more {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How many keys it was asked for so far. The question itself asks for none.
fn lookups(server: &Server) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
    stream.write_all(b"INFO stats\r\nQUIT\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let counts = ["keyspace_hits:", "keyspace_misses:"].map(|name| {
        let count = answer.lines().find_map(|line| line.strip_prefix(name));
        count.and_then(|count| count.trim().parse::<u64>().ok()).expect("a count")
    });
    counts.iter().sum()
}
