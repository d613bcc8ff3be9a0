//! What a system call tells of a wait in it.

use holdup_trace::Syscall;

use super::WaitKind;

/// What a wait in a system call is for; `io_wait` is the kernel's own word that it is for I/O.
pub fn kind_of_call(call: Syscall, io_wait: bool) -> Option<WaitKind> {
    use WaitKind::*;
    Some(match call {
        Syscall::Futex => Futex,
        Syscall::Sleep => Timer,
        Syscall::FileLock => Lock,
        _ if io_wait => Disk,
        Syscall::Poll | Syscall::Accept => Input,
        Syscall::Read => Read,
        Syscall::Write => Write,
        Syscall::WaitChild => Join,
        Syscall::Sync => Disk,
        Syscall::WaitSignal => Signal,
        Syscall::None => return None,
        Syscall::Exit | Syscall::Yield | Syscall::Other => Unknown,
    })
}
