//! Locks of all kinds behind one trait. The spinning ones are for the lab alone: in user space a lock whose next
//! holder is fixed stops all work as soon as that thread is preempted.

pub mod backoff;
mod kernel;
mod posix;
mod queue;
mod spin;

use std::sync::{Condvar, Mutex, PoisonError};

pub use queue::{Cna, Mcs};
pub use spin::{Tas, Ticket, Ttas};

use crate::{Error, Result};

/// Mutual exclusion. `who` is the caller's number among the threads that share the lock.
pub trait Lock: Send + Sync + 'static {
    /// Runs `section` while no other thread is in one.
    fn with<R>(&self, who: usize, section: impl FnOnce() -> R) -> R;

    /// Whether this one lets its owner take it again.
    fn is_recursive(&self) -> bool {
        false
    }
}

/// What to do with a lock whose type is only known by its name.
pub trait Visitor {
    /// What it returns.
    type Out;
    /// Whether it wants two locks, of which one is taken inside the other.
    fn wants_two(&self) -> bool {
        false
    }

    /// Is compiled for each kind of lock, so that its calls are direct.
    fn visit<L: Lock>(self, lock: L, inner: Option<L>) -> Self::Out;
}

/// The names that [`visit`] knows.
pub const KINDS: &[&str] = &[
    "std",
    "parking_lot",
    "pthread",
    "pthread_adaptive",
    "pthread_recursive",
    "pthread_errorcheck",
    "pthread_inherit",
    "pthread_spin",
    "event",
    "tas",
    "ttas",
    "ticket",
    "mcs",
    "cna",
    "posix_semaphore",
    "sysv_semaphore",
    "eventfd",
    "pipe",
    "flock",
];

/// Whether a lock of this kind passes through the kernel each time, contended or not.
pub fn is_kernel_object(kind: &str) -> bool {
    matches!(kind, "sysv_semaphore" | "eventfd" | "pipe" | "flock")
}

/// Makes a lock of this kind for `threads` threads.
///
/// # Errors
/// The kernel refuses the object, or the kind is none of [`KINDS`].
pub fn visit<V: Visitor>(kind: &str, threads: usize, visitor: V) -> Result<V::Out> {
    let refused = |what: std::io::Error| Error::Platform(format!("the kernel gives no {kind}: {what}"));
    Ok(match kind {
        "std" => give(visitor, || Ok(Std::default())).map_err(refused)?,
        "parking_lot" => give(visitor, || Ok(ParkingLot::default())).map_err(refused)?,
        "pthread" => give(visitor, || Ok(posix::Mutex::new(posix::Kind::Normal))).map_err(refused)?,
        "pthread_adaptive" => give(visitor, || Ok(posix::Mutex::new(posix::Kind::Adaptive))).map_err(refused)?,
        "pthread_recursive" => give(visitor, || Ok(posix::Mutex::new(posix::Kind::Recursive))).map_err(refused)?,
        "pthread_errorcheck" => give(visitor, || Ok(posix::Mutex::new(posix::Kind::ErrorCheck))).map_err(refused)?,
        "pthread_inherit" => give(visitor, || Ok(posix::Mutex::new(posix::Kind::Inherit))).map_err(refused)?,
        "pthread_spin" => give(visitor, || Ok(posix::Spin::new())).map_err(refused)?,
        "event" => give(visitor, || Ok(Event::default())).map_err(refused)?,
        "tas" => give(visitor, || Ok(Tas::default())).map_err(refused)?,
        "ttas" => give(visitor, || Ok(Ttas::default())).map_err(refused)?,
        "ticket" => give(visitor, || Ok(Ticket::default())).map_err(refused)?,
        "mcs" => give(visitor, || Ok(Mcs::new(threads))).map_err(refused)?,
        "cna" => give(visitor, || Ok(Cna::new(threads))).map_err(refused)?,
        "posix_semaphore" => give(visitor, || Ok(posix::Semaphore::new())).map_err(refused)?,
        "sysv_semaphore" => give(visitor, kernel::SysV::new).map_err(refused)?,
        "eventfd" => give(visitor, kernel::EventFd::new).map_err(refused)?,
        "pipe" => give(visitor, kernel::Pipe::new).map_err(refused)?,
        "flock" => give(visitor, || kernel::Flock::new(threads)).map_err(refused)?,
        _ => return Err(Error::Usage(format!("there is no lock `{kind}`"))),
    })
}

fn give<L: Lock, V: Visitor>(visitor: V, make: impl Fn() -> std::io::Result<L>) -> std::io::Result<V::Out> {
    let inner = visitor.wants_two().then(&make).transpose()?;
    Ok(visitor.visit(make()?, inner))
}

/// `std::sync::Mutex`.
#[derive(Default)]
pub struct Std(Mutex<()>);

impl Lock for Std {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}

/// `parking_lot::Mutex`.
#[derive(Default)]
struct ParkingLot(parking_lot::Mutex<()>);

impl Lock for ParkingLot {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}

/// An event that one waiter resets, as a mutex and a condition variable make it.
#[derive(Default)]
struct Event {
    taken: Mutex<bool>,
    set: Condvar,
}

impl Lock for Event {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *self.set.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner) = true;
        let result = section();
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.set.notify_one();
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counts without atomic additions, which only mutual exclusion makes exact.
    struct Exclude;

    impl Visitor for Exclude {
        type Out = u64;

        fn visit<L: Lock>(self, lock: L, _: Option<L>) -> u64 {
            let count = AtomicU64::new(0);
            let add = || count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            std::thread::scope(|scope| {
                for who in 0..3 {
                    let (lock, add) = (&lock, &add);
                    scope.spawn(move || (0..300).for_each(|_| lock.with(who, add)));
                }
            });
            count.into_inner()
        }
    }

    #[test]
    fn every_kind_excludes() {
        for kind in KINDS {
            match visit(kind, 3, Exclude) {
                Ok(count) => assert_eq!(count, 900, "{kind}"),
                Err(refused) => assert!(is_kernel_object(kind), "{refused}"),
            }
        }
        assert!(visit("lock", 1, Exclude).is_err());
    }
}
