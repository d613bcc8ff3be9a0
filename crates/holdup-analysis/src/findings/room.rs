//! Waits for room to write, or to send, into.

use super::context::Context;
use super::place;
use super::tally::Tally;
use crate::classify::WaitKind;

/// Functions of the kernel that wait for room for what is sent by a socket.
const SENDS: [&str; 3] = ["sk_stream_wait_memory", "sock_alloc_send_pskb", "sock_wait_for_wmem"];

/// Whether what it waited for outside is that somebody takes what it writes, or sends. O(frames of the finding's stacks).
pub(super) fn is_wanted(context: &Context, tally: &Tally) -> bool {
    sends(context, tally) || tally.subjects().all(|key| key.kind == WaitKind::Write)
}

fn sends(context: &Context, tally: &Tally) -> bool {
    tally.share_of_sites(|stack| place::has(context, stack, |name| SENDS.contains(&name))) > 0.5
}

/// What it could not do for so long, behind who.
pub(super) fn words(context: &Context, tally: &Tally, lasted: &str) -> String {
    match sends(context, tally) {
        true => format!("could not send for {lasted}, as the other end, or the way to it, took no more"),
        false => format!("could not write for {lasted}, as nobody read"),
    }
}

/// What to do about that.
pub(super) fn advice(context: &Context, tally: &Tally) -> &'static str {
    match sends(context, tally) {
        true => {
            "See what takes it so slowly: the other end (does it read all the time?), a limit on the way (tc -s qdisc, a shaper, the link's rate; \
             ss -ti tells the connection's window and rate), or buffers that are too small for the distance (SO_SNDBUF, net.ipv4.tcp_wmem)."
        }
        false => "See why the other end does not read: it may wait for this one to end.",
    }
}
