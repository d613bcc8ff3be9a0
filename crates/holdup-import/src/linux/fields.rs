//! Where the fields of each tracepoint lie that is decoded.

use super::format::{Field, Format};
use super::state::StateBits;
use super::syscalls::{Call, Futex};

/// Fields of `sched_switch`.
#[derive(Debug, Clone)]
pub struct SwitchFields {
    pub prev: Field,
    pub prev_comm: Field,
    pub prev_state: Field,
    pub next: Field,
    pub next_comm: Field,
    pub states: StateBits,
}

impl SwitchFields {
    /// `None` if one is missing.
    pub fn of(format: &Format) -> Option<Self> {
        Some(SwitchFields {
            prev: format.field("prev_pid")?,
            prev_comm: format.field("prev_comm")?,
            prev_state: format.field("prev_state")?,
            next: format.field("next_pid")?,
            next_comm: format.field("next_comm")?,
            states: StateBits::from_print_format(&format.print),
        })
    }

    /// Whether all that matters lies within `raw`.
    pub fn is_complete(&self, raw: &[u8]) -> bool {
        self.prev.is_within(raw) && self.prev_state.is_within(raw) && self.next.is_within(raw)
    }
}

/// Fields of `sched_waking`, `sched_wakeup` and `sched_wakeup_new`.
#[derive(Debug, Clone)]
pub struct WakeFields {
    pub flags: Field,
    pub waker: Field,
    pub wakee: Field,
    pub comm: Field,
    pub target: Field,
    /// Whether it was a wake-up at all; not in newer kernels.
    pub success: Option<Field>,
}

impl WakeFields {
    /// `None` if one is missing.
    pub fn of(format: &Format) -> Option<Self> {
        Some(WakeFields {
            flags: format.field("common_flags")?,
            waker: format.field("common_pid")?,
            wakee: format.field("pid")?,
            comm: format.field("comm")?,
            target: format.field("target_cpu").or_else(|| format.field("cpu"))?,
            success: format.field("success"),
        })
    }
}

/// Fields of `raw_syscalls:sys_enter` and `syscalls:sys_enter_*`.
#[derive(Debug, Clone)]
pub struct CallFields {
    pub number: Field,
    /// The address and the operation of a futex; only of `sys_enter_futex`.
    pub futex: Option<(Field, Field)>,
}

impl CallFields {
    /// `None` if its number is missing.
    pub fn of(format: &Format) -> Option<Self> {
        let number = ["id", "__syscall_nr", "nr"].iter().find_map(|name| format.field(name))?;
        let futex = if format.name == "sys_enter_futex" { format.field("uaddr").zip(format.field("op")) } else { None };
        Some(CallFields { number, futex })
    }

    /// The call that a thread of the process `pid` enters.
    pub fn call(&self, raw: &[u8], pid: u32) -> Call {
        let futex = |(address, operation): (Field, Field)| {
            let futex = Futex { address: address.value(raw), operation: operation.low(raw) };
            (operation.is_within(raw) && address.is_within(raw)).then_some((futex, pid))
        };
        Call { futex: self.futex.and_then(futex), ..Call::of(self.number.low(raw).into()) }
    }
}

/// Fields of `contention_begin` and `contention_end`.
#[derive(Debug, Clone)]
pub struct LockFields {
    pub thread: Field,
    pub lock: Field,
    /// Only at the begin.
    pub flags: Option<Field>,
}

impl LockFields {
    /// `None` if one is missing.
    pub fn of(format: &Format) -> Option<Self> {
        let (thread, lock) = (format.field("common_pid")?, format.field("lock_addr")?);
        Some(LockFields { thread, lock, flags: format.field("flags") })
    }
}

/// Fields of `block_rq_issue` and `block_rq_complete`.
#[derive(Debug, Clone)]
pub struct BlockFields {
    pub thread: Field,
    pub device: Field,
    pub sector: Field,
    pub sectors: Field,
}

impl BlockFields {
    /// `None` if one is missing.
    pub fn of(format: &Format) -> Option<Self> {
        Some(BlockFields {
            thread: format.field("common_pid")?,
            device: format.field("dev")?,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector")?,
        })
    }
}
