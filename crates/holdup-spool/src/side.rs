//! What user space tells beside the kernel's records: names, mappings, execs, losses.

use holdup_trace::file::kind_of_loss;
use holdup_trace::{Image, LossKind};

/// An item of side information. Times are the recording's clock in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// A thread's name and process.
    Name {
        /// When.
        t: u64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The name.
        name: String,
    },
    /// A mapping of code.
    Map {
        /// When.
        t: u64,
        /// What is mapped, and by which process.
        image: Image,
    },
    /// A process starts another program.
    Exec {
        /// When.
        t: u64,
        /// The process.
        pid: u32,
    },
    /// A process was looked at: is it a server?
    Listener {
        /// When.
        t: u64,
        /// The process.
        pid: u32,
        /// The process that made it; 0 for unknown.
        parent: u32,
        /// Whether it owns a socket that listens.
        listens: bool,
    },
    /// A process was looked at: what does it work on?
    Subject {
        /// When.
        t: u64,
        /// The process.
        pid: u32,
        /// A script, a source file, a class.
        what: String,
    },
    /// A process that was there already was started by another that is there.
    Parent {
        /// When that was seen.
        t: u64,
        /// The process.
        pid: u32,
        /// The one that started it.
        parent: u32,
    },
    /// The number that a thread of a container has for itself.
    Inner {
        /// When that was seen.
        t: u64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// What it calls itself.
        inner: u32,
    },
    /// Where and how a thread may run.
    Placement {
        /// When that was seen.
        t: u64,
        /// The thread.
        tid: u32,
        /// The CPUs, as Linux lists them.
        cpus: String,
        /// Its nice value.
        nice: i16,
        /// Its scheduling policy, by Linux's number.
        policy: u8,
        /// Its control group.
        group: String,
        /// How long before it may have come to be so, in nanoseconds.
        span: u64,
    },
    /// The limit of a control group, and how often it was reached since the recording began.
    Quota {
        /// When.
        t: u64,
        /// The control group.
        group: String,
        /// Microseconds of CPU time in each period (0: no limit), and of a period.
        limit: [u32; 2],
        /// Periods, those of them that were throttled, and for how many microseconds.
        counts: [u32; 3],
    },
    /// What the records of spans with this number mean.
    Probe {
        /// When this was told.
        t: u64,
        /// Its number.
        id: u16,
        /// Whether spans begin there (else they end).
        begins: bool,
        /// Whether they end because a function returns.
        returns: bool,
        /// Whether spans are paired by the argument that is a key.
        keyed: bool,
        /// Each argument's [meaning](crate::Argument).
        arguments: [crate::Argument; 2],
        /// What the spans are called.
        name: String,
    },
    /// A function that an interpreter runs.
    Function {
        /// When it was seen.
        t: u64,
        /// Its number in the frames of stacks.
        number: u32,
        /// Its qualified name.
        name: String,
        /// The source file.
        file: String,
        /// The line in which it begins; 0 if unknown.
        line: u32,
    },
    /// Something was lost.
    Lost {
        /// What kind of thing.
        kind: LossKind,
        /// When it was noticed.
        t: u64,
        /// On which CPU; `u16::MAX` for all.
        cpu: u16,
        /// How long before the loss may have begun, in nanoseconds.
        span: u64,
        /// How many.
        count: u32,
        /// What, in words.
        what: String,
    },
}

impl Side {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Side::Name { t, pid, tid, name } => {
                out.push(1);
                put(out, *t);
                put(out, (u64::from(*pid) << 32) | u64::from(*tid));
                put_bytes(out, name.as_bytes());
            }
            Side::Map { t, image } => {
                out.push(2);
                for word in [*t, image.pid.into(), image.start, image.end, image.file_offset] {
                    put(out, word);
                }
                put_bytes(out, image.path.as_bytes());
                put_bytes(out, image.build_id.as_deref().unwrap_or_default());
            }
            Side::Exec { t, pid } => {
                out.push(3);
                put(out, *t);
                put(out, (*pid).into());
            }
            Side::Listener { t, pid, parent, listens } => {
                out.push(6);
                for word in [*t, (u64::from(*pid) << 32) | u64::from(*parent), u64::from(*listens)] {
                    put(out, word);
                }
            }
            Side::Subject { t, pid, what } => {
                out.push(13);
                put(out, *t);
                put(out, (*pid).into());
                put_bytes(out, what.as_bytes());
            }
            Side::Parent { t, pid, parent } => {
                out.push(7);
                put(out, *t);
                put(out, (u64::from(*parent) << 32) | u64::from(*pid));
            }
            Side::Inner { t, pid, tid, inner } => {
                out.push(10);
                for word in [*t, (u64::from(*pid) << 32) | u64::from(*tid), (*inner).into()] {
                    put(out, word);
                }
            }
            Side::Placement { t, tid, cpus, nice, policy, group, span } => {
                out.push(8);
                put(out, *t);
                let nice = u64::from(nice.cast_unsigned());
                put(out, (nice << 48) | (u64::from(*policy) << 32) | u64::from(*tid));
                put(out, *span);
                put_bytes(out, cpus.as_bytes());
                put_bytes(out, group.as_bytes());
            }
            Side::Quota { t, group, limit, counts } => {
                out.push(9);
                put(out, *t);
                limit.iter().chain(counts).for_each(|&n| put(out, n.into()));
                put_bytes(out, group.as_bytes());
            }
            Side::Probe { t, id, begins, returns, keyed, arguments: [a, b], name } => {
                out.push(11);
                put(out, *t);
                let flags = u64::from(*begins) | (u64::from(*returns) << 1) | (u64::from(*keyed) << 2);
                put(out, u64::from(*id) | (flags << 16) | (u64::from(a.code()) << 32) | (u64::from(b.code()) << 40));
                put_bytes(out, name.as_bytes());
            }
            Side::Function { t, number, name, file, line } => {
                out.push(12);
                put(out, *t);
                put(out, (u64::from(*number) << 32) | u64::from(*line));
                put_bytes(out, name.as_bytes());
                put_bytes(out, file.as_bytes());
            }
            Side::Lost { kind, t, cpu, span, count, what } => {
                out.push(5);
                put(out, *t);
                out.push(kind.code());
                put(out, *span);
                put(out, (u64::from(*cpu) << 32) | u64::from(*count));
                put_bytes(out, what.as_bytes());
            }
        }
    }

    /// Takes an item off the front of `bytes`; `None` at their end or if they are no items.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Side> {
        let (&tag, rest) = bytes.split_first()?;
        *bytes = rest;
        let t = take(bytes)?;
        Some(match tag {
            1 => {
                let ids = take(bytes)?;
                Side::Name { t, pid: (ids >> 32) as u32, tid: ids as u32, name: take_text(bytes)? }
            }
            2 => {
                let image = Image {
                    pid: take(bytes)? as u32,
                    start: take(bytes)?,
                    end: take(bytes)?,
                    file_offset: take(bytes)?,
                    path: take_text(bytes)?,
                    build_id: Some(take_bytes(bytes)?.to_vec()).filter(|id| !id.is_empty()),
                };
                Side::Map { t, image }
            }
            3 => Side::Exec { t, pid: take(bytes)? as u32 },
            6 => {
                let (ids, listens) = (take(bytes)?, take(bytes)? != 0);
                Side::Listener { t, pid: (ids >> 32) as u32, parent: ids as u32, listens }
            }
            13 => Side::Subject { t, pid: take(bytes)? as u32, what: take_text(bytes)? },
            // Earlier versions wrote no kind.
            4 => take_loss(None, t, bytes)?,
            5 => {
                let (&kind, rest) = bytes.split_first()?;
                *bytes = rest;
                take_loss(Some(LossKind::from_code(kind)), t, bytes)?
            }
            7 => {
                let ids = take(bytes)?;
                Side::Parent { t, pid: ids as u32, parent: (ids >> 32) as u32 }
            }
            10 => {
                let (ids, inner) = (take(bytes)?, take(bytes)? as u32);
                Side::Inner { t, pid: (ids >> 32) as u32, tid: ids as u32, inner }
            }
            8 => {
                let word = take(bytes)?;
                let (tid, policy, nice) = (word as u32, (word >> 32) as u8, ((word >> 48) as u16).cast_signed());
                let (span, cpus, group) = (take(bytes)?, take_text(bytes)?, take_text(bytes)?);
                Side::Placement { t, tid, cpus, nice, policy, group, span }
            }
            9 => {
                let mut number = || take(bytes).map(|n| n as u32);
                let (limit, counts) = ([number()?, number()?], [number()?, number()?, number()?]);
                Side::Quota { t, group: take_text(bytes)?, limit, counts }
            }
            11 => {
                let word = take(bytes)?;
                let flag = |n: u32| word >> (16 + n) & 1 == 1;
                let arguments = [32, 40].map(|at| crate::Argument::from_code((word >> at) as u8));
                let (id, begins, returns, keyed) = (word as u16, flag(0), flag(1), flag(2));
                Side::Probe { t, id, begins, returns, keyed, arguments, name: take_text(bytes)? }
            }
            12 => {
                let word = take(bytes)?;
                let (name, file) = (take_text(bytes)?, take_text(bytes)?);
                Side::Function { t, number: (word >> 32) as u32, name, file, line: word as u32 }
            }
            _ => return None,
        })
    }
}

fn take_loss(kind: Option<LossKind>, t: u64, bytes: &mut &[u8]) -> Option<Side> {
    let (span, word) = (take(bytes)?, take(bytes)?);
    let what = take_text(bytes)?;
    let kind = kind.unwrap_or_else(|| kind_of_loss(&what));
    Some(Side::Lost { kind, t, cpu: (word >> 32) as u16, span, count: word as u32, what })
}

pub(crate) fn put(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(u16::MAX.into())];
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (taken, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    *bytes = rest;
    Some(taken)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    take_bytes(bytes).map(|text| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::LOST_STACKS;

    #[test]
    fn what_is_told_of_scheduling_is_read_back() {
        let placement =
            Side::Placement { t: 9, tid: 7, cpus: "0-3,8".into(), nice: -5, policy: 3, group: "/a b".into(), span: 4 };
        let quota = Side::Quota { t: 9, group: "/a".into(), limit: [50_000, 100_000], counts: [30, 29, u32::MAX] };
        let inner = Side::Inner { t: 2, pid: 4711, tid: 4712, inner: 7 };
        let arguments = [crate::Argument::Key, crate::Argument::Text];
        let probe =
            Side::Probe { t: 5, id: 77, begins: true, returns: false, keyed: true, arguments, name: "q".into() };
        let function = Side::Function { t: 5, number: 70_000, name: "C.f".into(), file: "/a.py".into(), line: 12 };
        let all = [Side::Parent { t: 1, pid: 3, parent: 4 }, inner, placement, quota, probe, function];
        let mut bytes = Vec::new();
        all.iter().for_each(|item| item.encode(&mut bytes));
        let mut rest = bytes.as_slice();
        let read: Vec<Side> = std::iter::from_fn(|| Side::decode(&mut rest)).collect();
        assert_eq!(read, all);
    }

    #[test]
    fn a_loss_without_a_kind_gets_one() {
        let lost = |kind, what: &str| Side::Lost { kind, t: 9, cpu: 3, span: 5, count: 7, what: what.into() };
        let mut bytes = Vec::new();
        lost(LossKind::Mappings, LOST_STACKS).encode(&mut bytes);
        assert_eq!(Side::decode(&mut bytes.as_slice()), Some(lost(LossKind::Mappings, LOST_STACKS)));
        // As it was written before: another tag, and no kind behind the time.
        bytes[0] = 4;
        bytes.remove(9);
        assert_eq!(Side::decode(&mut bytes.as_slice()), Some(lost(LossKind::Stacks, LOST_STACKS)));
    }
}
