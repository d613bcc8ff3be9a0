//! A trace as it would be had some of its events not been recorded, and no record of that loss: what an analysis must bear.

use crate::filler::Filler;
use crate::{EventTables, Result, Store, Table, Trace};

/// `trace` without `share` of what threads did, chosen at random by `seed`: switches, wake-ups, waits, samples, futexes, locks and
/// requests to disks, each row by itself. What was looked up is all there.
///
/// # Errors
/// If a table is damaged.
pub fn thinned(trace: Trace, share: f64, seed: u64) -> Result<Trace> {
    let mut chance = Chance { state: seed, below: (share.clamp(0.0, 1.0) * 2f64.powi(53)) as u64 };
    let events = trace.events;
    let events = EventTables {
        switches: chance.thin(&events.switches)?,
        wakes: chance.thin(&events.wakes)?,
        waits: chance.thin(&events.waits)?,
        samples: chance.thin(&events.samples)?,
        futexes: chance.thin(&events.futexes)?,
        kernel_locks: chance.thin(&events.kernel_locks)?,
        block_ios: chance.thin(&events.block_ios)?,
        ..events
    };
    Ok(Trace { events, ..trace })
}

/// What is left out.
struct Chance {
    state: u64,
    below: u64,
}

impl Chance {
    /// Steele, Lea and Flood's `SplitMix64`.
    fn hits(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 11 < self.below
    }

    fn thin<T: Table>(&mut self, table: &Store<T>) -> Result<Store<T>> {
        let mut filler = Filler::in_memory();
        for row in table.iter() {
            let row = row?;
            if !self.hits() {
                filler.push(row)?;
            }
        }
        filler.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Switch, Switches};
    use crate::{Cpu, LockId, StackId, SwitchState, ThreadIdx, Timestamp};

    #[test]
    fn one_in_a_hundred_is_gone_and_the_rest_keeps_its_order() {
        let mut filler = Filler::<Switches>::in_memory();
        for t in 0..10_000 {
            let (state, lock, stack) = (SwitchState::Sleeping, LockId::NONE, StackId::NONE);
            let t = Timestamp::from_nanos_since_start(t);
            let [prev, next] = [ThreadIdx::IDLE; 2];
            filler
                .push(Switch { t, cpu: Cpu(0), prev, state, next, io_wait: false, syscall: -1, lock, stack })
                .unwrap();
        }
        let all = filler.finish().unwrap();
        let mut chance = Chance { state: 1, below: 1 << 53 };
        assert_eq!(chance.thin(&all).unwrap().rows(), 0);
        chance.below /= 100;
        let left: Vec<Switch> = chance.thin(&all).unwrap().iter().collect::<Result<_>>().unwrap();
        assert!((9_850..9_950).contains(&left.len()), "{}", left.len());
        assert!(left.is_sorted_by_key(|row| row.t));
    }
}
