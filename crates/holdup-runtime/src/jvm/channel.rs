//! One command over the attach socket, protocol version 1.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::{Refusal, Target};

/// Most of a reply that is read: it is a number and, of a machine that refuses, a sentence.
const REPLY_LIMIT: u64 = 64 << 10;

/// Gives `command` to the machine and waits until it says that it has done it.
pub(super) fn command(
    target: &Target,
    tmp: BorrowedFd,
    socket: &str,
    command: &str,
    until: Instant,
) -> Result<(), Refusal> {
    let fd = open(target, tmp, socket)?;
    let peer = socket_peercred(&fd)?;
    if peer.pid.as_raw_nonzero().get().cast_unsigned() != target.pid || peer.uid.as_raw() != target.uid {
        return Err(Refusal::Planted("the attach socket"));
    }
    let mut stream = UnixStream::from(fd);
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(left(target, until)?))?;
    // Version, command, three arguments.
    stream.write_all(format!("1\0jcmd\0{command}\0\0\0").as_bytes()).map_err(|_| Refusal::Silent(target.pid))?;
    let reply = read_reply(target, &mut stream, until)?;
    // Of an older machine, the first line is 0 and the text says that it does not know the command.
    match reply.strip_prefix(b"0\n") {
        Some(text) if !text.starts_with(b"java.lang.IllegalArgumentException") => Ok(()),
        _ => Err(Refusal::Command(reply)),
    }
}

/// Connects without waiting: a socket that accepts nobody says so by a full queue.
fn open(target: &Target, tmp: BorrowedFd, socket: &str) -> Result<OwnedFd, Refusal> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // An address holds 108 bytes, which a path through a container's root may exceed.
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{socket}", tmp.as_raw_fd()))?;
    match connect(&fd, &address) {
        Ok(()) => Ok(fd),
        Err(Errno::AGAIN | Errno::CONNREFUSED) => Err(Refusal::Silent(target.pid)),
        Err(e) => Err(e.into()),
    }
}

/// The limit is for the whole reply: one that comes byte by byte ends by it too.
fn read_reply(target: &Target, stream: &mut UnixStream, until: Instant) -> Result<Vec<u8>, Refusal> {
    let mut reply = Vec::new();
    let mut part = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left(target, until)?))?;
        match stream.read(&mut part) {
            Ok(0) if reply.is_empty() => return Err(Refusal::Silent(target.pid)),
            Ok(0) => return Ok(reply),
            Ok(n) => reply.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(Refusal::Silent(target.pid)),
        }
        if reply.len() as u64 > REPLY_LIMIT {
            reply.truncate(REPLY_LIMIT as usize);
            return Err(Refusal::Command(reply));
        }
    }
}

fn left(target: &Target, until: Instant) -> Result<Duration, Refusal> {
    until.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()).ok_or(Refusal::Silent(target.pid))
}
