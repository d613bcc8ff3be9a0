//! The options: what trace-cmd tells about a recording, each with a number and bytes of its own.

use super::description::Description;
use crate::bytes::{text, u32_at, u64_at};

/// The numbers of options, named as in trace-cmd.
pub mod number {
    pub const DONE: u16 = 0;
    pub const CPUSTAT: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const CPUCOUNT: u16 = 8;
    pub const TSC2NSEC: u16 = 14;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const CMDLINES: u16 = 21;
}

/// Takes in an option that means the same in all versions.
pub fn add(to: &mut Description, id: u16, bytes: &[u8]) {
    match id {
        number::CPUSTAT => to.overrun = to.overrun.saturating_add(lost(&text(bytes))),
        number::UNAME => to.uname = text(bytes),
        number::TSC2NSEC => to.cycles = u64_at(bytes, 0).map(|both| (both as u32, (both >> 32) as u32 & 63)),
        number::CPUCOUNT => to.cpus = u32_at(bytes, 0).unwrap_or(0),
        _ => {}
    }
}

/// Events that did not reach the file, by the statistics of one CPU.
fn lost(statistics: &str) -> u64 {
    let counts = statistics.lines().filter_map(|line| line.split_once(':'));
    let lost = counts.filter(|(name, _)| matches!(name.trim(), "overrun" | "commit overrun" | "dropped events"));
    lost.filter_map(|(_, n)| n.trim().parse::<u64>().ok()).fold(0, u64::saturating_add)
}

/// The clock in use, of a list such as `[local] global mono`.
pub fn clock_of(list: &str) -> String {
    let chosen = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or("", |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_one_in_brackets() {
        assert_eq!(clock_of("local [global] mono"), "global");
        assert_eq!(clock_of(""), "");
    }

    #[test]
    fn lost_events_are_added_up() {
        let text = "CPU: 0\nentries: 7\noverrun: 4\ncommit overrun: 1\nbytes: 9\ndropped events: 2\nread events: 50\n";
        assert_eq!(lost(text), 7);
    }
}
