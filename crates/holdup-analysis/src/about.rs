//! Whom and what a finding is about, for whoever has the trace, too.

use holdup_trace::ThreadIdx;

use crate::blame::Key;

/// Whom and what a finding is about, by the trace's own numbers.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// What was charged to it ([`Key::subject`]).
    pub subjects: Vec<Key>,
    /// The threads at the ends of the chains, the one with most blame first.
    pub culprits: Vec<ThreadIdx>,
    /// Those that waited, sorted.
    pub waiters: Vec<ThreadIdx>,
    /// Whether a few unusually long times are most of it, so that an average says nothing.
    pub is_uneven: bool,
    /// Whether something lets no more than so many do it at a time.
    pub is_limited: bool,
    /// Whether what works mostly carries objects to others, or takes them in.
    pub carries: bool,
    /// Whether it only looks, again and again, whether others that work are done.
    pub looks: bool,
    /// Those that it asks for one thing after another, and that sleep before they answer.
    pub asks: Vec<ThreadIdx>,
    /// Whether whole processes did nothing but sleep for a time that they chose, and looked for no input meanwhile.
    pub sleeps: bool,
    /// Whether all of them are woken for what one of them gets.
    pub wakes_all: bool,
}
