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
}

/// What to do with a lock whose type is only known by its name.
pub trait Visitor {
    /// What it returns.
    type Out;
    /// Is compiled for each kind of lock, so that its calls are direct.
    fn visit<L: Lock>(self, lock: L) -> Self::Out;
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
        "std" => visitor.visit(Std::default()),
        "parking_lot" => visitor.visit(ParkingLot::default()),
        "pthread" => visitor.visit(posix::Mutex::new(posix::Kind::Normal)),
        "pthread_adaptive" => visitor.visit(posix::Mutex::new(posix::Kind::Adaptive)),
        "pthread_recursive" => visitor.visit(posix::Mutex::new(posix::Kind::Recursive)),
        "pthread_errorcheck" => visitor.visit(posix::Mutex::new(posix::Kind::ErrorCheck)),
        "pthread_inherit" => visitor.visit(posix::Mutex::new(posix::Kind::Inherit)),
        "pthread_spin" => visitor.visit(posix::Spin::new()),
        "event" => visitor.visit(Event::default()),
        "tas" => visitor.visit(Tas::default()),
        "ttas" => visitor.visit(Ttas::default()),
        "ticket" => visitor.visit(Ticket::default()),
        "mcs" => visitor.visit(Mcs::new(threads)),
        "cna" => visitor.visit(Cna::new(threads)),
        "posix_semaphore" => visitor.visit(posix::Semaphore::new()),
        "sysv_semaphore" => visitor.visit(kernel::SysV::new().map_err(refused)?),
        "eventfd" => visitor.visit(kernel::EventFd::new().map_err(refused)?),
        "pipe" => visitor.visit(kernel::Pipe::new().map_err(refused)?),
        "flock" => visitor.visit(kernel::Flock::new(threads).map_err(refused)?),
        _ => return Err(Error::Usage(format!("there is no lock `{kind}`"))),
    })
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

        fn visit<L: Lock>(self, lock: L) -> u64 {
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
