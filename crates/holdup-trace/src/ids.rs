//! Ids. No bare integer crosses a public signature where one of these says what it means.

macro_rules! id {
    ($(#[doc = $doc:literal])* $name:ident($int:ty)) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// The id as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A logical CPU.
    Cpu(u16)
}
id! {
    /// A thread of the trace: `(tid, start)`, never a tid alone, because tids are reused. 0 is the idle task.
    ThreadIdx(u32)
}
id! {
    /// An interned call stack; 0 is "no stack".
    StackId(u32)
}
id! {
    /// An interned frame: an address in an address space.
    FrameId(u32)
}
id! {
    /// An interned string; 0 is the empty string.
    StringId(u32)
}
id! {
    /// An interned lock; 0 is "no lock".
    LockId(u32)
}
id! {
    /// An address space: a process between two execs. 0 is the kernel.
    SpaceId(u32)
}
id! {
    /// A call chain as a producer saw it, before its address space is known; 0 is "none".
    ChainId(u32)
}

impl Cpu {
    /// No CPU, or one that the source does not tell.
    pub const NONE: Cpu = Cpu(u16::MAX);
}

impl ThreadIdx {
    /// The idle task of every CPU.
    pub const IDLE: ThreadIdx = ThreadIdx(0);
    /// No thread, or one that the source does not tell.
    pub const NONE: ThreadIdx = ThreadIdx(u32::MAX);

    /// Whether this names a thread other than idle.
    pub const fn is_real(self) -> bool {
        self.0 != 0 && self.0 != u32::MAX
    }
}

impl StackId {
    /// No stack.
    pub const NONE: StackId = StackId(0);
}

impl LockId {
    /// No lock.
    pub const NONE: LockId = LockId(0);
}

impl SpaceId {
    /// The kernel's address space.
    pub const KERNEL: SpaceId = SpaceId(0);
}

impl ChainId {
    /// No call chain.
    pub const NONE: ChainId = ChainId(0);
}

macro_rules! code {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $vdoc:literal])* $variant:ident = $value:literal $text:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(u8)]
        pub enum $name { $($(#[doc = $vdoc])* $variant = $value),+, /// Not told by the source.
            #[default] Unknown = 255 }

        impl $name {
            /// The stored code.
            pub const fn code(self) -> u8 { self as u8 }
            /// From the stored code; anything unheard of is `Unknown`.
            pub const fn from_code(code: u8) -> Self {
                match code { $($value => $name::$variant,)+ _ => $name::Unknown }
            }
            /// The name in tables and JSON.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ $name::Unknown => "unknown" }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // Two codes may have one name.
                let words = std::collections::BTreeSet::from([$($text,)+ "unknown"]);
                schemars::json_schema!({ "description": concat!($($doc),*).trim(), "type": "string", "enum": words })
            }
        }
    };
}
pub(crate) use code;

code! {
    /// In which state a thread left its CPU.
    SwitchState {
        /// Still runnable: preempted or yielded.
        Runnable = 0 "runnable",
        /// Interruptible sleep.
        Sleeping = 1 "sleeping",
        /// Uninterruptible sleep, mostly disk.
        Uninterruptible = 2 "uninterruptible",
        /// Stopped or traced.
        Stopped = 3 "stopped",
        /// Exited.
        Dead = 4 "dead",
        /// Uninterruptible, but idle by the kernel's own word (state I).
        Idle = 5 "idle",
    }
}

impl SwitchState {
    /// Whether the thread waits for somebody to wake it.
    pub const fn is_blocked(self) -> bool {
        matches!(self, SwitchState::Sleeping | SwitchState::Uninterruptible | SwitchState::Idle | SwitchState::Stopped)
    }
}

code! {
    /// What kind of lock a key names.
    LockKind {
        /// A futex word in user space.
        Futex = 0 "futex",
        /// A kernel mutex.
        KernelMutex = 1 "kernel-mutex",
        /// A kernel reader/writer semaphore.
        Rwsem = 2 "rwsem",
        /// A kernel spinlock or rwlock.
        Spinlock = 3 "spinlock",
        /// A kernel semaphore, per-CPU or real-time lock.
        Other = 4 "unknown",
        /// A lock that programs set on a file.
        File = 5 "unknown",
    }
}
