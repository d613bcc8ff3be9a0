//! Processes and threads, in all versions of their records.

use super::fields::Fields;
use super::record::Record;

/// A process, as a record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its program's file name.
    pub name: String,
}

impl Process {
    /// From a record of the process group; `None` if it is too short.
    pub fn parse(record: &Record) -> Option<Process> {
        let mut at = Fields::new(record.body, record.wide);
        if record.version >= 1 {
            // A page directory, or a key.
            at.skip_pointers(1)?;
        }
        let (pid, _parent) = (at.u32()?, at.u32()?);
        if record.version >= 1 {
            // Session and exit status.
            at.skip(8)?;
        }
        if record.version >= 3 {
            at.skip_pointers(1)?;
        }
        if record.version >= 4 {
            // Flags.
            at.skip(4)?;
        }
        at.skip_sid()?;
        let name = at.text();
        Some(Process { pid, name })
    }
}

/// A thread, as a record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The name that it was given, or nothing.
    pub name: String,
}

impl Thread {
    /// From a record that a thread starts, ends, or is there.
    pub fn parse(record: &Record) -> Option<Thread> {
        let mut at = Fields::new(record.body, record.wide);
        let (first, second) = (at.u32()?, at.u32()?);
        if record.version == 0 {
            return Some(Thread { pid: second, tid: first, name: String::new() });
        }
        // Stacks, affinity, start and TEB; service tag, priorities and flags.
        let name = match record.version {
            4.. if at.skip_pointers(7).and_then(|()| at.skip(8)).is_some() => at.wide_text(),
            _ => String::new(),
        };
        Some(Thread { pid: first, tid: second, name })
    }

    /// From a record that a thread gets a name.
    pub fn parse_name(record: &Record) -> Option<Thread> {
        let mut at = Fields::new(record.body, record.wide);
        let (pid, tid) = (at.u32()?, at.u32()?);
        Some(Thread { pid, tid, name: at.wide_text() })
    }
}
