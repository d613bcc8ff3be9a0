//! Takes the addresses of the kernel out of a finished trace.
//!
//! A user who may not read them in /proc/kallsyms shall not find them in a recording that root made for them: one address
//! of code tells where the boot put the kernel, one of data where its memory lies, and both are what an exploit needs first.
//! So each address becomes a number in the order of appearance. A constant taken off would not do: code, modules and data
//! are placed independently of each other, and one known place would give the rest. What is public stays: names, and the
//! distance from a function's start. The numbers are no addresses that a processor could have.

use rustc_hash::FxHashMap;

use super::assembly::Assembly;
use super::out::Maker;
use crate::event_tables::MakeFillers;
use crate::tables::{Frame, Sample};
use crate::{FrameId, LockKind, Names, Result, SpaceId, Table};

/// Where functions with names are shown; the number stands above the distance.
const FUNCTIONS: u64 = 0xc000_0000_0000_0000;
const DISTANCE_BITS: u32 = 24;
/// Where all else is shown, in words of eight bytes: the kernel keeps flags in the bits below.
const OTHERS: u64 = 0x9000_0000_0000_0000;

/// What stands for each address.
#[derive(Default)]
struct Numbers {
    functions: FxHashMap<u64, u64>,
    words: FxHashMap<u64, u64>,
    code: FxHashMap<u64, u64>,
}

impl Numbers {
    fn function(&mut self, address: u64, distance: u64) -> u64 {
        if distance >> DISTANCE_BITS != 0 {
            return self.other(address);
        }
        let next = self.functions.len() as u64;
        let number = *self.functions.entry(address.wrapping_sub(distance)).or_insert(next);
        FUNCTIONS + (number << DISTANCE_BITS) + distance
    }

    fn other(&mut self, address: u64) -> u64 {
        let next = self.words.len() as u64;
        let number = *self.words.entry(address >> 3).or_insert(next);
        OTHERS + (number << 3) + (address & 7)
    }

    fn frame(&mut self, names: &Names, id: FrameId, frame: Frame) -> u64 {
        if frame.space != SpaceId::KERNEL {
            return frame.address;
        }
        let shown = match names.locations(id).last() {
            Some(location) => self.function(frame.address, location.offset),
            None => self.other(frame.address),
        };
        self.code.insert(frame.address, shown);
        shown
    }
}

/// Whether this can be nothing but an address of the kernel.
fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// Hides what the tables of `trace` hold. The kernel's images and code were never taken in.
pub(super) fn hide(trace: &mut Assembly, names: &Names, tables: &Maker) -> Result<()> {
    let mut numbers = Numbers::default();
    trace.stacks.interner.stacks.set_addresses(|id, frame| numbers.frame(names, id, frame));
    let locks = &mut trace.locks.rows;
    for i in 0..locks.address.len() {
        let address = locks.address[i];
        let of_kernel = !matches!(locks.kind[i], LockKind::Futex | LockKind::Unknown);
        if is_kernel(address) || (of_kernel && address != 0) {
            locks.address[i] = numbers.other(address);
        }
    }
    let again = tables.large()?;
    let samples = std::mem::replace(&mut trace.out.samples, again).finish()?;
    for chunk in samples.chunks() {
        for sample in chunk?.rows() {
            trace.out.samples.push(without_address(sample, &mut numbers))?;
        }
    }
    Ok(())
}

fn without_address(sample: Sample, numbers: &mut Numbers) -> Sample {
    if !is_kernel(sample.ip) {
        return sample;
    }
    let ip = numbers.code.get(&sample.ip).copied().unwrap_or_else(|| numbers.other(sample.ip));
    Sample { ip, ..sample }
}
