//! What this process gets of the machine: CPUs, quota, restartable sequences.

use holdup_sync::PerCpuCounter;

use super::{Check, Grade, Read};
use crate::harness::affinity;
use crate::topology::parse_list;

/// CPUs online.
pub fn online(read: Read) -> usize {
    let list = read("/sys/devices/system/cpu/online").map_or(0, |list| parse_list(&list).len());
    if list == 0 { affinity::allowed().len() } else { list }
}

pub fn cpus(read: Read) -> Check {
    cpus_verdict(affinity::allowed().len(), online(read))
}

fn cpus_verdict(allowed: usize, online: usize) -> Check {
    let detail = format!("this process may use {allowed} of {online} CPUs");
    let grade = if allowed < online { Grade::Warn } else { Grade::Ok };
    let check = Check::new("cpus", grade, allowed as f64, "CPUs", detail);
    if grade == Grade::Ok {
        check
    } else {
        check.advice("programs that size their pools by the machine start too many threads: check theirs")
    }
}

pub fn quota(read: Read) -> Check {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let Some((quota, throttled)) = unified(read, &groups).or_else(|| legacy(read, &groups)) else {
        return Check::unknown("quota", "CPUs", "no cgroup of this process tells of a CPU quota");
    };
    let slept = if throttled > 0 { format!("; throttled {throttled} times so far") } else { String::new() };
    match quota {
        None => Check::new("quota", Grade::Ok, 0.0, "CPUs", format!("no CPU quota{slept}")),
        Some(cpus) => {
            let grade =
                if throttled > 0 || (cpus as usize) < affinity::allowed().len() { Grade::Warn } else { Grade::Ok };
            let check = Check::new("quota", grade, cpus, "CPUs", format!("a quota of {cpus:.2} CPUs{slept}"));
            check.advice(
                "threads beyond the quota are stopped together, with their locks: size pools by it, or raise cpu.max",
            )
        }
    }
}

/// CPUs allowed, `None` for all; and how often it was throttled.
type Quota = (Option<f64>, u64);

/// The smallest quota on the way from this cgroup (version 2) to the root.
fn unified(read: Read, groups: &str) -> Option<Quota> {
    let mut path = groups.lines().find_map(|l| l.strip_prefix("0::"))?.trim_end_matches('/').to_owned();
    let mut found: Option<Quota> = None;
    while !path.is_empty() {
        let folder = format!("/sys/fs/cgroup{path}");
        if let Some(max) = read(&format!("{folder}/cpu.max")) {
            let (quota, period) = max.trim().split_once(' ')?;
            let cpus = quota.parse::<f64>().ok().and_then(|q| Some(q / period.parse::<f64>().ok()?));
            let throttled = read(&format!("{folder}/cpu.stat")).map_or(0, |stat| throttled(&stat));
            let (least, times) = found.unwrap_or_default();
            found = Some((least.into_iter().chain(cpus).reduce(f64::min), times + throttled));
        }
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    found
}

fn legacy(read: Read, groups: &str) -> Option<Quota> {
    let of_cpu = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|c| c == "cpu").then(|| path.trim_end_matches('/').to_owned())
    };
    let folder = format!("/sys/fs/cgroup/cpu{}", groups.lines().find_map(of_cpu)?);
    let number = |file: &str| read(&format!("{folder}/{file}"))?.trim().parse::<f64>().ok();
    let quota = number("cpu.cfs_quota_us")?;
    let cpus = (quota > 0.0).then_some(quota / number("cpu.cfs_period_us")?);
    Some((cpus, read(&format!("{folder}/cpu.stat")).map_or(0, |stat| throttled(&stat))))
}

fn throttled(stat: &str) -> u64 {
    stat.lines().find_map(|l| l.strip_prefix("nr_throttled ")).and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

pub fn rseq(_: Read) -> Check {
    if PerCpuCounter::new().is_per_cpu() {
        return Check::new(
            "rseq",
            Grade::Ok,
            1.0,
            "",
            "restartable sequences work: per-CPU counters without atomic operations",
        );
    }
    Check::new(
        "rseq",
        Grade::Warn,
        0.0,
        "",
        "no restartable sequences: the kernel or the C library (glibc before 2.35, musl) lacks them",
    )
    .advice("per-CPU counters fall back to padded atomic ones, about three times as slow; a newer C library cures it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_both_versions() {
        let second = |path: &str| match path {
            "/proc/self/cgroup" => Some("0::/a/b\n".to_owned()),
            "/sys/fs/cgroup/a/b/cpu.max" => Some("max 100000\n".to_owned()),
            "/sys/fs/cgroup/a/cpu.max" => Some("50000 100000\n".to_owned()),
            "/sys/fs/cgroup/a/cpu.stat" => Some("usage_usec 7\nnr_throttled 3\n".to_owned()),
            _ => None,
        };
        let check = quota(&second);
        assert_eq!((check.value, check.verdict), (0.5, Grade::Warn));
        assert!(check.detail.contains("throttled 3 times"));
        let first = |path: &str| match path {
            "/proc/self/cgroup" => Some("3:cpuset:/\n1:cpu,cpuacct:/x\n".to_owned()),
            "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us" => Some("-1\n".to_owned()),
            "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us" => Some("100000\n".to_owned()),
            _ => None,
        };
        assert_eq!(quota(&first).detail, "no CPU quota");
    }

    #[test]
    fn fewer_cpus_than_the_machine_has() {
        assert_eq!(cpus_verdict(2, 2).verdict, Grade::Ok);
        assert_eq!(cpus_verdict(2, 8).verdict, Grade::Warn);
    }
}
