//! The clocks of a trace, made one by its snapshots: several clocks read at the same instant.

use rustc_hash::FxHashMap;

use super::wire::{Fields, Value};

/// `CLOCK_BOOTTIME`, which times are of unless the trace says otherwise.
const BOOTTIME: u32 = 6;
/// Clocks with these numbers are the writer's own: each sequence of packets has its own.
const OF_SEQUENCE: std::ops::Range<u32> = 64..128;

/// A clock: its number, and the sequence whose it is (0 for the machine's).
type Key = (u32, u32);

/// What is known of one clock.
#[derive(Debug)]
struct Clock {
    /// Its readings and those of the trace's clock, in nanoseconds.
    readings: Vec<(u64, u64)>,
    /// Nanoseconds of one tick.
    tick: u64,
    /// The last time, where each is told as a distance from it.
    last: Option<u64>,
}

/// All clocks of a trace.
#[derive(Debug, Default)]
pub struct Clocks {
    /// The clock that the trace's times are told by.
    main: Option<u32>,
    clocks: FxHashMap<Key, Clock>,
}

impl Clocks {
    /// A snapshot, by a packet of `sequence`.
    pub fn snapshot(&mut self, message: &[u8], sequence: u32) {
        let mut readings: Vec<(u32, u64, u64, bool)> = Vec::new();
        for (number, value) in Fields::new(message) {
            match number {
                1 => readings.push(reading(value.bytes())),
                2 if self.main.is_none() => self.main = Some(value.low()),
                _ => {}
            }
        }
        let main = self.main();
        let Some(&(_, now, ..)) = readings.iter().find(|r| r.0 == main) else { return };
        for (id, time, tick, incremental) in readings {
            let clock = self.clocks.entry(key(id, sequence)).or_insert_with(|| Clock {
                readings: Vec::new(),
                tick,
                last: None,
            });
            let time = time.saturating_mul(tick);
            clock.tick = tick;
            clock.last = incremental.then_some(time);
            // A clock that was set back begins anew: what comes is told by its latest readings.
            clock.readings.retain(|&(earlier, _)| earlier < time);
            clock.readings.push((time, now));
        }
    }

    /// The number of the trace's own clock.
    pub fn main(&self) -> u32 {
        self.main.filter(|&main| main != 0).unwrap_or(BOOTTIME)
    }

    /// The trace's time when the clock `id` (0: the trace's own) shows `time`; `None` if no snapshot says.
    pub fn time(&mut self, time: u64, id: u32, sequence: u32) -> Option<u64> {
        if id == 0 || id == self.main() {
            return Some(time);
        }
        let Some(clock) = self.clocks.get_mut(&key(id, sequence)) else {
            // Without any snapshot all times are of one clock, whatever its number.
            return self.clocks.is_empty().then_some(time);
        };
        let mut time = time.saturating_mul(clock.tick);
        if let Some(last) = &mut clock.last {
            *last = last.saturating_add(time);
            time = *last;
        }
        let after = clock.readings.partition_point(|&(shown, _)| shown <= time);
        let &(shown, main) = clock.readings.get(after.saturating_sub(1))?;
        Some(if time >= shown { main.saturating_add(time - shown) } else { main.saturating_sub(shown - time) })
    }
}

fn key(id: u32, sequence: u32) -> Key {
    (id, if OF_SEQUENCE.contains(&id) { sequence } else { 0 })
}

/// Number, reading, nanoseconds of a tick, and whether times are distances.
fn reading(clock: &[u8]) -> (u32, u64, u64, bool) {
    let mut reading = (0, 0, 1, false);
    for (number, value) in Fields::new(clock) {
        match (number, value) {
            (1, value) => reading.0 = value.low(),
            (2, Value::Number(time)) => reading.1 = time,
            (3, value) => reading.3 = value.number() != 0,
            (4, Value::Number(tick @ 1..)) => reading.2 = tick,
            _ => {}
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot of clocks 6 and 3, both below 128.
    fn snapshot(boot: u8, mono: u8) -> Vec<u8> {
        vec![0x0a, 4, 0x08, 6, 0x10, boot, 0x0a, 4, 0x08, 3, 0x10, mono]
    }

    #[test]
    fn times_of_other_clocks_become_the_traces() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.time(5, 3, 1), Some(5), "nothing is known");
        clocks.snapshot(&snapshot(100, 40), 1);
        clocks.snapshot(&snapshot(120, 50), 1);
        // Before the first snapshot, between them, after the last.
        assert_eq!([30, 45, 60].map(|t| clocks.time(t, 3, 1)), [Some(90), Some(105), Some(130)]);
        assert_eq!((clocks.time(7, 6, 1), clocks.time(7, 0, 1), clocks.time(7, 5, 1)), (Some(7), Some(7), None));
    }

    #[test]
    fn clocks_that_count_distances() {
        let mut clocks = Clocks::default();
        // Clock 64 of the sequence, in microseconds, as distances: 3 at the trace's 100.
        let own = [0x0a, 9, 0x08, 64, 0x10, 3, 0x18, 1, 0x20, 0xe8, 0x07];
        clocks.snapshot(&[&snapshot(100, 40)[..], &own].concat(), 9);
        assert_eq!((clocks.time(2, 64, 9), clocks.time(1, 64, 9)), (Some(2100), Some(3100)));
        assert_eq!(clocks.time(2, 64, 8), None);
    }
}
