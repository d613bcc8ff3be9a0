//! x86-64, by iced-x86.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, InstructionInfo, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register as Reg,
};

use super::{Atomic, Instruction, Kind, Memory, Operation, Register, Registers};

pub(super) fn disassemble(code: &[u8], start: u64) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut info = InstructionInfoFactory::new();
    let mut found = Vec::with_capacity(code.len() / 4);
    let mut one = iced_x86::Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut one);
        let uses = Uses::of(info.info(&one));
        let memory = memory(&one);
        found.push(Instruction {
            address: one.ip(),
            len: one.len() as u8,
            kind: kind(&one),
            operation: operation(one.mnemonic()),
            atomic: atomic(&one),
            load: uses.load,
            store: uses.store,
            memory,
            reads: uses.reads,
            writes: uses.writes,
            width: one.memory_size().size().try_into().unwrap_or(0),
            step: step(&one),
            on_stack: memory.is_some_and(|m| m.index.is_none() && matches!(m.base, Some(Register::General(4 | 5)))),
        });
    }
    found
}

pub(super) fn text(code: &[u8], address: u64) -> String {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(true);
    let mut text = String::new();
    formatter.format(&decoder.decode(), &mut text);
    text
}

fn operation(mnemonic: Mnemonic) -> Operation {
    use Mnemonic::{
        Add, And, Blsr, Bts, Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp,
        Cmovns, Cmovo, Cmovp, Cmovs, Dec, Div, Fnop, Idiv, Inc, Lea, Mov, Movsx, Movsxd, Movzx, Nop, Or, Sub, Xchg,
    };
    match mnemonic {
        Nop | Fnop => Operation::Nothing,
        Mov | Movzx | Movsx | Movsxd | Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle
        | Cmovne | Cmovno | Cmovnp | Cmovns | Cmovo | Cmovp | Cmovs => Operation::Move,
        Lea => Operation::Address,
        Add | Sub | Inc | Dec => Operation::Add,
        And => Operation::And,
        Or => Operation::Or,
        Blsr => Operation::ClearLowest,
        Bts => Operation::SetBit,
        Xchg => Operation::Exchange,
        Div | Idiv => Operation::Divide,
        _ => Operation::Other,
    }
}

/// What a 64-bit register is moved on by. (Narrower ones wrap around elsewhere.)
fn step(one: &iced_x86::Instruction) -> Option<i64> {
    let register = one.op0_kind() == OpKind::Register && one.op0_register().is_gpr64();
    let constant = || match one.op1_kind() {
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => Some(one.immediate(1).cast_signed()),
        _ => None,
    };
    match one.mnemonic() {
        _ if !register => None,
        Mnemonic::Add => constant(),
        Mnemonic::Sub => constant()?.checked_neg(),
        Mnemonic::Inc => Some(1),
        Mnemonic::Dec => Some(-1),
        Mnemonic::Lea if one.memory_base() == one.op0_register() && one.memory_index() == Reg::None => {
            Some(one.memory_displacement64().cast_signed())
        }
        _ => None,
    }
}

pub(super) fn boundary(code: &[u8], start: u64, wanted: u64) -> u64 {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut one = iced_x86::Instruction::default();
    while decoder.can_decode() && decoder.ip() < wanted {
        decoder.decode_out(&mut one);
    }
    decoder.ip()
}

fn kind(one: &iced_x86::Instruction) -> Kind {
    let target = || {
        let near = matches!(one.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
        near.then(|| one.near_branch_target())
    };
    if matches!(one.mnemonic(), Mnemonic::Pause | Mnemonic::Tpause | Mnemonic::Umwait) {
        return Kind::Pause;
    }
    if one.code() == Code::INVALID {
        return Kind::Trap;
    }
    match one.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
            Kind::Branch { target: target(), conditional: false }
        }
        FlowControl::ConditionalBranch => Kind::Branch { target: target(), conditional: true },
        // A system call comes back like any plain instruction.
        FlowControl::Call if matches!(one.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter) => Kind::Plain,
        FlowControl::Call | FlowControl::IndirectCall => Kind::Call { target: target() },
        FlowControl::Return => Kind::Return,
        FlowControl::Exception | FlowControl::Interrupt => Kind::Trap,
        _ => Kind::Plain,
    }
}

fn atomic(one: &iced_x86::Instruction) -> Option<Atomic> {
    let in_memory = (0..one.op_count()).any(|i| one.op_kind(i) == OpKind::Memory);
    // `xchg` with memory locks without being told to.
    if !in_memory || !(one.has_lock_prefix() || one.mnemonic() == Mnemonic::Xchg) {
        return None;
    }
    match one.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => Some(Atomic::CompareExchange),
        _ => Some(Atomic::ReadModifyWrite),
    }
}

/// What an instruction reads and writes.
struct Uses {
    load: bool,
    store: bool,
    reads: Registers,
    writes: Registers,
}

impl Uses {
    fn of(info: &InstructionInfo) -> Self {
        let mut uses = Uses { load: false, store: false, reads: Registers::NONE, writes: Registers::NONE };
        for memory in info.used_memory() {
            let (reads, writes) = directions(memory.access());
            uses.load |= reads;
            uses.store |= writes;
        }
        for register in info.used_registers() {
            let (reads, writes) = directions(register.access());
            let one = numbered(register.register().full_register());
            uses.reads = if reads { uses.reads.with(one) } else { uses.reads };
            uses.writes = if writes { uses.writes.with(one) } else { uses.writes };
        }
        uses
    }
}

/// Whether something is read, and whether it is written.
fn directions(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    }
}

fn numbered(register: Reg) -> Registers {
    match register {
        Reg::RSP | Reg::RIP => Registers::NONE,
        r if r.is_gpr() => Registers::general(r.number() as u8),
        r if r.is_segment_register() => Registers::NONE,
        r => Registers::other(r.number() as u8),
    }
}

fn memory(one: &iced_x86::Instruction) -> Option<Memory> {
    (0..one.op_count()).find(|&i| one.op_kind(i) == OpKind::Memory)?;
    let register = |reg: Reg| match reg {
        Reg::None => None,
        Reg::RIP | Reg::EIP => Some(Register::InstructionPointer),
        reg => Some(Register::General(reg.full_register().number() as u8)),
    };
    Some(Memory {
        base: register(one.memory_base()),
        index: register(one.memory_index()).filter(|_| one.memory_index().is_gpr()),
        scale: one.memory_index_scale() as u8,
        displacement: one.memory_displacement64().cast_signed(),
        thread_local: matches!(one.segment_prefix(), Reg::FS | Reg::GS),
    })
}
