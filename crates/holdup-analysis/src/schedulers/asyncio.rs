//! Python's asyncio: one thread runs all tasks of an event loop.

use super::row::Scheduler;

pub(super) const ASYNCIO: Scheduler = Scheduler {
    // The loop itself waits outside of it.
    is_task: |module, function| {
        module.ends_with("/asyncio/events.py") && (function == "Handle._run" || function == "_run")
    },
    lends_threads: true,
    idles: &["BaseEventLoop.run_forever", "run_forever"],
    unseen: "coroutines that await each other, a time or input do so inside of the program, where the kernel does not see it. Spans of its \
             requests (holdup record --span) tell how long each took.",
    works: BLOCKED,
    busy: BLOCKED,
    blocks: "{} blocks the thread of asyncio's event loop, and all its tasks wait: await its asynchronous form, or give it to \
             asyncio.to_thread.",
    ..Scheduler::NONE
};

const BLOCKED: &str = "While {} runs, the event loop of asyncio runs no other task, and requests wait: give it to a process \
                       (run_in_executor), or cut it with await asyncio.sleep(0).";
