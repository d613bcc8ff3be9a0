//! What a file says about its machine, its events and where they are.

use super::functions::Functions;
use crate::linux::format::Format;
use crate::linux::tracing::Formats;
use crate::unpack::Packing;

/// Where the data of one CPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuData {
    /// The CPU.
    pub cpu: u32,
    /// Its first byte in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
}

/// One instance of the kernel's tracer.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Its name; empty for the machine's main one.
    pub name: String,
    /// Its clock.
    pub clock: String,
    /// The CPUs' data.
    pub cpus: Vec<CpuData>,
    /// Whether that is packed.
    pub packed: bool,
    /// Bytes of a page.
    pub page_size: u32,
}

/// How a page of a ring buffer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Where the number of bytes in use is.
    pub commit: usize,
    /// Of how many bytes that number is.
    pub commit_size: usize,
    /// Where the events begin.
    pub data: usize,
}

impl PageLayout {
    /// The layout of machines with words of `long` bytes, where the file does not say it.
    pub fn usual(long: u8) -> Self {
        PageLayout { commit: 8, commit_size: long.into(), data: 8 + usize::from(long) }
    }

    /// From the text of `events/header_page`.
    pub fn parse(text: &str, long: u8) -> Self {
        let parsed = || {
            let format = Format::parse("", &format!("name: header_page\n{text}"))?;
            let (commit, data) = (format.field("commit")?, format.field("data")?);
            Some(PageLayout { commit: commit.offset(), commit_size: commit.size(), data: data.offset() })
        };
        let plausible =
            |p: &PageLayout| matches!(p.commit_size, 4 | 8) && p.commit >= 8 && p.data <= 64 && p.commit < p.data;
        parsed().filter(plausible).unwrap_or_else(|| PageLayout::usual(long))
    }
}

/// What stands before the events.
#[derive(Debug)]
pub struct Description {
    /// How pages begin.
    pub page: PageLayout,
    /// Bytes of a word.
    pub long: u8,
    /// The events by number.
    pub formats: Formats,
    /// Names of threads when the recording ended: tid and name.
    pub names: Vec<(u32, String)>,
    /// The kernel's functions.
    pub functions: Functions,
    /// Where the events are.
    pub buffers: Vec<Buffer>,
    /// What the machine is called, and which kernel it runs (`uname`).
    pub uname: String,
    /// How many CPUs it has; 0 if that is not said.
    pub cpus: u32,
    /// How cycles of the processor become nanoseconds: multiplied, then shifted.
    pub cycles: Option<(u32, u32)>,
    /// How sections and data are packed.
    pub packing: Option<Packing>,
    /// Events that the kernel could not keep, by its own statistics.
    pub overrun: u64,
}

impl Description {
    /// Nothing is known but the size of words.
    pub fn new(long: u8) -> Self {
        Description {
            page: PageLayout::usual(long),
            long,
            formats: Formats::default(),
            names: Vec::new(),
            functions: Functions::default(),
            buffers: Vec::new(),
            uname: String::new(),
            cpus: 0,
            overrun: 0,
            cycles: None,
            packing: None,
        }
    }

    /// Takes in a format's text.
    pub fn add_format(&mut self, system: &str, text: &[u8]) {
        if let Some(format) = Format::parse(system, &String::from_utf8_lossy(text)) {
            self.formats.insert(format.id, format);
        }
    }

    /// Takes in lines of tid and name.
    pub fn add_names(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let lines = text.lines().filter_map(|line| line.trim_matches('\0').trim_start().split_once(' '));
        self.names.extend(lines.filter_map(|(tid, name)| Some((tid.parse().ok()?, name.to_owned()))));
    }
}
