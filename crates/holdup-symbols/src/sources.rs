//! Where names come from beside this machine's own files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::debuginfod::{self, Debuginfod};
use crate::fetch::{Fetch, Limits, default_cache};
use crate::symbol_path::{Place, SymbolPath};

/// Where to look for names of traces from elsewhere. Nothing by default.
#[derive(Debug, Clone)]
pub struct Sources {
    pub(crate) path: SymbolPath,
    pub(crate) notes: Vec<String>,
    pub(crate) fetch: Arc<Fetch>,
    pub(crate) cache: Option<PathBuf>,
    debuginfod: Vec<String>,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources::new(None, None, None)
    }
}

impl Sources {
    /// From what the user says: `option` is that of the command line, a symbol path; `path` is `_NT_SYMBOL_PATH`, and `urls`
    /// is `DEBUGINFOD_URLS`.
    ///
    /// Of symbol servers only those of the command line are asked: `_NT_SYMBOL_PATH` is often there for other programs.
    pub fn new(option: Option<&str>, path: Option<&str>, urls: Option<&str>) -> Sources {
        let mut sources = Sources {
            path: SymbolPath::parse(option.unwrap_or_default()),
            notes: Vec::new(),
            fetch: Arc::new(Fetch::new(Limits::default())),
            cache: default_cache(),
            debuginfod: debuginfod::servers(urls.unwrap_or_default()),
        };
        let path = SymbolPath::parse(path.unwrap_or_default());
        if option.is_none()
            && let Some(server) = path.servers().next()
        {
            let ask = "is not asked for symbols unless it is named on the command line: --symbols";
            sources.notes.push(format!("{server} (from _NT_SYMBOL_PATH) {ask} {server}"));
        }
        sources.path.0.extend(path.local().0);
        sources
    }

    /// Keeps in this folder what is fetched, instead of in `~/.cache/holdup/symbols`.
    #[must_use]
    pub fn cached_in(mut self, folder: &Path) -> Sources {
        self.cache = Some(folder.to_owned());
        self
    }

    /// The servers that may be asked.
    pub fn servers(&self) -> Vec<&str> {
        self.path.servers().chain(self.debuginfod.iter().map(String::as_str)).collect()
    }

    pub(crate) fn debuginfod(&self) -> Option<Debuginfod> {
        let cache = self.cache.clone().filter(|_| !self.debuginfod.is_empty())?;
        let (servers, fetch) = (self.debuginfod.clone(), self.fetch.clone());
        Some(Debuginfod { servers, cache, other_cache: debuginfod::client_cache(), fetch })
    }

    /// Where what a place of the symbol path gives is kept.
    pub(crate) fn cache_of<'a>(&'a self, place: &'a Place) -> Option<&'a Path> {
        match place {
            Place::Server(_, Some(folder)) => Some(folder),
            Place::Server(_, None) => self.cache.as_deref(),
            Place::Folder(_) => None,
        }
    }
}
