//! The answer as data: `holdup.spans/1`.

use holdup_base::named;
use serde::Serialize;

use crate::chain::Who;
use crate::report::{Confidence, TraceFacts};

/// What the slow spans of a name did, beside the others.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct SpanReport {
    /// `holdup.spans/1`.
    pub schema: &'static str,
    /// Of which trace.
    pub trace: TraceFacts,
    /// The name that was asked for.
    pub name: String,
    /// All names in the trace, the most frequent first.
    pub names: Vec<NamedSpans>,
    /// The slow ones.
    pub slow: Group,
    /// The others.
    pub typical: Group,
    /// What the time was, the greatest difference first.
    pub causes: Vec<Cause>,
    /// How sure it is that the first cause is what makes them slow.
    pub confidence: Confidence,
    /// Why not surer; empty if it is high.
    pub doubt: String,
    /// The longest ones.
    pub worst: Vec<OneSpan>,
    /// How far the parts of a span are from its length at most, as a share of it.
    pub unaccounted: f64,
}

/// Spans of a name.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct NamedSpans {
    /// The name.
    pub name: String,
    /// How many there are, with those that they stand for.
    pub count: u64,
    /// How many of them were not over at the end, or never ended.
    pub open: u64,
    /// Median length in seconds, of those seen whole.
    pub p50_s: f64,
    /// 99th percentile of the lengths in seconds.
    pub p99_s: f64,
    /// The longest in seconds.
    pub max_s: f64,
}

/// Some spans of a name.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Group {
    /// How many.
    pub count: u64,
    /// How many of them were followed, evenly chosen: the figures are of these.
    pub followed: u64,
    /// The shortest in seconds.
    pub min_s: f64,
    /// The longest in seconds.
    pub max_s: f64,
    /// Their mean in seconds.
    pub mean_s: f64,
    /// What their time was, in seconds for each.
    pub account: Account,
    /// How many ended on another thread; they are charged to the one on which they began.
    pub moved: u64,
}

/// What the time of a span was, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Account {
    /// Its own thread ran.
    pub ran_s: f64,
    /// Its own thread was ready, and had no CPU.
    pub ready_s: f64,
    /// Its own thread waited.
    pub waited_s: f64,
    /// Not known.
    pub unknown_s: f64,
}

named! {
    /// What somebody did while the span lasted.
    pub enum Done {
        /// The span's own thread ran.
        Ran = "ran",
        /// Another thread ran, which it waited for.
        WaitedFor = "waited-for",
        /// A CPU was taken by another thread.
        Behind = "behind",
        /// A disk.
        Disk = "disk",
        /// A sleep.
        Timer = "timer",
        /// The network, or input from outside.
        Outside = "outside",
        /// Another interrupt.
        Interrupt = "interrupt",
        /// A wait that was not over when the trace ended.
        Nobody = "nobody",
        /// Threads that wait for each other.
        Circle = "circle",
        /// Not known.
        Unknown = "unknown",
    }
}

/// A part of spans' time.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Cause {
    /// What was done.
    pub what: Done,
    /// Of which process; empty if none.
    pub process: String,
    /// By which thread, if it was one; else empty.
    pub thread: String,
    /// Its number, if it was always the same one; else 0.
    pub tid: u32,
    /// Where the span's own thread waited meanwhile, mostly: functions, the innermost first; empty if it did not, or it is unknown.
    pub waited_at: Vec<String>,
    /// In which function; empty if unknown.
    pub function: String,
    /// Its source line; empty if unknown.
    pub source: String,
    /// Seconds of each slow span.
    pub slow_s: f64,
    /// Seconds of each of the others.
    pub typical_s: f64,
    /// How many of the slow spans had it for at least a tenth of their time.
    pub in_slow: u64,
}

/// One span, with what its time was in order.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct OneSpan {
    /// Its row in the table `span`.
    pub id: u64,
    /// When it began, in seconds.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// The thread on which it began.
    pub who: Who,
    /// What it was about.
    pub argument: String,
    /// What its time was, in order; short ones are joined to their neighbours' sum in `rest_s`.
    pub pieces: Vec<Piece>,
    /// Seconds of pieces that are not listed.
    pub rest_s: f64,
}

/// One span that was asked for.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct SingleSpan {
    /// `holdup.span/1`.
    pub schema: &'static str,
    /// Of which trace.
    pub trace: TraceFacts,
    /// What kind of work it is.
    pub name: String,
    /// How it ended: `complete`, `moved`, `abandoned`, `open` or `begun`.
    pub outcome: &'static str,
    /// What its time was.
    pub span: OneSpan,
}

/// A part of one span's time.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Piece {
    /// From when, in seconds after the span's begin.
    pub from_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// What was done.
    pub what: Done,
    /// By whom.
    pub who: Who,
    /// In which function; empty if unknown.
    pub function: String,
}

/// Of `causes`, which begin with the most important, the one that is the first once more from the other side: what spans' own threads ran in a
/// function for whose end other spans waited. Both make spans slow for one reason.
pub fn other_side(causes: &[Cause]) -> Option<&Cause> {
    let (first, rest) = causes.split_first()?;
    let wanted = match first.what {
        Done::Ran => Done::WaitedFor,
        Done::WaitedFor => Done::Ran,
        _ => return None,
    };
    let is_there =
        |cause: &&Cause| cause.what == wanted && cause.process == first.process && cause.function == first.function;
    rest.iter().find(is_there).filter(|cause| !cause.function.is_empty() && cause.slow_s > cause.typical_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(what: Done, function: &str, slow_s: f64) -> Cause {
        let (process, function) = ("server".to_owned(), function.to_owned());
        let (thread, source, waited_at) = (String::new(), String::new(), Vec::new());
        Cause { what, process, thread, tid: 0, waited_at, function, source, slow_s, typical_s: 0.0, in_slow: 0 }
    }

    #[test]
    fn a_reason_has_two_sides() {
        let [waited, ran, timer] = [Done::WaitedFor, Done::Ran, Done::Timer].map(|what| cause(what, "rebuild", 0.01));
        let found = |causes: &[Cause]| other_side(causes).map(|c| c.what);
        assert_eq!(found(&[waited.clone(), timer.clone(), ran.clone()]), Some(Done::Ran));
        assert_eq!(found(&[ran.clone(), waited.clone()]), Some(Done::WaitedFor));
        assert_eq!(found(&[ran.clone(), cause(Done::WaitedFor, "other", 0.01)]), None);
        assert_eq!(found(&[timer, ran]), None);
        assert_eq!(
            found(&[cause(Done::Ran, "", 0.02), cause(Done::WaitedFor, "", 0.01)]),
            None,
            "no function is no place"
        );
        assert_eq!(found(&[]), None);
    }
}
