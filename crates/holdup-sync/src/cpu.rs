//! How many CPUs there are, and which is ours.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// CPUs that this kernel may ever use, also those that are offline now: one more than the highest number. At least 1.
///
/// Arrays indexed by a CPU's number need this size. The number of CPUs online, or those that this process may use, is
/// smaller, and says nothing about the highest number among them.
pub fn possible() -> usize {
    static POSSIBLE: OnceLock<usize> = OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok();
        list.as_deref().and_then(highest).map_or_else(configured, |cpu| cpu + 1)
    })
}

/// The last number of a list like `0-3,8-11`.
fn highest(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

fn configured() -> usize {
    // SAFETY: a call without pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1).max(1)
}

/// A number below `cells` that threads on different CPUs seldom share, from `struct rseq` (below a nanosecond) or,
/// without it, one that the thread keeps.
#[inline]
pub fn hint(cells: usize) -> usize {
    #[cfg(holdup_rseq)]
    if let Some(cpu) = crate::rseq::area().and_then(crate::rseq::Area::cpu) {
        return below(cpu, cells);
    }
    below(slot(), cells)
}

/// The remainder, without a division where there is none to do.
#[inline]
fn below(number: usize, cells: usize) -> usize {
    if number < cells { number } else { number % cells }
}

/// Threads numbered in the order in which they first asked.
fn slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SLOT: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    // A thread whose locals are gone is ending: any cell will do.
    SLOT.try_with(Cell::get).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_a_list() {
        assert_eq!(highest("0-3\n"), Some(3));
        assert_eq!(highest("0"), Some(0));
        assert_eq!(highest("0-3,8-11\n"), Some(11));
        assert_eq!(highest(""), None);
    }

    #[test]
    fn hints_stay_below_the_number_of_cells() {
        assert!(possible() >= 1);
        for cells in 1..5 {
            assert!(hint(cells) < cells);
        }
    }
}
