//! Code bytes to instructions, what each does, and short loops. Pure: nothing here reads a file, and a page in a browser
//! disassembles with it too.
//!
//! x86-64 is written in AT&T syntax, as `perf annotate` and `objdump` show it: `lock cmpxchg %ecx,(%rdx)`.

#![forbid(unsafe_code)]

mod aarch64;
mod idiom;
mod loops;
mod purpose;
mod x86_64;

pub use idiom::Idiom;
pub use loops::{LOOP_LIMIT, Loop, loops};

/// A machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// The register that points to the stack.
    pub fn stack_pointer(self) -> Register {
        match self {
            Arch::X86_64 => Register::General(4),
            Arch::Aarch64 => Register::General(31),
        }
    }

    /// The machine this program runs on.
    pub fn host() -> Option<Arch> {
        Arch::from_name(std::env::consts::ARCH)
    }

    /// By the name that `uname -m` prints.
    pub fn from_name(name: &str) -> Option<Arch> {
        match name {
            "x86_64" => Some(Arch::X86_64),
            "aarch64" | "arm64" => Some(Arch::Aarch64),
            _ => None,
        }
    }
}

/// Where an instruction leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// To the next one.
    #[default]
    Plain,
    /// To the target; `None` if it comes from a register or memory.
    Branch {
        /// Where to.
        target: Option<u64>,
        /// Whether it may also go on to the next instruction.
        conditional: bool,
    },
    /// Into another function, and back.
    Call {
        /// Which; `None` if it comes from a register or memory.
        target: Option<u64>,
    },
    /// To the caller.
    Return,
    /// To the next one, after letting the other hardware thread go first: `pause`, `yield`, `isb`, `wfe`, `tpause`.
    Pause,
    /// Nowhere: a trap, or bytes that are no instruction.
    Trap,
}

/// What makes an access atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic {
    /// `lock xadd`, `xchg`, `ldadd`, `swp`.
    ReadModifyWrite,
    /// `lock cmpxchg`, `cas`.
    CompareExchange,
    /// Half of a pair: `ldxr`, `stxr`.
    Exclusive,
}

/// What an instruction does, as far as loops are judged by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// Anything else.
    #[default]
    Other,
    /// Nothing: it fills room.
    Nothing,
    /// Copies a value, perhaps under a condition, and perhaps to a wider register.
    Move,
    /// Makes an address without looking there.
    Address,
    /// Adds or subtracts.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Clears the lowest bit that is set.
    ClearLowest,
    /// Sets a bit and tells what it was.
    SetBit,
    /// Puts a value where another one was, and hands that back.
    Exchange,
    /// Divides whole numbers.
    Divide,
}

/// A register that takes part in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// By the machine's number: on x86-64 rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 … r15; on AArch64 x0 … x30, 31 = sp.
    General(u8),
    /// The address of the **next** instruction on x86-64.
    InstructionPointer,
}

/// A memory operand: base + index × scale + displacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Added as it is.
    pub base: Option<Register>,
    /// Multiplied by `scale`.
    pub index: Option<Register>,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added; for [`Register::InstructionPointer`] as base it is already resolved: the address itself.
    pub displacement: i64,
    /// Whether it is relative to the thread's own area (`%fs:`, `%gs:`), whose base the registers do not tell.
    pub thread_local: bool,
}

/// A set of registers: 0 to 31 the general ones by the machine's numbers, from 32 on all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers(u64);

impl Registers {
    /// None.
    pub const NONE: Registers = Registers(0);

    /// The general register `n`.
    pub(crate) const fn general(n: u8) -> Self {
        Registers(1 << (n & 31))
    }

    /// The vector or other register `n`.
    pub(crate) const fn other(n: u8) -> Self {
        Registers(1 << (32 + (n & 31)))
    }

    /// Those of both.
    #[must_use]
    pub const fn with(self, more: Registers) -> Self {
        Registers(self.0 | more.0)
    }

    /// Those that are not among `others`.
    #[must_use]
    pub(crate) const fn without(self, others: Registers) -> Self {
        Registers(self.0 & !others.0)
    }

    /// Whether both have one in common.
    pub const fn meets(self, others: Registers) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether all are general ones.
    pub(crate) const fn is_general(self) -> bool {
        self.0 >> 32 == 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each by itself.
    pub(crate) fn each(self) -> impl Iterator<Item = Registers> {
        (0..64).map(|n| Registers(1 << n)).filter(move |one| self.meets(*one))
    }
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Of the first byte.
    pub address: u64,
    /// In bytes.
    pub len: u8,
    /// Where it leads.
    pub kind: Kind,
    /// What it does, as far as loops are judged by that.
    pub operation: Operation,
    /// Whether and how it is atomic.
    pub atomic: Option<Atomic>,
    /// Whether it reads memory.
    pub load: bool,
    /// Whether it writes memory.
    pub store: bool,
    /// The address it accesses, for the first operand in memory.
    pub memory: Option<Memory>,
    /// Registers on which what it does depends, those of its address included; not the stack pointer.
    pub reads: Registers,
    /// Registers that it changes; not the stack pointer, and not the flags.
    pub writes: Registers,
    /// How many bytes it reads or writes at its operand in memory; 0 if that is not known.
    pub width: u16,
    /// What it adds to the one register that it changes, if it does nothing else.
    pub step: Option<i64>,
    /// Whether its operand in memory is the function's own: behind a stack pointer or, without optimisation, a frame pointer.
    pub on_stack: bool,
}

impl Memory {
    /// The registers from which the address is made.
    pub fn registers(&self) -> Registers {
        let of = |register: Option<Register>| match register {
            Some(Register::General(n)) => Registers::general(n),
            _ => Registers::NONE,
        };
        of(self.base).with(of(self.index))
    }
}

impl Instruction {
    /// The address behind it.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.len))
    }
}

/// What the instructions of `code` do, whose first byte lies at `start`. Bytes that are no instruction lead nowhere. Takes a tenth of
/// the time that it would take with their [`text`].
pub fn disassemble(arch: Arch, code: &[u8], start: u64) -> Vec<Instruction> {
    match arch {
        Arch::X86_64 => x86_64::disassemble(code, start),
        Arch::Aarch64 => aarch64::disassemble(code, start),
    }
}

/// Mnemonic and operands of the first instruction of `code`, which lies at `address`; `(bad)` if it is none.
pub fn text(arch: Arch, code: &[u8], address: u64) -> String {
    match arch {
        Arch::X86_64 => x86_64::text(code, address),
        Arch::Aarch64 => aarch64::text(code, address),
    }
}

/// The first instruction that begins at or after `wanted`, if the first begins at `start`.
pub fn instruction_boundary(arch: Arch, code: &[u8], start: u64, wanted: u64) -> u64 {
    match arch {
        Arch::X86_64 => x86_64::boundary(code, start, wanted),
        Arch::Aarch64 => start + (wanted - start).next_multiple_of(4),
    }
}
