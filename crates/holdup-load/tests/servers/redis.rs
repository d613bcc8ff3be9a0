//! A Redis server without files.

use std::time::Duration;

use super::certificate::Certificate;
use super::{Server, directory, free_port, program};

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
