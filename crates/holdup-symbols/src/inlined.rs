//! Which functions a compiler at run time put into one another, as the process told it for some places in its code.

use std::sync::Arc;

/// Functions that one instruction belongs to, the innermost first; the last one is what was compiled.
pub type Chain = Arc<[Arc<str>]>;

/// What is known of one piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCode {
    /// Its first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// The places of which it is known, by their distance from the start, in rising order: where calls return to, most of them.
    pub points: Vec<(u32, Chain)>,
}

/// What one process told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InlinedFunctions(Vec<InlinedCode>);

impl InlinedFunctions {
    /// Takes what was told later: where it overlaps, it is what is there now. O(n log n).
    pub fn add(&mut self, mut new: Vec<InlinedCode>) {
        new.sort_by_key(|code| code.start);
        let is_free = |old: &InlinedCode| {
            let after = new.partition_point(|code| code.start < old.end);
            new[..after].last().is_none_or(|code| code.end <= old.start)
        };
        self.0.retain(is_free);
        self.0.append(&mut new);
        self.0.sort_by_key(|code| code.start);
    }

    /// How many places are known.
    pub fn points(&self) -> usize {
        self.0.iter().map(|code| code.points.len()).sum()
    }

    /// The functions to which the instruction at `address` belongs, the innermost first, and where the code begins. A call is known where
    /// it returns to. What runs between two places of which something is known goes on to the next one: loops look there, at their end,
    /// whether they are to stop. O(log n).
    pub(crate) fn at(&self, address: u64) -> Option<(&[Arc<str>], u64)> {
        let after = self.0.partition_point(|code| code.start <= address);
        let code = self.0[..after].last().filter(|code| address < code.end)?;
        let after = code.points.partition_point(|(at, _)| u64::from(*at) <= address - code.start);
        let known = match code.points.get(after) {
            Some((_, chain)) => chain,
            // Behind all of them only what was compiled is certain.
            None => code.points.last().and_then(|(_, chain)| chain.get(chain.len().checked_sub(1)?..))?,
        };
        (!known.is_empty()).then_some((known, code.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(names: &str) -> Chain {
        names.split(' ').map(Arc::from).collect()
    }

    fn code(start: u64, end: u64, points: &[(u32, &str)]) -> InlinedCode {
        InlinedCode { start, end, points: points.iter().map(|(at, names)| (*at, chain(names))).collect() }
    }

    fn at(all: &InlinedFunctions, address: u64) -> Option<String> {
        all.at(address).map(|(names, _)| names.join(" "))
    }

    #[test]
    fn what_runs_belongs_to_the_next_place_that_is_known() {
        let mut all = InlinedFunctions::default();
        all.add(vec![code(
            0x100,
            0x200,
            &[(0x10, "lock reserve work"), (0x40, "digest reserve work"), (0x80, "free work")],
        )]);
        assert_eq!(at(&all, 0x100).as_deref(), Some("lock reserve work"));
        assert_eq!(at(&all, 0x10f).as_deref(), Some("lock reserve work"), "inside the call");
        assert_eq!(at(&all, 0x110).as_deref(), Some("digest reserve work"), "behind it");
        assert_eq!(at(&all, 0x17f).as_deref(), Some("free work"));
        assert_eq!(at(&all, 0x1ff).as_deref(), Some("work"), "behind all");
        assert_eq!((at(&all, 0xff), at(&all, 0x200)), (None, None));
    }

    #[test]
    fn what_was_told_later_takes_the_place() {
        let mut all = InlinedFunctions::default();
        all.add(vec![code(0, 8, &[(4, "a")]), code(10, 20, &[(4, "b")])]);
        all.add(vec![code(15, 30, &[(4, "c d")])]);
        assert_eq!((at(&all, 3).as_deref(), at(&all, 12), at(&all, 18).as_deref()), (Some("a"), None, Some("c d")));
        assert_eq!(all.points(), 2);
    }
}
