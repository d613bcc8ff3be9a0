//! Reports on disk. One is written again and again while its run goes on, so that a generator that is killed, or a machine that
//! goes down, leaves what was measured until a moment before.

use std::path::Path;
use std::time::{Duration, Instant};

use holdup_base::output::{Output, Readers};
use holdup_load::harness::{Live, Plan};
use holdup_load::report::Report;

use crate::text;
use crate::text::screen::say;

/// The least time between two reports of a run that goes on.
const EVERY: Duration = Duration::from_secs(2);

/// Of the generator's machine, all these reports may take one part in so many.
const SHARE: u32 = 100;

/// Writes reports of a run that goes on.
pub struct Checkpoints<'a> {
    path: Option<&'a Path>,
    tags: &'a [String],
    next: Instant,
}

impl<'a> Checkpoints<'a> {
    /// Without a place, or with one where what was written stays, nothing is kept.
    pub fn new(place: Option<&'a Output>, tags: &'a [String]) -> Checkpoints<'a> {
        let path = place.filter(|place| !place.is_stream()).map(Output::path);
        Checkpoints { path, tags, next: Instant::now() + EVERY }
    }

    /// Writes what was measured so far, if it is time to.
    pub fn update(&mut self, plan: &Plan, live: &Live) {
        let began = Instant::now();
        let Some(path) = self.path.filter(|_| began >= self.next) else { return };
        let outcome = live.outcome();
        if outcome.elapsed.is_zero() {
            return;
        }
        let report = Report::new(plan, &outcome, self.tags.to_vec());
        if let Err(error) = place(path).map_err(Into::into).and_then(|file| text::write_json(file, &report)) {
            // The report at the end may fit again; a run is not ended for it.
            say!("{error:#}: nothing is kept of this run until its end");
            self.path = None;
        }
        self.next = Instant::now() + EVERY.max(began.elapsed() * SHARE);
    }
}

/// The place of a report. It appears there only when it is complete.
///
/// # Errors
/// It cannot be written; the message says why.
pub fn place(path: &Path) -> std::io::Result<Output> {
    Output::create(path, Readers::Umask)
}
