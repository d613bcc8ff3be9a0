//! Locks, each once.

use rustc_hash::FxHashMap;

use crate::tables::{Lock, Locks};
use crate::{LockId, LockKey, LockKind, StringId, Table};

/// All locks so far.
pub(super) struct LockTable {
    /// Row 0 is "no lock".
    pub rows: Locks,
    ids: FxHashMap<LockKey, LockId>,
}

impl Default for LockTable {
    fn default() -> Self {
        let mut table = LockTable { rows: Locks::default(), ids: FxHashMap::default() };
        table.intern(LockKey { kind: LockKind::Unknown, pid: 0, address: 0 });
        table
    }
}

impl LockTable {
    /// The id of a lock, new or not.
    pub fn intern(&mut self, key: LockKey) -> LockId {
        let rows = &mut self.rows;
        *self.ids.entry(key).or_insert_with(|| {
            let LockKey { kind, pid, address } = key;
            rows.push(Lock { kind, pid, address, name: StringId::default() });
            LockId(rows.len() as u32 - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_address_in_another_process_is_another_lock() {
        let mut locks = LockTable::default();
        let key = |pid| LockKey { kind: LockKind::Futex, pid, address: 0x10 };
        let ids = [1, 2, 1].map(|pid| locks.intern(key(pid)));
        assert_eq!(ids, [LockId(1), LockId(2), LockId(1)]);
        assert_eq!((locks.rows.len(), locks.rows.row(0).kind), (3, LockKind::Unknown));
    }
}
