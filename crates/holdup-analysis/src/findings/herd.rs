//! Threads that are all woken for what one of them will get: the others find nothing to do, and wait again.

use holdup_trace::Nanos;

use super::context::Context;
use super::place;
use super::tally::{Group, Tally};
use crate::label::{self, duration};
use crate::report::Finding;
use crate::runtime::bare;

/// Fewer are no herd.
const FEWEST: usize = 4;
/// Wake-ups, and those in a second, that leave no doubt that they cost something.
const MANY: u64 = 1000;
/// Who is woken in vain looks, and waits again, within this time on average.
const LOOK: Nanos = Nanos(20_000);

/// Functions that wake all that wait.
const WAKES_ALL: &[&str] = &[
    "pthread_cond_broadcast",
    "__pthread_cond_broadcast",
    "std::condition_variable::notify_all",
    "g_cond_broadcast",
    "uv_cond_broadcast",
    "java.lang.Object.notifyAll",
    "sync.(*Cond).Broadcast",
    "sync.runtime_notifyListNotifyAll",
];

/// Functions of the kernel that tell all who watch a socket that somebody connects to it.
const CONNECTS: &[&str] = &["tcp_child_process", "unix_stream_connect"];

/// How a herd is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Signal,
    Connection,
}

/// Who wakes all, if that is what mostly ends their waits.
fn woken_by(context: &Context, tally: &Tally) -> Option<By> {
    let release = tally.main_release(&tally.ends().keys().copied().collect::<Vec<_>>());
    let is_in = |list: &[&str]| place::has(context, release, |name| list.contains(&bare(name)));
    if is_in(WAKES_ALL) { Some(By::Signal) } else { is_in(CONNECTS).then_some(By::Connection) }
}

/// How long each runs for a wake-up, if they are one. O(waiters).
fn each(context: &Context, group: &Group, tally: &Tally, f: &Finding) -> Option<(Nanos, By)> {
    // What wakes them is no waiter of its own.
    let woken = || tally.threads.iter().filter(|thread| !tally.ends().contains_key(thread));
    if !matches!(group, Group::Serial(_))
        || woken().count() < FEWEST
        || (f.waiters.waits as f64) < MANY as f64 * f.lasted_s.max(1.0)
    {
        return None;
    }
    let each = Nanos(woken().map(|thread| context.ran(*thread)).sum::<Nanos>().0 / f.waiters.waits);
    if each < LOOK { woken_by(context, tally).map(|by| (each, by)) } else { None }
}

/// Says so.
pub(super) fn add(context: &Context, group: &Group, tally: &Tally, f: &mut Finding) {
    let Some((each, by)) = each(context, group, tally, f) else { return };
    f.about.wakes_all = true;
    let (threads, waits) = (tally.threads.len(), label::count(f.waiters.waits));
    let function = if f.culprit.function.is_empty() { "this code" } else { f.culprit.function.as_str() };
    f.title.say_of_others(&format!("{threads} threads were woken {waits} times, mostly for nothing"));
    f.evidence.push(format!(
        "all that wait are woken at a time; each runs for {} and waits again",
        duration(each.amount().seconds())
    ));
    f.advice = match by {
        By::Signal => format!(
            "Wake one of them where {function} has something for one (notify_one, pthread_cond_signal, notify), not all {threads}."
        ),
        By::Connection => format!(
            "Let each connection wake one of them, not all {threads}: EPOLLEXCLUSIVE where they watch the socket, a socket for each \
             (SO_REUSEPORT), or an accept that blocks."
        ),
    };
}
