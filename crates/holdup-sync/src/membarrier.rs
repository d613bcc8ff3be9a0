//! `membarrier(2)`: restarts the sections of all threads of this process.

use std::io;
use std::sync::OnceLock;

const QUERY: libc::c_int = 0;
const PRIVATE_EXPEDITED_RSEQ: libc::c_int = 1 << 7;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: libc::c_int = 1 << 8;

fn membarrier(command: libc::c_int) -> io::Result<libc::c_long> {
    // SAFETY: a system call without pointers; its flags and CPU number are 0.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        commands => Ok(commands),
    }
}

/// Whether [`restart_sections`] works: Linux 5.10, and no filter of system calls against it.
pub fn supported() -> bool {
    let both = libc::c_long::from(PRIVATE_EXPEDITED_RSEQ | REGISTER_PRIVATE_EXPEDITED_RSEQ);
    membarrier(QUERY).is_ok_and(|commands| commands & both == both)
}

/// After it no section of this process that began before it goes on, and what such sections wrote is visible here.
///
/// Interrupts each CPU that runs a thread of this process, some microseconds each. The first call registers the process,
/// for which the kernel waits until every CPU has switched, up to tens of milliseconds.
///
/// # Panics
/// If the kernel refuses although [`supported`]: a filter that was installed in between. Silence would lose counts.
pub fn restart_sections() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    let call = |command| membarrier(command).expect("membarrier worked when the counter was made, and must still");
    REGISTERED.get_or_init(|| {
        call(REGISTER_PRIVATE_EXPEDITED_RSEQ);
    });
    call(PRIVATE_EXPEDITED_RSEQ);
}
