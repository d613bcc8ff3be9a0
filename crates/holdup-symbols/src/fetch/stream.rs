//! A connection on which no read or write waits beyond a deadline.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::url::Url;

/// Longest wait for the next byte.
const IDLE: Duration = Duration::from_secs(30);
/// Longest wait for a connection, to one of the server's addresses.
const CONNECT: Duration = Duration::from_secs(10);

/// What bytes go over.
pub(super) struct Stream {
    socket: Socket,
    deadline: Instant,
}

enum Socket {
    Plain(TcpStream),
    #[cfg(feature = "https")]
    Tls(Box<super::tls::Tls>),
}

impl Stream {
    /// Connects; the error is a sentence without the server's name.
    pub fn open(url: &Url, deadline: Instant) -> Result<Stream, String> {
        let addresses = (url.host.as_str(), url.port).to_socket_addrs();
        let addresses = addresses.map_err(|e| format!("it has no IP address that can be found ({e})"))?;
        let mut why = "it has no IP address".to_owned();
        for address in addresses {
            let limit = CONNECT.min(deadline.saturating_duration_since(Instant::now()));
            if limit.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, limit) {
                Ok(tcp) => return Ok(Stream { socket: secured(tcp, url)?, deadline }),
                Err(e) => why = format!("there is no connection to it ({e})"),
            }
        }
        Err(why)
    }

    fn tcp(&self) -> &TcpStream {
        match &self.socket {
            Socket::Plain(tcp) => tcp,
            #[cfg(feature = "https")]
            Socket::Tls(tls) => &tls.sock,
        }
    }

    /// Gives the next operation the time that is left.
    fn limit(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let limit = Some(IDLE.min(left));
        self.tcp().set_read_timeout(limit)?;
        self.tcp().set_write_timeout(limit)
    }
}

#[cfg(feature = "https")]
fn secured(tcp: TcpStream, url: &Url) -> Result<Socket, String> {
    if url.tls {
        super::tls::connect(tcp, &url.host).map(|tls| Socket::Tls(Box::new(tls)))
    } else {
        Ok(Socket::Plain(tcp))
    }
}

#[cfg(not(feature = "https"))]
fn secured(tcp: TcpStream, url: &Url) -> Result<Socket, String> {
    if url.tls {
        return Err("this build of holdup has no TLS (feature `https`): use a server with http".into());
    }
    Ok(Socket::Plain(tcp))
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        match &mut self.socket {
            Socket::Plain(tcp) => tcp.read(into),
            #[cfg(feature = "https")]
            Socket::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        match &mut self.socket {
            Socket::Plain(tcp) => tcp.write(bytes),
            #[cfg(feature = "https")]
            Socket::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.socket {
            Socket::Plain(tcp) => tcp.flush(),
            #[cfg(feature = "https")]
            Socket::Tls(tls) => tls.flush(),
        }
    }
}
