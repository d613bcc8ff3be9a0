//! The parts of std that loom models under their loom names.

#[cfg(not(loom))]
pub use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence},
    },
    thread_local,
};

#[cfg(loom)]
pub use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, fence},
    },
    thread_local,
};

/// A lock whose holder panicked is taken all the same: what it guards here is whole after each step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
