//! Who is asked: its numbers, its user, its /tmp.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{Refusal, flags};

/// Most of /proc/PID/maps that is looked through, in bytes: a process can have any number of mappings.
pub(super) const MAPS_LIMIT: u64 = 16 << 20;
/// SIGQUIT in the mask of caught signals.
const QUIT_BIT: u64 = 1 << 2;
/// The thread of the machine that does what it is asked for.
const ASKED_THREAD: &[u8] = b"Attach Listener\n";
/// So many threads of a process are looked through for it.
const THREADS: usize = 4_096;

/// A live Java process of the user in whose name it is asked.
#[derive(Debug)]
pub struct Target {
    /// Its number here.
    pub pid: u32,
    /// Its number in its own namespace, which its files are named by.
    pub inner: u32,
    /// Its user.
    pub uid: u32,
    /// Stays the same process, however numbers are used again.
    handle: OwnedFd,
    /// Its /proc/PID/status, opened before: what it says last is read just before a signal.
    status: File,
}

impl Target {
    /// The process `pid`, asked in the name of the user `acting`.
    ///
    /// # Errors
    /// Where it is not a Java process, another user's, or one that says that it does not want to be asked.
    pub fn of(pid: u32, acting: u32) -> Result<Target, Refusal> {
        let gone = || Refusal::NotJava(pid);
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let handle = pidfd_open(number, PidfdFlags::empty()).map_err(|_| gone())?;
        let status = File::open(format!("/proc/{pid}/status")).map_err(|_| gone())?;
        let uid = user(&status).ok_or(Refusal::Privileged(pid))?;
        if uid != acting {
            return Err(Refusal::OtherUser { pid, owner: uid });
        }
        if !maps_libjvm(pid) {
            return Err(gone());
        }
        let numbers = field(&status, "NSpid:").ok_or_else(gone)?;
        let inner = numbers.split_whitespace().last().and_then(|n| n.parse().ok()).ok_or_else(gone)?;
        let target = Target { pid, inner, uid, handle, status };
        if let Some(place) = flags::that_forbid(pid) {
            return Err(Refusal::Forbidden { pid, place });
        }
        // It is the process of the handle that all of this was read of: its number can't be given away before it has ended.
        if target.is_alive() { Ok(target) } else { Err(gone()) }
    }

    /// Whether it has not ended.
    pub(super) fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    /// Its /tmp, as it sees it: links stay inside its root.
    pub(super) fn tmp(&self) -> Result<OwnedFd, Refusal> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, format!("/proc/{}/root", self.pid), flags, Mode::empty())?;
        Ok(openat2(&root, "tmp", flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)?)
    }

    /// SIGQUIT, only where it is caught: it would end the process otherwise. Between look and signal lies nothing but the call,
    /// so that a process which becomes another program by exec is out of luck for microseconds.
    pub(super) fn quit(&self) -> Result<(), Refusal> {
        let caught = field(&self.status, "SigCgt:").and_then(|v| u64::from_str_radix(v.trim(), 16).ok());
        if caught.is_none_or(|mask| mask & QUIT_BIT == 0) {
            return Err(Refusal::Uncaught(self.pid));
        }
        pidfd_send_signal(&self.handle, Signal::QUIT).map_err(|_| Refusal::NotJava(self.pid))
    }

    /// CPU time, in ns, that it has spent so far on what it was asked for.
    pub(super) fn spent(&self) -> u64 {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else { return 0 };
        let is_it = |path: &std::path::Path| std::fs::read(path.join("comm")).is_ok_and(|name| name == ASKED_THREAD);
        let thread = tasks.take(THREADS).flatten().map(|task| task.path()).find(|path| is_it(path));
        let counts = thread.and_then(|path| std::fs::read_to_string(path.join("schedstat")).ok());
        counts.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn for_test(pid: u32, uid: u32) -> Target {
        let number = Pid::from_raw(pid.cast_signed()).unwrap();
        let status = File::open(format!("/proc/{pid}/status")).unwrap();
        Target { pid, inner: pid, uid, handle: pidfd_open(number, PidfdFlags::empty()).unwrap(), status }
    }
}

/// The line of a status that begins with `name`.
fn field(status: &File, name: &str) -> Option<String> {
    let mut text = vec![0; 16 << 10];
    let read = status.read_at(&mut text, 0).ok()?;
    let text = String::from_utf8_lossy(&text[..read]);
    text.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned)
}

/// Its user; `None` where real, effective, saved and file user differ: such a program acts for somebody.
fn user(status: &File) -> Option<u32> {
    let line = field(status, "Uid:")?;
    let mut users = line.split_whitespace().map(str::parse::<u32>);
    let first = users.next()?.ok()?;
    users.all(|other| other == Ok(first)).then_some(first)
}

fn maps_libjvm(pid: u32) -> bool {
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return false };
    // By bytes: a path is any bytes.
    BufReader::new(maps.take(MAPS_LIMIT)).split(b'\n').map_while(Result::ok).any(|line| line.ends_with(b"/libjvm.so"))
}
