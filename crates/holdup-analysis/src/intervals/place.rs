//! What a place is to those that wait there; [`super::homes`] judges.

/// A sleep longer than this is no look at something now and then, in nanoseconds: who waits for such a sleeper waits for the
/// next period.
pub(crate) const LONGEST_NAP_NS: u64 = 200_000_000;

/// What a place is to those that wait there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// Where its cycle begins, as far as is known.
    #[default]
    Home,
    /// Short sleeps, one after the other, of a thread that works besides: perhaps it looks whether it may go on.
    Unsure,
    /// In the middle of its work.
    Middle,
}
