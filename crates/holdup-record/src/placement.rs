//! Where and how threads may run: affinity masks, nice values, control groups. Read from /proc when recording begins and
//! ends, and of the program in focus from time to time.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use holdup_spool::Side;

use crate::attach;
use crate::proc::{numbers, stat};
use crate::quota::Quotas;

/// Threads of the focus that are looked at while it is recorded.
const MOST_THREADS: usize = 2000;
/// When to look first after the beginning, in nanoseconds: a program that restricts itself does so early.
const FIRST_LOOK: u64 = 20_000_000;
/// The longest time between two looks, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Placement {
    cpus: String,
    nice: i16,
    policy: u8,
    group: String,
}

/// What is known of each thread.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    quotas: Quotas,
    /// When it was seen last, and how it was.
    threads: HashMap<u32, (u64, Placement)>,
    next: u64,
    pause: u64,
}

impl Placements {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Placements { quotas: Quotas::new(), pause: FIRST_LOOK, ..Placements::default() }
    }

    /// From here on everything is told again, and counted from here.
    pub(crate) fn forget(&mut self) {
        *self = Placements { next: self.next, pause: self.pause, ..Placements::new() };
    }

    /// Appends what is new of all threads, but for the kernel's own, as of time `t`.
    pub(crate) fn look_at_all(&mut self, t: u64, out: &mut Vec<Side>) {
        self.next = t + self.pause;
        let users = numbers(Path::new("/proc")).filter(|&pid| stat(pid).is_some_and(|stat| !stat.is_kernel));
        users.for_each(|pid| self.look(pid, t, out));
        self.quotas.tell(t, out);
    }

    /// The same of the trees of `roots`, if it is time for that.
    pub(crate) fn look_at_some(&mut self, roots: &[u32], t: u64, out: &mut Vec<Side>) {
        if t < self.next {
            return;
        }
        self.pause = (self.pause * 3).min(PAUSE);
        self.next = t + self.pause;
        let before = out.len();
        let trees = if roots.is_empty() { Vec::new() } else { attach::with_descendants(roots) };
        for pid in trees {
            if out.len() > before + MOST_THREADS {
                break;
            }
            self.look(pid, t, out);
        }
        self.quotas.tell(t, out);
    }

    fn look(&mut self, pid: u32, t: u64, out: &mut Vec<Side>) {
        let mut group = None;
        for tid in numbers(Path::new(&format!("/proc/{pid}/task"))) {
            let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}")).unwrap_or_default();
            let Some((nice, policy)) = priority(&read("stat")) else { continue };
            let Some(cpus) = allowed(&read("status")).map(str::to_owned) else { continue };
            let group = group.get_or_insert_with(|| self.quotas.of(pid)).clone();
            let placement = Placement { cpus, nice, policy, group };
            let before = self.threads.insert(tid, (t, placement.clone()));
            if before.as_ref().is_some_and(|(_, known)| *known == placement) {
                continue;
            }
            let span = before.map_or(0, |(seen, _)| t.saturating_sub(seen));
            let Placement { cpus, nice, policy, group } = placement;
            out.push(Side::Placement { t, tid, cpus, nice, policy, group, span });
        }
    }
}

/// Nice value and policy from /proc/PID/stat.
fn priority(stat: &str) -> Option<(i16, u8)> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    let nice = fields.nth(16)?.parse().ok()?;
    Some((nice, fields.nth(21)?.parse().ok()?))
}

/// The CPUs on which it may run, from /proc/PID/status.
fn allowed(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_understood() {
        let stat = "12 (a) R 1 (b) S 7 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 25 5 1 0 4711 0 0 18446744073709551615 \
                    1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 3 0 0 0";
        assert_eq!(priority(stat), Some((5, 3)));
        assert_eq!(priority("12 (sh) S 7"), None);
        assert_eq!(allowed("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\nMems:\t0\n"), Some("0-3,8"));
    }

    #[test]
    fn only_what_is_new_is_told() {
        let me = std::process::id();
        let mut placements = Placements::new();
        let mut out = Vec::new();
        placements.look_at_all(5, &mut out);
        let of = |out: &[Side], wanted: u32| {
            out.iter().filter(|s| matches!(s, Side::Placement { tid, .. } if *tid == wanted)).count()
        };
        assert_eq!(of(&out, me), 1);
        placements.look_at_some(&[me], 6, &mut out);
        assert_eq!(of(&out, me), 1, "not yet, and nothing new");
        // As if it had been elsewhere.
        placements.threads.get_mut(&me).unwrap().1.cpus = "77".into();
        out.clear();
        placements.look_at_some(&[me], 5 + FIRST_LOOK, &mut out);
        let span = out.iter().find_map(|s| match s {
            Side::Placement { tid, span, .. } if *tid == me => Some(*span),
            _ => None,
        });
        assert_eq!(span, Some(FIRST_LOOK));
    }
}
