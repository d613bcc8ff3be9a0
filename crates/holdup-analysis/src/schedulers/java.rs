//! The executors of java.util.concurrent.

use super::row::Scheduler;

/// A thread of an executor that waits in the executor's queue has no task. One that takes from a queue of the program's
/// own does not end in [`Scheduler::homes`]: what it waits for is the program's matter.
pub(super) const POOL: Scheduler = Scheduler {
    task: "task",
    waits: &[
        "Parker::park",
        "Unsafe_Park",
        "jdk.internal.misc.Unsafe.park",
        "java.util.concurrent.locks.LockSupport.park*",
        "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode.block",
        "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await*",
        "java.util.concurrent.ForkJoinPool.managedBlock",
        "java.util.concurrent.ForkJoinPool.unmanagedBlock",
        "java.util.concurrent.ArrayBlockingQueue.poll",
        "java.util.concurrent.ArrayBlockingQueue.take",
        "java.util.concurrent.LinkedBlockingQueue.poll",
        "java.util.concurrent.LinkedBlockingQueue.take",
        "java.util.concurrent.PriorityBlockingQueue.poll",
        "java.util.concurrent.PriorityBlockingQueue.take",
        "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.poll",
        "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.take",
        "java.util.concurrent.SynchronousQueue*",
    ],
    homes: &["java.util.concurrent.ThreadPoolExecutor.getTask", "java.util.concurrent.ForkJoinPool.awaitWork"],
    ..Scheduler::NONE
};
