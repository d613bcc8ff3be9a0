//! What stacks of Java processes hold that has to be named while the process lives: addresses of compiled code, and the methods that the
//! interpreter's frames name.

use holdup_runtime::jvm::{METHOD, Met};
use holdup_spool::Side;
use holdup_trace::RawStack;
use rustc_hash::FxHashMap;

use crate::asking::LIBRARY;

/// Addresses, and methods, of a process that wait to be named.
const WAITING: usize = 1 << 16;
/// Processes that are followed.
const PROCESSES: usize = 64;
/// Stretches of compiled code that are looked for in stacks of a process.
const STRETCHES: usize = 64;

/// By process.
#[derive(Debug, Default)]
pub(crate) struct Meetings(FxHashMap<u32, Process>);

#[derive(Debug, Default)]
struct Process {
    /// Memory with code and without a file.
    code: Vec<(u64, u64)>,
    met: Met,
}

impl Meetings {
    /// Looks for machines, and their code, among new mappings.
    pub(crate) fn see(&mut self, side: &[Side]) {
        let images =
            || side.iter().filter_map(|item| if let Side::Map { image, .. } = item { Some(image) } else { None });
        for image in images().filter(|image| image.path.ends_with(LIBRARY)) {
            if self.0.len() < PROCESSES {
                self.0.entry(image.pid).or_default();
            }
        }
        for image in images().filter(|image| image.path.starts_with("//anon")) {
            let Some(process) = self.0.get_mut(&image.pid) else { continue };
            if process.code.len() < STRETCHES {
                process.code.push((image.start, image.end));
            }
        }
    }

    /// Looks through a stack. O(words · stretches of code).
    pub(crate) fn stack(&mut self, stack: &RawStack) {
        let Some(Process { code, met }) = self.0.get_mut(&stack.pid) else { return };
        let is_code = |address: u64| code.iter().any(|(start, end)| (*start..*end).contains(&address));
        let words = || stack.bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let read = |address: u64| words_at(&stack.bytes, address.checked_sub(stack.sp)?);
        // The innermost frame is in the registers; of others the frame pointer lies below the return address.
        let frames = words().zip(words().skip(1)).chain([(stack.bp, stack.ip)]);
        for (pointer, address) in frames.filter(|(_, address)| is_code(*address)) {
            if met.code.len() < WAITING {
                met.code.insert(address);
            }
            let method = pointer.checked_sub(METHOD).and_then(read).filter(|method| *method >> 12 != 0);
            if met.methods.len() < WAITING {
                met.methods.extend(method);
            }
        }
    }

    /// What was met since the last time, by process.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u32, Met)> + '_ {
        let met = self.0.iter_mut().map(|(pid, process)| (*pid, std::mem::take(&mut process.met)));
        met.filter(|(_, met)| !met.code.is_empty())
    }
}

fn words_at(bytes: &[u8], offset: u64) -> Option<u64> {
    bytes.get(usize::try_from(offset).ok()?..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::Image;

    const CODE: u64 = 0x7f00_0000_0000;
    const STACK: u64 = 0x7ffc_0000_0000;

    fn map(pid: u32, start: u64, path: &str) -> Side {
        let image = Image { start, end: start + 0x1000, file_offset: 0, path: path.into(), build_id: None, pid };
        Side::Map { t: 0, image }
    }

    fn stack(pid: u32, words: &[u64]) -> RawStack {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        RawStack { pid, ip: 5, sp: STACK, bp: STACK, bytes, ..RawStack::default() }
    }

    #[test]
    fn stacks_tell_code_and_the_methods_of_frames() {
        let mut all = Meetings::default();
        // Code may lie before the machine's library in a list.
        all.see(&[map(7, CODE, "//anon"), map(7, 0x1000, "/x/libjvm.so"), map(8, CODE, "//anon")]);
        let method = 0x7e00_1230;
        all.stack(&stack(7, &[STACK + 40, CODE + 8, method, 9, 9, 9]));
        all.stack(&stack(8, &[STACK + 40, CODE + 8, method, 9, 9, 9]));
        all.stack(&stack(7, &[u64::MAX, CODE + 16, 3, CODE + 0x1000]));
        let met: Vec<_> = all.take().collect();
        assert_eq!(met.len(), 1);
        let (pid, met) = &met[0];
        assert_eq!((*pid, met.code.len(), met.methods.iter().collect::<Vec<_>>()), (7, 2, vec![&method]));
        assert_eq!(all.take().count(), 0);
    }

    #[test]
    fn what_a_process_makes_up_has_limits() {
        let mut all = Meetings::default();
        all.see(&[map(7, CODE, "/libjvm.so")]);
        let many: Vec<Side> = (0..1000).map(|i| map(7, CODE + i * 0x1000, "//anon")).collect();
        all.see(&many);
        assert_eq!(all.0[&7].code.len(), STRETCHES);
        for start in 0..40_u64 {
            let words: Vec<u64> = (0..4000).map(|i| CODE + (start * 4000 + i) % (0x1000 * STRETCHES as u64)).collect();
            all.stack(&stack(7, &words));
        }
        assert_eq!(all.take().next().map(|(_, met)| met.code.len()), Some(WAITING));
    }
}
