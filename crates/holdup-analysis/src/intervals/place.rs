//! What a place is to those that wait there; [`super::homes`] judges.

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
