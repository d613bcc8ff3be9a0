//! The counters for C: see `include/holdup_sync.h`, which says what each function does.

use crate::{PerCpuCounter, StripedCounter};

/// Defines the functions of one kind of counter.
macro_rules! counter {
    ($type:ty, $new:ident, $add:ident, $sum:ident, $drain:ident, $free:ident) => {
        /// A counter at 0.
        // SAFETY: the names begin with `holdup_`, so they take nobody else's place.
        #[unsafe(no_mangle)]
        pub extern "C" fn $new() -> *mut $type {
            Box::into_raw(Box::new(<$type>::new()))
        }

        /// Adds `n`.
        ///
        /// # Safety
        /// The counter was made by this library and not freed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $add(counter: *const $type, n: u64) {
            // SAFETY: the caller's promise.
            unsafe { &*counter }.add(n);
        }

        /// What has been added and not drained.
        ///
        /// # Safety
        /// The counter was made by this library and not freed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $sum(counter: *const $type) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { &*counter }.sum()
        }

        /// Takes the sum and leaves 0.
        ///
        /// # Safety
        /// The counter was made by this library and not freed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $drain(counter: *const $type) -> u64 {
            // SAFETY: the caller's promise.
            unsafe { &*counter }.drain()
        }

        /// Frees a counter; null is none.
        ///
        /// # Safety
        /// The counter was made by this library, and nobody uses it any more.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $free(counter: *mut $type) {
            if !counter.is_null() {
                // SAFETY: the caller's promise.
                drop(unsafe { Box::from_raw(counter) });
            }
        }
    };
}

counter!(
    PerCpuCounter,
    holdup_percpu_new,
    holdup_percpu_add,
    holdup_percpu_sum,
    holdup_percpu_drain,
    holdup_percpu_free
);
counter!(
    StripedCounter,
    holdup_striped_new,
    holdup_striped_add,
    holdup_striped_sum,
    holdup_striped_drain,
    holdup_striped_free
);

/// Whether the counter uses restartable sequences here.
///
/// # Safety
/// The counter was made by this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn holdup_percpu_is_per_cpu(counter: *const PerCpuCounter) -> bool {
    // SAFETY: the caller's promise.
    unsafe { &*counter }.is_per_cpu()
}
