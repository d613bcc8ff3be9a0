//! Node.js: V8, its event loop and its pools.

use holdup_trace::COMPILED;

use super::row::{Scheduler, any};

/// The loop that runs JavaScript in one thread.
pub(super) const EVENT_LOOP: Scheduler = Scheduler {
    task: "callback",
    is_own,
    is_task: |_, function| {
        // Others have libuv's loop, too.
        any(
            &[
                "node::SpinEventLoop*",
                "node::NodeMainInstance::*",
                "node::Start*",
                "node::worker::Worker::*",
                "Builtins_JSEntry*",
                "v8::internal::Execution::*",
            ],
            function,
        )
    },
    nameless: "JavaScript without names",
    naming: "Start node with --perf-basic-prof: then it says which function of JavaScript this is.",
    idles: &["node::SpinEventLoop*"],
    loops: &["node::SpinEventLoop*"],
    unseen: "promises and callbacks that wait for each other, for a time or for input do so inside of the program, where the kernel does not \
             see it. Spans of its requests (holdup record --span) tell how long each took.",
    works: BLOCKED,
    busy: BLOCKED,
    aside: Some((
        "node::worker::Worker::StartThread*",
        "{} runs in a worker (worker_threads), which does one task at a time: have more workers (maxThreads), cut its tasks into smaller ones, or \
         make it shorter.",
    )),
    blocks: "Use the asynchronous form of what {} calls: while the event loop waits here, no other callback runs.",
    ..Scheduler::NONE
};

const BLOCKED: &str = "While {} runs, the event loop of its thread runs no other callback, and all else waits: make it shorter, give it to a \
                       worker (worker_threads) or a process, use its asynchronous form, or cut it into parts (setImmediate).";

/// libuv's pool: file system, name resolution, compression and keys.
pub(super) const POOL: Scheduler = Scheduler {
    task: "job",
    waits: &["uv_cond_wait", "uv_cond_timedwait"],
    design_behind: &[("uv_cond_wait", "worker"), ("uv_cond_wait", "libuv.so*")],
    // What has a synchronous form runs in the event loop, too: only where its thread begins is it the pool's.
    is_task: |module, function| {
        any(&["uv__queue_work"], function)
            || function == "worker" && is_of_node(module.rsplit('/').next().unwrap_or(module))
    },
    lends_threads: true,
    blocks: "{} blocks a thread of libuv's pool, which has no more than UV_THREADPOOL_SIZE says (4 if nothing), and keeps files, names, keys and \
             compression waiting: raise that, or use what waits in the event loop (a socket in place of a pipe's name).",
    works: "{} runs in libuv's pool, which has no more threads than UV_THREADPOOL_SIZE says (4 if nothing): if other jobs wait \
            for it, raise that.",
    busy: "{} runs in libuv's pool, which has no more threads than UV_THREADPOOL_SIZE says (4 if nothing): if other jobs wait \
           for it, raise that.",
    ..Scheduler::NONE
};

/// V8's helpers: they collect and compile.
pub(super) const PLATFORM: Scheduler = Scheduler {
    waits: &["uv_sem_wait", "uv__sem_wait", "v8::base::*", "node::TaskQueue*"],
    design: &[
        "node::(anonymous namespace)::PlatformWorkerThread",
        "node::WorkerThreadsTaskRunner::DelayedTaskScheduler::Run*",
        "node::inspector::(anonymous namespace)::StartIoThreadMain",
        "v8::platform::DefaultWorkerThreadsTaskRunner::WorkerThread::Run",
    ],
    collects: &[
        "v8::internal::Heap::CollectGarbage*",
        "v8::internal::Scavenger*",
        "v8::internal::MarkCompactCollector*",
    ],
    collector: "Let node's heap grow further between collections (--max-semi-space-size, --max-old-space-size), or allocate less{}.",
    ..Scheduler::NONE
};

/// Where threads begin in it.
const OF_C: &[&str] = &["worker", "main", "_start"];

/// Whether a function is V8's, libuv's or Node's own; what Node brings for others, such as OpenSSL, is not meant.
fn is_own(module: &str, function: &str) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    match base {
        COMPILED => any(&["Builtin:*", "BytecodeHandler:*", "Stub:*"], function),
        _ if base.starts_with("libuv.so") => true,
        _ if is_of_node(base) => {
            // Its own code and V8's is C++; what it brings for others is C.
            let is_c_plus_plus = function.contains("::") || function.starts_with('{');
            is_c_plus_plus || any(&["Builtins_*", "uv_*", "llhttp_*"], function) || OF_C.contains(&function)
        }
        _ => false,
    }
}

/// Whether a file is Node's program, one of its libraries, or libuv.
fn is_of_node(base: &str) -> bool {
    base == "node" || base == "nodejs" || base.starts_with("libnode.so") || base.starts_with("libuv.so")
}
