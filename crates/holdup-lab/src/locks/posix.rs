//! Locks of the C library.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use super::Lock;

/// Kinds of pthread mutexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Spins never.
    Normal,
    /// Spins up to 100 pauses before it sleeps.
    Adaptive,
    /// Its owner may lock it again.
    Recursive,
    /// Tells its owner that it has it already.
    ErrorCheck,
    /// Its owner runs with the priority of its waiters.
    Inherit,
}

/// A pthread mutex; it must not move, hence the box.
pub struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>, Kind);

// SAFETY: the mutex is made to be used by many threads; all access goes through the C library.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// An unlocked mutex.
    pub fn new(kind: Kind) -> Self {
        let mutex = Mutex(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)), kind);
        let number = match kind {
            Kind::Normal | Kind::Inherit => libc::PTHREAD_MUTEX_NORMAL,
            #[cfg(target_env = "gnu")]
            Kind::Adaptive => libc::PTHREAD_MUTEX_ADAPTIVE_NP,
            #[cfg(not(target_env = "gnu"))]
            Kind::Adaptive => libc::PTHREAD_MUTEX_NORMAL,
            Kind::Recursive => libc::PTHREAD_MUTEX_RECURSIVE,
            Kind::ErrorCheck => libc::PTHREAD_MUTEX_ERRORCHECK,
        };
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before they are used, and the mutex is not in use yet.
        unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), number);
            if kind == Kind::Inherit {
                libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), libc::PTHREAD_PRIO_INHERIT);
            }
            libc::pthread_mutex_init(mutex.0.get(), attributes.as_ptr());
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        }
        mutex
    }
}

impl Lock for Mutex {
    #[inline]
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        // SAFETY: the mutex was initialised, and is unlocked by the thread that locked it.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        let result = section();
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        result
    }

    fn is_recursive(&self) -> bool {
        self.1 == Kind::Recursive
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: nobody else can have it any more.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// A pthread spinlock.
pub struct Spin(Box<UnsafeCell<libc::pthread_spinlock_t>>);

// SAFETY: the lock is made to be used by many threads; all access goes through the C library.
unsafe impl Send for Spin {}
// SAFETY: as above.
unsafe impl Sync for Spin {}

impl Spin {
    /// An unlocked spinlock.
    pub fn new() -> Self {
        // SAFETY: a word of zero bits is a valid value of this integer, and is initialised before use.
        let lock = Spin(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: the lock is not in use yet.
        unsafe { libc::pthread_spin_init(lock.0.get(), libc::PTHREAD_PROCESS_PRIVATE) };
        lock
    }
}

impl Lock for Spin {
    #[inline]
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        // SAFETY: the lock was initialised, and is unlocked by the thread that locked it.
        unsafe { libc::pthread_spin_lock(self.0.get()) };
        let result = section();
        // SAFETY: as above.
        unsafe { libc::pthread_spin_unlock(self.0.get()) };
        result
    }
}

/// A POSIX semaphore with one permit.
pub struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: the semaphore is made to be used by many threads; all access goes through the C library.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// A semaphore whose permit is free.
    pub fn new() -> Self {
        // SAFETY: zero bits are a valid value of this plain union, and it is initialised before use.
        let semaphore = Semaphore(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: the semaphore is not in use yet.
        unsafe { libc::sem_init(semaphore.0.get(), 0, 1) };
        semaphore
    }
}

impl Lock for Semaphore {
    #[inline]
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        // SAFETY: the semaphore was initialised. A signal may end the wait without the permit.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
        let result = section();
        // SAFETY: the semaphore was initialised.
        unsafe { libc::sem_post(self.0.get()) };
        result
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: nobody else can have it any more.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}
