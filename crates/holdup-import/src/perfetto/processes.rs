//! Which process each thread belongs to. A trace tells that in packets of its own, often long after ftrace has told what the
//! thread did: so what was told of it meanwhile is put right before it is let go.

use holdup_trace::{Event, NameEvent, StringId};
use rustc_hash::FxHashMap;

use super::wire::{Fields, Value, field};
use crate::bytes::text;
use crate::linux::kernel::Kernel;

/// Linux gives no larger number: writers of tracks make up larger ones for what is no process.
const MAX_PID: u32 = 1 << 22;
/// As much of a name as the kernel keeps.
const COMM: usize = 15;

/// What a trace says of a thread.
#[derive(Debug, Clone, Copy)]
struct Known {
    pid: u32,
    name: StringId,
}

/// Threads that packets told of, by tid.
#[derive(Debug, Default)]
pub struct Processes {
    known: FxHashMap<u32, Known>,
}

impl Processes {
    /// The process of `tid`, where the trace has said it.
    pub fn of(&self, tid: u32) -> Option<u32> {
        self.known.get(&tid).map(|known| known.pid)
    }

    /// `tid` belongs to `pid`; `name` may be empty. `first` if it is what there was when the recording began.
    pub fn add(&mut self, (pid, tid): (u32, u32), name: &str, first: bool, kernel: &mut Kernel) {
        if tid == 0 || tid >= MAX_PID {
            return;
        }
        let pid = if pid == 0 || pid >= MAX_PID { tid } else { pid };
        let name = kernel.sink.builder.string(name);
        let known = self.known.entry(tid).or_insert(Known { pid, name });
        known.pid = pid;
        if name != StringId::default() {
            known.name = name;
            if first {
                kernel.sink.maybe_timed(0, NameEvent { pid, tid, name });
            }
        }
    }

    /// A `ProcessTree`.
    pub fn tree(&mut self, message: &[u8], first: bool, kernel: &mut Kernel) {
        for (number, value) in Fields::new(message) {
            let entry = value.bytes();
            let low = |n| field(entry, n).map_or(0, Value::low);
            let string = |n| field(entry, n).map_or(&[][..], Value::bytes);
            match number {
                1 => self.add((low(1), low(1)), &name_of(string(3)), first, kernel),
                2 => self.add((low(3), low(1)), &text(string(2)), first, kernel),
                _ => {}
            }
        }
    }

    /// A `ProcessStats`: of each process, which threads it has.
    pub fn stats(&mut self, message: &[u8], kernel: &mut Kernel) {
        for (_, process) in Fields::new(message).filter(|&(n, _)| n == 1) {
            let pid = field(process.bytes(), 1).map_or(0, Value::low);
            for (_, thread) in Fields::new(process.bytes()).filter(|&(n, _)| n == 11) {
                let tid = field(thread.bytes(), 1).map_or(0, Value::low);
                self.add((pid, tid), "", false, kernel);
            }
        }
    }

    /// A `TrackDescriptor` of a process or thread.
    pub fn track(&mut self, message: &[u8], kernel: &mut Kernel) {
        for (number, value) in Fields::new(message) {
            let entry = value.bytes();
            let low = |n| field(entry, n).map_or(0, Value::low);
            let string = |n| text(field(entry, n).map_or(&[][..], Value::bytes));
            match number {
                3 => self.add((low(1), low(1)), &string(6), true, kernel),
                4 => self.add((low(1), low(2)), &string(5), true, kernel),
                _ => {}
            }
        }
    }

    /// Puts right what is held.
    pub fn finish_round(&self, kernel: &mut Kernel) {
        if self.known.is_empty() {
            return;
        }
        let builder = &mut *kernel.sink.builder;
        let mut longer = Vec::new();
        for (_, event) in builder.held_mut() {
            match event {
                Event::Name(e) => {
                    let Some(&Known { pid, name }) = self.known.get(&e.tid) else { continue };
                    e.pid = pid;
                    if name != StringId::default() && name != e.name {
                        longer.push((e.name, name));
                    }
                }
                Event::Fork(e) => {
                    e.pid = self.of(e.tid).unwrap_or(e.pid);
                    e.parent_pid = self.of(e.parent).unwrap_or(e.parent_pid);
                }
                _ => {}
            }
        }
        longer.sort_unstable();
        longer.dedup();
        longer.retain(|&(short, long)| is_end_of(builder.text(short), builder.text(long)));
        for (_, event) in builder.held_mut() {
            if let Event::Name(e) = event
                && let Some(known) = self.known.get(&e.tid)
                && longer.binary_search(&(e.name, known.name)).is_ok()
            {
                e.name = known.name;
            }
        }
    }
}

/// Android gives the kernel the last characters of a package's name, which say less than all of them.
fn is_end_of(short: &str, long: &str) -> bool {
    short.len() == COMM && long.len() > COMM && long.ends_with(short)
}

/// What a process is called by the first word of its command line: programs by their file.
fn name_of(command: &[u8]) -> String {
    let command = text(command);
    match command.rsplit_once('/') {
        Some((_, file)) if command.starts_with('/') && !file.is_empty() => file.to_owned(),
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processes() {
        assert_eq!(
            [&b"/system/bin/init"[..], b"kworker/0:1", b"com.android.phone", b"/"].map(name_of),
            ["init", "kworker/0:1", "com.android.phone", "/"]
        );
        assert!(is_end_of("ndroid.systemui", "com.android.systemui"));
        assert!(!is_end_of("init", "/sbin/init") && !is_end_of("abcdefghijklmno", "abcdefghijklmno"));
    }
}
