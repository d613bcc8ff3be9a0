//! Whether this machine lets the tests record.

use std::sync::{Mutex, MutexGuard, PoisonError};

use holdup_testing::{Need, has};

/// One recording at a time: each sees the whole machine, and some keep all of it busy. `None` where this user can't record.
#[track_caller]
pub fn can_record() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    has(Need::Recording).then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}
