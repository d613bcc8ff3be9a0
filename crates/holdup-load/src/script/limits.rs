//! What a script may use of the machine, and the sentences that say so.
//!
//! A script may come from anybody, so it gets what a workload needs and nothing more. Time and memory are limited twice. The
//! engine counts its own steps and its own memory on its thread, which costs next to nothing and tells the line. What works
//! outside of its steps (a sum over a range, the compiler, a value's end) is watched from another thread: see `harness/watch`.

#![cfg_attr(not(feature = "script"), allow(dead_code, reason = "only an engine has steps to count"))]

use std::fmt;
use std::time::Duration;

/// What a script may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time between two waits. A wait for the server does not count, however long.
    pub time: Duration,
    /// Memory of one thread's script, in bytes.
    pub memory: usize,
    /// Whether it may read files that are not in its folder.
    pub any_file: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(10), memory: 256 << 20, any_file: false }
    }
}

/// Steps of the engine that a second of [`Limits::time`] allows. About what it does in one: simple steps take 5 to 20 ns. That it
/// is a count makes the end of a loop the same on each machine, however busy.
pub(crate) const STEPS_PER_SECOND: f64 = 1e8;

/// The most text that a file of a script has, in bytes.
pub(crate) const LONGEST_SOURCE: u64 = 1 << 20;

/// How deep brackets may stand inside each other: compilers descend into them, and have only so much stack.
pub(crate) const DEEPEST_BRACKETS: usize = 500;

/// The most that one thread's script prints, in bytes.
pub(crate) const MOST_PRINTED: usize = 1 << 20;

/// The longest message of an error that is kept, in bytes: a script can fail with a text of any length.
const LONGEST_MESSAGE: usize = 2000;

impl Limits {
    /// Steps between two waits.
    pub(crate) fn steps(&self) -> usize {
        // The engine takes the greatest number for "no limit".
        ((self.time.as_secs_f64() * STEPS_PER_SECOND).max(1.0) as usize).min(usize::MAX - 1)
    }

    /// Too many steps.
    pub(crate) fn too_many_steps(&self) -> String {
        format!(
            "the script took {} steps without an end or a wait for the server, as many as {:?} are good for: mend the loop, or \
             allow more with --script-time",
            grouped(self.steps()),
            self.time
        )
    }

    /// Too much time; `what` was going on.
    pub(crate) fn too_long(&self, what: &str) -> String {
        format!(
            "{what} took {:?} of CPU time without an end or a wait for the server: mend the loop, or allow more with \
             --script-time",
            self.time
        )
    }

    /// Too much memory, by the engine's count.
    pub(crate) fn too_much(&self) -> String {
        format!(
            "the script wants to hold more than {}: keep less, or allow more with --script-memory",
            Size(self.memory)
        )
    }

    /// Too much memory, by the machine's count; `what` was going on.
    pub(crate) fn grew(&self, what: &str, by: usize, threads: usize) -> String {
        let each = if threads == 1 { String::new() } else { format!(" for each of {threads} threads") };
        format!(
            "{what} made the program grow by {}, and a script may hold {}{each}: keep less, or allow more with --script-memory",
            Size(by),
            Size(self.memory)
        )
    }
}

/// Too deep; `what` was going on, which took `stack` bytes.
pub(crate) fn too_deep(what: &str, stack: usize) -> String {
    format!(
        "{what} went too deep: calls, expressions or values stand inside each other until {} of stack were full; write a loop, \
         or a list",
        Size(stack)
    )
}

/// The message, or its beginning.
pub(crate) fn shortened(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        let kept = (0..=LONGEST_MESSAGE).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        let left_out = message.len() - kept;
        message.truncate(kept);
        message.push_str(&format!("… ({left_out} more bytes)"));
    }
    message
}

/// A number of bytes, as people say it.
pub(crate) struct Size(pub usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_usize << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) if self.0.is_multiple_of(*unit) => write!(f, "{} {name}", self.0 / unit),
            Some((unit, name)) => write!(f, "{:.1} {name}", self.0 as f64 / *unit as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// `1,000,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!([Size(5), Size(256 << 20), Size(3 << 29)].map(|s| s.to_string()), ["5 bytes", "256 MiB", "1.5 GiB"]);
        assert_eq!([7, 1000, 1_000_000_000].map(grouped), ["7", "1,000", "1,000,000,000"]);
    }

    #[test]
    fn long_messages_are_cut_between_letters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let cut = shortened("ä".repeat(5000));
        assert!(cut.len() < 2100 && cut.ends_with("… (8000 more bytes)"), "{}", cut.len());
    }
}
