//! Netty, and what is built on it (Vert.x, Reactor, gRPC, Cassandra): each event loop has a thread, and many connections.

use super::row::{Scheduler, any};

pub(super) const NETTY: Scheduler = Scheduler {
    is_own: |_, function| function.starts_with("io.netty."),
    is_task: |_, function| {
        any(
            &[
                "io.netty.channel.nio.NioEventLoop.processSelectedKey*",
                "io.netty.channel.nio.NioIoHandler.processSelectedKey*",
                "io.netty.channel.epoll.EpollEventLoop.processReady*",
                "io.netty.channel.epoll.EpollIoHandler.processReady*",
            ],
            function,
        )
    },
    task: "handler",
    works: BLOCKED,
    busy: BLOCKED,
    blocks: "{} blocks the thread of an event loop of Netty, and all its connections wait: use its asynchronous form, or give the handler an \
             executor of its own (EventExecutorGroup).",
    ..Scheduler::NONE
};

const BLOCKED: &str = "While {} runs, the event loop of Netty whose thread it has serves none of its other connections: make it shorter, or give \
                       the handler an executor of its own (EventExecutorGroup).";
