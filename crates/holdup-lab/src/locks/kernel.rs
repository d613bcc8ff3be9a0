//! Objects of the kernel used as locks: each lock and unlock is a system call.

use std::ffi::CString;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Lock;

/// An error of the system call that just failed, or its result.
fn checked(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn owned(fd: libc::c_int) -> OwnedFd {
    // SAFETY: the caller got this descriptor from the kernel just now and gives it away.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Reads `N` bytes, again if a signal came.
fn take<const N: usize>(fd: &OwnedFd) {
    let mut bytes = [0u8; N];
    // SAFETY: the buffer is as long as we say.
    while unsafe { libc::read(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), N) } != N as isize {}
}

fn put(fd: &OwnedFd, bytes: &[u8]) {
    // SAFETY: the buffer is as long as we say. There is room for one token always.
    while unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) } != bytes.len() as isize {}
}

/// An eventfd in semaphore mode with one permit.
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A free one.
    pub fn new() -> Result<Self> {
        // SAFETY: the call takes two numbers.
        checked(unsafe { libc::eventfd(1, libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC) }).map(|fd| EventFd(owned(fd)))
    }
}

impl Lock for EventFd {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        take::<8>(&self.0);
        let result = section();
        put(&self.0, &1u64.to_ne_bytes());
        result
    }
}

/// A pipe with one byte in it: who has the byte has the lock.
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    /// A free one.
    pub fn new() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for the two descriptors.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        let pipe = Pipe { read: owned(ends[0]), write: owned(ends[1]) };
        put(&pipe.write, &[1]);
        Ok(pipe)
    }
}

impl Lock for Pipe {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        take::<1>(&self.read);
        let result = section();
        put(&self.write, &[1]);
        result
    }
}

/// A System V semaphore with one permit.
pub struct SysV(libc::c_int);

impl SysV {
    /// A free one.
    pub fn new() -> Result<Self> {
        // SAFETY: the call takes three numbers.
        let id = checked(unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | 0o600) })?;
        let semaphore = SysV(id);
        semaphore.change(1);
        Ok(semaphore)
    }

    fn change(&self, by: libc::c_short) {
        let mut step = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
        // SAFETY: there is one step, and the set lives as long as `self`. A signal may end the wait.
        while unsafe { libc::semop(self.0, &raw mut step, 1) } != 0 {}
    }
}

impl Lock for SysV {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        self.change(-1);
        let result = section();
        self.change(1);
        result
    }
}

impl Drop for SysV {
    fn drop(&mut self) {
        // SAFETY: the set is ours, and nobody else can use it any more.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// `flock` on a file in memory; each thread has opened it for itself, as the lock belongs to the open file.
pub struct Flock(Vec<OwnedFd>);

impl Flock {
    /// A free one for this many threads.
    pub fn new(threads: usize) -> Result<Self> {
        // SAFETY: the name is a C string.
        let fd = checked(unsafe { libc::memfd_create(c"holdup-lab".as_ptr(), libc::MFD_CLOEXEC) })?;
        let file = owned(fd);
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no zero byte in it");
        let open = |_| {
            // SAFETY: the path is a C string.
            checked(unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }).map(owned)
        };
        Ok(Flock((0..threads).map(open).collect::<Result<_>>()?))
    }

    fn change(&self, who: usize, operation: libc::c_int) {
        // SAFETY: the descriptor is open as long as `self`. A signal may end the wait.
        while unsafe { libc::flock(self.0[who].as_raw_fd(), operation) } != 0 {}
    }
}

impl Lock for Flock {
    fn with<R>(&self, who: usize, section: impl FnOnce() -> R) -> R {
        self.change(who, libc::LOCK_EX);
        let result = section();
        self.change(who, libc::LOCK_UN);
        result
    }
}
