//! HotSpot, the virtual machine of OpenJDK: 17 and newer.

use holdup_trace::COMPILED;

use super::row::{Role, Runtime, bare};
use crate::known::{Known, Runs};

/// The rest of lock() is compiled into whoever calls it. Latches and semaphores go through these, too.
const AMBIGUOUS: &[&str] = &[
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireQueued",
];

const INTERPRETER: &str = "Interpreter";

/// Linux keeps 15 bytes of a thread's name.
pub(super) const JVM: Runtime = Runtime {
    modules: &[
        "libjvm.so",
        "libjava.so",
        "libjli.so",
        "libnio.so",
        "libnet.so",
        "libzip.so",
        "libjimage.so",
        "libverify.so",
        "libattach.so",
        "libmanagement",
        "libinstrument.so",
        "libextnet.so",
        "libjdwp.so",
    ],
    is_own: |module, function| module == COMPILED && (is_stub(function) || is_of_library(function)),
    marker: "VM Thread",
    roles: &[
        (Role::Operations, &["VM Thread"]),
        (
            Role::Collector,
            &[
                "GC Thread#",
                "G1 ",
                "ParGC",
                "ZDriver",
                "ZWorker",
                "ZDirector",
                "ZStat",
                "ZUnmapper",
                "ZUncommitter",
                "Shenandoah",
                "XDriver",
                "XWorker",
            ],
        ),
        (Role::Compiler, &["C1 Compiler", "C2 Compiler", "JVMCI Compiler", "Sweeper thread", "JVMCI-native"]),
        (
            Role::Housekeeping,
            &[
                "Reference Handl",
                "Finalizer",
                "Signal Dispatch",
                "Service Thread",
                "Monitor Deflati",
                "Notification Th",
                "Common-Cleaner",
                "VM Periodic Tas",
                "Attach Listener",
                "StringDedupProc",
            ],
        ),
    ],
    waits: &[
        "os::PlatformMonitor::wait",
        "PlatformMonitor::wait",
        "Monitor::wait",
        "Monitor::wait_without_safepoint_check",
        "MonitorLocker::wait",
        "os::PlatformEvent::park",
        "ObjectMonitor::wait",
        "PlatformEvent::park",
        "PosixSemaphore::wait",
        "PosixSemaphore::timedwait",
        "Semaphore::wait_with_safepoint_check",
        "os::signal_wait",
        "SemaphoreGangTaskDispatcher::worker_wait_for_task",
    ],
    homes: &[
        "AttachListener::dequeue",
        "CompileQueue::get",
        "G1ConcurrentMarkThread::wait_for_next_cycle",
        "G1ConcurrentRefineThread::wait_for_completed_buffers",
        "G1ConcurrentRefineThread::wait_work_available",
        "G1ServiceThread::run_service",
        "G1ServiceThread::sleep_before_next_cycle",
        "G1ServiceThread::wait_for_task",
        "GangWorker::loop",
        "GangWorker::run",
        "JVM_WaitForReferencePendingList",
        "LinuxAttachListener::dequeue",
        "MonitorDeflationThread::monitor_deflation_thread_entry",
        "NMethodSweeper::sweeper_loop",
        "NotificationThread::notification_thread_entry",
        "ServiceThread::service_thread_entry",
        "ShenandoahControlThread::run_service",
        "VMThread::run",
        "VMThread::wait_for_operation",
        "VMThread::loop",
        "WatcherThread::run",
        "WatcherThread::sleep",
        "WorkerThread::run",
        "WorkerTaskDispatcher::worker_run_task",
        "ZDriverPort::receive",
        "ZDirector::run_service",
        "signal_thread_entry",
    ],
    // Others wait there until one thread has initialised the class.
    entries: &["InstanceKlass::initialize_impl"],
    ambiguous: AMBIGUOUS,
    is_language: |module, function| module == COMPILED && (!is_stub(function) || function == INTERPRETER),
    signals: &[
        // It does not tell for whom: what is compiled later is called often.
        (INTERPRETER, ""),
        ("AbstractQueuedSynchronizer.acquireShared", ""),
        ("AbstractQueuedSynchronizer.acquireSharedInterruptibly", ""),
        ("AbstractQueuedSynchronizer.tryAcquireSharedNanos", ""),
        ("AbstractQueuedSynchronizer.doAcquireSharedInterruptibly", ""),
        ("AbstractQueuedSynchronizer$ConditionObject.await", ""),
        ("CountDownLatch.await", ""),
        ("Semaphore.acquire", ""),
        ("CyclicBarrier.dowait", ""),
    ],
    results: &[
        ("CompletableFuture.waitingGet", ""),
        ("CompletableFuture.timedGet", ""),
        ("CompletableFuture.get", ""),
        ("CompletableFuture.join", ""),
        ("FutureTask.awaitDone", ""),
        ("FutureTask.get", ""),
        ("AbstractExecutorService.invokeAll", ""),
    ],
    collects: |function| {
        let operation = function.starts_with("VM_") && function.ends_with("::doit");
        let kinds = ["Collect", "GC", "G1", "VM_Z", "VM_X", "Shenandoah"];
        let task = ["G1", "PSParallelCompact", "ParallelScavenge", "Z", "Shenandoah", "ScavengeRoots"];
        operation && kinds.iter().any(|kind| function.contains(kind))
            || (function.ends_with("Task::work") || function.ends_with("Thread::run_service"))
                && task.iter().any(|begin| function.starts_with(begin))
    },
    conditions: |_, _| "",
    asks: &[
        "CollectedHeap::collect",
        "G1CollectedHeap::attempt_allocation_humongous",
        "G1CollectedHeap::attempt_allocation_slow",
        "G1CollectedHeap::do_collection_pause",
        "GenCollectedHeap::mem_allocate_work",
        "MemAllocator::allocate",
        "MemAllocator::allocate_inside_tlab_slow",
        "MemAllocator::allocate_outside_tlab",
        "ParallelScavengeHeap::mem_allocate",
    ],
    locks: LOCKS,
    collector: "Give the Java heap more room (-Xmx, -Xmn), take another collector (-XX:+UseParallelGC, -XX:+UseG1GC, -XX:+UseZGC), or allocate less{}.",
    ..Runtime::NONE
};

const LOCKS: &[Known] = &[
    Known {
        runs: Runs::None,
        ..Known::of_runtime(
            "a safepoint of the JVM",
            "The JVM stops all threads for a collection or the like, and waits for {} to come to a safepoint (-Xlog:safepoint tells how long): cut \
             its loop or its copying into parts, count with a long, or start java with -XX:+UseCountedLoopSafepoints.",
            &["SafepointSynchronize::synchronize_threads"],
        )
    },
    Known {
        is_single: false,
        ..Known::of_runtime(
            "a monitor of Java (synchronized)",
            "Do less inside synchronized: move the work of {} out of it, or lock smaller parts.",
            &[
                "ObjectMonitor::enter_internal",
                "ObjectMonitor::EnterI",
                "ObjectMonitor::enter",
                "ObjectMonitor::ReenterI",
            ],
        )
    },
    Known::of_runtime(
        "the initialisation of a Java class",
        "Do the work of {} outside of static initialisers, or initialise the class before threads need it.",
        &[
            "ObjectLocker::wait_uninterruptibly",
            "ObjectSynchronizer::waitUninterruptibly",
            "ObjectSynchronizer::wait_uninterruptibly",
        ],
    ),
    Known {
        is_single: false,
        ..Known::of_runtime(
            "a lock of java.util.concurrent",
            "Do less while the lock is held: move the work of {} before lock() or behind unlock(), or lock smaller parts.",
            &[
                "java.util.concurrent.locks.ReentrantLock.lock",
                "java.util.concurrent.locks.ReentrantLock$Sync.lock",
                "java.util.concurrent.locks.ReentrantLock$NonfairSync.lock",
                "java.util.concurrent.locks.ReentrantLock$FairSync.lock",
                "java.util.concurrent.locks.ReentrantReadWriteLock$ReadLock.lock",
                "java.util.concurrent.locks.ReentrantReadWriteLock$WriteLock.lock",
                "java.util.concurrent.locks.StampedLock.writeLock",
                "java.util.concurrent.locks.StampedLock.acquireWrite",
                "java.util.concurrent.locks.StampedLock.acquireRead",
            ],
        )
    },
    Known {
        is_single: false,
        ..Known::of_runtime(
            "a lock or latch of java.util.concurrent",
            "Do less while the lock is held: move the work of {} before lock() or behind unlock(), or lock smaller parts.",
            AMBIGUOUS,
        )
    },
];

/// Code that the virtual machine makes for itself, and the interpreter.
fn is_stub(function: &str) -> bool {
    const NAMES: &[&str] = &[
        "Interpreter",
        "interpreter",
        "call_stub",
        "vtable stub",
        "itable stub",
        "I2C/C2I adapters",
        "DeoptimizationBlob",
        "UncommonTrapBlob",
        "ExceptionBlob",
        "MethodHandlesAdapterBlob",
        "native nmethod",
    ];
    const BEGINNINGS: &[&str] =
        &["StubRoutines", "RuntimeStub", "Interpreter", "Stub Generator", "SafepointBlob", "handler for"];
    let is_made = function.ends_with(" stub") || function.ends_with("_stub");
    let is_blob = function.starts_with('_') && (function.ends_with("_Java") || function.ends_with("_blob"));
    is_blob || is_made || NAMES.contains(&function) || BEGINNINGS.iter().any(|begin| function.starts_with(begin))
}

/// Methods of the classes that come with the language.
fn is_of_library(function: &str) -> bool {
    const PACKAGES: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun.", "org.ietf.jgss."];
    let name = bare(function);
    PACKAGES.iter().any(|package| name.starts_with(package))
}
