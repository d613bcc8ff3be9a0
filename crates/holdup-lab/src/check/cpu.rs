//! The processor: pause, clock, siblings, nodes, clock rate.

use super::{Check, Grade, Read, measure};
use crate::experiments::pause::LONG_PAUSE_NS;
use crate::policies::POLICIES;
use crate::topology::parse_list;

pub fn pause(_: Read) -> Check {
    let length = crate::pause::measure(3000);
    pause_verdict(length.median, length.high - length.low, std::thread::available_parallelism().map_or(1, usize::from))
}

fn pause_verdict(ns: f64, spread: f64, cpus: usize) -> Check {
    let cost = |policy: &crate::policies::Policy| {
        let us = policy.spin_ns(cpus as u64, ns) / 1e3;
        let name = policy.name;
        if us >= 1000.0 { format!("{name} {:.1} ms", us / 1e3) } else { format!("{name} {us:.1} µs") }
    };
    let costs: Vec<String> = POLICIES.iter().map(cost).collect();
    let grade = if ns > LONG_PAUSE_NS { Grade::Bad } else { Grade::Ok };
    let detail = format!("spinning before sleep on {cpus} CPUs costs with it: {}", costs.join("; "));
    let check = Check { spread, ..Check::new("pause", grade, ns, "ns", detail) };
    match grade {
        Grade::Ok => check,
        _ => check.advice(
            "runtimes that count pauses spin several times too long here: update .NET to Core 2.1 or Framework 4.8, lower \
             innodb_spin_wait_pause_multiplier and GOMP_SPINCOUNT; `holdup lab run pause send-delay`",
        ),
    }
}

pub fn clock(read: Read) -> Check {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let cost = measure::clock_ns();
    clock_verdict(source.as_deref().map_or("unknown", str::trim), cost.median, cost.high - cost.low)
}

fn clock_verdict(source: &str, ns: f64, spread: f64) -> Check {
    let slow = matches!(source, "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies");
    let grade = match ns {
        _ if slow => Grade::Bad,
        ns if ns > 500.0 => Grade::Bad,
        ns if ns > 100.0 => Grade::Warn,
        _ => Grade::Ok,
    };
    let detail = format!("clock source {source}; reading the time takes {ns:.0} ns");
    let check = Check { spread, ..Check::new("clock", grade, ns, "ns", detail) };
    if grade == Grade::Ok {
        check
    } else {
        check.advice("boot with clocksource=tsc, if the kernel's log says that the TSC is stable")
    }
}

pub fn smt(read: Read) -> Check {
    let siblings =
        read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list").map(|list| parse_list(&list).len());
    let hypervisor = read("/proc/cpuinfo").is_some_and(|info| info.contains(" hypervisor"));
    match siblings {
        None => Check::unknown("smt", "threads/core", "the kernel does not tell which CPUs share a core"),
        Some(1) if hypervisor => {
            Check::new("smt", Grade::Unknown, 1.0, "threads/core", "one CPU a core, says the hypervisor")
                .advice("two virtual CPUs may still share a core of the host: compare runs on one CPU and on two")
        }
        Some(1) => Check::new("smt", Grade::Ok, 1.0, "threads/core", "each CPU is a core of its own"),
        Some(n) => Check::new("smt", Grade::Warn, n as f64, "threads/core", format!("{n} CPUs share each core"))
            .advice("pin measurements to different cores; a sibling that is busy takes a third or more of the speed"),
    }
}

pub fn numa(read: Read) -> Check {
    let Some(online) = read("/sys/devices/system/node/online") else {
        return Check::unknown("numa", "nodes", "the kernel does not tell of NUMA nodes");
    };
    let nodes = parse_list(&online).len();
    let balancing = read("/proc/sys/kernel/numa_balancing").is_some_and(|b| b.trim() != "0");
    if nodes <= 1 {
        return Check::new("numa", Grade::Ok, 1.0, "nodes", "one memory node");
    }
    let moved = if balancing { ", pages are moved between them (numa_balancing)" } else { "" };
    Check::new("numa", Grade::Warn, nodes as f64, "nodes", format!("{nodes} memory nodes{moved}")).advice(
        "bind measurements to one node (numactl --cpunodebind --membind); `holdup lab run memory` shows the distance",
    )
}

pub fn governor(read: Read) -> Check {
    let Some(governor) = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") else {
        return Check::unknown("governor", "", "no clock rate scaling in sight: off, or the hypervisor's affair");
    };
    let governor = governor.trim();
    match governor {
        "performance" => Check::new("governor", Grade::Ok, 0.0, "", "governor performance"),
        _ => Check::new(
            "governor",
            Grade::Warn,
            0.0,
            "",
            format!("governor {governor}: the clock rate follows the load"),
        )
        .advice("cpupower frequency-set -g performance, while measuring"),
    }
}

pub fn turbo(read: Read) -> Check {
    let off = read("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|t| t.trim() == "1");
    let on = off.map(|off| !off).or_else(|| read("/sys/devices/system/cpu/cpufreq/boost").map(|t| t.trim() == "1"));
    match on {
        None => Check::unknown("turbo", "", "the kernel does not tell whether the processor may exceed its base rate"),
        Some(false) => Check::new("turbo", Grade::Ok, 0.0, "", "the clock rate stays at the base rate"),
        Some(true) => Check::new("turbo", Grade::Warn, 1.0, "", "the clock rate depends on how many cores are busy")
            .advice("when comparing thread counts, expect a few per cent from turbo alone, or switch it off meanwhile"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_and_clocks() {
        assert_eq!(pause_verdict(4.4, 0.2, 2).verdict, Grade::Ok);
        let long = pause_verdict(43.0, 1.0, 24);
        assert_eq!(long.verdict, Grade::Bad);
        assert!(long.detail.contains(".NET Core ≤ 2.0 211.6 ms"), "{}", long.detail);
        assert_eq!(clock_verdict("tsc", 25.0, 1.0).verdict, Grade::Ok);
        assert_eq!(clock_verdict("hpet", 25.0, 1.0).verdict, Grade::Bad);
        assert_eq!(clock_verdict("xen", 180.0, 1.0).verdict, Grade::Warn);
    }

    #[test]
    fn topology_from_files() {
        let read = |path: &str| match path {
            "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list" => Some("0,32\n".to_owned()),
            "/sys/devices/system/node/online" => Some("0-1\n".to_owned()),
            "/proc/sys/kernel/numa_balancing" => Some("1\n".to_owned()),
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor" => Some("powersave\n".to_owned()),
            "/sys/devices/system/cpu/cpufreq/boost" => Some("0\n".to_owned()),
            _ => None,
        };
        assert_eq!((smt(&read).value, smt(&read).verdict), (2.0, Grade::Warn));
        assert!(numa(&read).detail.contains("numa_balancing"));
        assert!(governor(&read).detail.contains("powersave"));
        assert_eq!(turbo(&read).verdict, Grade::Ok);
    }
}
