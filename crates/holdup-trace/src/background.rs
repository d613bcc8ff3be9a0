//! Work that need not be done at once, on one other thread and in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that may wait: what they hold is memory.
const WAITING: usize = 2;

/// A thread that starts with its first job and ends with the last handle. Where there is but one CPU, or no thread can be
/// had, jobs are done at once: the result is the same.
#[derive(Clone, Default)]
pub(crate) struct Background(Arc<OnceLock<Option<SyncSender<Job>>>>);

impl Background {
    /// Does `job` after those before it. Waits if too many do.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let job: Job = Box::new(job);
        match self.0.get_or_init(start) {
            Some(jobs) => {
                // A thread that is gone has done what it was given.
                if let Err(back) = jobs.send(job) {
                    (back.0)();
                }
            }
            None => job(),
        }
    }

    /// Does `job` after those before it and waits for its result; `None` if it panicked.
    pub fn result<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        let (done, result) = sync_channel(1);
        self.run(move || drop(done.send(job())));
        result.recv().ok()
    }
}

fn start() -> Option<SyncSender<Job>> {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let (jobs, todo): (_, Receiver<Job>) = sync_channel(WAITING);
    let worker = move || todo.into_iter().for_each(|job| job());
    thread::Builder::new().name("tables".to_owned()).spawn(worker).ok().map(|_| jobs)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn jobs_are_done_in_order() {
        let (background, done) = (Background::default(), Arc::new(Mutex::new(Vec::new())));
        for i in 0..100 {
            let done = done.clone();
            background.run(move || done.lock().unwrap().push(i));
        }
        let count = background.result({
            let done = done.clone();
            move || done.lock().unwrap().len()
        });
        assert_eq!(count, Some(100));
        assert!(done.lock().unwrap().iter().copied().eq(0..100));
    }
}
