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
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, killpg};

    use super::*;

    /// The state of a process, as one letter.
    fn state(pid: i32) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    /// Waits for what will come; the limit is there to end a test that would hang.
    fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            match look() {
                Some(found) => return found,
                None => assert!(Instant::now() < until, "no {what}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn memory_of_a_family_counts_children() {
        let mut parent =
            Command::new("sh").args(["-c", "sleep 1000 & wait"]).process_group(0).spawn().expect("sh starts");
        let pid = i32::try_from(parent.id()).expect("a pid");
        let list = format!("/proc/{pid}/task/{pid}/children");
        let child: i32 = wait_for("child", || fs::read_to_string(&list).ok()?.trim().parse().ok());
        // What is stopped has as much memory at the second look as at the first.
        killpg(Pid::from_raw(pid), Signal::SIGSTOP).expect("stopped");
        for pid in [pid, child] {
            wait_for("stop", || state(pid).filter(|state| *state == 'T'));
        }
        let (all, parts) = (of(Pid::from_raw(pid)), [pid, child].map(|pid| family(pid, 0)));
        killpg(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
        parent.wait().expect("reaped");
        assert!(parts.iter().all(|part| *part > Some(10_000)), "{parts:?}");
        assert_eq!(all, parts[0].zip(parts[1]).map(|(parent, child)| parent + child));
        assert_eq!(of(Pid::from_raw(pid)), None);
    }
}
