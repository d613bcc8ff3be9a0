//! Carries what is in a data set in a folder to another one: a queue on disk is a data set, too.
//!
//! A trace is carried whole: its recording, its rows, and last of all its row in the table of traces, which makes the others count.
//! Only then is it removed here, that row last. So whoever is killed leaves nothing half: what was carried twice is there once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use holdup_base::output::{Readers, Tree};
use holdup_export::dataset::schema::TRACES;
use holdup_export::dataset::{ABOUT, RECORDINGS};
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::runtime::{Builder, Runtime};

use crate::{Error, Place, Result};

/// What is longer goes in parts of this many bytes.
const PART: u64 = 8 << 20;
/// Parts on their way at once.
const AT_ONCE: usize = 2;
/// Between two tries: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// How often, and how far apart, a folder is tried from which somebody else carries.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(100);

/// What was carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shipped {
    /// Traces, whole.
    pub traces: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Traces without their row in the table of traces: somebody is still writing them, or was killed. They stay.
    pub incomplete: u64,
    /// How often the store had to be asked again.
    pub retries: u64,
}

/// Where to.
enum Target {
    Folder(Tree),
    Store(Place),
}

/// How to carry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// Whether what has arrived is removed here.
    pub remove: bool,
    /// For how long a store that does not answer is asked again.
    pub patience: Duration,
}

/// Carries all traces of `from` to `to`, a folder or an address. `None` if somebody else is carrying from there.
///
/// # Errors
/// A file cannot be read, or the store has not taken something within all patience; what has not arrived is still here.
pub fn ship(from: &Path, to: &str, manner: Manner) -> Result<Option<Shipped>> {
    let source = Tree::create(from)?;
    if !alone(&source)? {
        return Ok(None);
    }
    let target =
        if to.contains("://") { Target::Store(Place::find(to)?) } else { Target::Folder(Tree::create(Path::new(to))?) };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut shipping = Shipping { source, target, runtime, manner, done: Shipped::default(), carried: BTreeSet::new() };
    shipping.all()?;
    Ok(Some(shipping.done))
}

/// Whether nobody else carries from there, but for somebody who is about to end, and may not have seen what was added last.
fn alone(source: &Tree) -> Result<bool> {
    for _ in 0..TRIES {
        if source.lock()? {
            return Ok(true);
        }
        std::thread::sleep(BETWEEN);
    }
    Ok(source.lock()?)
}

struct Shipping {
    source: Tree,
    target: Target,
    runtime: Runtime,
    manner: Manner,
    done: Shipped,
    /// Traces that have arrived and stay here.
    carried: BTreeSet<String>,
}

impl Shipping {
    fn all(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut pause = PAUSES[0];
        loop {
            match self.round() {
                // What was added meanwhile is carried, too.
                Ok(0) => return Ok(()),
                Ok(_) => pause = PAUSES[0],
                Err(Error::Store(_)) if begun.elapsed() + pause < self.manner.patience => {
                    self.done.retries += 1;
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Carries what is there now. How many traces that were.
    fn round(&mut self) -> Result<u64> {
        let traces = self.traces()?;
        let (whole, incomplete): (Vec<_>, Vec<_>) =
            traces.into_iter().partition(|(_, keys)| keys.iter().any(|k| is_last(k)));
        self.done.incomplete = incomplete.len() as u64;
        let mut count = 0;
        for (trace, keys) in whole {
            if self.carried.contains(&trace) {
                continue;
            }
            if count == 0 {
                self.put(ABOUT.0)?;
            }
            self.carry(&trace, keys)?;
            count += 1;
        }
        Ok(count)
    }

    fn carry(&mut self, trace: &str, mut keys: Vec<String>) -> Result<()> {
        keys.sort_by_key(|key| (is_last(key), !key.starts_with(RECORDINGS)));
        for key in &keys {
            self.done.bytes += self.put(key)?;
        }
        self.done.traces += 1;
        match self.manner.remove {
            true => keys.iter().try_for_each(|key| self.source.remove(key))?,
            false => drop(self.carried.insert(trace.to_owned())),
        }
        Ok(())
    }

    /// The keys of each trace.
    fn traces(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let store = LocalFileSystem::new_with_prefix(self.source.path())?;
        let found: Vec<_> = self.runtime.block_on(store.list(None).try_collect())?;
        let mut traces: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in found {
            // A hidden file is one that is being written.
            let name =
                file.location.filename().filter(|name| !name.starts_with('.') && file.location.parts_count() > 1);
            if let Some((trace, _)) = name.and_then(|name| name.rsplit_once('.')) {
                traces.entry(trace.to_owned()).or_default().push(file.location.to_string());
            }
        }
        Ok(traces)
    }

    fn put(&self, key: &str) -> Result<u64> {
        let mut file = self.source.open(key)?;
        let length = file.metadata()?.len();
        let place = match &self.target {
            Target::Folder(tree) => return Ok(tree.put(key, Readers::Owner, file)?),
            Target::Store(place) => place,
        };
        let to = place.key(key);
        self.runtime.block_on(async {
            if length <= PART {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                place.store.put(&to, bytes.into()).await?;
                return Ok(length);
            }
            // Recordings never change: one of this length is this one.
            if place.store.head(&to).await.is_ok_and(|there| there.size == length) {
                return Ok(length);
            }
            let mut parts = WriteMultipart::new_with_chunk_size(place.store.put_multipart(&to).await?, PART as usize);
            loop {
                let mut part = Vec::new();
                if file.by_ref().take(PART).read_to_end(&mut part)? == 0 {
                    break;
                }
                parts.wait_for_capacity(AT_ONCE).await?;
                parts.put(Bytes::from(part));
            }
            parts.finish().await?;
            Ok(length)
        })
    }
}

/// Whether the file is the one that makes the others of its trace count.
fn is_last(key: &str) -> bool {
    key.strip_prefix(TRACES.name).is_some_and(|rest| rest.starts_with('/'))
}
