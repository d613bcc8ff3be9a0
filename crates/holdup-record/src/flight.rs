//! When a recording ends, or keeps what it has, because of a condition.

use std::fs::File;
use std::os::fd::AsRawFd;

use holdup_trace::Result;
use rustix::io::FdFlags;

use crate::options::{Options, Status};
use crate::trigger::{Fired, Triggers};

/// What a flight recorder keeps when a condition has held.
#[derive(Debug)]
pub struct Kept {
    /// The segments, in their order, each open at its begin. They have names no longer than the recorder needs them.
    pub parts: Vec<File>,
    /// Which condition it was, and what was seen.
    pub why: String,
}

impl Kept {
    /// The numbers of the files: from now on a program that this process starts has them open, too. For a process that has
    /// one thread, and drops them as soon as the other one is there.
    ///
    /// # Errors
    /// None that is known.
    pub fn pass_on(&self) -> std::io::Result<Vec<i32>> {
        let pass_on = |part: &File| {
            rustix::io::fcntl_setfd(part, FdFlags::empty())?;
            Ok(part.as_raw_fd())
        };
        self.parts.iter().map(pass_on).collect()
    }
}

/// Who is told how a recording goes on, and gets what it keeps.
pub trait Observer {
    /// About ten times a second.
    fn status(&mut self, status: &Status);

    /// Whether what was kept last is still being worked on: then nothing else is kept.
    fn is_busy(&mut self) -> bool {
        false
    }

    /// Takes what is kept. Must not take long: nobody empties the buffers meanwhile.
    ///
    /// # Errors
    /// Anything that goes wrong is a note of the recording, which goes on.
    fn keep(&mut self, kept: Kept) -> Result<()> {
        drop(kept);
        Ok(())
    }
}

/// Who wants to know nothing but how it goes.
pub(crate) struct OnlyStatus<'a>(pub &'a mut dyn FnMut(&Status));

impl Observer for OnlyStatus<'_> {
    fn status(&mut self, status: &Status) {
        (self.0)(status);
    }
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Go,
    /// The recording ends, for this reason.
    End(String),
    /// What there is is kept, for this reason.
    Keep(String),
}

/// What a trace says of the condition that made it.
pub(crate) fn kept_because(why: &str) -> String {
    format!("kept because of the condition {why}")
}

/// The state between conditions and what comes of them.
#[derive(Debug)]
pub(crate) struct Flight {
    triggers: Option<Triggers>,
    after: u64,
    /// How often what there is is kept (0: without end), and how long not again; `None` if the first condition ends it all.
    keep: Option<(u64, u64)>,
    /// When to do what the condition asks for.
    pending: Option<(u64, Fired)>,
    kept: u64,
    quiet_until: u64,
    /// Conditions that held while nothing could be kept.
    missed: u64,
}

/// Why, when somebody asks for it.
const ASKED: &str = "asked for by SIGUSR1";

impl Flight {
    /// Of a recording that begins at `t`.
    ///
    /// # Errors
    /// As [`Triggers::new`].
    pub(crate) fn new(options: &Options, focus: &[u32], cpus: usize, t: u64) -> Result<Flight> {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let is_watching = !options.until.is_empty();
        let triggers = is_watching.then(|| Triggers::new(&options.until, focus, cpus, t)).transpose()?;
        let keep = options.keep.map(|keep| (keep.count, nanos(keep.pause)));
        let after = nanos(options.after);
        Ok(Flight { triggers, after, keep, pending: None, kept: 0, quiet_until: 0, missed: 0 })
    }

    pub(crate) fn triggers(&mut self) -> Option<&mut Triggers> {
        self.triggers.as_mut()
    }

    /// Whether SIGUSR1 asks for what there is, and not for the end.
    pub(crate) fn keeps(&self) -> bool {
        self.keep.is_some()
    }

    /// Whether all was kept that was asked for.
    pub(crate) fn is_done(&self) -> bool {
        self.keep.is_some_and(|(count, _)| count > 0 && self.kept >= count)
    }

    /// Somebody asks for what there is.
    pub(crate) fn ask(&mut self, t: u64, is_busy: bool) {
        self.quiet_until = 0;
        self.fire(Fired { t, why: ASKED.into() }, t, is_busy);
    }

    /// What to do at `t`, the begin of the round that just ended. `is_busy` is asked only if a condition holds.
    pub(crate) fn step(&mut self, t: u64, is_busy: impl FnOnce() -> bool) -> Step {
        if let Some(fired) = self.triggers.as_mut().and_then(|triggers| triggers.check(t)) {
            self.fire(fired, t, self.keep.is_some() && is_busy());
        }
        let Some((_, fired)) = self.pending.take_if(|(due, _)| t >= *due) else { return Step::Go };
        let why = format!("{}, {:.3} s before the end", fired.why, t.saturating_sub(fired.t) as f64 / 1e9);
        match self.keep {
            None => Step::End(why),
            Some((_, pause)) => {
                self.kept += 1;
                self.quiet_until = t.saturating_add(pause);
                Step::Keep(why)
            }
        }
    }

    fn fire(&mut self, fired: Fired, t: u64, is_busy: bool) {
        match () {
            // It is in the same trace.
            () if self.pending.is_some() => {}
            () if is_busy || t < self.quiet_until => self.missed += 1,
            () => self.pending = Some((t.saturating_add(self.after), fired)),
        }
    }

    /// What the user should know at the end.
    pub(crate) fn notes(&self) -> Option<String> {
        let missed = self.missed;
        (missed > 0).then(|| {
            format!("{missed} more times a condition held, during the pause or while a trace was being written")
        })
    }

    /// How often what there was was kept.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::Keep;

    const S: u64 = 1_000_000_000;

    fn flight(keep: Option<Keep>) -> Flight {
        let options = Options { keep, after: Duration::from_secs(1), ..Options::default() };
        Flight::new(&options, &[], 2, 0).unwrap()
    }

    fn fire(flight: &mut Flight, t: u64, is_busy: bool) {
        flight.fire(Fired { t, why: "it".into() }, t, is_busy);
    }

    #[test]
    fn the_first_condition_ends_it_where_nothing_is_kept() {
        let mut flight = flight(None);
        fire(&mut flight, 5 * S, false);
        assert_eq!(flight.step(5 * S + 1, || false), Step::Go);
        assert_eq!(flight.step(6 * S, || false), Step::End("it, 1.000 s before the end".into()));
        assert!(!flight.keeps() && !flight.is_done());
    }

    #[test]
    fn it_is_kept_so_often_and_not_too_soon() {
        let mut flight = flight(Some(Keep { count: 2, pause: Duration::from_secs(10) }));
        fire(&mut flight, 5 * S, false);
        fire(&mut flight, 5 * S + 1, false);
        assert!(matches!(flight.step(6 * S, || false), Step::Keep(_)));
        assert_eq!(flight.step(7 * S, || false), Step::Go);
        fire(&mut flight, 15 * S, false);
        fire(&mut flight, 17 * S, true);
        assert_eq!((flight.pending.is_some(), flight.missed, flight.is_done()), (false, 2, false));
        assert!(flight.notes().unwrap().starts_with("2 more times"));
        flight.ask(18 * S, false);
        assert!(matches!(flight.step(19 * S, || false), Step::Keep(why) if why.contains("SIGUSR1")));
        assert!(flight.is_done());
    }
}
