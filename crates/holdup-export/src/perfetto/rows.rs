//! The rows of all tables that become events of the kernel, in the order of time.

use std::iter::Peekable;

use holdup_trace::tables::{BlockIo, KernelLock, Sample, Switch, Wake};
use holdup_trace::{Result, StackId, StringId, Table, ThreadIdx, Timestamp, Trace};

/// A row, or what a dictionary says of an instant.
#[derive(Debug, Clone, Copy)]
pub enum Row {
    /// A thread was made.
    Fork(ThreadIdx),
    /// A thread has a name from now on.
    Rename(ThreadIdx, StringId),
    /// A wake-up.
    Wake(Wake),
    /// A switch.
    Switch(Switch),
    /// The stack of a wait that begins now.
    Blocked(ThreadIdx, StackId),
    /// The stack of a thread that wakes another.
    Waker(ThreadIdx, StackId),
    /// A CPU sample.
    Sample(Sample),
    /// Contention on a kernel lock.
    Lock(KernelLock),
    /// A request to a disk.
    Block(BlockIo),
    /// A thread ended.
    Exit(ThreadIdx),
}

type Stream<'a> = Peekable<Box<dyn Iterator<Item = Result<(Timestamp, Row)>> + 'a>>;

/// All rows in time order; of one instant in the order of [`Row`].
pub struct Rows<'a>(Vec<Stream<'a>>);

impl<'a> Rows<'a> {
    /// O(waits with stacks + threads) in memory: their stacks are told when they begin, and stored when they are over.
    pub fn new(trace: &'a Trace) -> Result<Self> {
        let threads = || trace.threads.rows().enumerate().skip(1).map(|(at, row)| (ThreadIdx(at as u32), row));
        let born =
            threads().filter(|(_, row)| row.start > Timestamp::ZERO).map(|(t, row)| (row.start, t, StackId::NONE));
        let gone = threads().filter(|(_, row)| row.end != Timestamp::MAX).map(|(t, row)| (row.end, t, StackId::NONE));
        let (mut blocked, mut wakers) = (Vec::new(), Vec::new());
        for wait in trace.waits.iter() {
            let wait = wait?;
            if wait.stack != StackId::NONE {
                blocked.push((wait.start, wait.thread, wait.stack));
            }
            if wait.waker_stack != StackId::NONE && wait.waker != ThreadIdx::NONE {
                wakers.push((wait.woken, wait.waker, wait.waker_stack));
            }
        }
        let renamed = trace.thread_names.iter().map(|r| r.map(|r| (r.t, Row::Rename(r.thread, r.name))));
        Ok(Rows(vec![
            sorted(born.collect(), |thread, _| Row::Fork(thread)),
            boxed(renamed),
            boxed(trace.wakes.iter().map(|r| r.map(|r| (r.t, Row::Wake(r))))),
            sorted(wakers, Row::Waker),
            boxed(trace.switches.iter().map(|r| r.map(|r| (r.t, Row::Switch(r))))),
            sorted(blocked, Row::Blocked),
            boxed(trace.samples.iter().map(|r| r.map(|r| (r.t, Row::Sample(r))))),
            boxed(trace.kernel_locks.iter().map(|r| r.map(|r| (r.t, Row::Lock(r))))),
            boxed(trace.block_ios.iter().map(|r| r.map(|r| (r.t, Row::Block(r))))),
            sorted(gone.collect(), |thread, _| Row::Exit(thread)),
        ]))
    }
}

fn boxed<'a>(rows: impl Iterator<Item = Result<(Timestamp, Row)>> + 'a) -> Stream<'a> {
    let rows: Box<dyn Iterator<Item = _>> = Box::new(rows);
    rows.peekable()
}

fn sorted<'a>(mut rows: Vec<(Timestamp, ThreadIdx, StackId)>, row: fn(ThreadIdx, StackId) -> Row) -> Stream<'a> {
    rows.sort_by_key(|(t, ..)| *t);
    boxed(rows.into_iter().map(move |(t, thread, stack)| Ok((t, row(thread, stack)))))
}

impl Iterator for Rows<'_> {
    type Item = Result<(Timestamp, Row)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut first: Option<(Timestamp, usize)> = None;
        for (at, stream) in self.0.iter_mut().enumerate() {
            // What cannot be read is told at once.
            let t = match stream.peek() {
                Some(Ok((t, _))) => *t,
                Some(Err(_)) => Timestamp::ZERO,
                None => continue,
            };
            if first.is_none_or(|(earliest, _)| t < earliest) {
                first = Some((t, at));
            }
        }
        self.0.get_mut(first?.1)?.next()
    }
}
