//! Calls that mark themselves, so that a recorder of the machine knows them.

use std::fs::File;
use std::io::{self, Write};

/// Where calls are marked.
#[derive(Debug)]
pub struct Marks {
    file: File,
    /// By function of the mix: what each mark begins with.
    names: Vec<String>,
    process: u32,
}

impl Marks {
    /// For the functions `names`, in the kernel's `trace_marker`.
    ///
    /// # Errors
    /// If that may not be written.
    pub fn new(names: &[String]) -> io::Result<Marks> {
        let names = names.iter().map(|name| format!("call:{name}")).collect();
        Ok(Marks { file: holdup_base::output::trace_marker()?, names, process: std::process::id() })
    }

    /// Cycle `number` begins to call `function`.
    pub(super) fn begin(&self, function: usize, number: u64) {
        self.mark('S', function, number);
    }

    /// The call has ended.
    pub(super) fn end(&self, function: usize, number: u64) {
        self.mark('F', function, number);
    }

    /// A line for each, by one write: whether the kernel keeps it in its own buffer does not matter.
    fn mark(&self, kind: char, function: usize, number: u64) {
        if let Some(name) = self.names.get(function) {
            let line = format!("{kind}|{}|{name}|{number}", self.process);
            let _ = (&self.file).write(line.as_bytes());
        }
    }
}
