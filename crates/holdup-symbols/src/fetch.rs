//! Files from servers that the user named, kept in a folder so that each is fetched once.
//!
//! A server is not believed: what it gives is bounded in size and time, for one file and for all, and becomes part of the
//! folder only when its id is the one asked for.

mod http;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(feature = "https")]
mod tls;
mod url;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdup_base::output::{self, Output, Readers};
use rustc_hash::FxHashSet;

use http::{Answer, Body};
use url::{Url, escaped};

/// Largest file that is fetched, and all of them, in bytes.
const FILE: u64 = 2 << 30;
const ALL: u64 = 8 << 30;
/// Time for one file, and for all.
const FILE_TIME: Duration = Duration::from_secs(300);
const ALL_TIME: Duration = Duration::from_secs(900);
/// How long it is believed that a server does not have a file.
const MISSING: Duration = Duration::from_secs(600);

/// What fetching may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub file: u64,
    pub all: u64,
    pub file_time: Duration,
    pub all_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file: FILE, all: ALL, file_time: FILE_TIME, all_time: ALL_TIME }
    }
}

/// Fetches files, and keeps them.
#[derive(Debug)]
pub(crate) struct Fetch {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    time: Duration,
    /// Servers that did not answer: asked once.
    dead: FxHashSet<String>,
    /// Files and bytes by server.
    got: BTreeMap<String, (u64, u64)>,
    problems: Vec<String>,
}

impl Fetch {
    pub fn new(limits: Limits) -> Fetch {
        Fetch { limits, state: Mutex::default() }
    }

    /// The file that a server has under a path of these parts, kept as `kept`; `None` if it has none, or nothing usable.
    /// `accept` looks at the file before it gets its name, and says in a sentence what is wrong with it.
    pub fn get(
        &self,
        server: &str,
        parts: &[&str],
        kept: &Path,
        accept: &mut dyn FnMut(&Path) -> Result<(), String>,
    ) -> Option<PathBuf> {
        if kept.is_file() {
            return Some(kept.to_owned());
        }
        let missing = marker(kept, server);
        if is_fresh(&missing) || self.state().dead.contains(server) {
            return None;
        }
        let address = format!(
            "{}/{}",
            server.trim_end_matches('/'),
            parts.iter().map(|p| escaped(p)).collect::<Vec<_>>().join("/")
        );
        let begin = Instant::now();
        let fetched = self.fetch(&address, kept, accept);
        let mut state = self.state();
        state.time += begin.elapsed();
        match fetched {
            Ok(Some(bytes)) => {
                let got = state.got.entry(server.to_owned()).or_default();
                *got = (got.0 + 1, got.1 + bytes);
                Some(kept.to_owned())
            }
            Ok(None) => {
                // An empty file says so for a while. Without it the server is asked again, no more.
                let _ = prepare(kept)
                    .and_then(|()| output::write(&missing, Readers::Owner, b"").map_err(|e| e.to_string()));
                None
            }
            Err(Problem::Server(e)) => {
                state.dead.insert(server.to_owned());
                state.problems.push(format!("{server} is not asked for names any more: {e}"));
                None
            }
            Err(Problem::File(e)) => {
                state.problems.push(format!("no names from {address}: {e}"));
                None
            }
        }
    }

    /// What was fetched and what was not, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let state = self.state();
        let got = state.got.iter().map(|(server, (files, bytes))| {
            let files = if *files == 1 { "one file".to_owned() } else { format!("{files} files") };
            format!("{server} gave {files} with names, {} KiB", bytes.div_ceil(1024))
        });
        got.chain(state.problems.iter().cloned()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch(
        &self,
        address: &str,
        kept: &Path,
        accept: &mut dyn FnMut(&Path) -> Result<(), String>,
    ) -> Result<Option<u64>, Problem> {
        let url = Url::parse(address).map_err(Problem::Server)?;
        let (bytes, time) = {
            let state = self.state();
            (state.bytes, state.time)
        };
        let left = self.limits.all_time.saturating_sub(time);
        if left.is_zero() {
            return Err(Problem::Server(format!("fetching took {} s", self.limits.all_time.as_secs())));
        }
        let deadline = Instant::now() + left.min(self.limits.file_time);
        let body = match http::get(&url, deadline).map_err(Problem::Server)? {
            Answer::Missing => return Ok(None),
            Answer::Refused(status) => return Err(Problem::File(format!("the server answers with status {status}"))),
            Answer::Body(body) => body,
        };
        prepare(kept).map_err(Problem::File)?;
        let output = Output::create(kept, Readers::Owner).map_err(|e| Problem::File(e.to_string()))?;
        let limit = self.limits.file.min(self.limits.all.saturating_sub(bytes));
        let written = self.write(body, &output, limit)?;
        // By the name of the open file: it has no other yet.
        let there = PathBuf::from(format!("/proc/self/fd/{}", output.file().as_raw_fd()));
        accept(&there).map_err(|e| Problem::File(format!("what the server gave {e}")))?;
        output.commit().map_err(|e| Problem::File(e.to_string()))?;
        Ok(Some(written))
    }

    /// Copies a body into a file; gives the number of bytes.
    fn write(&self, mut body: Body, output: &Output, limit: u64) -> Result<u64, Problem> {
        let too_large = || Problem::File(format!("it has more than the {limit} bytes that are fetched"));
        if body.length.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let (mut written, mut part) = (0u64, vec![0; 1 << 16]);
        loop {
            let read = body.read(&mut part).map_err(Problem::File)?;
            let bytes = part.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(written);
            }
            written += read as u64;
            self.state().bytes += read as u64;
            if written > limit {
                return Err(too_large());
            }
            output.file().write_all(bytes).map_err(|e| Problem::File(e.to_string()))?;
        }
    }
}

/// Why there is no file, in a sentence.
enum Problem {
    /// The server will not have others either.
    Server(String),
    /// It is about this one.
    File(String),
}

/// The empty file that says that a server does not have another.
fn marker(kept: &Path, server: &str) -> PathBuf {
    let host = server.split_once("://").map_or(server, |(_, host)| host);
    let host: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).take(100).collect();
    let name = kept.file_name().unwrap_or_default().to_string_lossy();
    kept.with_file_name(format!("{name}.not-on-{host}"))
}

fn is_fresh(marker: &Path) -> bool {
    let modified = std::fs::symlink_metadata(marker).and_then(|meta| meta.modified());
    modified.ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age < MISSING)
}

fn prepare(kept: &Path) -> Result<(), String> {
    kept.parent().map_or(Ok(()), |folder| output::create_folder(folder).map_err(|e| e.to_string()))
}

/// Where fetched files are kept: `$XDG_CACHE_HOME/holdup/symbols`, else `~/.cache/holdup/symbols`.
pub(crate) fn default_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("holdup/symbols"))
}
