//! The functions that a Java virtual machine compiled, asked for while it lives.
//!
//! This is what `jcmd PID Compiler.perfmap` does (JDK 17 and newer): a file `.attach_pidN` and SIGQUIT make the machine open a socket
//! `.java_pidN`, which takes commands. The machine writes the map into its own /tmp; it is read from there and removed.

mod channel;
mod flags;
mod frames;
mod insides;
mod merge;
mod methods;
mod scopes;
mod structs;
mod target;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

pub use frames::merge_frames;
pub use holdup_symbols::{CompiledFrame, InlinedFunctions, METHOD};
pub use insides::{Insides, Met};
pub use merge::merge;
pub use target::Target;

/// Largest map that is read, in bytes: 50,000 methods make about 4 MB.
const MAP_LIMIT: u64 = 64 << 20;
/// How often the socket is looked for after the signal.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why there is no map. Each says what may be done.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No libjvm.so is mapped, or the process is gone.
    #[error("process {0} is not a Java virtual machine that runs")]
    NotJava(u32),
    /// Files would be made, and signals sent, with another's rights.
    #[error(
        "the Java process {pid} belongs to user {owner}: its methods have names if you record as that user or as root, or start it with -XX:+DumpPerfMapAtExit"
    )]
    OtherUser {
        /// The process, as seen from here.
        pid: u32,
        /// Its effective user.
        owner: u32,
    },
    /// It runs with more than one user's rights.
    #[error("process {0} has changed its user and is not asked for names: start it with -XX:+DumpPerfMapAtExit")]
    Privileged(u32),
    /// It was told to answer nobody.
    #[error(
        "the Java process {pid} is not asked for the names of its methods: -XX:+DisableAttachMechanism stands {place}. Leave it out, or start it with -XX:+DumpPerfMapAtExit"
    )]
    Forbidden {
        /// The process, as seen from here.
        pid: u32,
        /// Where the flag stands.
        place: &'static str,
    },
    /// SIGQUIT would end it: it has only begun. (Under `-Xrs` too, but there the socket is open from the beginning.)
    #[error("process {0} does not catch SIGQUIT (it has only begun?): start it with -XX:+DumpPerfMapAtExit")]
    Uncaught(u32),
    /// It is busy or stopped.
    #[error("the Java process {0} did not begin to answer in time: start it with -XX:+DumpPerfMapAtExit")]
    NoSocket(u32),
    /// What listens there is not the process.
    #[error("{0} is not the process's own: not used")]
    Planted(&'static str),
    /// A map that someone else asked for would be overwritten.
    #[error("a perf map is there already: not asked again")]
    MapExists,
    /// It connected, and was silent, or died.
    #[error("process {0} did not answer in time, or ended meanwhile")]
    Silent(u32),
    /// An older machine does not know the command. The text is the machine's, never to be printed raw.
    #[error("the machine refused the command (JDK 17 and newer know it): start it with -XX:+DumpPerfMapAtExit")]
    Command(Vec<u8>),
    /// More than is read.
    #[error("the perf map has {0} bytes, more than the {MAP_LIMIT} that are read")]
    Huge(u64),
    /// What the system said.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl From<Errno> for Refusal {
    fn from(e: Errno) -> Refusal {
        Refusal::System(e.into())
    }
}

impl Refusal {
    /// Whether nothing is worth saying of it: the process is gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Refusal::NotJava(_))
    }

    /// Whether it makes sense to ask again later.
    pub fn may_change(&self) -> bool {
        matches!(self, Refusal::Uncaught(_) | Refusal::NoSocket(_) | Refusal::Silent(_))
    }
}

/// What a machine answered.
#[derive(Debug)]
pub struct Answer {
    /// The text of its perf map.
    pub text: Vec<u8>,
    /// The frames of the code that it names, where they could be read, by start.
    pub frames: Vec<CompiledFrame>,
    /// CPU time that the answer took the process.
    pub spent: Duration,
}

/// The perf map of the Java process `pid`, which is asked for it in the name of the user `acting`: the effective user of the thread
/// that calls, or who its file system user is. Takes at most about `limit`.
///
/// # Errors
/// See [`Refusal`]. The process has then been sent at most one SIGQUIT, which it catches; no file of ours is left. One that gives
/// no answer in time may write its map afterwards.
pub fn perf_map(pid: u32, acting: u32, limit: Duration) -> Result<Answer, Refusal> {
    let until = Instant::now() + limit;
    let target = Target::of(pid, acting)?;
    let tmp = target.tmp()?;
    let before = target.spent();
    let text = ask(&target, tmp.as_fd(), until)?;
    let spent = Duration::from_nanos(target.spent().saturating_sub(before));
    let frames = frames::of(&target, &text, until);
    Ok(Answer { text, frames, spent })
}

fn ask(target: &Target, tmp: BorrowedFd, until: Instant) -> Result<Vec<u8>, Refusal> {
    let map = format!("perf-{}.map", target.inner);
    // Where something is, the machine would follow or truncate it.
    match statat(tmp, &*map, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        Ok(_) => return Err(Refusal::MapExists),
        Err(e) => return Err(e.into()),
    }
    let socket = format!(".java_pid{}", target.inner);
    if !is_own_socket(tmp, &socket, target)? {
        wake(target, tmp, &socket, until)?;
    }
    let done = channel::command(target, tmp, &socket, "Compiler.perfmap", until);
    // It did not exist before: what is there now was written because we asked. Only this one is removed, whoever writes another.
    let written = statat(tmp, &*map, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|found| found.st_uid == target.uid);
    let answer = done.and_then(|()| read_map(target, tmp, &map));
    if let Some(written) = written {
        remove_same(tmp, &map, &written);
    }
    answer
}

/// Whether the socket is there. `Err` where something else is in its place.
fn is_own_socket(tmp: BorrowedFd, name: &str, target: &Target) -> Result<bool, Refusal> {
    match statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(e.into()),
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Socket && found.st_uid == target.uid => {
            Ok(true)
        }
        Ok(_) => Err(Refusal::Planted("the attach socket")),
    }
}

/// Makes the machine open its socket.
fn wake(target: &Target, tmp: BorrowedFd, socket: &str, until: Instant) -> Result<(), Refusal> {
    let request = format!(".attach_pid{}", target.inner);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(openat(tmp, &*request, flags, Mode::RUSR | Mode::WUSR)?);
    let woken = target.quit().and_then(|()| {
        loop {
            if is_own_socket(tmp, socket, target)? {
                return Ok(());
            }
            if !target.is_alive() {
                return Err(Refusal::NotJava(target.pid));
            }
            if Instant::now() >= until {
                return Err(Refusal::NoSocket(target.pid));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    });
    // Ours, by EXCL; the machine may have removed it itself.
    let _ = unlinkat(tmp, &*request, AtFlags::empty());
    woken
}

fn read_map(target: &Target, tmp: BorrowedFd, name: &str) -> Result<Vec<u8>, Refusal> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(tmp, name, flags, Mode::empty())?;
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_uid != target.uid {
        return Err(Refusal::Planted("the perf map"));
    }
    let len = found.st_size.unsigned_abs();
    if len > MAP_LIMIT {
        return Err(Refusal::Huge(len));
    }
    let mut text = Vec::new();
    File::from(file).take(len).read_to_end(&mut text)?;
    Ok(text)
}

fn remove_same(tmp: BorrowedFd, name: &str, written: &Stat) {
    let now = statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW);
    if now.is_ok_and(|now| (now.st_dev, now.st_ino) == (written.st_dev, written.st_ino)) {
        let _ = unlinkat(tmp, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests;
