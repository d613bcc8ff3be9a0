//! How events are read: a list of steps for each kind of event, worked out once, and what carries them out.

use super::bits::{Bits, Stop};

/// Where a step puts what it reads.
pub type Slot = u16;
/// Nowhere.
pub const UNUSED: Slot = u16::MAX;
/// No plan needs more places.
pub const MAX_SLOTS: usize = 1 << 10;

/// One step.
#[derive(Debug, Clone)]
pub enum Step {
    /// To the next multiple of as many bits.
    Align(u16),
    /// Past as many bits.
    Skip(u64),
    /// An integer.
    Integer { bits: u8, signed: bool, big: bool, to: Slot },
    /// A reading of a clock, whole or its low bits.
    Time { bits: u8, big: bool, to: Slot },
    /// Bytes up to a NUL.
    Text { to: Slot },
    /// Elements of as many bits side by side.
    Run { times: Times, bits: u32, to: Slot },
    /// All steps of a block, again and again.
    Repeat { times: Times, block: u32 },
    /// The steps of the block that belongs to the tag's value: choices from `first` on.
    Choose { tag: Slot, signed: bool, first: u32, count: u32 },
}

/// How often.
#[derive(Debug, Clone, Copy)]
pub enum Times {
    /// Always as often.
    Fixed(u64),
    /// As often as an integer says that was read before.
    Read(Slot),
}

/// The values of a tag that stand for a block.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// From this one.
    pub from: i128,
    /// To this one.
    pub to: i128,
    /// The steps.
    pub block: u32,
}

/// All steps of a kind of stream.
#[derive(Debug, Default)]
pub struct Plan {
    /// Steps, in blocks.
    pub blocks: Vec<Vec<Step>>,
    /// What tags choose from.
    pub choices: Vec<Choice>,
}

/// What was read: integers, and where texts and runs lie.
#[derive(Debug)]
pub struct Values {
    slots: Vec<u64>,
    /// The clock's last reading, in ticks.
    pub ticks: u64,
}

impl Values {
    /// Nothing was read.
    pub fn new() -> Self {
        Values { slots: vec![0; MAX_SLOTS], ticks: 0 }
    }

    /// The integer in `slot`, its sign extended; 0 for none.
    #[inline]
    pub fn number(&self, slot: Slot) -> u64 {
        self.slots.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// Where the text or run in `slot` lies in the window: its first byte and its length, in bytes of a text or elements of a run.
    #[inline]
    pub fn place(&self, slot: Slot) -> (usize, usize) {
        let word = self.number(slot);
        ((word >> 32) as usize, word as u32 as usize)
    }

    #[inline]
    fn set(&mut self, slot: Slot, value: u64) {
        if let Some(place) = self.slots.get_mut(usize::from(slot)) {
            *place = value;
        }
    }

    /// Notes a place, if it is one of whole bytes.
    #[inline]
    fn set_place(&mut self, slot: Slot, byte: Option<usize>, len: u64) {
        let word =
            byte.and_then(|at| Some(u64::from(u32::try_from(at).ok()?) << 32 | u64::from(u32::try_from(len).ok()?)));
        self.set(slot, word.unwrap_or(0));
    }

    /// A clock's low bits: the next time at which it shows them.
    #[inline]
    pub fn tick(&mut self, low: u64, bits: u8) {
        if bits >= 64 {
            self.ticks = low;
            return;
        }
        let turn = 1_u64 << bits;
        let next = self.ticks & !(turn - 1) | low;
        self.ticks = if next < self.ticks { next.wrapping_add(turn) } else { next };
    }
}

impl Plan {
    /// Carries out the steps of `block`.
    pub fn run(&self, block: u32, from: &mut Bits, to: &mut Values) -> Result<(), Stop> {
        for step in self.blocks.get(block as usize).map_or(&[][..], Vec::as_slice) {
            from.step()?;
            match *step {
                Step::Align(bits) => from.align(bits)?,
                Step::Skip(bits) => from.skip(bits)?,
                Step::Integer { bits, signed, big, to: slot } => {
                    let value = from.integer(bits, big)?;
                    to.set(slot, if signed { extend(value, bits) } else { value });
                }
                Step::Time { bits, big, to: slot } => {
                    let low = from.integer(bits, big)?;
                    to.tick(low, bits);
                    to.set(slot, low);
                }
                Step::Text { to: slot } => {
                    let start = from.byte();
                    let len = from.text()?;
                    to.set_place(slot, start, len);
                }
                Step::Run { times, bits, to: slot } => {
                    let (start, count) = (from.byte(), times.of(to));
                    from.skip(count.saturating_mul(bits.into()))?;
                    to.set_place(slot, start, count);
                }
                Step::Repeat { times, block } => {
                    for _ in 0..times.of(to) {
                        from.step()?;
                        self.run(block, from, to)?;
                    }
                }
                Step::Choose { tag, signed, first, count } => {
                    let value = to.number(tag);
                    let value = if signed { i128::from(value as i64) } else { value.into() };
                    let choices = self.choices.get(first as usize..).unwrap_or(&[]);
                    let chosen = choices.iter().take(count as usize).find(|c| c.from <= value && value <= c.to);
                    self.run(chosen.ok_or(Stop::NoOption(value))?.block, from, to)?;
                }
            }
        }
        Ok(())
    }
}

impl Times {
    #[inline]
    fn of(self, values: &Values) -> u64 {
        match self {
            Times::Fixed(times) => times,
            Times::Read(slot) => values.number(slot),
        }
    }
}

#[inline]
fn extend(value: u64, bits: u8) -> u64 {
    let unused = 64 - u32::from(bits.clamp(1, 64));
    ((value << unused) as i64 >> unused) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_few_bits_turns_over() {
        let mut values = Values { slots: Vec::new(), ticks: 0x1_0000_0000 | 0x7ff_fff0 };
        values.tick(0x7ff_fff8, 27);
        assert_eq!(values.ticks, 0x1_07ff_fff8);
        values.tick(5, 27);
        assert_eq!(values.ticks, 0x1_0800_0005);
        values.tick(5, 27);
        assert_eq!(values.ticks, 0x1_0800_0005);
        values.tick(7, 64);
        assert_eq!(values.ticks, 7);
    }

    #[test]
    fn signs_are_extended() {
        assert_eq!(extend(0b111, 3) as i64, -1);
        assert_eq!(extend(0b011, 3), 3);
        assert_eq!(extend(u64::MAX, 64) as i64, -1);
    }
}
