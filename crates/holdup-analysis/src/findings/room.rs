//! Waits for room to write, or to send, into.

use super::context::Context;
use super::place;
use super::tally::Tally;
use crate::classify::WaitKind;

/// Functions of the kernel that wait for room for what is sent by a socket.
const SENDS: [&str; 3] = ["sk_stream_wait_memory", "sock_alloc_send_pskb", "sock_wait_for_wmem"];

/// What there was no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// What is written into a pipe and the like.
    Write,
    /// What a socket sends.
    Send,
}

/// What, if what it waited for outside is that somebody takes it. O(frames of the finding's stacks).
pub(super) fn wanted(context: &Context, tally: &Tally) -> Option<Room> {
    let sends = |stack| place::has(context, stack, |name| SENDS.contains(&name));
    if tally.share_of_sites(sends) > 0.5 {
        return Some(Room::Send);
    }
    tally.subjects().all(|key| key.kind == WaitKind::Write).then_some(Room::Write)
}

impl Room {
    /// What it could not do for so long, behind who.
    pub(super) fn words(self, lasted: &str) -> String {
        match self {
            Room::Send => format!("could not send for {lasted}, as the other end, or the way to it, took no more"),
            Room::Write => format!("could not write for {lasted}, as nobody read"),
        }
    }

    /// What to do about that.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Room::Send => {
                "See what takes it so slowly: the other end (does it read all the time?), a limit on the way (tc -s qdisc, a shaper, the link's \
                 rate; ss -ti tells the connection's window and rate), or buffers that are too small for the distance (SO_SNDBUF, \
                 net.ipv4.tcp_wmem)."
            }
            Room::Write => "See why the other end does not read: it may wait for this one to end.",
        }
    }
}
