//! The processes of a control group and of those below it, of either version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use holdup_trace::{Error, Result};

use super::process_of;

/// Groups below one that are looked at.
const MOST_GROUPS: usize = 100_000;

/// The processes of the control group `path` and of all groups below it: an absolute path below the mount
/// (`/sys/fs/cgroup/system.slice`), or the group's own name as /proc/PID/cgroup and systemctl tell it
/// (`/system.slice/nginx.service`, with or without the first slash). Sorted; never empty.
///
/// # Errors
/// If there is no such group, or no process in it.
pub fn processes_in_cgroup(path: &Path) -> Result<Vec<u32>> {
    let mounts = mounts(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
    let folder = find(path, &mounts)?;
    let me = std::process::id();
    let found: Vec<u32> = members(&folder).into_iter().filter(|&pid| pid != me).collect();
    if found.is_empty() {
        return Err(Error::Input(format!("no process is in the control group {} or below it", folder.display())));
    }
    Ok(found)
}

/// Where control groups are mounted, the second version first.
fn mounts(info: &str) -> Vec<PathBuf> {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let version = match after.split(' ').next()? {
            "cgroup2" => 2,
            "cgroup" => 1,
            _ => return None,
        };
        // Spaces and the like are written in octal; no distribution has any there.
        Some((std::cmp::Reverse(version), PathBuf::from(before.split(' ').nth(4)?)))
    };
    let mut all: Vec<_> = info.lines().filter_map(mount).collect();
    all.sort_by_key(|(version, _)| *version);
    all.into_iter().map(|(_, path)| path).collect()
}

/// The folder of a group: within a mount, so that no other file is taken for a list of processes.
fn find(path: &Path, mounts: &[PathBuf]) -> Result<PathBuf> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let candidates = mounts.iter().map(|mount| mount.join(relative));
    let is_group =
        |folder: &PathBuf| mounts.iter().any(|mount| folder.starts_with(mount)) && folder.join("cgroup.procs").exists();
    let whole = std::iter::once(path.to_owned());
    let found = whole.chain(candidates).filter_map(|folder| folder.canonicalize().ok()).find(is_group);
    found.ok_or_else(|| {
        let places = match mounts {
            [] => "none are mounted".to_owned(),
            [first] => format!("looked in {}", first.display()),
            [first, others @ ..] => format!("looked in {} and {} more mounts", first.display(), others.len()),
        };
        let what = format!("there is no control group {} ({places})", path.display());
        Error::Input(format!("{what}; /proc/PID/cgroup and `systemd-cgls` name them"))
    })
}

/// All processes of a group and of those below.
fn members(folder: &Path) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        match fs::read_to_string(folder.join("cgroup.procs")) {
            Ok(list) => found.extend(list.lines().filter_map(|line| line.trim().parse::<u32>().ok())),
            // A group of threads says only those.
            Err(_) => {
                let list = fs::read_to_string(folder.join("cgroup.threads")).unwrap_or_default();
                let threads = list.lines().filter_map(|line| line.trim().parse::<u32>().ok());
                found.extend(threads.filter_map(process_of));
            }
        }
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = below.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path());
        folders.extend(below);
        seen += 1;
        if seen > MOST_GROUPS {
            break;
        }
    }
    // Processes of other namespaces have the number 0.
    found.remove(&0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let info = "31 23 0:27 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n\
                    33 31 0:29 / /sys/fs/cgroup/cpu rw,nosuid shared:8 - cgroup cgroup rw,cpu\n\
                    32 31 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                    nonsense";
        let expected = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"].map(PathBuf::from);
        assert_eq!(mounts(info), expected);
        assert!(mounts("").is_empty());
    }

    #[test]
    fn a_group_is_named_in_three_ways_and_holds_those_below() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("cgroup");
        let group = root.join("system.slice/nginx.service");
        fs::create_dir_all(group.join("below")).unwrap();
        for (folder, text) in [(&root, "1\n"), (&group, "0\n4711\n12\n"), (&group.join("below"), "13\n")] {
            fs::write(folder.join("cgroup.procs"), text).unwrap();
        }
        fs::write(root.join("system.slice/cgroup.procs"), "").unwrap();
        let mounts = [PathBuf::from("/nowhere"), root.clone()];
        let whole = group.display().to_string();
        for name in [whole.as_str(), "/system.slice/nginx.service", "system.slice/nginx.service/"] {
            assert_eq!(find(Path::new(name), &mounts).unwrap(), group, "{name}");
        }
        assert_eq!(members(&group).into_iter().collect::<Vec<_>>(), [12, 13, 4711]);
        assert_eq!(members(&root).len(), 4);
        // A folder elsewhere is no group, whatever it holds.
        fs::write(dir.path().join("cgroup.procs"), "1\n").unwrap();
        let error = find(dir.path(), &mounts).unwrap_err().to_string();
        assert!(error.contains("there is no control group") && error.contains("/nowhere"), "{error}");
        assert!(find(Path::new("../.."), &mounts).is_err());
    }
}
