//! What producers push: one flat event, small, in the source's own terms (tids, pids, call chains).

use crate::ids::code;
use crate::{ChainId, Cpu, LockId, Nanos, StringId, SwitchState};

code! {
    /// In which context a wake-up was issued.
    WakeContext {
        /// By the running thread itself, in process context.
        Task = 0 "thread",
        /// In a hardware interrupt handler; the source is the interrupt's number.
        HardIrq = 1 "irq",
        /// In a softirq; the source is the vector.
        SoftIrq = 2 "softirq",
        /// By an expiring timer.
        Timer = 3 "timer",
        /// By an inter-processor interrupt.
        Ipi = 4 "ipi",
    }
}

/// The source of a wake-up in a softirq: packets arrived (the vector is 3) for which an acknowledgement had been waited that was held
/// back, and sent by its timer. Told only by holdup's own recorder.
pub const LATE_ACK: u16 = 0x43;

code! {
    /// What kind of thing is missing from a trace.
    LossKind {
        /// Records of what threads did: nothing is certain of the threads of that CPU.
        Events = 0 "events",
        /// Stacks that found no room: waits and samples without a place.
        Stacks = 1 "stacks",
        /// Stacks that were left out to limit their rate, or to which no bytes came: no loss that anybody can mend.
        LimitedStacks = 2 "limited-stacks",
        /// Mappings of code: functions without names, or with wrong ones.
        Mappings = 3 "mappings",
        /// Spans that are missing; all else is there.
        Spans = 4 "spans",
    }
}

code! {
    /// How a span ended.
    SpanOutcome {
        /// On the thread where it began.
        Complete = 0 "complete",
        /// On another thread.
        Moved = 1 "moved",
        /// Its end was not seen, and it cannot have gone on: by then it was over.
        Abandoned = 2 "abandoned",
        /// It had not ended when the trace did.
        Open = 3 "open",
        /// It had begun before the trace did: its begin is the trace's.
        Begun = 4 "begun",
    }
}

code! {
    /// How the end of a span finds its begin.
    Pairing {
        /// By the thread, and by where its stack pointer was.
        Frame = 0 "frame",
        /// By the thread, in the order of nesting.
        Nesting = 1 "nesting",
        /// By name and key, on whichever thread.
        Key = 2 "key",
    }
}

impl LossKind {
    /// Whether what threads did meanwhile is not known.
    pub const fn is_of_events(self) -> bool {
        matches!(self, LossKind::Events | LossKind::Unknown)
    }
}

/// What is lost where stacks found no room in their buffer.
pub const LOST_STACKS: &str = "stacks (buffer full)";

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $variant:ident($payload:ident) { $($(#[doc = $fdoc:literal])+ $field:ident: $ty:ty,)+ })+) => {
        /// One event of a source. Times are given beside it; tids and pids are the kernel's, 0 is the idle task.
        ///
        /// The order of events at one instant is the order in which they were pushed.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Event { $($(#[doc = $doc])+ $variant($payload),)+ }

        $($(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $payload { $($(#[doc = $fdoc])+ pub $field: $ty,)+ }

        impl From<$payload> for Event {
            fn from(event: $payload) -> Self { Event::$variant(event) }
        })+
    };
}

events! {
    /// `cpu` stops running `prev` and starts running `next`.
    Switch(SwitchEvent) {
        /// The CPU.
        cpu: Cpu,
        /// The tid that leaves.
        prev: u32,
        /// The tid that comes.
        next: u32,
        /// In which state `prev` leaves.
        state: SwitchState,
        /// Whether `prev` waits for I/O by the kernel's own accounting.
        io_wait: bool,
        /// The system call in which `prev` leaves, by the machine's number; -1 for none or unknown.
        syscall: i16,
        /// The lock that `prev` waits for, if known here.
        lock: LockId,
        /// Where `prev` leaves, if the source took a stack here.
        chain: ChainId,
    }
    /// `waker` makes `wakee` runnable.
    Wake(WakeEvent) {
        /// The CPU on which the wake-up was issued.
        cpu: Cpu,
        /// The thread that was running there.
        waker: u32,
        /// The thread that becomes runnable.
        wakee: u32,
        /// Whether the waker acted, or an interrupt on its CPU.
        context: WakeContext,
        /// By `context`: interrupt number, softirq vector or [`LATE_ACK`]; of a thread, the file to which it writes (plus 1), 0 for none.
        source: u16,
        /// The CPU that is to run the wakee.
        target: Cpu,
        /// The lock or futex that the waker released, if known.
        lock: LockId,
        /// Where the waker was.
        chain: ChainId,
    }
    /// `tid` was just switched in after a wait, or still waits when the trace ends; this is where it blocked.
    Blocked(BlockedEvent) {
        /// The thread.
        tid: u32,
        /// Where it had blocked.
        chain: ChainId,
        /// The lock that it waited for, if known only now.
        lock: LockId,
    }
    /// `tid` waits when the trace begins or ends. One that was in no event before has waited since before the trace began.
    Standing(StandingEvent) {
        /// The thread.
        tid: u32,
        /// The system call in which it waits, by the machine's number; -1 for none or unknown.
        syscall: i16,
        /// The lock that it waits for, if known.
        lock: LockId,
        /// The tid of the lock's owner; 0 for unknown.
        owner: u32,
        /// Where it waits.
        chain: ChainId,
    }
    /// A thread starts to wait for a futex.
    Futex(FutexEvent) {
        /// The waiting thread.
        tid: u32,
        /// The futex.
        lock: LockId,
        /// The owner's tid as read from the lock at that time; 0 for unknown.
        owner: u32,
        /// The futex operation without flags.
        operation: u8,
        /// Whether the wait has a time-out.
        timed: bool,
    }
    /// Contention on a kernel lock begins or ends.
    KernelLock(KernelLockEvent) {
        /// The CPU.
        cpu: Cpu,
        /// The contending thread.
        tid: u32,
        /// The lock.
        lock: LockId,
        /// Whether contention begins (else it ends).
        begin: bool,
        /// The owner's tid if it could be read; 0 for unknown.
        owner: u32,
    }
    /// A CPU sample.
    Sample(SampleEvent) {
        /// The CPU.
        cpu: Cpu,
        /// The running thread.
        tid: u32,
        /// The instruction.
        ip: u64,
        /// The frame pointer; 0 if it is not known.
        bp: u64,
        /// The call chain, with `ip` as its leaf. A raw chain may be that of another sample, whose stack is as deep and looks the same.
        chain: ChainId,
    }
    /// A block-device request was issued or completed.
    BlockIo(BlockIoEvent) {
        /// The device, kernel encoding (major << 20 | minor).
        device: u32,
        /// First sector.
        sector: u64,
        /// Bytes.
        bytes: u32,
        /// The issuing thread; 0 for unknown.
        tid: u32,
        /// Whether it was issued (else it completed).
        issue: bool,
    }
    /// A thread was created.
    Fork(ForkEvent) {
        /// The creating process.
        parent_pid: u32,
        /// The creating thread.
        parent: u32,
        /// The process of the new thread.
        pid: u32,
        /// The new thread.
        tid: u32,
    }
    /// A thread has a name, and belongs to a process. Also sent for threads that exist when recording starts.
    Name(NameEvent) {
        /// The thread's process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// Its name.
        name: StringId,
    }
    /// A process has a name of its own, which is not that of its main thread.
    Process(ProcessEvent) {
        /// The process.
        pid: u32,
        /// Its name.
        name: StringId,
    }
    /// A process that existed already was started by another. Where that one is still there.
    Parent(ParentEvent) {
        /// The process.
        pid: u32,
        /// The one that started it.
        parent: u32,
    }
    /// Where and how a thread may run, as seen at this instant.
    Placement(PlacementEvent) {
        /// The thread.
        tid: u32,
        /// The CPUs on which it may run, as Linux lists them (`0-3,8`).
        cpus: StringId,
        /// Its nice value.
        nice: i16,
        /// Its scheduling policy, by Linux's number.
        policy: u8,
        /// Its control group, as the controller of CPU time names it.
        group: StringId,
        /// How long before this instant it may have come to be so.
        span: Nanos,
    }
    /// The limit of a control group's CPU time, and how often it was reached since the recording began.
    Quota(QuotaEvent) {
        /// The control group.
        group: StringId,
        /// Microseconds of CPU time in each period; 0 for no limit.
        quota_us: u32,
        /// The period in microseconds.
        period_us: u32,
        /// How many periods there were.
        periods: u32,
        /// In how many of them it was throttled.
        throttled: u32,
        /// For how many microseconds, all CPUs together.
        throttled_us: u32,
    }
    /// A process starts another program: its mappings are gone.
    Exec(ExecEvent) {
        /// The process.
        pid: u32,
    }
    /// A thread ends.
    Exit(ExitEvent) {
        /// The thread.
        tid: u32,
    }
    /// A process was looked at: is it a server?
    Listener(ListenerEvent) {
        /// The process.
        pid: u32,
        /// The process that made it, or took it over when that one ended; 0 for unknown.
        parent: u32,
        /// Whether it owns a socket that listens.
        listens: bool,
    }
    /// A process was looked at: what does it work on?
    Subject(SubjectEvent) {
        /// The process.
        pid: u32,
        /// A script, a source file, a class.
        what: StringId,
    }
    /// A file was mapped as code into a process (pid 0: the kernel or a module).
    Map(MapEvent) {
        /// The process.
        pid: u32,
        /// Index of the image as returned by the builder.
        image: u32,
    }
    /// A span is over: a unit of work, such as a request.
    Span(SpanEvent) {
        /// The thread on which it began.
        tid: u32,
        /// The thread on which it ended; 0 for none.
        end_tid: u32,
        /// How long before this instant it began.
        length: Nanos,
        /// How much of that it waited before its thread began with it.
        queued: Nanos,
        /// What kind of work it is.
        name: StringId,
        /// What it is about, such as a statement's text; the empty string for nothing.
        argument: StringId,
        /// What ties its begin to its end, or it to others; 0 for nothing.
        key: u64,
        /// How it ended.
        outcome: SpanOutcome,
        /// How many spans it stands for, where only some were recorded.
        weight: u32,
    }
    /// A span begins or ends; the builder pairs both.
    SpanEdge(SpanEdgeEvent) {
        /// The thread.
        tid: u32,
        /// Whether it begins (else it ends).
        begin: bool,
        /// Whether it ends because its function returns: what began within it is over too.
        returns: bool,
        /// What kind of work it is.
        name: StringId,
        /// What it is about; the empty string for nothing, and at the end.
        argument: StringId,
        /// The stack pointer, or the key.
        at: u64,
        /// How the end finds the begin.
        pairing: Pairing,
        /// How many spans it stands for.
        weight: u32,
    }
    /// Something was lost during `span` before this instant.
    Lost(LostEvent) {
        /// What kind of thing.
        kind: LossKind,
        /// The CPU; [`Cpu::NONE`] for all.
        cpu: Cpu,
        /// How long before this event the loss may have begun.
        span: Nanos,
        /// How many.
        count: u32,
        /// What was lost, in words.
        what: StringId,
    }
}
