//! What spans' time was, in words. Names in them are as the trace has them.

use super::report::{Cause, Done, Piece, SpanReport, other_side};
use crate::label::{count, duration};
use crate::report::Confidence;

/// `The slowest 1 % (32 of 3,214, 96–141 ms) waited 93 ms for …; the others 0.2 ms.`
pub fn headline(answer: &SpanReport) -> String {
    let (slow, typical) = (&answer.slow, &answer.typical);
    let all = slow.count + typical.count;
    let share = 100.0 * slow.count as f64 / all.max(1) as f64;
    let range = if slow.count == 1 {
        duration(slow.max_s)
    } else {
        format!("{} to {}", duration(slow.min_s), duration(slow.max_s))
    };
    let share = if share >= 0.95 { format!("{share:.0} %") } else { format!("{share:.2} %") };
    let who = format!("the slowest {share} ({} of {}, {range})", count(slow.count), count(all));
    match answer.causes.first() {
        Some(cause) if answer.confidence != Confidence::Low => {
            let also = other_side(&answer.causes).map(also).unwrap_or_default();
            format!("{who} {}{also}; the others {}", verb(cause), duration(cause.typical_s))
        }
        Some(cause) => {
            format!("{who}: no single cause stands out; most of the difference is that they {}", verb(cause))
        }
        None => format!("{who}: nothing is known of their time"),
    }
}

/// The same reason from the other side: `, and ran 1.1 ms there themselves`.
fn also(cause: &Cause) -> String {
    let time = duration(cause.slow_s);
    match cause.what {
        Done::Ran => format!(", and ran {time} there themselves"),
        _ => format!(", and waited {time} for others that did"),
    }
}

/// `waited 93 ms for `redis-server` in `keysCommand``.
fn verb(cause: &Cause) -> String {
    let (time, place) = (duration(cause.slow_s), place(&cause.function, &cause.source));
    let who = &cause.process;
    let tid = if cause.tid == 0 { String::new() } else { format!(" ({})", cause.tid) };
    match cause.what {
        Done::Ran => format!("ran {time}{place}"),
        Done::WaitedFor => format!("waited {time} for `{who}`{tid}, which ran{place}"),
        Done::Behind if who.is_empty() => format!("were ready for {time} before a CPU took them"),
        Done::Behind => format!("had no CPU for {time}, which `{who}` had"),
        Done::Disk => format!("waited {time} for the disk, at which `{who}` was{place}"),
        Done::Timer => format!("waited {time} for `{who}`{tid}, which slept{place}"),
        Done::Outside => format!("waited {time} for input of `{who}`{tid} from outside{place}"),
        Done::Interrupt => format!("waited {time} for a device{place}"),
        Done::Nobody => format!("waited {time} in `{who}`, and nobody ended it{place}"),
        Done::Circle => format!("waited {time} for threads that wait for each other{place}"),
        Done::Unknown => format!("did for {time} what is not known"),
    }
}

fn place(function: &str, source: &str) -> String {
    match (function, source) {
        ("", _) => String::new(),
        (function, "") => format!(" in `{function}`"),
        (function, source) => format!(" in `{function}` ({source})"),
    }
}

/// What one part of the time was, by whom.
pub fn of_cause(cause: &Cause) -> String {
    let place = place(&cause.function, &cause.source);
    let tid = if cause.tid == 0 { String::new() } else { format!(" ({})", cause.tid) };
    let thread = if cause.thread.is_empty() || cause.thread == cause.process { "" } else { &cause.thread };
    let who = if thread.is_empty() {
        format!("`{}`{tid}", cause.process)
    } else {
        format!("`{}`{tid} of `{}`", thread, cause.process)
    };
    match cause.what {
        Done::Ran => format!("it ran{place}"),
        Done::WaitedFor => format!("{who} ran{place}"),
        Done::Behind if cause.process.is_empty() => "ready, and nobody had the CPU".to_owned(),
        Done::Behind => format!("no CPU: {who} had it"),
        Done::Disk => format!("the disk, asked by {who}{place}"),
        Done::Timer => format!("{who} slept{place}"),
        Done::Outside => format!("input of {who} from outside{place}"),
        Done::Interrupt => format!("a device, asked by {who}{place}"),
        Done::Nobody => format!("a wait of {who} that nobody ended{place}"),
        Done::Circle => format!("{who} waited for one that waits for it{place}"),
        Done::Unknown => "not known".to_owned(),
    }
}

/// What a part of one span's time was, by whom.
pub fn of_piece(piece: &Piece) -> String {
    of_cause(&Cause {
        what: piece.what,
        process: piece.who.process.clone(),
        thread: piece.who.thread.clone(),
        tid: piece.who.tid,
        waited_at: Vec::new(),
        function: piece.function.clone(),
        source: String::new(),
        slow_s: 0.0,
        typical_s: 0.0,
        in_slow: 0,
    })
}
