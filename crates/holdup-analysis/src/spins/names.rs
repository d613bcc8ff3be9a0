//! Functions that only wait, by name, for where the code cannot be seen.

/// Whole names: C functions, which need not say where they belong.
const EXACT: &[&str] = &[
    // The C library.
    "sched_yield",
    "__sched_yield",
    "pthread_spin_lock",
    "__pthread_spin_lock",
    // The JVM.
    "SpinPause",
    // Go.
    "runtime.procyield",
    "runtime.osyield",
    "runtime.procyieldAsm",
    // PostgreSQL.
    "s_lock",
    "perform_spin_delay",
];

/// Parts of names that are long enough to say it.
const PARTS: &[&str] = &[
    "hint::spin_loop",
    "ObjectMonitor::TrySpin",
    "ObjectMonitor::try_spin",
    "TrySpin_VaryDuration",
    "short_fixed_spin",
    "SpinYield::",
    "SpinLock::SpinLoop",
    "AbslInternalSpinLockDelay",
    "__kmp_wait_template",
    "__kmp_flag_64",
    "__kmp_hyper_barrier_gather_wait",
    "crossbeam_utils::backoff::Backoff",
    "parking_lot_core::spinwait::SpinWait",
    "folly::detail::Sleeper::wait",
    "folly::MicroSpinLock::lock",
    "tbb::detail::d0::atomic_backoff",
    "tbb::detail::d0::machine_pause",
    "tbb::detail::r1::prolonged_pause",
];

/// Names that mean something else elsewhere, with a part of the file's name.
const IN_FILE: &[(&str, &str)] = &[
    ("do_wait", "libgomp"),
    ("do_spin", "libgomp"),
    ("gomp_barrier_wait_end", "libgomp"),
    ("gomp_team_barrier_wait_end", "libgomp"),
    ("gomp_team_barrier_wait_cancel_end", "libgomp"),
    ("gomp_mutex_lock_slow", "libgomp"),
    ("gomp_ptrlock_get_slow", "libgomp"),
    ("gomp_sem_wait_slow", "libgomp"),
];

/// Functions that look again and again whether anything has come, and call others for that.
const DRIVERS: &[&str] = &[
    // Go: a channel that is asked without waiting.
    "runtime.selectnbrecv",
    // MPI.
    "opal_progress",
    "ompi_request_default_wait",
    "ompi_request_wait_completion",
    "MPID_Progress_wait",
    "MPIDI_CH3I_Progress",
    "MPIDI_progress_test",
    // UCX, which it may use.
    "ucp_worker_progress",
    "ucs_callbackq_dispatch",
];

/// Functions that look again and again whether a device is done with what it was told: no CPU works for them meanwhile.
const DEVICES: &[&str] = &[
    // CUDA.
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    // ROCm.
    "hipDeviceSynchronize",
    "hipStreamSynchronize",
    "hipEventSynchronize",
    // OpenCL, Vulkan, Level Zero.
    "clFinish",
    "clWaitForEvents",
    "vkWaitForFences",
    "vkQueueWaitIdle",
    "zeCommandQueueSynchronize",
    "zeEventHostSynchronize",
];

/// Whether what `function` calls does nothing but wait either, unless it copies what has come.
pub(super) fn drives(function: &str) -> bool {
    DRIVERS.contains(&function) || awaits_device(function)
}

/// Whether `function` and all that it calls wait for a device.
pub(super) fn awaits_device(function: &str) -> bool {
    DEVICES.contains(&function)
}

/// Whether `function` of the file `module` does nothing but wait for another CPU.
pub(super) fn spins(function: &str, module: &str) -> bool {
    EXACT.contains(&function)
        || PARTS.iter().any(|part| function.contains(part))
        || IN_FILE.iter().any(|(name, file)| function == *name && module.contains(file))
}

#[cfg(test)]
mod tests {
    use super::{awaits_device, drives, spins};

    #[test]
    fn a_name_is_judged_where_it_belongs() {
        assert!(spins("do_wait", "/usr/lib/libgomp.so.1"));
        assert!(!spins("do_wait", "/usr/bin/bash"), "a shell waits for its child");
        assert!(spins("core::hint::spin_loop", "/bin/x"));
        assert!(!spins("spin_class_scheduler", "/bin/x"));
        assert!(drives("runtime.selectnbrecv"), "a channel that is asked again and again");
        assert!(drives("opal_progress") && !drives("progress") && !awaits_device("opal_progress"));
        assert!(drives("cudaStreamSynchronize") && awaits_device("cudaStreamSynchronize"));
    }
}
