//! Watches threads that run scripts: whether one goes on and on, takes too much memory, or goes too deep.
//!
//! The engine limits itself as far as its own steps go (`script/limits`). The compiler, a sum over a range and the end of a value
//! that holds values that hold values have no such steps. So a thread of a script *beats* whenever it waits; the thread that
//! waits for it looks every [`EVERY`] whether it still does, and what the program has taken of memory. It costs the calls
//! nothing. A thread can't be stopped from outside: whoever learns of a limit ends the program, or leaves the thread behind.
//!
//! Threads of scripts have a stack of [`STACK`] bytes of which the kernel gives what is used, so that one that goes too deep is
//! seen long before the end of its stack, where the program would be killed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::{RunError, memory};
use crate::script::limits::{self, Limits};
use crate::script::{self, ScriptError, Source};

/// How often one looks.
pub(super) const EVERY: Duration = Duration::from_millis(20);

/// The stack of a thread, in bytes, or the largest that the machine grants.
const STACK: [usize; 4] = [1 << 30, 256 << 20, 64 << 20, 8 << 20];

/// How much of its stack a thread may use, in bytes.
const DEEPEST: usize = 64 << 20;

/// Memory of a thread that is not the script's, in bytes: connections, replies under way, histograms.
const NOT_THE_SCRIPTS: usize = 128 << 20;

/// So much more memory is a reason to look where it went, in bytes.
const WORTH_A_LOOK: usize = 16 << 20;

/// What a thread of a script says of itself.
#[derive(Debug, Default)]
pub(super) struct Beat {
    beats: AtomicU64,
    /// The kernel's number of the thread; 0 until it runs.
    thread: AtomicI32,
    /// An address in its stack.
    stack: AtomicUsize,
    doing: Mutex<String>,
}

impl Beat {
    /// The thread has just waited for something, or could have.
    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Says what goes on from now on: `while compiling`, `in "run"`.
    pub(super) fn doing(&self, what: impl Into<String>) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
        self.beat();
    }

    fn what(&self) -> String {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn introduce(&self) {
        let here = 0_u8;
        self.stack.store((&raw const here).addr(), Ordering::Relaxed);
        self.thread.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
    }

    /// The CPU time of the thread; none before it runs and after its end.
    fn cpu(&self) -> Option<Duration> {
        let thread = self.thread.load(Ordering::Relaxed);
        if thread == 0 {
            return None;
        }
        // As the kernel's interface has it (`pthread_getcpuclockid`): the thread's number, inverted, and a word that says that it
        // is a thread's (4) and wants the scheduler's time (2).
        clock_gettime(ClockId::from_raw((!thread << 3) | 6)).ok().map(Duration::from)
    }
}

/// A thread that is watched.
struct Watched {
    beat: Arc<Beat>,
    beats: u64,
    /// Its CPU time at the last beat that was seen.
    cpu: Duration,
}

/// Watches the threads of one run.
pub(super) struct Watch {
    path: PathBuf,
    limits: Limits,
    threads: Vec<Watched>,
    /// What the program took before, in bytes.
    before: usize,
    looked_at: usize,
}

impl Watch {
    /// Begins, before there are threads.
    pub(super) fn new(source: &Source) -> Watch {
        let before = memory::resident().unwrap_or(0);
        Watch { path: source.path.clone(), limits: source.limits, threads: Vec::new(), before, looked_at: before }
    }

    /// Starts a thread for scripts. What it panics with is lost: `body` should catch it.
    pub(super) fn spawn(
        &mut self,
        name: &str,
        body: impl FnOnce(&Arc<Beat>) + Send + 'static,
    ) -> std::io::Result<JoinHandle<()>> {
        let beat = Arc::new(Beat::default());
        let limit = self.limits.memory;
        let its = Arc::clone(&beat);
        let body = Arc::new(Mutex::new(Some(body)));
        let mut spawned = Err(std::io::ErrorKind::OutOfMemory.into());
        for stack in STACK {
            let (its, body) = (Arc::clone(&its), Arc::clone(&body));
            spawned = thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(move || {
                its.introduce();
                let body = body.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(body) = body {
                    script::within(limit, || body(&its));
                }
            });
            if spawned.is_ok() {
                break;
            }
        }
        self.threads.push(Watched { beat, beats: 0, cpu: Duration::ZERO });
        spawned
    }

    /// Looks whether a thread has come to a limit of time.
    ///
    /// # Errors
    /// Which, and what went on.
    pub(super) fn check_time(&mut self) -> Result<(), ScriptError> {
        let limit = self.limits.time;
        let is_late = |thread: &mut Watched| {
            let beats = thread.beat.beats.load(Ordering::Relaxed);
            let Some(cpu) = thread.beat.cpu() else { return false };
            if beats != thread.beats {
                (thread.beats, thread.cpu) = (beats, cpu);
            }
            cpu.saturating_sub(thread.cpu) >= limit
        };
        match self.threads.iter_mut().position(is_late) {
            Some(late) => Err(self.error(&self.limits.too_long(&self.threads[late].beat.what()))),
            None => Ok(()),
        }
    }

    /// Looks whether the program has come to a limit of memory or depth. After an error it should end at once: it still grows.
    ///
    /// # Errors
    /// Which, and what went on.
    pub(super) fn check_memory(&mut self) -> Result<(), ScriptError> {
        let Some(now) = memory::resident() else { return Ok(()) };
        self.looked_at = self.looked_at.min(now);
        if now - self.looked_at < WORTH_A_LOOK {
            return Ok(());
        }
        self.looked_at = now;
        let stacks: Vec<usize> = self.threads.iter().map(|t| t.beat.stack.load(Ordering::Relaxed)).collect();
        let used = memory::of_mappings(&stacks);
        for (thread, used) in self.threads.iter().zip(&used) {
            if *used > DEEPEST {
                return Err(self.error(&limits::too_deep(&thread.beat.what(), *used)));
            }
        }
        let grown = now.saturating_sub(self.before);
        let each = self.limits.memory.saturating_add(NOT_THE_SCRIPTS);
        if grown > each.saturating_mul(self.threads.len()) {
            let what = self.threads.first().map_or_else(String::new, |thread| thread.beat.what());
            return Err(self.error(&self.limits.grew(&what, grown, self.threads.len())));
        }
        Ok(())
    }

    fn error(&self, sentence: &str) -> ScriptError {
        ScriptError::limit(None, format!("{}: {sentence}", self.path.display()))
    }
}

/// Runs `body`, which compiles and calls a script, on a thread of its own, within the script's limits.
pub(super) fn on_a_thread<T: Send + 'static>(
    source: &Source,
    body: impl FnOnce(&Arc<Beat>) -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    let mut watch = Watch::new(source);
    let (sender, receiver) = mpsc::channel();
    let thread = watch.spawn("load", move |beat| {
        let _ = sender.send(caught(|| body(beat)));
    });
    let thread = thread.map_err(|e| RunError::System(format!("no thread could be started for the script: {e}")))?;
    loop {
        match receiver.recv_timeout(EVERY) {
            Ok(result) => {
                // It has said all it had to say.
                let _ = thread.join();
                return result;
            }
            Err(RecvTimeoutError::Timeout) => {
                watch.check_memory()?;
                watch.check_time()?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RunError::System("the script's thread is gone".to_owned()));
            }
        }
    }
}

/// What `body` returns, or a sentence if it panics: the engine does, for some scripts.
pub(super) fn caught<T>(body: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let what = format!(
            "the script engine broke over this script ({}), which is its mistake or holdup's: write it differently",
            said.unwrap_or("it did not say how")
        );
        Err(RunError::Script(ScriptError::new(None, what)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_engine_is_a_sentence() {
        let source = Source::new("work.rn");
        let error = on_a_thread::<()>(&source, |_| panic!("no {}", "way")).unwrap_err().to_string();
        assert!(error.contains("the script engine broke over this script (no way)"), "{error}");
    }
}
