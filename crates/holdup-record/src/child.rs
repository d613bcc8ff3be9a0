//! The command that is recorded: created first, started once recording is active.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use holdup_trace::{Error, Result};

use crate::clock;
use crate::signals::{self, Signals};

/// How long a command that was told to end is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The command's process. It waits for [`start`](Self::start) before it becomes the command.
#[derive(Debug)]
pub(crate) struct Child {
    pid: i32,
    go: Option<File>,
    failed: File,
    program: String,
    status: Option<i32>,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new descriptors that nobody else owns.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

impl Child {
    /// Creates the process, which waits.
    pub(crate) fn prepare(argv: &[OsString]) -> Result<Child> {
        let program = argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let bad = |e: &dyn std::fmt::Display| Error::Input(format!("The command {program:?} cannot be run: {e}"));
        let words: Result<Vec<CString>, _> = argv.iter().map(|a| CString::new(a.as_bytes())).collect();
        let words = words.map_err(|e| bad(&e))?;
        if words.is_empty() {
            return Err(bad(&"it is empty"));
        }
        let mut pointers: Vec<_> = words.iter().map(|w| w.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let (wait, go) = pipe().map_err(|e| bad(&e))?;
        let (failed, report) = pipe().map_err(|e| bad(&e))?;
        // SAFETY: the child calls nothing but async-signal-safe functions until it execs or exits.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(bad(&io::Error::last_os_error())),
            0 => become_command(&pointers, wait.as_raw_fd(), go.as_raw_fd(), report.as_raw_fd()),
            _ => Ok(Child { pid, go: Some(go.into()), failed: failed.into(), program, status: None }),
        }
    }

    /// Waits for its end: its exit code, and the signal that ended it. One that outlives the time it was given is told to end; one
    /// that outlives its recording only because the disk is full (`failed`) is waited for: that is no fault of its own.
    pub(crate) fn wait(
        &mut self,
        signals: &mut Signals,
        failed: bool,
        notes: &mut Vec<String>,
    ) -> (Option<i32>, Option<i32>) {
        if self.ended().is_none() && !failed {
            self.signal(libc::SIGTERM);
        }
        let give_up = clock::now() + PATIENCE.as_nanos() as u64;
        loop {
            if let Some((code, signal)) = self.ended() {
                return (Some(code), signal);
            }
            if let Some(signal) = signals.take().filter(|s| s.pass_on) {
                self.signal(signal.number);
            }
            if clock::now() > give_up && !failed {
                notes.push(format!("the command (pid {}) still runs", self.pid()));
                return (None, None);
            }
            signals::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// Lets the process become the command.
    pub(crate) fn start(&mut self) -> Result<()> {
        if let Some(mut go) = self.go.take() {
            let _ = go.write_all(&[1]);
        }
        let mut errno = [0; 4];
        // The other end is closed by a successful exec.
        if self.failed.read_exact(&mut errno).is_ok() {
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
            return Err(Error::Input(format!("The command {:?} cannot be run: {error}", self.program)));
        }
        Ok(())
    }

    /// Sends a signal, unless it has ended.
    pub(crate) fn signal(&self, signal: i32) {
        if self.status.is_none() {
            // SAFETY: no memory is involved; the process is our child and not yet waited for.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    /// The exit code (128 + n for signal n) and the signal, once it has ended.
    pub(crate) fn ended(&mut self) -> Option<(i32, Option<i32>)> {
        if self.status.is_none() {
            let mut status = 0;
            // SAFETY: `status` lives through the call.
            if unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) } == self.pid {
                self.status = Some(status);
            }
        }
        self.status.map(|s| match libc::WIFSIGNALED(s) {
            true => (128 + libc::WTERMSIG(s), Some(libc::WTERMSIG(s))),
            false => (libc::WEXITSTATUS(s), None),
        })
    }
}

/// In the new process: waits for a byte and execs; ends quietly if the recorder went away.
fn become_command(argv: &[*const libc::c_char], wait: RawFd, go: RawFd, report: RawFd) -> ! {
    // SAFETY: async-signal-safe calls only, on descriptors and strings that live until the exec.
    unsafe {
        libc::close(go);
        let mut byte = 0u8;
        loop {
            match libc::read(wait, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(127),
            }
        }
        crate::caps::give_up_in_child();
        // Rust ignores SIGPIPE; a command expects the default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execvp(argv[0], argv.as_ptr());
        let errno = *libc::__errno_location();
        libc::write(report, (&raw const errno).cast(), 4);
        libc::_exit(127)
    }
}
