//! New mappings of code and execs, as the kernel tells them.

use holdup_spool::Side;
use holdup_trace::{Image, LossKind};

use crate::perf::Mappings;

const LOST: u32 = 2;
const COMM: u32 = 3;
const MMAP2: u32 = 10;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;

/// Appends what a CPU's buffer tells.
pub(crate) fn drain(cpu: usize, mappings: &mut Mappings, out: &mut Vec<Side>) {
    mappings.drain(&mut |kind, misc, body| out.extend(item(cpu, kind, misc, body)));
}

/// The item of a record; `None` for records that say nothing new. Each ends with its time.
fn item(cpu: usize, kind: u32, misc: u16, body: &[u8]) -> Option<Side> {
    let (rest, time) = body.split_last_chunk::<8>()?;
    let t = u64::from_ne_bytes(*time);
    match kind {
        LOST => {
            let count = u32::try_from(word(rest, 8)?).unwrap_or(u32::MAX);
            let (kind, what) = (LossKind::Mappings, "mappings of code".into());
            Some(Side::Lost { kind, t, cpu: cpu as u16, span: 0, count, what })
        }
        COMM if misc & MISC_COMM_EXEC != 0 => Some(Side::Exec { t, pid: half(rest, 0)? }),
        MMAP2 => {
            let pid = half(rest, 0)?;
            let (start, length, file_offset) = (word(rest, 8)?, word(rest, 16)?, word(rest, 24)?);
            let build_id = if misc & MISC_BUILD_ID != 0 {
                let size = usize::from(*rest.get(32)?).min(20);
                rest.get(36..36 + size).map(<[u8]>::to_vec)
            } else {
                None
            };
            let name = rest.get(64..)?;
            let end = name.iter().position(|&b| b == 0)?;
            let path = String::from_utf8_lossy(&name[..end]).into_owned();
            let image = Image { start, end: start.checked_add(length)?, file_offset, path, build_id, pid };
            (pid != u32::MAX && pid != 0).then_some(Side::Map { t, image })
        }
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
