//! Which processes are meant: by number, by name, by control group; and whether they still run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use holdup_base::near;
use holdup_trace::{Error, Result};

use crate::proc::{numbers, stat};

mod cgroup;

pub use cgroup::processes_in_cgroup;

/// The kernel keeps this many bytes of a name.
const NAME_BYTES: usize = 15;
/// How many names a sentence lists.
const LISTED: usize = 10;

/// The processes that `wanted` names: each entry is a number, of a process or of one of its threads, or the exact name
/// of a process or of the program that it runs; of a name all processes that have it. Sorted; never empty.
///
/// # Errors
/// If an entry names no process, with those that are called nearly so.
pub fn processes(wanted: &[String]) -> Result<Vec<u32>> {
    let running = Running::now();
    let mut found = BTreeSet::new();
    for wanted in wanted {
        match wanted.parse::<u32>() {
            Ok(number) => {
                let gone = || Error::Input(format!("there is no process {number}{}", running.hint(wanted)));
                found.insert(process_of(number).ok_or_else(gone)?);
            }
            Err(_) => {
                let named = running.named(wanted);
                if named.is_empty() {
                    return Err(Error::Input(format!("no process is called {wanted:?}{}", running.hint(wanted))));
                }
                found.extend(named);
            }
        }
    }
    if found.is_empty() {
        return Err(Error::Input("no process is named".into()));
    }
    Ok(found.into_iter().collect())
}

/// The process that a thread belongs to, if it runs.
fn process_of(number: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{number}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let pid = status.lines().find_map(|l| l.strip_prefix("Tgid:")?.trim().parse().ok())?;
    Life::of(pid).map(|_| pid)
}

/// The names of all processes at a moment.
struct Running(Vec<(u32, String)>);

impl Running {
    fn now() -> Running {
        let me = std::process::id();
        let name = |pid| Some((pid, comm(pid)?));
        Running(numbers(Path::new("/proc")).filter(|&pid| pid != me).filter_map(name).collect())
    }

    fn named(&self, wanted: &str) -> Vec<u32> {
        // What ends within a character ends alike in both.
        let kept = String::from_utf8_lossy(&wanted.as_bytes()[..wanted.len().min(NAME_BYTES)]);
        let is_named = |pid: u32, name: &str| name == kept || program(pid).is_some_and(|p| p == wanted);
        self.0
            .iter()
            .filter(|(pid, name)| is_named(*pid, name) && Life::of(*pid).is_some())
            .map(|(pid, _)| *pid)
            .collect()
    }

    /// The rest of the sentence about a process that is not there: those that are called nearly so.
    fn hint(&self, wanted: &str) -> String {
        let mut names: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        // Threads of the kernel have no program; nobody means them.
        for (pid, name) in self.0.iter().filter(|(pid, _)| program(*pid).is_some()) {
            names.entry(name).or_default().push(*pid);
        }
        let meant = near::hint(wanted, names.keys().copied());
        let mut list: Vec<_> = names.into_iter().collect();
        list.sort_by_cached_key(|(name, _)| near::rank(wanted, name));
        let shown = |(name, pids): (&str, Vec<u32>)| match pids.as_slice() {
            [pid] => format!("{name} ({pid})"),
            pids => format!("{name} ({} processes)", pids.len()),
        };
        let more = if list.len() > LISTED { format!(" and {} more", list.len() - LISTED) } else { String::new() };
        let list: Vec<String> = list.into_iter().take(LISTED).map(shown).collect();
        if list.is_empty() { meant } else { format!("{meant}; there are {}{more}", list.join(", ")) }
    }
}

fn comm(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
}

/// The file name of the program that a process runs; none for the kernel's own and for other users' processes.
fn program(pid: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(name.strip_suffix(" (deleted)").map_or(name.clone(), str::to_owned))
}

/// A process from its start to its end: its number may be given to another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub pid: u32,
    /// Ticks since boot.
    started: u64,
}

impl Life {
    /// The process that has this number now, unless it has ended and only waits for its parent to notice.
    pub(crate) fn of(pid: u32) -> Option<Life> {
        let stat = stat(pid)?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(Life { pid, started: stat.started })
    }

    fn lasts(self) -> bool {
        Life::of(self.pid) == Some(self)
    }
}

/// Processes that are recorded until the last of them ends.
#[derive(Debug, Default)]
pub(crate) struct Watched(Vec<Life>);

impl Watched {
    /// Those of `pids` that still run: a name may also have been that of a process on its way to another program.
    ///
    /// # Errors
    /// If none of them runs.
    pub(crate) fn new(pids: &[u32]) -> Result<Watched> {
        let lives: Vec<Life> = pids.iter().filter_map(|&pid| Life::of(pid)).collect();
        if lives.is_empty() {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            return Err(Error::Input(format!("there is no process {}", pids.join(" or "))));
        }
        Ok(Watched(lives))
    }

    /// Whether all have ended. Looks at one that lasts and no further, so that thousands cost no more than one.
    pub(crate) fn are_over(&mut self) -> bool {
        while let Some(last) = self.0.last() {
            if last.lasts() {
                return false;
            }
            self.0.pop();
        }
        true
    }
}

/// The process that made `pid`, or took it over when that one ended; 0 if nothing is known of it.
pub(crate) fn parent(pid: u32) -> u32 {
    stat(pid).map_or(0, |stat| stat.parent)
}

/// `roots` and all processes that descend from them now, the roots first.
pub(crate) fn with_descendants(roots: &[u32]) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in numbers(Path::new("/proc")) {
        if let Some(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut all = roots.to_vec();
    let mut seen: BTreeSet<u32> = roots.iter().copied().collect();
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let of = children.get(&pid).into_iter().flatten().copied();
        all.extend(of.filter(|&child| child != std::process::id() && seen.insert(child)));
    }
    all
}

/// Adds to `pids` what descends from them now, and takes away what has ended, but for the first.
pub(crate) fn follow(pids: &mut Vec<u32>) {
    let all = with_descendants(pids);
    let first = pids.first().copied();
    *pids = all.into_iter().filter(|&pid| Some(pid) == first || Life::of(pid).is_some()).collect();
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// `sleep` below another process, which says the number of its child.
    fn family() -> (Child, u32) {
        let script = "sleep 1000 & echo $!; read x; kill $!";
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let child = line.trim().parse().unwrap();
        // It is a copy of the shell before it becomes another program.
        while comm(child).as_deref() != Some("sleep") {
            std::thread::yield_now();
        }
        (shell, child)
    }

    #[test]
    fn children_that_exist_already_are_found() {
        let (mut shell, child) = family();
        let pid = shell.id();
        assert_eq!(with_descendants(&[pid]), [pid, child]);
        assert_eq!(processes(&[child.to_string(), pid.to_string()]).unwrap().len(), 2);
        assert!(processes(&["sleep".into()]).unwrap().contains(&child));
        let mut watched = Watched::new(&[child, pid]).unwrap();
        assert!(!watched.are_over());
        drop(shell.stdin.take());
        // Until it is waited for it is a zombie, which has ended.
        while Life::of(pid).is_some() {
            std::thread::yield_now();
        }
        let mut first = Watched(vec![Life { pid, started: 0 }]);
        assert!(first.are_over() && Watched::new(&[pid]).is_err());
        // One of a name may have ended before it is watched.
        assert_eq!(Watched::new(&[pid, std::process::id()]).unwrap().0.len(), 1);
        shell.wait().unwrap();
        while Life::of(child).is_some() {
            std::thread::yield_now();
        }
        assert!(watched.are_over());
    }

    #[test]
    fn what_is_not_there_is_a_sentence() {
        let (mut shell, child) = family();
        let error = processes(&["slepe".into()]).unwrap_err().to_string();
        assert!(error.starts_with("no process is called \"slepe\" (did you mean sleep?); there are sleep"), "{error}");
        assert!(processes(&[child.to_string(), "4294967295".into()]).unwrap_err().to_string().contains("4294967295"));
        assert!(processes(&[]).is_err());
        shell.kill().unwrap();
        shell.wait().unwrap();
        Command::new("kill").arg(child.to_string()).status().unwrap();
    }
}
