//! `CompactSched`: switches and wake-ups as columns, without what the reader can add: names come from a table, times are
//! distances, and who leaves a CPU is who came there before.

use super::wire::{Fields, Numbers};

/// A row of the columns.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// Another thread comes to a CPU.
    Switch {
        /// When.
        time: u64,
        /// In which state the thread before leaves.
        state: u64,
        /// Who comes.
        next: u32,
        /// Its name.
        name: &'a [u8],
    },
    /// A thread is woken.
    Waking {
        /// When.
        time: u64,
        /// Who.
        wakee: u32,
        /// Its name.
        name: &'a [u8],
        /// The CPU that is to run it.
        target: u32,
        /// `common_flags`, if the trace has them.
        flags: Option<u8>,
    },
}

/// The columns of a bundle.
#[derive(Default)]
struct Columns<'a> {
    names: Vec<&'a [u8]>,
    switch: [Numbers<'a>; 4],
    waking: [Numbers<'a>; 4],
    flags: Numbers<'a>,
}

impl<'a> Columns<'a> {
    fn new(message: &'a [u8]) -> Self {
        let mut columns = Columns::default();
        for (number, value) in Fields::new(message) {
            let column = match number {
                1 => &mut columns.switch[0],
                2 => &mut columns.switch[1],
                3 => &mut columns.switch[2],
                6 => &mut columns.switch[3],
                7 => &mut columns.waking[0],
                8 => &mut columns.waking[1],
                9 => &mut columns.waking[2],
                11 => &mut columns.waking[3],
                12 => &mut columns.flags,
                5 => {
                    columns.names.push(value.bytes());
                    continue;
                }
                _ => continue,
            };
            *column = value.numbers();
        }
        columns
    }

    fn name(&self, at: u64) -> &'a [u8] {
        usize::try_from(at).ok().and_then(|at| self.names.get(at)).copied().unwrap_or(&[])
    }
}

/// The next row of columns, with its time instead of the distance from the row before.
fn next(columns: &mut [Numbers; 4], time: &mut u64) -> Option<[u64; 4]> {
    let [a, b, c, d] = columns;
    let row = [a.next()?, b.next()?, c.next()?, d.next()?];
    *time = time.wrapping_add(row[0]);
    Some([*time, row[1], row[2], row[3]])
}

/// The rows of all columns in time order.
pub struct Rows<'a> {
    columns: Columns<'a>,
    /// The times of the last rows of both kinds.
    times: [u64; 2],
    /// The next rows of both kinds.
    switch: Option<[u64; 4]>,
    waking: Option<[u64; 4]>,
}

impl<'a> Rows<'a> {
    /// Those of a `CompactSched`; `shift` makes its times those of the trace's clock.
    pub fn new(message: &'a [u8], shift: u64) -> Self {
        let (mut columns, mut times) = (Columns::new(message), [shift; 2]);
        let switch = next(&mut columns.switch, &mut times[0]);
        let waking = next(&mut columns.waking, &mut times[1]);
        Rows { columns, times, switch, waking }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        match (self.switch, self.waking) {
            (Some([time, state, tid, name]), other) if other.is_none_or(|other| time <= other[0]) => {
                self.switch = next(&mut self.columns.switch, &mut self.times[0]);
                Some(Row::Switch { time, state, next: tid as u32, name: self.columns.name(name) })
            }
            (_, Some([time, wakee, target, name])) => {
                self.waking = next(&mut self.columns.waking, &mut self.times[1]);
                let flags = self.columns.flags.next().map(|flags| flags as u8);
                let (wakee, target) = (wakee as u32, target as u32);
                Some(Row::Waking { time, wakee, name: self.columns.name(name), target, flags })
            }
            _ => None,
        }
    }
}
