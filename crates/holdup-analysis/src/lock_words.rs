//! Names that say "lock".

use holdup_trace::StringId;

/// The functions of the application around a wait, from the innermost on, while they may tell of a lock.
#[derive(Default)]
pub(crate) struct Near {
    seen: usize,
    pub(crate) lock: StringId,
    is_over: bool,
}

impl Near {
    /// Functions of the application in which a lock's name tells for what is waited.
    const MOST: usize = 8;

    pub(crate) fn see(&mut self, function: StringId, says_lock: bool, keeps_lock: bool) {
        self.seen += 1;
        if self.is_over || self.seen > Self::MOST {
            return;
        }
        // What runs under a lock waits for something else.
        if keeps_lock && self.seen > 1 {
            self.is_over = true;
        } else if says_lock {
            self.lock = function;
        } else {
            self.is_over = self.lock != StringId::default();
        }
    }
}

/// Whether a function has a lock's name, in any common spelling: `LockAcquire`, `row_lock_wait`, `busyHandler`.
pub(crate) fn says_lock(function: &str) -> bool {
    // Every wait of Java goes through this one.
    !function.contains("LockSupport") && words(function).any(|word| LOCK_WORDS.contains(&word.as_str()))
}

/// Whether a function takes a lock, by its name, and calls others under it: `with_lock`, `run_locked`.
pub(crate) fn keeps_lock(function: &str) -> bool {
    says_lock(function) && words(function).any(|word| KEEPING.contains(&word.as_str()))
}

const KEEPING: &[&str] = &["with", "under", "holding", "locked", "while"];

const LOCK_WORDS: &[&str] =
    &["lock", "locked", "locking", "mutex", "spinlock", "rwlock", "lwlock", "deadlock", "busy", "monitorenter", "gil"];

/// The words of a name, in small letters: parts between signs, and humps.
fn words(name: &str) -> impl Iterator<Item = String> + '_ {
    name.split(|c: char| !c.is_ascii_alphabetic()).flat_map(|part| {
        let bytes = part.as_bytes();
        let starts = |i: usize| {
            let after_small = i > 0 && bytes[i - 1].is_ascii_lowercase() && bytes[i].is_ascii_uppercase();
            let last_of_row =
                i > 0 && bytes[i].is_ascii_uppercase() && bytes.get(i + 1).is_some_and(u8::is_ascii_lowercase);
            i == 0 || after_small || last_of_row
        };
        let mut cuts: Vec<usize> = (0..bytes.len()).filter(|&i| starts(i)).collect();
        cuts.push(bytes.len());
        cuts.windows(2).map(|w| part[w[0]..w[1]].to_ascii_lowercase()).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use holdup_trace::StringId;

    use super::{Near, keeps_lock, says_lock};

    #[test]
    fn a_lock_is_known_by_its_name_in_any_spelling() {
        let locks =
            ["LockAcquireExtended", "XactLockTableWait", "row_lock_wait", "sqliteDefaultBusyCallback", "PyMutex_Lock"];
        let others = [
            "clock_gettime",
            "BlockingQueue::take",
            "java.util.concurrent.locks.LockSupport.park",
            "poll_loop",
            "unblock",
        ];
        assert_eq!(locks.map(says_lock), [true; 5]);
        assert_eq!(others.map(says_lock), [false; 5]);
    }

    #[test]
    fn who_runs_under_a_lock_does_not_wait_for_it() {
        let lock_of = |functions: &[&str]| {
            let mut near = Near::default();
            (1..).zip(functions).for_each(|(id, f)| near.see(StringId(id), says_lock(f), keeps_lock(f)));
            near.lock
        };
        assert_eq!(lock_of(&["wait_latch", "row_lock_wait", "update"]), StringId(2));
        assert_eq!(lock_of(&["with_lock", "fetch"]), StringId(1), "it takes the lock");
        assert_eq!(lock_of(&["read_answer", "with_lock", "fetch"]), StringId::default());
    }
}
