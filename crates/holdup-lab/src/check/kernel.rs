//! The kernel: pages, mitigations, stolen time, pressure, permissions.

use std::time::Duration;

use super::{Check, Grade, Read, measure};

pub fn thp(read: Read) -> Check {
    let Some(setting) = read("/sys/kernel/mm/transparent_hugepage/enabled") else {
        return Check::unknown("thp", "", "this kernel has no transparent huge pages");
    };
    match chosen(&setting) {
        "always" => Check::new("thp", Grade::Warn, 0.0, "", "transparent huge pages: always")
            .advice("a page fault may clear 2 MB, and khugepaged takes mmap_lock; for latency choose madvise"),
        other => Check::new("thp", Grade::Ok, 0.0, "", format!("transparent huge pages: {other}")),
    }
}

/// The word in brackets.
fn chosen(setting: &str) -> &str {
    setting.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("unknown", |(word, _)| word)
}

/// Weaknesses whose cures make switches or system calls slower.
const COSTLY: &[&str] =
    &["meltdown", "mds", "mmio_stale_data", "tsx_async_abort", "retbleed", "spectre_v2", "l1tf", "srbds"];

pub fn mitigations(read: Read) -> Check {
    let cost = measure::system_call_ns();
    let state = |name: &&'static str| Some((*name, read(&format!("/sys/devices/system/cpu/vulnerabilities/{name}"))?));
    let states: Vec<(&'static str, String)> = COSTLY.iter().filter_map(state).collect();
    let check = mitigations_verdict(&states, cost.median);
    Check { spread: cost.high - cost.low, ..check }
}

fn mitigations_verdict(states: &[(&str, String)], syscall_ns: f64) -> Check {
    let active: Vec<String> = states
        .iter()
        .filter_map(|(name, state)| Some(format!("{name}: {}", first_part(state.trim().strip_prefix("Mitigation: ")?))))
        .collect();
    // Each of these is paid at every switch of address spaces or entry into the kernel.
    let expensive = active
        .iter()
        .any(|a| a.contains("PTI") || a.contains("IBRS") && !a.contains("Enhanced") || a.contains("untrained"));
    let grade = match syscall_ns {
        ns if ns > 1000.0 => Grade::Bad,
        ns if ns > 400.0 || expensive => Grade::Warn,
        _ => Grade::Ok,
    };
    let list = if active.is_empty() { "none active".to_owned() } else { active.join(", ") };
    let check =
        Check::new("mitigations", grade, syscall_ns, "ns", format!("a system call takes {syscall_ns:.0} ns; {list}"));
    if grade == Grade::Ok {
        check
    } else {
        check.advice(
            "fewer, larger system calls and fewer switches pay here; compare machines with `holdup check --json`",
        )
    }
}

fn first_part(state: &str) -> &str {
    state.split([';', ',']).next().unwrap_or(state)
}

pub fn steal(read: Read) -> Check {
    let before = read("/proc/stat").as_deref().and_then(ticks);
    std::thread::sleep(Duration::from_secs(1));
    let after = read("/proc/stat").as_deref().and_then(ticks);
    match before.zip(after) {
        Some((before, after)) => steal_verdict(before, after),
        None => Check::unknown("steal", "%", "/proc/stat does not tell of stolen time"),
    }
}

/// Stolen ticks and all ticks of the first line of /proc/stat.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let numbers: Vec<u64> =
        stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; what guests ran is in user already.
    (numbers.len() >= 8).then(|| (numbers[7], numbers[..8].iter().sum()))
}

fn steal_verdict(before: (u64, u64), after: (u64, u64)) -> Check {
    let share = |stolen: u64, all: u64| 100.0 * stolen as f64 / all.max(1) as f64;
    let now = share(after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    let boot = share(after.0, after.1);
    let grade = match now.max(boot) {
        share if share > 10.0 => Grade::Bad,
        share if share > 1.0 => Grade::Warn,
        _ => Grade::Ok,
    };
    let detail = format!("the host took {now:.1} % of the CPU time in the last second, {boot:.1} % since boot");
    let check = Check::new("steal", grade, now, "%", detail);
    if grade == Grade::Ok {
        check
    } else {
        check.advice(
            "elapsed times are the host's too: measure more rounds, compare the fastest, or move to CPUs of one's own",
        )
    }
}

pub fn pressure(read: Read) -> Check {
    let some = |what: &str| read(&format!("/proc/pressure/{what}")).as_deref().and_then(average);
    let Some(cpu) = some("cpu") else {
        return Check::unknown("pressure", "%", "no pressure stall information: boot with psi=1 to have it");
    };
    pressure_verdict(cpu, some("memory").unwrap_or(0.0), some("io").unwrap_or(0.0))
}

/// Of the last ten seconds, in per cent.
fn average(pressure: &str) -> Option<f64> {
    pressure.lines().next()?.split_once("avg10=")?.1.split(' ').next()?.parse().ok()
}

fn pressure_verdict(cpu: f64, memory: f64, io: f64) -> Check {
    let grade = match cpu.max(memory).max(io) {
        worst if worst > 40.0 => Grade::Bad,
        worst if worst > 10.0 => Grade::Warn,
        _ => Grade::Ok,
    };
    let detail = format!(
        "in the last 10 s threads waited for a CPU {cpu:.1} % of the time, for memory {memory:.1} %, for disks {io:.1} %"
    );
    let check = Check::new("pressure", grade, cpu, "%", detail);
    if grade == Grade::Ok {
        check
    } else {
        check
            .advice("other programs are in the way of measurements: `holdup record -a` and `holdup explain` tell which")
    }
}

pub fn perf(read: Read) -> Check {
    let level = read("/proc/sys/kernel/perf_event_paranoid").and_then(|p| p.trim().parse::<f64>().ok());
    let Some(level) = level else {
        return Check::unknown("perf", "", "this kernel has no perf events");
    };
    let privileged = has(read, CAP_PERFMON) || has(read, CAP_SYS_ADMIN);
    let detail = format!(
        "perf_event_paranoid {level}, {}",
        if privileged { "this user may trace the machine" } else { "without privilege" }
    );
    match (privileged, level > 1.0) {
        (true, _) => Check::new("perf", Grade::Ok, level, "", detail),
        (false, true) => Check::new("perf", Grade::Bad, level, "", detail).advice(
            "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON, or root: without one nothing of the kernel shows",
        ),
        (false, false) => {
            Check::new("perf", Grade::Warn, level, "", detail).advice("only this user's own processes can be sampled")
        }
    }
}

pub fn bpf(read: Read) -> Check {
    let privileged = has(read, CAP_BPF) || has(read, CAP_SYS_ADMIN);
    let btf = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    let text = |yes: bool, what: &str| format!("{}{what}", if yes { "" } else { "no " });
    let detail = format!("{}, {}", text(privileged, "privilege for BPF"), text(btf, "BTF of the kernel"));
    let grade = if privileged && btf { Grade::Ok } else { Grade::Bad };
    let check = Check::new("bpf", grade, f64::from(u8::from(privileged && btf)), "", detail);
    if grade == Grade::Ok {
        check
    } else {
        check.advice("`holdup record` needs root (or CAP_BPF and CAP_PERFMON) and CONFIG_DEBUG_INFO_BTF; `holdup explain perf.data` does not")
    }
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Whether this process has a capability.
fn has(read: Read, capability: u32) -> bool {
    let status = read("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|bits| bits >> capability & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all() {
        assert_eq!(ticks("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1\n"), Some((10, 100)));
        assert_eq!(ticks("cpu 1 2"), None);
        assert_eq!(steal_verdict((0, 0), (0, 1000)).verdict, Grade::Ok);
        let stolen = steal_verdict((0, 0), (150, 1000));
        assert_eq!((stolen.value, stolen.verdict), (15.0, Grade::Bad));
    }

    #[test]
    fn pressure_and_pages() {
        assert_eq!(average("some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00"), Some(12.5));
        assert_eq!(average(""), None);
        assert_eq!(pressure_verdict(12.5, 0.0, 0.0).verdict, Grade::Warn);
        let pages = |setting: &'static str| thp(&move |_| Some(setting.to_owned())).verdict;
        assert_eq!(pages("always [madvise] never\n"), Grade::Ok);
        assert_eq!(pages("[always] madvise never\n"), Grade::Warn);
    }

    #[test]
    fn mitigations_and_their_price() {
        let states = [("meltdown", "Mitigation: PTI\n".to_owned()), ("mds", "Not affected\n".to_owned())];
        let check = mitigations_verdict(&states, 200.0);
        assert_eq!((check.verdict, check.detail.as_str()), (Grade::Warn, "a system call takes 200 ns; meltdown: PTI"));
        assert_eq!(mitigations_verdict(&states[1..], 90.0).verdict, Grade::Ok);
    }

    #[test]
    fn permissions() {
        let read = |status: &'static str, level: &'static str| {
            move |path: &str| Some(if path.ends_with("status") { status } else { level }.to_owned())
        };
        assert_eq!(perf(&read("CapEff:\t0000000000000000\n", "2\n")).verdict, Grade::Bad);
        assert_eq!(perf(&read("CapEff:\t000001ffffffffff\n", "2\n")).verdict, Grade::Ok);
        assert_eq!(perf(&read("", "1\n")).verdict, Grade::Warn);
    }
}
