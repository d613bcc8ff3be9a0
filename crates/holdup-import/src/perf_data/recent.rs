//! Call chains that were interned lately, by their bytes in the file.
//!
//! Threads block and wake at few places, so nearly every chain is one that was there a moment ago, mostly that which the same
//! thread had before at such an event. Finding it again costs a comparison there, a hash over its bytes and a comparison
//! elsewhere; taking it apart and interning it costs several times as much.

use holdup_trace::ChainId;

/// How many are kept: as many as the second-level cache holds.
const SLOTS: usize = 1 << 11;
/// How many threads and kinds of event have their last chain looked at first.
const GUESSES: usize = 1 << 10;
/// Longer chains are rare, and would make the memory in use depend on the input.
const LONGEST: usize = 256 * 8;

/// What a chain's meaning depends on beside its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// The process.
    pub pid: u32,
    /// In which mode the sample was taken.
    pub mode: u16,
}

/// The owner of an empty slot.
const NOBODY: Owner = Owner { pid: 0, mode: u16::MAX };

#[derive(Debug, Default)]
struct Slot {
    hash: u64,
    owner: Owner,
    entries: Vec<u8>,
    chain: ChainId,
}

/// The chains that were interned lately.
#[derive(Debug, Default)]
pub struct Recent {
    slots: Vec<Slot>,
    /// The slot of the last chain, by thread and kind of event.
    guesses: Vec<u16>,
}

/// Where a chain would be.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    hash: u64,
    guess: usize,
}

impl Place {
    fn slot(self) -> usize {
        self.hash as usize % SLOTS
    }
}

impl Recent {
    /// The chain with these entries, or where to [`keep`](Self::keep) it. `near` is any number that is the same for what
    /// probably has the same chain.
    #[inline]
    pub fn find(&mut self, near: u32, owner: Owner, entries: &[u8]) -> Result<ChainId, Place> {
        let guess = near as usize % GUESSES;
        let is_it = |slot: &&Slot| slot.owner == owner && slot.entries == entries;
        let guessed = self.guesses.get(guess).and_then(|&at| self.slots.get(usize::from(at)));
        if let Some(slot) = guessed.filter(is_it) {
            return Ok(slot.chain);
        }
        let place = Place { hash: hash(owner, entries), guess };
        let found = self.slots.get(place.slot()).filter(|slot| slot.hash == place.hash).filter(is_it);
        let chain = found.ok_or(place)?.chain;
        self.guesses[guess] = place.slot() as u16;
        Ok(chain)
    }

    /// Remembers a chain in place of the one that was there.
    pub fn keep(&mut self, place: Place, owner: Owner, entries: &[u8], chain: ChainId) {
        if entries.is_empty() || entries.len() > LONGEST {
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || Slot { owner: NOBODY, ..Slot::default() });
            self.guesses.resize(GUESSES, 0);
        }
        self.guesses[place.guess] = place.slot() as u16;
        let slot = &mut self.slots[place.slot()];
        (slot.hash, slot.owner, slot.chain) = (place.hash, owner, chain);
        slot.entries.clear();
        slot.entries.extend_from_slice(entries);
    }
}

/// Four words at a time, and no product waits for another: what took longest here was to wait. Chains are compared
/// anyway, so this has to spread them well enough, and no more.
#[inline]
fn hash(owner: Owner, entries: &[u8]) -> u64 {
    const KEYS: [u64; 4] = [0xf135_7aea_2e62_a9c5, 0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
    let mut lanes = [u64::from(owner.pid), u64::from(owner.mode), entries.len() as u64, 1];
    let (words, _) = entries.as_chunks::<8>();
    let (fours, rest) = words.as_chunks::<4>();
    let mut mix = |words: &[[u8; 8]]| {
        for ((lane, key), word) in lanes.iter_mut().zip(KEYS).zip(words) {
            *lane = lane.rotate_left(29).wrapping_add(u64::from_le_bytes(*word).wrapping_mul(key));
        }
    };
    fours.iter().for_each(|four| mix(four));
    mix(rest);
    let [a, b, c, d] = lanes;
    let all = (a ^ b.rotate_left(17)).wrapping_add(c.rotate_left(31) ^ d.rotate_left(47)).wrapping_mul(KEYS[1]);
    // A product's high bits depend on all of its factors' bits, the low ones do not.
    all ^ all >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_found_by_owner_and_entries() {
        let mut recent = Recent::default();
        let owner = Owner { pid: 7, mode: 2 };
        let entries: Vec<u8> = (0..88).collect();
        let place = recent.find(3, owner, &entries).expect_err("nothing was kept yet");
        recent.keep(place, owner, &entries, ChainId(5));
        assert_eq!(recent.find(3, owner, &entries).ok(), Some(ChainId(5)));
        for other in [Owner { pid: 8, ..owner }, Owner { mode: 1, ..owner }] {
            assert!(recent.find(3, other, &entries).is_err());
        }
        for at in 0..entries.len() {
            let mut other = entries.clone();
            other[at] ^= 1;
            assert!(recent.find(3, owner, &other).is_err(), "byte {at}");
            assert!(recent.find(3, owner, &entries[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_wrong_guess_is_none() {
        let (mut recent, owner) = (Recent::default(), Owner::default());
        let chains = [[1_u8; 16], [2; 16]];
        for (entries, chain) in chains.iter().zip(1..) {
            let place = recent.find(7, owner, entries).expect_err("a new one");
            recent.keep(place, owner, entries, ChainId(chain));
        }
        for near in [7, 8, 7 + GUESSES as u32, u32::MAX] {
            let found = [0, 1, 1, 0].map(|i| recent.find(near, owner, &chains[i]).ok());
            assert_eq!(found, [1, 2, 2, 1].map(|chain| Some(ChainId(chain))), "{near}");
        }
    }

    #[test]
    fn no_entries_are_no_chain() {
        let (mut recent, owner) = (Recent::default(), Owner::default());
        let place = recent.find(0, owner, &[1; 8]).expect_err("a new one");
        recent.keep(place, owner, &[1; 8], ChainId(1));
        assert!((0..5000).all(|near| recent.find(near, owner, &[]).is_err()));
    }

    #[test]
    fn what_shares_a_place_is_compared() {
        let (mut recent, owner) = (Recent::default(), Owner::default());
        let place = recent.find(3, owner, &[1; 8]).expect_err("nothing was kept yet");
        recent.keep(place, owner, &[2; 8], ChainId(6));
        assert!(recent.find(3, owner, &[1; 8]).is_err());
    }

    #[test]
    fn memory_does_not_depend_on_the_input() {
        let (mut recent, owner) = (Recent::default(), Owner::default());
        for i in 0..10_000_u64 {
            let entries = i.to_le_bytes().repeat(1000);
            let place = recent.find(3, owner, &entries).expect_err("a new one");
            recent.keep(place, owner, &entries, ChainId(1));
            assert!(recent.find(3, owner, &entries).is_err(), "too long to be kept");
        }
        assert!(recent.slots.is_empty());
    }
}
