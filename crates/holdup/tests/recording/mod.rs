//! Whether this machine lets the tests record.

use std::path::Path;
use std::process::Command;

pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id");
    id.stdout == b"0\n"
}

pub fn can_record() -> bool {
    let able = is_root() && Path::new("/sys/kernel/btf/vmlinux").exists();
    if !able {
        println!("skipped: recording needs root and BTF");
    }
    able
}
