//! How much memory a command has, and how much of it a cache could hold.

use std::fs;

use nix::unistd::Pid;

/// Generations of children that are followed.
const DEPTH: usize = 16;

/// The most memory that a process had, in bytes, with what its descendants had; `None` if it is gone. What they share counts
/// for each.
pub(super) fn of(pid: Pid) -> Option<u64> {
    family(pid.as_raw(), DEPTH)
}

fn family(pid: i32, depth: usize) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(kilobytes)?;
    if depth == 0 {
        return Some(own);
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<i32> =
        children.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
    Some(own + children.into_iter().filter_map(|child| family(child, depth - 1)).sum::<u64>())
}

/// `   1234 kB` in bytes.
fn kilobytes(text: &str) -> Option<u64> {
    Some(text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The size of the last cache that CPU 0 has, in bytes, if the kernel tells.
pub fn last_cache() -> Option<u64> {
    let sizes = (0..8).filter_map(|index| {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
        Some(text.trim().strip_suffix('K')?.parse::<u64>().ok()? * 1024)
    });
    sizes.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_family_counts_children() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().expect("sh starts");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let alone = || family(pid.as_raw(), 0);
        while of(pid) == alone() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let (all, one) = (of(pid), alone());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
        child.wait().expect("reaped");
        assert!(all > one && one > Some(100_000), "{all:?} {one:?}");
        assert_eq!(of(pid), None);
    }
}
