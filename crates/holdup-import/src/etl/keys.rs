//! Stacks that are told once and named by keys. Windows tells what a key means when it forgets the key, or at the end: so keys are
//! learned before the events that use them are read.

use rustc_hash::FxHashMap;

use super::fields::Fields;
use super::record::Record;

/// A walk has at most 192 frames in each half.
pub const MOST_FRAMES: usize = 400;

/// When a key was forgotten, and where its frames are.
type Meaning = (u64, u32, u32);

/// What keys mean.
#[derive(Debug, Default)]
pub struct Keys {
    frames: Vec<u64>,
    of: FxHashMap<u64, Vec<Meaning>>,
}

impl Keys {
    /// A record that tells what a key meant up to now.
    pub fn define(&mut self, record: &Record) -> Option<()> {
        let mut at = Fields::new(record.body, record.wide);
        let (key, until) = (at.pointer()?, record.time?);
        let from = u32::try_from(self.frames.len()).ok()?;
        self.frames.extend(std::iter::from_fn(|| at.pointer()).take(MOST_FRAMES));
        let to = u32::try_from(self.frames.len()).ok()?;
        let meanings = self.of.entry(key).or_default();
        let place = meanings.partition_point(|&(other, ..)| other <= until);
        meanings.insert(place, (until, from, to));
        Some(())
    }

    /// The frames of a key that was used at `time`.
    pub fn get(&self, key: u64, time: u64) -> Option<&[u64]> {
        let meanings = self.of.get(&key)?;
        let at = meanings.partition_point(|&(until, ..)| until < time);
        let &(_, from, to) = meanings.get(at).or(meanings.last())?;
        self.frames.get(from as usize..to as usize)
    }
}
