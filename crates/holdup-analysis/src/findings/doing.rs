//! What a thread does at an instant, in words.

use holdup_trace::StringId;

use super::context::Context;
use super::place;
use crate::classify::WaitKind;
use crate::intervals::{Chunk, Wait};

/// What it does, and in which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Doing {
    Sleeps(StringId),
    Waits(StringId),
    /// It waits for the disk, in whatever function.
    Writes,
    /// It is on its way to a CPU.
    Ready,
    Runs,
}

impl Doing {
    /// While it waits.
    pub(super) fn of(context: &Context, wait: &Wait) -> Doing {
        let function = place::own(context, wait.stack).map_or(StringId::default(), |l| l.function);
        match wait.kind {
            WaitKind::Timer => Doing::Sleeps(function),
            WaitKind::Disk => Doing::Writes,
            _ => Doing::Waits(function),
        }
    }

    /// What it did.
    pub(super) fn past(self, context: &Context) -> String {
        match self {
            Doing::Sleeps(function) => "slept".to_owned() + &within(context, function),
            Doing::Waits(function) => "waited".to_owned() + &within(context, function),
            Doing::Writes => "waited for the disk".to_owned(),
            Doing::Ready => "got no CPU".to_owned(),
            Doing::Runs => "worked".to_owned(),
        }
    }

    /// What it does, after its name.
    pub(super) fn present(self, context: &Context) -> String {
        match self {
            Doing::Sleeps(function) => "sleeps".to_owned() + &within(context, function),
            Doing::Waits(function) => "waits".to_owned() + &within(context, function),
            Doing::Writes => "waits for the disk".to_owned(),
            Doing::Ready | Doing::Runs => "goes on to its next work".to_owned(),
        }
    }
}

/// Calls `each` with the waits that are wanted, in the order in which they begin. O(n log n) in the waits of a part; nothing if a table is damaged.
pub(super) fn each_wait(context: &Context, wanted: impl Fn(&Wait) -> bool, mut each: impl FnMut(&Wait)) -> Option<()> {
    let timeline = context.timeline;
    let of_part = |chunk: &Chunk| {
        let mut waits: Vec<&Wait> = chunk.waits_begun().iter().filter(|wait| wanted(wait)).collect();
        waits.sort_by_key(|wait| wait.start);
        waits.into_iter().for_each(&mut each);
    };
    timeline.one_by_one(0..timeline.len(), of_part).ok()
}

/// In which function, if it has a name.
fn within(context: &Context, function: StringId) -> String {
    match context.trace.text(function) {
        "" => String::new(),
        name => format!(" in {name}"),
    }
}
