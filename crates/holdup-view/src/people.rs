//! Threads by program and like names: the rows of the timeline.

use holdup_analysis::label;
use holdup_trace::{StringId, Table, ThreadIdx};
use rustc_hash::FxHashMap;

use crate::study::Study;
use crate::{Error, Result};

/// Threads of one program that are called alike, but for digits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// `worker-*`.
    pub(crate) label: String,
    pub(crate) threads: Vec<ThreadIdx>,
}

/// All processes of one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) id: StringId,
    pub(crate) names: Vec<Names>,
    pub(crate) threads: usize,
    pub(crate) processes: usize,
}

/// All threads but the idle task.
#[derive(Debug, Clone, Default)]
pub(crate) struct People {
    pub(crate) programs: Vec<Program>,
    /// Where in that list the program is.
    by_id: FxHashMap<StringId, usize>,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Row {
    /// A CPU.
    Cpu(u16),
    /// A program, by its place in the list.
    Program(usize),
    /// Threads of like names, by program and place there.
    Names(usize, usize),
    /// A thread.
    Thread(ThreadIdx),
}

impl People {
    pub(crate) fn new(study: &Study) -> Self {
        let mut people = People::default();
        let mut places: FxHashMap<(usize, String), usize> = FxHashMap::default();
        let mut processes: FxHashMap<usize, rustc_hash::FxHashSet<u32>> = FxHashMap::default();
        for (i, row) in study.trace.threads.rows().enumerate().skip(1) {
            let thread = ThreadIdx(i as u32);
            let p = *people.by_id.entry(row.process).or_insert_with(|| {
                people.programs.push(Program { id: row.process, ..Program::default() });
                people.programs.len() - 1
            });
            let program = &mut people.programs[p];
            let label = alike(label::thread_name(study.trace, thread));
            let n = *places.entry((p, label)).or_insert_with_key(|(_, label)| {
                program.names.push(Names { label: label.clone(), threads: Vec::new() });
                program.names.len() - 1
            });
            program.names[n].threads.push(thread);
            program.threads += 1;
            processes.entry(p).or_default().insert(row.pid);
        }
        processes.into_iter().for_each(|(p, pids)| people.programs[p].processes = pids.len());
        people
    }

    /// The row with this id.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn row(&self, id: &str, study: &Study) -> Result<Row> {
        self.find(id, study).ok_or_else(|| Error::Question(format!("the trace has no row {id}")))
    }

    fn find(&self, id: &str, study: &Study) -> Option<Row> {
        let (kind, number) = id.split_at_checked(1)?;
        let program = |n: &str| self.by_id.get(&StringId(n.parse().ok()?)).copied();
        match kind {
            "c" => number.parse().ok().filter(|&c| usize::from(c) < study.timeline.cpus).map(Row::Cpu),
            "t" => {
                let i: u32 = number.parse().ok()?;
                (i > 0 && (i as usize) < study.trace.threads.len()).then_some(Row::Thread(ThreadIdx(i)))
            }
            "p" => program(number).map(Row::Program),
            "n" => {
                let (p, n) = number.split_once('.')?;
                let (p, n) = (program(p)?, n.parse().ok()?);
                (n < self.programs[p].names.len()).then_some(Row::Names(p, n))
            }
            _ => None,
        }
    }

    /// The id of a row: the same for the same file.
    pub(crate) fn id(&self, row: Row) -> String {
        match row {
            Row::Cpu(cpu) => format!("c{cpu}"),
            Row::Program(p) => format!("p{}", self.programs[p].id.0),
            Row::Names(p, n) => format!("n{}.{n}", self.programs[p].id.0),
            Row::Thread(thread) => format!("t{}", thread.0),
        }
    }

    /// The threads of a row; none for a CPU.
    pub(crate) fn threads(&self, row: Row) -> Vec<ThreadIdx> {
        match row {
            Row::Cpu(_) => Vec::new(),
            Row::Program(p) => self.programs[p].names.iter().flat_map(|n| n.threads.iter().copied()).collect(),
            Row::Names(p, n) => self.programs[p].names[n].threads.clone(),
            Row::Thread(thread) => vec![thread],
        }
    }

    /// The groups in which a thread is: its program, and those of like names.
    pub(crate) fn groups(&self, thread: ThreadIdx, study: &Study) -> Option<(usize, usize)> {
        let row = study.trace.thread(thread)?;
        let p = *self.by_id.get(&row.process)?;
        let n = self.programs[p].names.iter().position(|names| names.threads.binary_search(&thread).is_ok())?;
        Some((p, n))
    }
}

/// A name with `*` for each number in it.
pub(crate) fn alike(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '0'..='9' if out.ends_with('*') => {}
            '0'..='9' => out.push('*'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::alike;

    #[test]
    fn numbers_do_not_count() {
        assert_eq!(alike("worker-12"), alike("worker-3"));
        assert_eq!(alike("kworker/0:1H"), "kworker/*:*H");
        assert_eq!(alike(""), "");
    }
}
