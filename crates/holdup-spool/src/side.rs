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
            // Earlier versions wrote no kind.
            4 => take_loss(None, t, bytes)?,
            5 => {
                let (&kind, rest) = bytes.split_first()?;
                *bytes = rest;
                take_loss(Some(LossKind::from_code(kind)), t, bytes)?
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
