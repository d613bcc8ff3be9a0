//! Parts of a finding's sentences: how long, how often, who, and which lock.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::crew::Crew;
use super::tally::Tally;
use crate::blame::{Key, Terminal};
use crate::label::{self, duration, threads};
use crate::report::Finding;

/// How long others waited for those that are named, not for whoever else had the lock.
pub(super) fn kept(context: &Context, tally: &Tally, crew: &Crew) -> String {
    took(context, tally, |key| key.terminal != Terminal::Handoff && crew.threads.contains(&key.thread))
}

/// How long somebody was at the disk, without the time in which a lock that is held meanwhile was in other hands.
pub(super) fn at_disk(context: &Context, tally: &Tally) -> String {
    // Others wait for the same in several ways at once; the longest is the wait itself.
    let mut longest: FxHashMap<(ThreadIdx, StackId), (u64, Key)> = FxHashMap::default();
    for key in tally.subjects().filter(|key| key.terminal == Terminal::Disk) {
        let covered = context.blame.spans.get(key).into_iter().flatten().map(|span| span.covered).sum();
        let own = longest.entry((key.thread, key.site)).or_insert((covered, *key));
        *own = (*own).max((covered, *key));
    }
    took(context, tally, |key| longest.get(&(key.thread, key.site)).is_some_and(|(_, own)| own == key))
}

/// How long what is `wanted` lasted, all times together.
fn took(context: &Context, tally: &Tally, wanted: impl Fn(&Key) -> bool) -> String {
    let (spans, time) = context.spans(tally, wanted);
    duration(context.limits.once(time.amount())) + if spans.len() > 1 { " in all" } else { "" }
}

/// How long, all times together.
pub(super) fn lasted(f: &Finding) -> String {
    let all = if f.windows.len() > 1 { " in all" } else { "" };
    duration(f.lasted_s) + all
}

/// Who stood still meanwhile.
pub(super) fn stood(f: &Finding) -> String {
    let w = &f.waiters;
    let who = threads(w.threads);
    if w.waits == 0 || f.is_hardly_waited_for() {
        return "nobody else had anything to do".to_owned();
    }
    match w.waits {
        n if n <= 2 * w.threads as u64 => format!("{who} stood still"),
        n => format!("{who} stood still {}, up to {}", times(n), duration(w.max_s)),
    }
}

pub(super) fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", label::count(n)) }
}

pub(super) fn lock_words(f: &Finding, tally: &Tally) -> String {
    match (&f.lock, tally.locks.len()) {
        (Some(l), _) if l.name.contains(' ') => l.name.clone(),
        // All that is known of it is the function that takes it.
        (Some(l), _) if !l.name.is_empty() && l.address.is_empty() => format!("a lock taken in {}", l.name),
        (Some(l), _) if !l.name.is_empty() => format!("the lock {}", l.name),
        (_, 0 | 1) => "one lock".to_owned(),
        (_, n) => format!("{} locks of one kind", label::count(n as u64)),
    }
}
