//! What all parts of a profile share: its strings, its categories, its unit of time.

use holdup_analysis::lanes::Doing;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// Categories of frames: what is not known, what runs, then what a thread does without a CPU, by its code.
pub(super) const CATEGORIES: [(&str, &str); 3] = [("Other", "grey"), ("User", "yellow"), ("Kernel", "orange")];
pub(super) const USER: u32 = 1;
pub(super) const KERNEL: u32 = 2;

/// The category of what a thread does.
pub(super) fn category(doing: Doing) -> u32 {
    CATEGORIES.len() as u32 + u32::from(doing.code())
}

/// In which colour it is drawn.
pub(super) fn color(doing: Doing) -> &'static str {
    match doing {
        Doing::Nothing | Doing::Home | Doing::Child => "transparent",
        Doing::Runs | Doing::Spins => "yellow",
        Doing::Ready => "magenta",
        Doing::Lock => "red",
        Doing::Thread => "lightred",
        Doing::Disk => "purple",
        Doing::Outside => "blue",
        Doing::Sleeps => "lightblue",
        Doing::Lost | Doing::Mixed => "darkgrey",
    }
}

/// Times are milliseconds with a fraction.
pub(super) fn ms(ns: u64) -> f64 {
    Nanos(ns).seconds() * 1e3
}

/// The strings and source files of all threads, each once.
#[derive(Debug, Default)]
pub(super) struct Strings {
    pub all: Vec<String>,
    known: FxHashMap<String, u32>,
    /// Source files, by the numbers of their names.
    pub files: Vec<u32>,
    known_files: FxHashMap<u32, u32>,
}

impl Strings {
    /// The number of a text.
    pub fn of(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let id = self.all.len() as u32;
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), id);
        id
    }

    /// The number of a source file.
    pub fn source(&mut self, path: &str) -> u32 {
        let name = self.of(path);
        let files = &mut self.files;
        *self.known_files.entry(name).or_insert_with(|| {
            files.push(name);
            files.len() as u32 - 1
        })
    }
}
