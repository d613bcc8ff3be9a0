//! System calls by what a wait in them means. Numbers differ between machines; meanings do not.

/// The system calls that analysis has to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syscall {
    /// futex and its relatives.
    Futex,
    /// nanosleep, clock_nanosleep.
    Sleep,
    /// poll, select, epoll_wait and their relatives, io_uring_enter.
    Poll,
    /// accept, accept4.
    Accept,
    /// connect.
    Connect,
    /// read, recv and their relatives.
    Read,
    /// write, send and their relatives.
    Write,
    /// wait4, waitid.
    WaitChild,
    /// fsync, fdatasync, sync, msync and their relatives, and io_getevents, which waits for reads and writes of files.
    Sync,
    /// pause, sigsuspend, sigtimedwait.
    WaitSignal,
    /// flock, fcntl locks.
    FileLock,
    /// exit, exit_group.
    Exit,
    /// sched_yield: it waits for nothing that the kernel knows.
    Yield,
    /// Any other.
    Other,
    /// None: a page fault, or a kernel thread.
    None,
}

const X86_64: &[(Syscall, &[i16])] = &[
    (Syscall::Futex, &[202, 449, 455, 456]),
    (Syscall::Sleep, &[35, 230]),
    (Syscall::Poll, &[7, 23, 232, 270, 271, 281, 426, 441]),
    (Syscall::Accept, &[43, 288]),
    (Syscall::Connect, &[42]),
    (Syscall::Read, &[0, 17, 19, 45, 47, 295, 299, 327]),
    (Syscall::Write, &[1, 18, 20, 40, 44, 46, 275, 296, 307, 328]),
    (Syscall::WaitChild, &[61, 247]),
    (Syscall::Sync, &[26, 74, 75, 162, 208, 277, 306, 333]),
    (Syscall::WaitSignal, &[34, 128, 130]),
    (Syscall::FileLock, &[72, 73, 65, 220]),
    (Syscall::Exit, &[60, 231]),
    (Syscall::Yield, &[24]),
];

const AARCH64: &[(Syscall, &[i16])] = &[
    (Syscall::Futex, &[98, 449, 455, 456]),
    (Syscall::Sleep, &[101, 115]),
    (Syscall::Poll, &[72, 73, 22, 441, 426]),
    (Syscall::Accept, &[202, 242]),
    (Syscall::Connect, &[203]),
    (Syscall::Read, &[63, 65, 67, 69, 207, 212, 243, 286]),
    (Syscall::Write, &[64, 66, 68, 70, 71, 206, 211, 269, 287]),
    (Syscall::WaitChild, &[95, 260]),
    (Syscall::Sync, &[4, 81, 82, 83, 84, 227, 267, 292]),
    (Syscall::WaitSignal, &[133, 137]),
    (Syscall::FileLock, &[25, 32, 192, 193]),
    (Syscall::Exit, &[93, 94]),
    (Syscall::Yield, &[124]),
];

/// Where Windows tells why a thread waits (`KWAIT_REASON`), the reason stands where Linux has the system call, from this number on:
/// no machine has so many.
const WAIT_REASONS: i16 = 0x1000;

/// The reasons by their numbers, as Windows names them.
const REASONS: [&str; 40] = [
    "Executive",
    "FreePage",
    "PageIn",
    "PoolAllocation",
    "DelayExecution",
    "Suspended",
    "UserRequest",
    "WrExecutive",
    "WrFreePage",
    "WrPageIn",
    "WrPoolAllocation",
    "WrDelayExecution",
    "WrSuspended",
    "WrUserRequest",
    "WrSpare0",
    "WrQueue",
    "WrLpcReceive",
    "WrLpcReply",
    "WrVirtualMemory",
    "WrPageOut",
    "WrRendezvous",
    "WrKeyedEvent",
    "WrTerminated",
    "WrProcessInSwap",
    "WrCpuRateControl",
    "WrCalloutStack",
    "WrKernel",
    "WrResource",
    "WrPushLock",
    "WrMutex",
    "WrQuantumEnd",
    "WrDispatchInt",
    "WrPreempted",
    "WrYieldExecution",
    "WrFastMutex",
    "WrGuardedMutex",
    "WrRundown",
    "WrAlertByThreadId",
    "WrDeferredPreempt",
    "WrPhysicalFault",
];

impl Syscall {
    /// The number that stands for a reason to wait of Windows.
    pub const fn number_of_wait_reason(reason: u8) -> i16 {
        WAIT_REASONS + reason as i16
    }

    /// The reason to wait of Windows that a number stands for; `None` if it is a system call's.
    pub fn wait_reason(number: i16) -> Option<&'static str> {
        let reason = reason_of(number)?;
        Some(REASONS.get(reason).copied().unwrap_or("a reason that is not known"))
    }

    /// What a wait for that reason means. Only those that mean the same wherever they occur have a meaning: `WrUserRequest`, of which most
    /// are, is a wait for anything.
    fn from_wait_reason(reason: usize) -> Self {
        match reason {
            // DelayExecution.
            4 | 11 => Syscall::Sleep,
            // WrQueue: a pool's worker has nothing to do, no completion in its port and no item in its queue.
            15 => Syscall::Poll,
            // WrLpcReceive: a server's thread has no request.
            16 => Syscall::Accept,
            // WrKeyedEvent, WrAlertByThreadId: the locks and conditions of user space.
            21 | 37 => Syscall::Futex,
            // PageIn.
            2 | 9 => Syscall::None,
            _ => Syscall::Other,
        }
    }

    /// By the number that a machine of architecture `arch` uses; negative is [`Syscall::None`].
    pub fn from_number(arch: &str, number: i16) -> Self {
        if number < 0 {
            return Syscall::None;
        }
        if let Some(reason) = reason_of(number) {
            return Syscall::from_wait_reason(reason);
        }
        let table = if arch == "aarch64" { AARCH64 } else { X86_64 };
        table.iter().find(|(_, numbers)| numbers.contains(&number)).map_or(Syscall::Other, |(call, _)| *call)
    }

    /// The name of the call that a kernel function such as `__x64_sys_futex` or `SyS_futex` serves; `None` for other functions.
    pub fn name_in_kernel(function: &str) -> Option<&str> {
        const PREFIXES: [&str; 7] =
            ["__x64_sys_", "__arm64_sys_", "__ia32_sys_", "__se_sys_", "__do_sys_", "SyS_", "sys_"];
        PREFIXES.iter().find_map(|prefix| function.strip_prefix(prefix))
    }

    /// From the name of a kernel function such as `__x64_sys_futex` or `SyS_futex`; `None` for other functions.
    pub fn from_kernel_function(function: &str) -> Option<Self> {
        Some(match Self::name_in_kernel(function)? {
            n if n.starts_with("futex") => Syscall::Futex,
            n if n.contains("nanosleep") => Syscall::Sleep,
            n if n.contains("poll") || n.contains("select") || n.starts_with("io_uring_enter") => Syscall::Poll,
            n if n.starts_with("accept") => Syscall::Accept,
            "connect" => Syscall::Connect,
            n if n.contains("read") || n.starts_with("recv") => Syscall::Read,
            n if n.contains("write") || n.starts_with("send") => Syscall::Write,
            "wait4" | "waitid" => Syscall::WaitChild,
            n if n.contains("sync") || n.contains("getevents") => Syscall::Sync,
            n if n.contains("sigsuspend") || n.contains("sigtimedwait") || n == "pause" => Syscall::WaitSignal,
            "flock" | "fcntl" => Syscall::FileLock,
            "exit" | "exit_group" => Syscall::Exit,
            _ => Syscall::Other,
        })
    }
}

/// Windows' reason to wait that a number stands for.
fn reason_of(number: i16) -> Option<usize> {
    usize::try_from(number.checked_sub(WAIT_REASONS)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_to_wait_stand_beside_system_calls() {
        let [delay, queue, request] = [4, 15, 6].map(Syscall::number_of_wait_reason);
        let meanings = [delay, queue, request, 35].map(|number| Syscall::from_number("x86_64", number));
        assert_eq!(meanings, [Syscall::Sleep, Syscall::Poll, Syscall::Other, Syscall::Sleep]);
        assert_eq!([queue, 35, -1].map(Syscall::wait_reason), [Some("WrQueue"), None, None]);
        assert!(Syscall::wait_reason(Syscall::number_of_wait_reason(255)).is_some());
    }
}
