//! What each kind of event is used for, and how many there were.

use rustc_hash::FxHashMap;

use crate::bytes::u64_at;
use crate::linux::format::{Field, Format};
use crate::linux::lifecycle::Lifecycle;
use crate::linux::tracepoint::Tracepoint;
use crate::linux::tracing::Formats;

/// What an event is used for.
#[derive(Debug)]
pub enum Use {
    /// Nothing but to be counted.
    Counted,
    /// What the machine did.
    Point(Tracepoint),
    /// What became of a thread.
    Life(Lifecycle),
    /// A stack of the kernel, which belongs to the event before it.
    KernelStack(Callers),
    /// A stack of the process.
    UserStack(Callers),
}

/// Where a stack's addresses are.
#[derive(Debug, Clone, Copy)]
pub struct Callers {
    first: usize,
    word: usize,
}

impl Callers {
    fn of(format: &Format, long: u8) -> Option<Self> {
        Some(Callers { first: format.field("caller")?.offset(), word: long.into() })
    }

    /// The addresses, the leaf first.
    pub fn read(self, raw: &[u8], to: &mut Vec<u64>) {
        let words = raw.get(self.first..).unwrap_or(&[]).chunks_exact(self.word);
        let value = |w: &[u8]| u64_at(w, 0).unwrap_or_else(|| crate::bytes::u32_at(w, 0).map_or(0, u64::from));
        to.extend(words.map(value).take_while(|&a| a != 0 && a != u64::MAX && a != u64::from(u32::MAX)));
    }
}

/// One kind of event.
#[derive(Debug)]
pub struct Kind {
    /// Its name, as `trace-cmd report` prints it.
    pub name: String,
    /// What it is used for.
    pub used: Use,
    /// How many there were.
    pub count: u64,
    /// The thread that ran.
    tid: Option<Field>,
}

impl Kind {
    /// The thread that ran where `raw` was written.
    pub fn tid(&self, raw: &[u8]) -> u32 {
        self.tid.map_or(0, |tid| tid.low(raw))
    }
}

/// All kinds of events, by number.
#[derive(Debug, Default)]
pub struct Kinds {
    by_id: FxHashMap<u64, Kind>,
    /// Events whose number no format has.
    pub unknown: u64,
}

impl Kinds {
    /// From a file's formats.
    pub fn new(formats: &Formats, long: u8) -> Self {
        let kind = |format: &Format| {
            let used = match (format.system.as_str(), format.name.as_str(), Callers::of(format, long)) {
                ("ftrace", "kernel_stack", Some(callers)) => Use::KernelStack(callers),
                ("ftrace", "user_stack", Some(callers)) => Use::UserStack(callers),
                _ => Lifecycle::of(format)
                    .map(Use::Life)
                    .or_else(|| Tracepoint::of(format).map(Use::Point))
                    .unwrap_or(Use::Counted),
            };
            Kind { name: format.name.clone(), used, count: 0, tid: format.field("common_pid") }
        };
        Kinds { by_id: formats.iter().map(|(&id, format)| (id, kind(format))).collect(), unknown: 0 }
    }

    /// The kind of the event `raw`.
    pub fn of(&self, raw: &[u8]) -> Option<&Kind> {
        self.by_id.get(&u64::from(crate::bytes::u16_at(raw, 0)?))
    }

    /// The kind of the event `raw`, with one more of it.
    pub fn count(&mut self, raw: &[u8]) -> Option<&Kind> {
        let id = crate::bytes::u16_at(raw, 0).map_or(u64::MAX, u64::from);
        let Some(kind) = self.by_id.get_mut(&id) else {
            self.unknown += 1;
            return None;
        };
        kind.count += 1;
        Some(kind)
    }

    /// Whether an event of which `is` holds occurred.
    pub fn any(&self, is: impl Fn(&Tracepoint) -> bool) -> bool {
        self.occurred().any(|k| matches!(&k.used, Use::Point(point) if is(point)))
    }

    /// The kinds that occurred.
    pub fn occurred(&self) -> impl Iterator<Item = &Kind> {
        self.by_id.values().filter(|k| k.count > 0)
    }
}
