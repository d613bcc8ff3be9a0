//! The tables of a trace. Each column is declared here and nowhere else; `holdup info --schema` prints this.

// Long because it is a list of tables.

use crate::table::table;
use crate::{Cpu, FrameId, LockId, LockKind, Nanos, SpaceId, StackId, StringId, SwitchState, ThreadIdx, Timestamp};
use crate::{LossKind, SpanOutcome, WakeContext};

table! {
    /// Every context switch, in time order.
    Switches of Switch = "switch" {
        /// When.
        t: Timestamp, "ns since start";
        /// On which CPU.
        cpu: Cpu, "cpu";
        /// The thread that leaves.
        prev: ThreadIdx, "thread";
        /// In which state it leaves: 0 runnable, 1 sleeping, 2 uninterruptible, 3 stopped, 4 dead, 5 idle, 255 unknown.
        state: SwitchState, "code";
        /// The thread that comes.
        next: ThreadIdx, "thread";
        /// 1 where the kernel counts the leaving thread as waiting for I/O.
        io_wait: bool, "bool";
        /// The system call in which it leaves, by the machine's number; -1 for none or unknown.
        syscall: i16, "number";
        /// The lock for which it leaves.
        lock: LockId, "lock";
        /// Where it leaves, if the source took a stack here.
        stack: StackId, "stack";
    }
}

table! {
    /// Every wake-up, in time order.
    Wakes of Wake = "wake" {
        /// When.
        t: Timestamp, "ns since start";
        /// On which CPU it was issued.
        cpu: Cpu, "cpu";
        /// The thread that was running there.
        waker: ThreadIdx, "thread";
        /// 0 by that thread, 1 in an interrupt, 2 in a softirq, 3 by a timer, 4 by an IPI, 255 unknown.
        context: WakeContext, "code";
        /// Interrupt number or softirq vector; 67 for packets that had waited for an acknowledgement that was held back. Of a thread, the
        /// file descriptor to which it writes, plus 1; 0 for none.
        source: u16, "number";
        /// The thread that becomes runnable.
        wakee: ThreadIdx, "thread";
        /// The CPU that is to run it.
        target: Cpu, "cpu";
        /// The lock that was released.
        lock: LockId, "lock";
        /// Where the waker was.
        stack: StackId, "stack";
    }
}

table! {
    /// Long waits with what is known of each beyond its switches: one row when the thread runs again.
    Waits of Wait = "wait" {
        /// When the thread ran again; the trace's end if it never did.
        t: Timestamp, "ns since start";
        /// The thread.
        thread: ThreadIdx, "thread";
        /// When it had left its CPU.
        start: Timestamp, "ns since start";
        /// When it was first woken; equal to `t` if that is unknown.
        woken: Timestamp, "ns since start";
        /// Who woke it.
        waker: ThreadIdx, "thread";
        /// In which context, coded as in `wake`.
        context: WakeContext, "code";
        /// In which system call it waited; -1 for none or unknown.
        syscall: i16, "number";
        /// For which lock.
        lock: LockId, "lock";
        /// Where it had blocked.
        stack: StackId, "stack";
        /// Where its waker was.
        waker_stack: StackId, "stack";
    }
}

table! {
    /// CPU samples.
    Samples of Sample = "sample" {
        /// When.
        t: Timestamp, "ns since start";
        /// On which CPU.
        cpu: Cpu, "cpu";
        /// The thread that ran.
        thread: ThreadIdx, "thread";
        /// The instruction.
        ip: u64, "address";
        /// The call stack, with `ip` as its leaf.
        stack: StackId, "stack";
    }
}

table! {
    /// The start of a futex wait, with the lock's owner as read at that moment.
    Futexes of Futex = "futex" {
        /// When.
        t: Timestamp, "ns since start";
        /// The waiting thread.
        thread: ThreadIdx, "thread";
        /// The futex.
        lock: LockId, "lock";
        /// Who held it.
        owner: ThreadIdx, "thread";
        /// The futex operation without flags.
        operation: u8, "number";
        /// 1 where the wait has a time-out.
        timed: bool, "bool";
    }
}

table! {
    /// Contention on kernel locks.
    KernelLocks of KernelLock = "kernel_lock" {
        /// When.
        t: Timestamp, "ns since start";
        /// On which CPU.
        cpu: Cpu, "cpu";
        /// The contending thread.
        thread: ThreadIdx, "thread";
        /// The lock.
        lock: LockId, "lock";
        /// 1 where contention begins, 0 where it ends.
        begin: bool, "bool";
        /// Who held it.
        owner: ThreadIdx, "thread";
    }
}

table! {
    /// Block-device requests.
    BlockIos of BlockIo = "block_io" {
        /// When.
        t: Timestamp, "ns since start";
        /// The device: major << 20 | minor.
        device: u32, "number";
        /// First sector.
        sector: u64, "sector";
        /// How much.
        bytes: u32, "bytes";
        /// The issuing thread.
        thread: ThreadIdx, "thread";
        /// 1 where the request was issued, 0 where it completed.
        issue: bool, "bool";
    }
}

table! {
    /// Threads; a tid that was reused has several rows.
    Threads of Thread = "thread" {
        /// The kernel's thread id.
        tid: u32, "tid";
        /// The process id.
        pid: u32, "pid";
        /// When it was created; 0 if it existed before.
        start: Timestamp, "ns since start";
        /// When it ended; the greatest value if it did not.
        end: Timestamp, "ns since start";
        /// The thread that created it.
        parent: ThreadIdx, "thread";
        /// Its last name.
        name: StringId, "string";
        /// The name of its process.
        process: StringId, "string";
    }
}

table! {
    /// Changes of thread names.
    ThreadNames of ThreadName = "thread_name" {
        /// When.
        t: Timestamp, "ns since start";
        /// The thread.
        thread: ThreadIdx, "thread";
        /// Its name from then on.
        name: StringId, "string";
    }
}

table! {
    /// Processes that were looked at, and whether they are servers. Of one that has no row nothing is known.
    Listeners of Listener = "listener" {
        /// When it was looked at.
        t: Timestamp, "ns since start";
        /// Its main thread.
        thread: ThreadIdx, "thread";
        /// The main thread of the process that made it, or took it over when that one ended.
        parent: ThreadIdx, "thread";
        /// 1 where it owned a socket that listens: of TCP, or a local one.
        listens: bool, "bool";
    }
}

table! {
    /// What a process works on, of programs that do different things by their command line: a script, a source file, a class.
    Subjects of Subject = "subject" {
        /// Since when.
        t: Timestamp, "ns since start";
        /// Its main thread.
        thread: ThreadIdx, "thread";
        /// The file's or class's name, without its folders; empty where a program begins of which it is not known.
        what: StringId, "string";
    }
}

table! {
    /// Threads that waited when the trace began: nothing else tells where. One row for each.
    StandingWaits of StandingWait = "standing_wait" {
        /// When they were looked at.
        t: Timestamp, "ns since start";
        /// The thread.
        thread: ThreadIdx, "thread";
        /// The system call in which it waited; -1 for none or unknown.
        syscall: i16, "number";
        /// The lock that it waited for.
        lock: LockId, "lock";
        /// Who has that lock, if known.
        owner: ThreadIdx, "thread";
        /// Where it waited.
        stack: StackId, "stack";
    }
}

table! {
    /// Where and how threads may run: one row when a thread is first seen, and one for each change.
    Placements of Placement = "placement" {
        /// Since when, at the latest.
        t: Timestamp, "ns since start";
        /// Since when, at the earliest.
        from: Timestamp, "ns since start";
        /// The thread.
        thread: ThreadIdx, "thread";
        /// The CPUs on which it may run, as Linux lists them.
        cpus: StringId, "string";
        /// Its nice value.
        nice: i16, "number";
        /// Its scheduling policy: 0 other, 1 FIFO, 2 round robin, 3 batch, 5 idle, 6 deadline.
        policy: u8, "number";
        /// Its control group, as the controller of CPU time names it.
        group: StringId, "string";
    }
}

table! {
    /// Spans: units of work, such as requests. One row when a span is over, or when the trace ends.
    Spans of Span = "span" {
        /// When it ended.
        t: Timestamp, "ns since start";
        /// The thread on which it began.
        thread: ThreadIdx, "thread";
        /// When it began.
        start: Timestamp, "ns since start";
        /// The thread on which it ended.
        end_thread: ThreadIdx, "thread";
        /// What kind of work it is.
        name: StringId, "string";
        /// What it is about, such as a statement's text; empty for nothing.
        argument: StringId, "string";
        /// What ties its begin to its end, or it to others; 0 for nothing.
        key: u64, "number";
        /// 0 complete, 1 ended on another thread, 2 abandoned before `t`, 3 open when the trace ended, 4 begun before it, 255 unknown.
        outcome: SpanOutcome, "code";
        /// How many spans it stands for, where only some were recorded.
        weight: u32, "number";
        /// How long it waited at first, while its thread did other things.
        queued: Nanos, "ns" or Nanos(0);
    }
}

table! {
    /// Limits of control groups' CPU time, and how often they were reached.
    Quotas of Quota = "quota" {
        /// When this was so.
        t: Timestamp, "ns since start";
        /// The control group.
        group: StringId, "string";
        /// CPU time that it may use in each period; 0 for no limit.
        quota_us: u32, "us";
        /// The period.
        period_us: u32, "us";
        /// How many periods there were since the recording began.
        periods: u32, "number";
        /// In how many of them it was throttled.
        throttled: u32, "number";
        /// For how long, all CPUs together.
        throttled_us: u32, "us";
    }
}

table! {
    /// Locks that the trace speaks of.
    Locks of Lock = "lock" {
        /// 0 futex, 1 kernel mutex, 2 rwsem, 3 spinlock, 4 other, 5 of a file.
        kind: LockKind, "code";
        /// The process whose address this is; 0 for the kernel and for shared futexes.
        pid: u32, "pid";
        /// Where it is.
        address: u64, "address";
        /// Its name, if it has one.
        name: StringId, "string";
    }
}

table! {
    /// Interned stacks, as a tree of frames from the outermost caller to the leaf.
    StackNodes of StackNode = "stack" {
        /// The stack of the caller.
        parent: StackId, "stack";
        /// The innermost frame.
        frame: FrameId, "frame";
    }
}

table! {
    /// Interned frames. A caller's address lies inside its call instruction.
    Frames of Frame = "frame" {
        /// The address space.
        space: SpaceId, "space";
        /// The address.
        address: u64, "address";
    }
}

table! {
    /// What frames are called: one row for each function that is inlined there, the innermost first.
    Locations of LocationRow = "location" {
        /// The frame.
        frame: FrameId, "frame";
        /// The function, demangled, without argument list.
        function: StringId, "string";
        /// The file that holds the code.
        module: StringId, "string";
        /// The source file.
        file: StringId, "string";
        /// The source line; 0 if unknown.
        line: u32, "line";
        /// The address's distance from the start of the (outer, not inlined) function.
        offset: u64, "bytes";
    }
}

table! {
    /// Files mapped as code.
    Images of ImageRow = "image" {
        /// When it was mapped.
        t: Timestamp, "ns since start";
        /// The address space.
        space: SpaceId, "space";
        /// First address.
        start: u64, "address";
        /// First address behind it.
        end: u64, "address";
        /// Where in the file it begins.
        file_offset: u64, "bytes";
        /// The file.
        path: StringId, "string";
        /// Its build id in hexadecimal.
        build_id: StringId, "string";
    }
}

table! {
    /// Code bytes of functions that matter, so that they can be disassembled elsewhere.
    Codes of Code = "code" {
        /// The function.
        function: StringId, "string";
        /// Its module.
        module: StringId, "string";
        /// The address of its first byte, as the frames give it.
        start: u64, "address";
        /// The bytes in hexadecimal.
        bytes: StringId, "string";
    }
}

table! {
    /// Source lines of the kept code: each row holds from its offset to that of the next row of the same code.
    Lines of LineRow = "line" {
        /// The function.
        function: StringId, "string";
        /// Its module.
        module: StringId, "string";
        /// The bytes in hexadecimal, as in `code`: they tell apart what has the same name.
        code: StringId, "string";
        /// Distance from the first byte of the code.
        offset: u32, "bytes";
        /// The function inlined here; empty if it is the function itself.
        inlined: StringId, "string";
        /// The source file; empty if unknown.
        file: StringId, "string";
        /// The source line; 0 if unknown.
        line: u32, "line";
    }
}

table! {
    /// What is missing from the trace.
    Losses of LossRow = "loss" {
        /// What kind of thing: 0 events, 1 stacks without room, 2 stacks left out, 3 mappings of code, 255 unknown.
        kind: LossKind, "code";
        /// What was lost, in words.
        what: StringId, "string";
        /// On which CPU; 65535 for all.
        cpu: Cpu, "cpu";
        /// From when.
        from: Timestamp, "ns since start";
        /// Until when.
        to: Timestamp, "ns since start";
        /// How many.
        count: u64, "number";
    }
}

/// The length of a wait.
impl Wait {
    /// From leaving the CPU to running again.
    pub fn length(&self) -> Nanos {
        self.t.since(self.start)
    }
}
