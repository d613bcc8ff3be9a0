//! The names that one file gives, each demangled once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::demangle::{MANGLED_LIMIT, clipped, demangle, floor, plain};
use crate::meter::{Cut, Meter};

/// Demangled names of a file.
#[derive(Debug)]
pub(crate) struct Names {
    meter: Arc<Meter>,
    known: Mutex<FxHashMap<String, String>>,
}

impl Names {
    pub fn new(meter: &Arc<Meter>) -> Names {
        Names { meter: meter.clone(), known: Mutex::default() }
    }

    /// The readable form of a symbol.
    pub fn name(&self, raw: &str) -> String {
        // What is longer is not demangled but cut, and all that is cut alike is one.
        let raw = &raw[..floor(raw, MANGLED_LIMIT + 1)];
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(raw) {
            return name.clone();
        }
        // The time is asked for before, and taken after: many names that are just cheap enough end here, too.
        let left = self.meter.tick();
        let name = left.then(|| self.meter.timed(Duration::ZERO, || demangle(raw))).flatten();
        let name = name.unwrap_or_else(|| plain(raw, false));
        self.meter.tick();
        if !name.whole {
            self.meter.cut(Cut::Name);
        }
        if self.meter.hold((raw.len() + name.text.len() + 128) as u64) {
            known.insert(raw.to_owned(), name.text.clone());
        }
        name.text
    }

    /// The path of a source file.
    pub fn path(&self, path: &str) -> String {
        clipped(path).into_owned()
    }
}
