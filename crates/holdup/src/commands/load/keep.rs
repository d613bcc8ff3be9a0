//! Reports on disk. One is written again and again while its run goes on, so that a generator that is killed, or a machine that
//! goes down, leaves what was measured until a moment before.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use holdup_load::harness::{Live, Plan};
use holdup_load::report::Report;

use crate::text::screen::say;

/// The least time between two reports of a run that goes on.
const EVERY: Duration = Duration::from_secs(2);

/// Of the generator's machine, all these reports may take one part in so many.
const SHARE: u32 = 100;

/// Writes reports of a run that goes on.
pub struct Keeper<'a> {
    path: Option<&'a Path>,
    tags: &'a [String],
    next: Instant,
}

impl<'a> Keeper<'a> {
    /// Without a path, or with one that is no plain file, nothing is kept.
    pub fn new(path: Option<&'a Path>, tags: &'a [String]) -> Keeper<'a> {
        Keeper { path: path.filter(|path| is_plain(path)), tags, next: Instant::now() + EVERY }
    }

    /// Writes what was measured so far, if it is time to.
    pub fn update(&mut self, plan: &Plan, live: &Live) {
        let began = Instant::now();
        let Some(path) = self.path.filter(|_| began >= self.next) else { return };
        let outcome = live.outcome();
        if outcome.elapsed.is_zero() {
            return;
        }
        if let Err(error) = write_report(path, &Report::new(plan, &outcome, self.tags.to_vec())) {
            // The report at the end may fit again; a run is not ended for it.
            say!("{error:#}: nothing is kept of this run until its end");
            self.path = None;
        }
        self.next = Instant::now() + EVERY.max(began.elapsed() * SHARE);
    }
}

/// Writes a report. In place of a plain file it appears only when it is complete.
pub fn write_report(path: &Path, report: &Report) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(report)? + "\n";
    let written = if is_plain(path) { replace(path, &text) } else { fs::write(path, text) };
    written.with_context(|| format!("can't write {}", path.display()))
}

/// A file, or nothing yet; no link, device or pipe.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |about| about.is_file())
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As a new file: the user's mask takes from it what it should.
    let mode = fs::metadata(path).map_or(0o666, |about| about.permissions().mode());
    let mut file = tempfile::Builder::new().permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
