//! Who is asked: its numbers, its user, its /tmp.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

use super::Refusal;

/// Most of /proc/PID/maps that is looked through, in bytes: a process can have any number of mappings.
const MAPS_LIMIT: u64 = 16 << 20;
/// SIGQUIT in the mask of caught signals.
const QUIT_BIT: u64 = 1 << 2;

/// A live Java process of the user that asks.
#[derive(Debug)]
pub struct Target {
    /// Its number here.
    pub pid: u32,
    /// Its number in its own namespace, which its files are named by.
    pub inner: u32,
    /// Its effective user.
    pub uid: u32,
    /// Stays the same process, however numbers are used again.
    handle: OwnedFd,
}

impl Target {
    /// # Errors
    /// Where it is not a Java process, or another user's.
    pub fn of(pid: u32) -> Result<Target, Refusal> {
        let gone = || Refusal::NotJava(pid);
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let handle = pidfd_open(number, PidfdFlags::empty()).map_err(|_| gone())?;
        let uid = std::fs::metadata(format!("/proc/{pid}")).map_err(|_| gone())?.uid();
        if uid != geteuid().as_raw() {
            return Err(Refusal::OtherUser { pid, owner: uid });
        }
        if !maps_libjvm(pid) {
            return Err(gone());
        }
        let inner = field(pid, "NSpid:").and_then(|v| v.split_whitespace().last()?.parse().ok()).ok_or_else(gone)?;
        Ok(Target { pid, inner, uid, handle })
    }

    /// Its /tmp, as it sees it: links stay inside its root.
    pub(super) fn tmp(&self) -> Result<OwnedFd, Refusal> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, format!("/proc/{}/root", self.pid), flags, Mode::empty())?;
        Ok(openat2(&root, "tmp", flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)?)
    }

    /// SIGQUIT, only where it is caught: it would end the process otherwise.
    pub(super) fn quit(&self) -> Result<(), Refusal> {
        let caught = field(self.pid, "SigCgt:").and_then(|v| u64::from_str_radix(v.trim(), 16).ok());
        if caught.is_none_or(|mask| mask & QUIT_BIT == 0) {
            return Err(Refusal::Uncaught(self.pid));
        }
        pidfd_send_signal(&self.handle, Signal::QUIT).map_err(|_| Refusal::NotJava(self.pid))
    }

    #[cfg(test)]
    pub(super) fn for_test(pid: u32, uid: u32) -> Target {
        let number = Pid::from_raw(pid.cast_signed()).unwrap();
        Target { pid, inner: pid, uid, handle: pidfd_open(number, PidfdFlags::empty()).unwrap() }
    }
}

fn field(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned)
}

fn maps_libjvm(pid: u32) -> bool {
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return false };
    // By bytes: a path is any bytes.
    BufReader::new(maps.take(MAPS_LIMIT)).split(b'\n').map_while(Result::ok).any(|line| line.ends_with(b"/libjvm.so"))
}
