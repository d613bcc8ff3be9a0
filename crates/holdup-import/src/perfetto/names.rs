//! What the packets and ftrace's events are called, by the numbers of their fields in the published schema.

/// Data of packets.
const PACKETS: &str = include_str!("packets.txt");
/// Events of ftrace.
const EVENTS: &str = include_str!("ftrace_events.txt");

fn find(list: &'static str, number: usize) -> Option<&'static str> {
    let entries = list.lines().filter_map(|line| line.split_once(' '));
    entries.into_iter().find(|(n, _)| n.parse() == Ok(number)).map(|(_, name)| name)
}

/// What a packet with data in that field is called; `None` if the schema has none.
pub fn packet(number: usize) -> Option<&'static str> {
    find(PACKETS, number)
}

/// What an event in that field is called.
pub fn event(number: usize) -> String {
    find(EVENTS, number).map_or_else(|| format!("ftrace event {number}"), str::to_owned)
}

/// How many of each number.
#[derive(Debug, Default)]
pub struct Counts(Vec<u64>);

/// Greatest number that is counted on its own; larger ones share the last place.
const GREATEST: usize = 4095;

impl Counts {
    /// So many more of that number.
    #[inline]
    pub fn add(&mut self, number: u32, by: u64) {
        let at = (number as usize).min(GREATEST);
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += by;
    }

    /// How many of that number there were.
    pub fn of(&self, number: u32) -> u64 {
        self.0.get(number as usize).copied().unwrap_or(0)
    }

    /// All that there were: number and count.
    pub fn all(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_schema() {
        assert_eq!((packet(1), packet(66), packet(8)), (Some("ftrace_events"), Some("perf_sample"), None));
        assert_eq!(
            (event(4), event(20), event(4000)),
            ("sched_switch".into(), "sched_waking".into(), "ftrace event 4000".into())
        );
    }
}
