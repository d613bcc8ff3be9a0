//! A value on cache lines of its own.

use core::ops::{Deref, DerefMut};

/// A value that shares no cache line with its neighbours.
///
/// Aligned to 128 bytes, not 64: the processors of Intel and AMD fetch lines in pairs, and Apple's have lines of 128.
///
/// Use it for words of different threads that stand in one array or one struct. Padding does nothing for a word that all
/// threads write; that one must be split first ([`PerCpuCounter`](crate::PerCpuCounter)). Nor does it pay for data that
/// is only read, or written by one thread at a time: it then costs cache space alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Padded<T> {
    /// Puts a value on lines of its own.
    pub const fn new(value: T) -> Self {
        Padded(value)
    }

    /// The value without its padding.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Padded<T> {
    fn from(value: T) -> Self {
        Padded(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_no_pair_of_lines() {
        let pair = [Padded(1u8), Padded(2u8)];
        let [first, second] = [0, 1].map(|i| &raw const pair[i] as usize);
        assert_eq!(second - first, 128);
        assert_eq!(first % 128, 0);
        assert_eq!(*pair[1], 2);
    }
}
