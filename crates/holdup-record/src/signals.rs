//! Signals that end a recording, or are passed on to the command.

use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The last signal, and whether somebody sent it (else the terminal did, which sent it to the command as well).
static RECEIVED: AtomicI32 = AtomicI32::new(0);
const SENT: i32 = 1 << 8;

const CAUGHT: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGCHLD];

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal {
    pub number: i32,
    /// Whether it must be passed on to the command.
    pub pass_on: bool,
}

/// Catches signals while it lives.
pub(crate) struct Signals {
    before: Vec<(i32, libc::sigaction)>,
}

extern "C" fn note(number: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo with SA_SIGINFO.
    let sent = unsafe { (*info).si_code } <= 0;
    if number != libc::SIGCHLD {
        RECEIVED.store(number | if sent { SENT } else { 0 }, Ordering::Relaxed);
    }
}

impl Signals {
    /// Begins to catch. SIGCHLD is caught only to end a sleep.
    pub(crate) fn install() -> Self {
        RECEIVED.store(0, Ordering::Relaxed);
        let install = |number: i32| {
            // SAFETY: all-zero is a valid sigaction; both live through the call; the handler only stores a number.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO;
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(number, &raw const action, &raw mut before);
                (number, before)
            }
        };
        Signals { before: CAUGHT.into_iter().map(install).collect() }
    }

    /// The last signal that came, once.
    pub(crate) fn take(&self) -> Option<Signal> {
        match RECEIVED.swap(0, Ordering::Relaxed) {
            0 => None,
            received => Some(Signal { number: received & 0xff, pass_on: received & SENT != 0 }),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (number, before) in &self.before {
            // SAFETY: puts back what the kernel gave.
            unsafe { libc::sigaction(*number, before, std::ptr::null_mut()) };
        }
    }
}

/// Sleeps, at most until a signal comes.
pub(crate) fn sleep(time: std::time::Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // SAFETY: `time` lives through the call; the rest is not asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// What [`Farewell`] says.
static LAST_WORDS: AtomicPtr<Vec<u8>> = AtomicPtr::new(std::ptr::null_mut());
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Says something on standard error before a signal ends this process, while it lives: what is left and where.
#[derive(Debug)]
pub struct Farewell(());

extern "C" fn farewell(number: i32) {
    let words = LAST_WORDS.load(Ordering::Acquire);
    // SAFETY: what the pointer is to is never freed; write, signal and raise are async-signal-safe.
    unsafe {
        if let Some(words) = words.as_ref() {
            libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
        }
        libc::signal(number, libc::SIG_DFL);
        libc::raise(number);
    }
}

impl Farewell {
    /// `words` are for a terminal: they must be clean. They are kept for good, a few bytes for each recording.
    pub fn new(words: &str) -> Farewell {
        let words = Box::leak(Box::new(format!("\n{words}\n").into_bytes()));
        LAST_WORDS.store(words, Ordering::Release);
        for number in ENDING {
            // SAFETY: the handler calls nothing that is not async-signal-safe.
            unsafe { libc::signal(number, farewell as *const () as libc::sighandler_t) };
        }
        Farewell(())
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        for number in ENDING {
            // SAFETY: plain numbers.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
    }
}
