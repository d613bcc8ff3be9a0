//! Whether this machine lets the tests record.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id");
    id.stdout == b"0\n"
}

/// One recording at a time: each sees the whole machine, and some keep all of it busy. `None` where this user can't record.
pub fn can_record() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if !is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("skipped: recording needs root and BTF");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}
