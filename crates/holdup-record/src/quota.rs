//! The limits that control groups set to CPU time, and how often they were reached.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use holdup_spool::Side;

/// Groups that are looked at.
const MOST_GROUPS: usize = 1000;

/// The controller of CPU time.
#[derive(Debug, Clone)]
struct Controller {
    mount: PathBuf,
    /// Whether it is of the second version of control groups.
    unified: bool,
}

/// What a group's files say at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reading {
    /// Microseconds of CPU time in each period (0: no limit), and of a period.
    limit: [u32; 2],
    /// Periods, throttled ones, and for how many microseconds.
    counts: [u64; 3],
}

#[derive(Debug)]
struct Group {
    first: Reading,
    told: Option<Reading>,
}

/// The control groups that matter.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    controller: Option<Controller>,
    groups: BTreeMap<String, Group>,
}

impl Quotas {
    /// None yet.
    pub(crate) fn new() -> Self {
        let info = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Quotas { controller: controller(&info), groups: BTreeMap::new() }
    }

    /// The group of a process, which is watched from now on with those above it; empty if there is none.
    pub(crate) fn of(&mut self, pid: u32) -> String {
        let Some(controller) = &self.controller else { return String::new() };
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let group = group(&text, controller.unified).unwrap_or_default().to_owned();
        for above in Path::new(&group).ancestors() {
            let name = above.to_string_lossy();
            if self.groups.len() >= MOST_GROUPS || self.groups.contains_key(name.as_ref()) {
                break;
            }
            let first = controller.read(&name);
            self.groups.insert(name.into_owned(), Group { first, told: None });
        }
        group
    }

    /// Appends what has changed of those that have a limit, as of time `t`.
    pub(crate) fn tell(&mut self, t: u64, out: &mut Vec<Side>) {
        let Some(controller) = &self.controller else { return };
        for (name, group) in &mut self.groups {
            let now = controller.read(name);
            let limited = now.limit[0] > 0 || group.told.is_some_and(|told| told.limit[0] > 0);
            if limited && group.told != Some(now) && now != Reading::default() {
                group.told = Some(now);
                let since = |i: usize| now.counts[i].saturating_sub(group.first.counts[i]).min(u32::MAX.into()) as u32;
                let counts = [since(0), since(1), since(2)];
                out.push(Side::Quota { t, group: name.clone(), limit: now.limit, counts });
            }
        }
    }
}

impl Controller {
    /// Nothing of what is not there.
    fn read(&self, group: &str) -> Reading {
        let folder = self.mount.join(group.trim_start_matches('/'));
        let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let limit = match self.unified {
            true => limit(&file("cpu.max")),
            false => limit(&format!("{} {}", file("cpu.cfs_quota_us").trim(), file("cpu.cfs_period_us").trim())),
        };
        Reading { limit, counts: counts(&file("cpu.stat")) }
    }
}

/// Where CPU time is controlled: a mount of the first version with that controller, else the second's.
fn controller(mountinfo: &str) -> Option<Controller> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = after.split(' ');
        let unified = match fields.next()? {
            "cgroup2" => true,
            "cgroup" if fields.nth(1)?.split(',').any(|option| option == "cpu") => false,
            _ => return None,
        };
        Some(Controller { mount: PathBuf::from(before.split(' ').nth(4)?), unified })
    };
    mountinfo.lines().filter_map(mount).min_by_key(|c| c.unified)
}

/// The group's name in what /proc/PID/cgroup says.
fn group(text: &str, unified: bool) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = if unified { controllers.is_empty() } else { controllers.split(',').any(|c| c == "cpu") };
        is_it.then_some(path)
    })
}

/// Quota and period in microseconds, from `max 100000`, `50000 100000` or `-1 100000`; no quota is 0.
fn limit(text: &str) -> [u32; 2] {
    let mut words = text.split_whitespace();
    [(); 2].map(|()| words.next().and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// Periods, throttled ones and microseconds, from a `cpu.stat` of either version.
fn counts(text: &str) -> [u64; 3] {
    let mut counts = [0; 3];
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        let value: u64 = value.trim().parse().unwrap_or(0);
        match name {
            "nr_periods" => counts[0] = value,
            "nr_throttled" => counts[1] = value,
            "throttled_usec" => counts[2] = value,
            // Nanoseconds, in the first version.
            "throttled_time" => counts[2] = value / 1000,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_versions_are_understood() {
        assert_eq!(
            (limit("max 100000\n"), limit("50000 100000\n"), limit("-1 100000")),
            ([0, 100_000], [50_000, 100_000], [0, 100_000])
        );
        assert_eq!(limit(""), [0, 0]);
        let new = "usage_usec 9\nuser_usec 8\nnr_periods 30\nnr_throttled 29\nthrottled_usec 1450000\nnr_bursts 0\n";
        let old = "nr_periods 30\nnr_throttled 29\nthrottled_time 1450000000\n";
        assert_eq!((counts(new), counts(old)), ([30, 29, 1_450_000], [30, 29, 1_450_000]));
        let text = "9:name=systemd:/x\n5:cpu,cpuacct:/a:b/c\n0::/unified\n";
        assert_eq!((group(text, false), group(text, true)), (Some("/a:b/c"), Some("/unified")));
        assert_eq!(group("nonsense", true), None);
    }

    #[test]
    fn the_mount_that_controls_cpu_time_is_found() {
        let new = "32 31 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let old = "33 31 0:29 / /sys/fs/cgroup/cpu rw,nosuid shared:8 - cgroup cgroup rw,cpu,cpuacct\n\
                   34 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";
        let found = |text: &str| controller(text).map(|c| (c.mount.display().to_string(), c.unified));
        assert_eq!(found(new), Some(("/sys/fs/cgroup".into(), true)));
        assert_eq!(found(&format!("{new}\n{old}")), Some(("/sys/fs/cgroup/cpu".into(), false)));
        assert_eq!(found("nonsense"), None);
    }

    #[test]
    fn what_was_throttled_since_the_beginning_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("limited");
        fs::create_dir(&group).unwrap();
        let write = |name: &str, text: &str| fs::write(group.join(name), text).unwrap();
        write("cpu.max", "50000 100000\n");
        write("cpu.stat", "nr_periods 100\nnr_throttled 50\nthrottled_usec 9000\n");
        let controller = Controller { mount: dir.path().to_owned(), unified: true };
        let first = controller.read("/limited");
        let groups = BTreeMap::from([("/limited".to_owned(), Group { first, told: None })]);
        let mut quotas = Quotas { controller: Some(controller), groups };
        let mut out = Vec::new();
        quotas.tell(1, &mut out);
        quotas.tell(2, &mut out);
        write("cpu.stat", "nr_periods 130\nnr_throttled 79\nthrottled_usec 1009000\n");
        quotas.tell(3, &mut out);
        fs::remove_dir_all(&group).unwrap();
        quotas.tell(4, &mut out);
        let told = |t, counts| Side::Quota { t, group: "/limited".into(), limit: [50_000, 100_000], counts };
        assert_eq!(out, [told(1, [0, 0, 0]), told(3, [30, 29, 1_000_000])]);
    }
}
