//! What /proc tells of the threads and mappings that exist already.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use holdup_spool::Side;
use holdup_trace::{Host, Image};

use crate::subjects;

/// Tells of threads and processes, each once.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    threads: HashSet<u32>,
    processes: HashSet<u32>,
}

impl Scanner {
    /// Appends the names of threads, and the mappings and parents of processes, not told of before, as of time `t`.
    pub(crate) fn scan(&mut self, t: u64, out: &mut Vec<Side>) {
        let mut parents = Vec::new();
        for pid in numbers(Path::new("/proc")) {
            let process = format!("/proc/{pid}");
            for tid in numbers(Path::new(&format!("{process}/task"))) {
                if self.threads.insert(tid)
                    && let Ok(name) = fs::read_to_string(format!("{process}/task/{tid}/comm"))
                {
                    out.push(Side::Name { t, pid, tid, name: name.trim_end_matches('\n').to_owned() });
                }
            }
            if !self.processes.insert(pid) {
                continue;
            }
            let parent = stat(pid).map(|stat| stat.parent).filter(|&parent| parent > 0);
            parents.extend(parent.map(|parent| Side::Parent { t, pid, parent }));
            inner_numbers(pid, t, out);
            out.extend(subjects::of(t, pid));
            if let Ok(maps) = fs::read(format!("{process}/maps")) {
                let maps = String::from_utf8_lossy(&maps);
                out.extend(maps.lines().filter_map(|l| mapping(pid, l)).map(|image| Side::Map { t, image }));
            }
        }
        // Only now all of them have names.
        out.append(&mut parents);
    }
}

/// Appends the numbers that a process's threads have for themselves, if it is in a container.
fn inner_numbers(pid: u32, t: u64, out: &mut Vec<Side>) {
    let inner = |path: &str| inner_number(&fs::read_to_string(path).ok()?);
    if inner(&format!("/proc/{pid}/status")).is_none() {
        return;
    }
    for tid in numbers(Path::new(&format!("/proc/{pid}/task"))) {
        let number = inner(&format!("/proc/{pid}/task/{tid}/status"));
        out.extend(number.map(|inner| Side::Inner { t, pid, tid, inner }));
    }
}

/// The last of the numbers in /proc/PID/status, if there are several: those in the namespaces from here inwards.
fn inner_number(status: &str) -> Option<u32> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().skip(1).last()?.parse().ok()
}

/// CPU seconds that the host has taken from this virtual machine since it was started.
pub(crate) fn stolen_seconds() -> Option<f64> {
    stolen_ticks(&fs::read_to_string("/proc/stat").ok()?).map(|ticks| ticks as f64 / USER_HZ)
}

/// The kernel shows times to users in hundredths of a second, whatever its own tick.
const USER_HZ: f64 = 100.0;

/// The eighth number of the first line.
fn stolen_ticks(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()
}

/// The entries of a folder that are numbers, in no particular order.
pub(crate) fn numbers(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// A line of /proc/PID/maps, if it is of code.
fn mapping(pid: u32, line: &str) -> Option<Image> {
    let mut fields = line.splitn(6, ' ');
    let (range, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let path = fields.nth(2).unwrap_or_default().trim_start();
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    if access.as_bytes().get(2) != Some(&b'x') || path == "[vsyscall]" {
        return None;
    }
    let path = if path.is_empty() { "//anon" } else { path.strip_suffix(" (deleted)").unwrap_or(path) };
    let path = path.to_owned();
    Some(Image { start: hex(start)?, end: hex(end)?, file_offset: hex(offset)?, path, build_id: None, pid })
}

/// The machine.
pub(crate) fn host() -> Host {
    let read = |path: &str| fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let cpu = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    Host {
        name: read("/proc/sys/kernel/hostname"),
        os: format!("{} {}", read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease")),
        arch: std::env::consts::ARCH.into(),
        cpu: cpu.map_or_else(String::new, |(_, model)| model.trim().to_owned()),
    }
}

/// The CPUs that run now.
pub(crate) fn online_cpus() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) {
            cpus.extend(from..=to);
        }
    }
    cpus
}

/// Bytes of memory that the machine has.
pub(crate) fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kb = text.lines().find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    kb.unwrap_or(1 << 20) * 1024
}

/// What /proc/PID/stat says.
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: u32,
    /// Whether it is one of the kernel's own.
    pub(crate) is_kernel: bool,
    /// Ticks since boot.
    pub(crate) started: u64,
}

pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&bytes))
}

/// What tells the address space of a process from others, as `layout_of` in `bpf/stack.h` has it. `None` for what has none, and
/// where it may not be seen.
pub(crate) fn layout(pid: u32) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_layout(&String::from_utf8_lossy(&bytes))
}

/// Begin and end of the code, and where the stack begins; 0 or 1 if they are not to be seen.
fn parse_layout(line: &str) -> Option<u64> {
    let mix = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 29
    };
    let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().skip(23).map(str::parse);
    let [start, end, stack] = [fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?];
    (start > 1).then(|| mix(mix(start, end), stack))
}

/// The flag of a thread of the kernel.
const PF_KTHREAD: u32 = 0x20_0000;

/// The name is in parentheses, and may hold some itself.
fn parse_stat(line: &str) -> Option<Stat> {
    let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace();
    let (state, parent) = (fields.next()?.chars().next()?, fields.next()?.parse().ok()?);
    let flags: u32 = fields.nth(4)?.parse().ok()?;
    Some(Stat { state, parent, is_kernel: flags & PF_KTHREAD != 0, started: fields.nth(12)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_look_like_fields() {
        let rest = "S 7 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        for name in ["sh", "a) R 1 (b", "", "x y"] {
            let stat = parse_stat(&format!("12 ({name}) {rest}")).unwrap();
            assert_eq!((stat.state, stat.parent, stat.started), ('S', 7, 4711), "{name}");
        }
        assert!(parse_stat("12 (sh) S 7").is_none());
        assert!(parse_stat("").is_none());
    }

    #[test]
    fn a_number_in_a_container_is_the_last_of_several() {
        let status = |numbers: &str| format!("Name:\tx\nTgid:\t700\nNSpid:{numbers}\nNSpgid:\t1\t2\n");
        assert_eq!(inner_number(&status("\t700\t12\t3")), Some(3));
        assert_eq!(inner_number(&status("\t700")), None);
        assert_eq!(inner_number("Name:\tx\n"), None);
    }

    #[test]
    fn stolen_time_is_the_eighth_number() {
        assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1"), Some(88));
        assert_eq!(stolen_ticks("cpu  1 2 3"), None);
        assert_eq!(stolen_ticks(""), None);
    }

    #[test]
    fn lines_of_maps() {
        let line =
            "55e0a0a01000-55e0a0a2f000 r-xp 00001000 fe:00 1234                       /usr/bin/my prog (deleted)";
        let image = mapping(7, line).expect("code");
        assert_eq!((image.start, image.end, image.file_offset), (0x55e0a0a01000, 0x55e0a0a2f000, 0x1000));
        assert_eq!((image.path.as_str(), image.pid), ("/usr/bin/my prog", 7));
        assert_eq!(mapping(7, "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 "), None);
        assert_eq!(mapping(7, "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ").expect("JIT").path, "//anon");
        assert_eq!(mapping(7, "nonsense"), None);
    }
}
