//! Counters where a process is not as usual: a filter of system calls, `fork`, a child that borrows the memory (`vfork`),
//! and threads that glibc did not start.
#![cfg(all(target_os = "linux", not(loom), not(miri)))]

use std::ptr;

use holdup_sync::PerCpuCounter;
use holdup_testing::{Need, skip};

/// Ends this process with one system call that even a strict filter lets through.
fn exit(code: i64) -> ! {
    // SAFETY: a call without pointers, which does not return.
    unsafe { libc::syscall(libc::SYS_exit, code) };
    unreachable!("exited")
}

/// The wait status of a forked child that ran `child`; it may neither allocate nor panic.
fn forked(child: impl FnOnce() -> i64) -> libc::c_int {
    // SAFETY: the child makes no calls that need the parent's other threads.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => exit(child()),
        pid => {
            let mut status = 0;
            // SAFETY: our own child, and a number to fill.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            status
        }
    }
}

fn add(counter: &PerCpuCounter, times: u64) {
    (0..times).for_each(|_| counter.add(1));
}

/// A filter that kills for any system call but read, write, exit and sigreturn.
fn strict() -> bool {
    // SAFETY: a call without pointers.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) == 0 }
}

#[test]
fn a_filter_of_system_calls_does_not_matter() {
    static COUNTER: PerCpuCounter = PerCpuCounter::new();
    const NO_FILTERS: i64 = 77;
    add(&COUNTER, 5);
    let status = forked(|| {
        if !strict() {
            return NO_FILTERS;
        }
        add(&COUNTER, 1000);
        let first = COUNTER.drain();
        add(&COUNTER, 10);
        i64::from((first, COUNTER.sum(), COUNTER.drain(), COUNTER.sum()) != (1005, 10, 10, 0))
    });
    if libc::WIFEXITED(status) && i64::from(libc::WEXITSTATUS(status)) == NO_FILTERS {
        return skip(
            Need::Other { name: "filters of system calls (seccomp)", is_here: false },
            "the kernel refuses them",
        );
    }
    assert_eq!(status, 0, "an exit code of 256 is a wrong count, 9 a system call");
    assert_eq!(COUNTER.drain(), 5, "the child drained its own copy");
}

/// The control: the same filter does kill a process that makes a system call.
#[test]
fn the_filter_kills() {
    const NO_FILTERS: i64 = 77;
    let status = forked(|| {
        if !strict() {
            return NO_FILTERS;
        }
        // SAFETY: a call without arguments.
        unsafe { libc::syscall(libc::SYS_gettid) }
    });
    if libc::WIFEXITED(status) && i64::from(libc::WEXITSTATUS(status)) == NO_FILTERS {
        return skip(
            Need::Other { name: "filters of system calls (seccomp)", is_here: false },
            "the kernel refuses them",
        );
    }
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL, "{status:#x}");
}

#[test]
fn a_forked_child_counts_on_in_its_copy() {
    static COUNTER: PerCpuCounter = PerCpuCounter::new();
    add(&COUNTER, 100);
    let status = forked(|| {
        add(&COUNTER, 11);
        i64::from((COUNTER.drain(), COUNTER.is_per_cpu()) != (111, COUNTER.is_per_cpu()))
    });
    assert_eq!(status, 0);
    add(&COUNTER, 1);
    assert_eq!(COUNTER.drain(), 101);
}

/// What `vfork` is for the kernel, on a stack of its own: a child in this memory while this thread is stopped. The kernel
/// registers no `struct rseq` for it, yet it sees this thread's. Nothing else adds here, so nothing may be lost.
#[test]
fn a_child_that_borrows_the_memory_adds_to_it() {
    extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
        add(&COUNTER, 1000);
        0
    }
    static COUNTER: PerCpuCounter = PerCpuCounter::new();
    add(&COUNTER, 1);
    let mut stack = vec![0u128; 4096];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack outlives the child, which has ended when this call returns, and which neither allocates nor panics.
    let pid = unsafe { libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, ptr::null_mut()) };
    assert!(pid > 0, "{}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: our own child, and a number to fill.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert_eq!(COUNTER.drain(), 1001);
}
