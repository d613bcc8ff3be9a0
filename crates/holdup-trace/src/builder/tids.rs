//! Which thread has each tid now.

use rustc_hash::FxHashMap;

use crate::ThreadIdx;

/// Tids of one page.
const PAGE: usize = 1 << 10;
/// Linux gives no tid from here on.
const LIMIT: usize = 1 << 22;

/// Threads by tid. Two loads instead of a hash: every event asks twice. At most 16 MB, whatever a source says.
#[derive(Default)]
pub(super) struct Tids {
    pages: Vec<Option<Box<[ThreadIdx; PAGE]>>>,
    /// What no Linux has, but a damaged source may.
    others: FxHashMap<u32, ThreadIdx>,
}

impl Tids {
    /// The thread that has `tid`, if any.
    #[inline]
    pub fn get(&self, tid: u32) -> Option<ThreadIdx> {
        let at = tid as usize;
        let found = match self.pages.get(at / PAGE) {
            Some(Some(page)) => page[at % PAGE],
            _ if at < LIMIT => ThreadIdx::NONE,
            _ => self.others.get(&tid).copied().unwrap_or(ThreadIdx::NONE),
        };
        (found != ThreadIdx::NONE).then_some(found)
    }

    /// `thread` has `tid` from now on.
    pub fn set(&mut self, tid: u32, thread: ThreadIdx) {
        let at = tid as usize;
        if at >= LIMIT {
            self.others.insert(tid, thread);
            return;
        }
        if self.pages.len() <= at / PAGE {
            self.pages.resize(at / PAGE + 1, None);
        }
        self.pages[at / PAGE].get_or_insert_with(|| Box::new([ThreadIdx::NONE; PAGE]))[at % PAGE] = thread;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_can_be_a_tid() {
        let mut tids = Tids::default();
        let all = [0, 1, 1023, 1024, (1 << 22) - 1, 1 << 22, u32::MAX];
        assert!(all.iter().all(|&tid| tids.get(tid).is_none()));
        (0..).zip(all).for_each(|(i, tid)| tids.set(tid, ThreadIdx(i)));
        assert!((0..).zip(all).all(|(i, tid)| tids.get(tid) == Some(ThreadIdx(i))));
        assert_eq!([2, 1025, 1 << 21, (1 << 22) + 1].map(|tid| tids.get(tid)), [None; 4]);
        tids.set(1024, ThreadIdx(9));
        assert_eq!(tids.get(1024), Some(ThreadIdx(9)));
    }
}
