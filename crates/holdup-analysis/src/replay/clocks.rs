//! The virtual clocks: one for each thread and finding, and two for each thread in the unchanged run.

/// Nanoseconds, by thread and then by clock: the first is the unchanged run's without its neighbours, those of the findings follow,
/// and the last is the run's as it was.
#[derive(Debug)]
pub(super) struct Clocks {
    clocks: usize,
    ns: Vec<u64>,
}

impl Clocks {
    pub(super) fn new(threads: usize, clocks: usize) -> Self {
        Clocks { clocks, ns: vec![0; threads * clocks] }
    }

    pub(super) fn of(&mut self, thread: usize) -> &mut [u64] {
        &mut self.ns[thread * self.clocks..][..self.clocks]
    }

    pub(super) fn at(&self, thread: usize, clock: usize) -> u64 {
        self.ns[thread * self.clocks + clock]
    }

    /// Moves all clocks of a thread on.
    pub(super) fn pass(&mut self, thread: usize, ns: u64) {
        self.of(thread).iter_mut().for_each(|clock| *clock += ns);
    }

    /// Moves those clocks on whose bits are not in `but`.
    pub(super) fn pass_but(&mut self, thread: usize, ns: u64, but: Set) {
        let clocks = self.of(thread).iter_mut().enumerate();
        clocks.for_each(|(k, clock)| *clock += if has(but, k) { 0 } else { ns });
    }

    /// `thread` goes on no earlier than `other`, but for the clocks in `but`.
    pub(super) fn follow(&mut self, thread: usize, other: usize, but: Set) {
        for clock in 0..self.clocks {
            if !has(but, clock) {
                let first = self.at(other, clock);
                let own = &mut self.ns[thread * self.clocks + clock];
                *own = first.max(*own);
            }
        }
    }
}

/// A set of findings: bit n is finding n, whose clock is n + 1.
pub(super) type Set = u64;

/// The findings in a set.
pub(super) fn each(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let n = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(n)
    })
}

fn has(set: Set, clock: usize) -> bool {
    clock > 0 && set >> (clock - 1) & 1 != 0
}
