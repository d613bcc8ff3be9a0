//! The traces that are open.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use holdup_trace::Trace;

use crate::Workplace;
use crate::folder::Folder;

/// Traces that stay open, so that the next question about one does not read it again.
const OPEN: usize = 3;

/// What tells one content of a file from another.
type Stamp = (PathBuf, u64, Option<SystemTime>);

pub(crate) struct Desk {
    pub workplace: Box<dyn Workplace>,
    pub folder: Folder,
    pub may_record: bool,
    /// The one that was asked for last is at the end.
    open: Mutex<Vec<(Stamp, Arc<Trace>)>>,
}

impl Desk {
    pub fn new(workplace: Box<dyn Workplace>, folder: Folder, may_record: bool) -> Desk {
        Desk { workplace, folder, may_record, open: Mutex::default() }
    }

    /// The trace called `name`. One is read at a time.
    pub fn trace(&self, name: &str) -> Result<Arc<Trace>, String> {
        let path = self.folder.find(name)?;
        let there = path.metadata().map_err(|e| format!("{name:?}: {e}"))?;
        let stamp = (path, there.len(), there.modified().ok());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let trace = match open.iter().position(|(known, _)| *known == stamp) {
            Some(at) => open.remove(at).1,
            None => {
                open.truncate(OPEN);
                if open.len() == OPEN {
                    open.remove(0);
                }
                Arc::new(self.workplace.open(&stamp.0).map_err(|e| e.to_string())?)
            }
        };
        open.push((stamp, Arc::clone(&trace)));
        Ok(trace)
    }
}
