//! Probes at which spans begin and end: where they are attached, and what they read there.

use std::path::PathBuf;

use holdup_spool::{Argument, Side};
use holdup_trace::{Error, LossKind, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// Most probes of a recording: each is a breakpoint in every process that has the file mapped.
pub const MOST_PROBES: usize = 128;

/// Where an argument lies when its probe is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is this number.
    Constant(i64),
    /// In the register with this number of the kernel's `pt_regs`.
    Register(u8),
    /// In memory, so many bytes from where the register points.
    Memory(u8, i64),
}

/// Registers of `pt_regs` by number: what a probe's arguments name.
const REGISTERS: [&str; 15] =
    ["r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"];
/// The stack pointer's, which lies behind what the interrupt saved.
const STACK_POINTER: u8 = 19;
/// The instruction pointer's.
const INSTRUCTION_POINTER: u8 = 16;

/// An argument of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentAt {
    /// What it is.
    pub kind: Argument,
    /// Where it lies.
    pub place: Place,
    /// How many bytes it has: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether it has a sign.
    pub is_signed: bool,
}

impl ArgumentAt {
    /// Argument `index` of a function, by the calling convention of System V: in a register, of which the upper part is anything where it has
    /// fewer than 8 `bytes`.
    pub fn of_function(index: usize, kind: Argument, bytes: u8) -> Option<ArgumentAt> {
        let register = register(["rdi", "rsi", "rdx", "rcx", "r8", "r9"].get(index)?)?;
        let is_signed = kind == Argument::Integer;
        Some(ArgumentAt { kind, place: Place::Register(register.0), bytes, is_signed })
    }

    /// An argument of a USDT probe as its note writes it: `-4@%eax`, `8@16(%rsp)`, `4@$5`. `None` where it lies otherwise.
    pub fn of_note(text: &str, kind: Argument) -> Option<ArgumentAt> {
        let (size, place) = text.split_once('@')?;
        let size: i8 = size.parse().ok()?;
        let bytes = size.unsigned_abs();
        if ![1, 2, 4, 8].contains(&bytes) {
            return None;
        }
        let place = if let Some(constant) = place.strip_prefix('$') {
            Place::Constant(number(constant)?)
        } else if let Some(name) = place.strip_prefix('%') {
            Place::Register(register(name)?.0)
        } else {
            let (offset, rest) = place.split_once("(%")?;
            let offset = if offset.is_empty() { 0 } else { number(offset)? };
            Place::Memory(register(rest.strip_suffix(')')?)?.0, offset)
        };
        Some(ArgumentAt { kind, place, bytes, is_signed: size < 0 })
    }

    /// Its bytes in the kernel's half, `struct argument` of `bpf/spans.h`.
    fn encode(argument: Option<&ArgumentAt>) -> [u8; 16] {
        let mut bytes = [0; 16];
        let Some(a) = argument else { return bytes };
        bytes[0] = match a.kind {
            Argument::None => 0,
            Argument::Integer | Argument::Key => 1,
            Argument::Text => 2,
        };
        let (place, register, value) = match a.place {
            Place::Constant(value) => (0, 0, value),
            Place::Register(register) => (1, register, 0),
            Place::Memory(register, offset) => (2, register, offset),
        };
        (bytes[1], bytes[2], bytes[3]) = (place, a.bytes, a.is_signed.into());
        bytes[4..8].copy_from_slice(&(u32::from(register) * 8).to_ne_bytes());
        bytes[8..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A register's number and width by its name: `rax`, `eax`, `ax`, `al`; `r8`, `r8d`, `r8w`, `r8b`.
fn register(name: &str) -> Option<(u8, u8)> {
    match name {
        "rsp" | "esp" => return Some((STACK_POINTER, 8)),
        "rip" => return Some((INSTRUCTION_POINTER, 8)),
        _ => {}
    }
    let full = match name.as_bytes() {
        [b'r', b'0'..=b'9', ..] => name.trim_end_matches(['d', 'w', 'b']).to_owned(),
        [b'e', ..] => format!("r{}", &name[1..]),
        [b'r', ..] => name.to_owned(),
        [_, b'l'] => format!("r{}x", &name[..1]),
        [b's' | b'd' | b'b', b'i' | b'p', b'l'] => format!("r{}", &name[..2]),
        [_, b'x' | b'i' | b'p'] => format!("r{name}"),
        _ => return None,
    };
    let at = REGISTERS.iter().position(|known| **known == full)?;
    Some((at as u8, 8))
}

/// Where spans begin or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What the spans are called.
    pub name: String,
    /// The file with the code.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Where in the file the counter lies that says that somebody listens; 0 for none.
    pub semaphore: u64,
    /// Whether they begin there (else they end).
    pub begins: bool,
    /// It is not reached at the offset, but when the function that begins there returns.
    pub returns: bool,
    /// What is read.
    pub arguments: [Option<ArgumentAt>; 2],
}

impl Probe {
    fn kinds(&self) -> [Argument; 2] {
        self.arguments.map(|argument| argument.map_or(Argument::None, |a| a.kind))
    }

    fn is_keyed(&self) -> bool {
        self.kinds().contains(&Argument::Key)
    }

    /// Its bytes in the kernel's half, `struct probe` of `bpf/spans.h`.
    /// `kind` is the same for all probes of one name.
    pub(crate) fn encode(&self, kind: u32) -> Vec<u8> {
        let texts = self.kinds().iter().filter(|kind| **kind == Argument::Text).count() as u32;
        let is_any = self.arguments.iter().any(Option::is_some);
        let more = if is_any { 1 + 4 * texts } else { 0 };
        let words = [u32::from(self.begins), more, u32::from(self.is_keyed()), u32::from(self.returns), kind, 0];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.arguments.iter().flat_map(|argument| ArgumentAt::encode(argument.as_ref())));
        bytes
    }

    /// What a spool is told of it.
    pub(crate) fn told(&self, t: u64, id: u16) -> Side {
        let (begins, returns, keyed, arguments) = (self.begins, self.returns, self.is_keyed(), self.kinds());
        Side::Probe { t, id, begins, returns, keyed, arguments, name: self.name.clone() }
    }
}

/// What a spool is told of all of them.
pub(crate) fn tell(probes: &[Probe], t: u64, side: &mut Vec<Side>) {
    side.extend(probes.iter().enumerate().map(|(id, probe)| probe.told(t, id as u16)));
}

/// The number of each one's name: that of the first probe with it.
pub(crate) fn kinds(probes: &[Probe]) -> Vec<u32> {
    let first = |probe: &Probe| probes.iter().position(|other| other.name == probe.name).unwrap_or(0);
    probes.iter().map(|probe| first(probe) as u32).collect()
}

/// Counts of requests on sockets behind those of probes, and as many of markers behind them: `SOCKET_COUNTS` of `bpf/spans.h`.
const SOCKET_COUNTS: u32 = 64;
/// Where markers are counted that end what did not begin.
const STRAY_COUNTS: u32 = MOST_PROBES as u32 + 2 * SOCKET_COUNTS;
/// Words of `struct span_counts` of `bpf/spans.h`.
const COUNTS: usize = 6;

/// What was counted in the kernel while spans were sampled, and has no row: those after the last that stands for others, and those that ended
/// unseen. With them the weights of a name add up to its spans.
pub(crate) fn untold(probes: &[Probe], counts: &MapHandle, t: u64) -> Vec<Side> {
    let firsts = kinds(probes).into_iter().enumerate().filter(|(id, kind)| *id == *kind as usize);
    let names = firsts.map(|(id, kind)| (kind, probes[id].name.as_str()));
    let others = (MOST_PROBES as u32..STRAY_COUNTS).map(|at| match at < MOST_PROBES as u32 + SOCKET_COUNTS {
        true => (at, "sockets"),
        false => (at, "markers"),
    });
    let mut told = Vec::new();
    let mut tell = |count: u64, what: String| {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let lost = Side::Lost { kind: LossKind::Spans, t, cpu: u16::MAX, span: 0, count, what };
        told.extend((count > 0).then_some(lost));
    };
    for (kind, name) in names.chain(others) {
        let Some([_, skipped, _, begun, ended, open]) = counted(counts, kind) else { continue };
        tell(skipped, format!("spans of {name} since the last that stands for others"));
        tell(begun.saturating_sub(ended + open), format!("spans of {name} whose end was not seen"));
    }
    let strays = counted(counts, STRAY_COUNTS).map_or(0, |counts| counts[1]);
    tell(strays, "spans of markers whose begin was not seen".into());
    told
}

/// What all CPUs counted at `at`.
fn counted(counts: &MapHandle, at: u32) -> Option<[u64; COUNTS]> {
    let of_cpus = counts.lookup_percpu(&at.to_ne_bytes(), MapFlags::ANY).ok()??;
    let word = |bytes: &Vec<u8>, at: usize| {
        let word = bytes.chunks_exact(8).nth(at).and_then(|b| b.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    };
    Some(std::array::from_fn(|at| of_cpus.iter().map(|bytes| word(bytes, at)).sum()))
}

/// That there are not too many.
pub(crate) fn check(probes: &[Probe]) -> Result<()> {
    if probes.len() > MOST_PROBES {
        let n = probes.len();
        return Err(Error::Input(format!("the spans have {n} probes, and {MOST_PROBES} is the most: name fewer")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(Place, u8, bool)> {
        ArgumentAt::of_note(text, Argument::Integer).map(|a| (a.place, a.bytes, a.is_signed))
    }

    #[test]
    fn arguments_are_read_as_compilers_write_them() {
        assert_eq!(of("8@%rdi"), Some((Place::Register(14), 8, false)));
        assert_eq!(of("-4@%eax"), Some((Place::Register(10), 4, true)));
        assert_eq!(of("1@%sil"), Some((Place::Register(13), 1, false)));
        assert_eq!(of("1@%al"), Some((Place::Register(10), 1, false)));
        assert_eq!(of("2@%r10w"), Some((Place::Register(7), 2, false)));
        assert_eq!(of("4@$-5"), Some((Place::Constant(-5), 4, false)));
        assert_eq!(of("8@-24(%rbp)"), Some((Place::Memory(4, -24), 8, false)));
        assert_eq!(of("8@(%rsp)"), Some((Place::Memory(19, 0), 8, false)));
        for bad in ["", "8@", "3@%rax", "8@%xmm0", "8@(%rax,%rbx,8)", "8@%", "x@%rax", "8@%\u{e9}l", "8@symbol(%rip"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
