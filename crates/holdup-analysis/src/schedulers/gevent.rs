//! Python's gevent: a hub runs all greenlets of a thread, one at a time.

use super::row::Scheduler;

pub(super) const GEVENT: Scheduler = Scheduler {
    task: "greenlet",
    // The hub itself waits in its loop (libev's or libuv's), outside of these.
    is_task: |_, function| matches!(function, "gevent_run_callbacks" | "gevent_loop_run_callbacks" | "gevent_call"),
    lends_threads: true,
    unseen: "greenlets that wait for each other, for a time or for input do so inside of the program, where the kernel does not see it. Spans of \
             its requests (holdup record --span) tell how long each took.",
    works: BLOCKED,
    busy: BLOCKED,
    blocks: "{} blocks the thread of gevent's hub, and all its greenlets wait: call what gevent knows of (monkey.patch_all before anything else is \
             imported; psycogreen for psycopg2), or give it to gevent's threadpool.",
    ..Scheduler::NONE
};

const BLOCKED: &str = "While {} runs, gevent's hub runs no other greenlet, and requests wait: give it to a process, or cut it with gevent.sleep(0).";
