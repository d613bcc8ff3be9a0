//! Java: locks and pools of its library, its own locks, and a database in the process.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, CpuBound, Imbalance, LockHeld, Serial, SleepPolling};

use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Scene, shares};

/// A lock of java.util.concurrent with work inside.
pub const LOCK: Case = Case {
    name: "java_lock",
    title: "Java, four threads and one ReentrantLock, held for 0.1 ms",
    command: "java Ledger 15000",
    needs: &["java", "javac", "jstack"],
    truth: "audit computes between lock() and unlock() of one ReentrantLock; the other clerks are parked at it. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy], function: "enter|audit", ..Is::ANY }],
        vague: &[Is { who: "^clerk", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| java(scene, "Ledger", include_str!("load/Ledger.java"), "java Ledger 15000", "clerk-"),
    fix: None,
};

/// The same with so little work that waking the next one takes longer.
pub const LOCK_SHORT: Case = Case {
    name: "java_lock_short",
    title: "Java, four threads and one ReentrantLock, held for microseconds",
    command: "java Stock 240000",
    truth: "digest computes a few microseconds under one ReentrantLock, and each hand-over wakes a parked worker. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy], function: "reserve|digest", ..Is::ANY }],
        vague: &[Is { who: "^worker|^java", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Stock", include_str!("load/Stock.java"), "java Stock 240000", "worker-"),
    ..LOCK
};

/// Tasks that queue while each thread of the pool waits for something else.
pub const POOL: Case = Case {
    name: "java_pool",
    title: "Java, eight clients and a pool of two threads",
    command: "java Pool 200",
    truth: "Eight clients wait for their tasks; both threads of the pool sleep in lookup, 5 ms for each task. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling, Serial, LockHeld], function: "lookup", ..Is::ANY }],
        vague: &[Is { who: "^pool-1", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Pool", include_str!("load/Pool.java"), "java Pool 200", "pool-1-|\"client-"),
    ..LOCK
};

/// A pool that has nothing to do, beside a thread that has.
pub const IDLE: Case = Case {
    name: "java_idle",
    title: "Java, a pool of four threads that is idle",
    command: "java Idle 4000",
    truth: "main computes in prepare all the time; the pool waits for tasks, which take a five-hundredth of that. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], function: "prepare|mix|main", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, CpuBound], who: "^java$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Idle", include_str!("load/Idle.java"), "java Idle 4000", "main\"|\"pool-1-"),
    ..LOCK
};

/// A static initialiser that computes.
pub const CLASS: Case = Case {
    name: "java_class",
    title: "Java, four threads and a static initialiser that computes",
    command: "java Start 1000000",
    truth: "One thread runs Table's static initialiser, in build; the others wait until the class is initialised. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy, Serial], function: "build|<clinit>", ..Is::ANY }],
        vague: &[Is { who: "^user", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Start", include_str!("load/Start.java"), "java Start 1000000", "user-"),
    ..LOCK
};

/// A parallel stream with one part that takes longest.
pub const STREAM: Case = Case {
    name: "java_stream",
    title: "Java, a parallel stream of uneven parts",
    command: "java Weights 240",
    truth: "One of sixteen parts has most of the work: weigh runs in one thread while the pool's others have none. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], function: "weigh|lambda", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, Imbalance, CpuBound], who: "^java|^ForkJoin", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        java(scene, "Weights", include_str!("load/Weights.java"), "java Weights 240", "main\"|\"ForkJoinPool")
    },
    ..LOCK
};

/// A database in the process, and work between its statements.
pub const H2: Case = Case {
    name: "java_h2",
    title: "H2, four threads and one row",
    command: "java -cp .:h2-2.2.224.jar Till 700",
    needs: &["java", "javac", "jstack", "mvn"],
    truth: "Each thread computes in price between its UPDATE and its commit; the others wait for the row's lock. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy, Serial], function: "price|sell|work", ..Is::ANY }],
        vague: &[Is { who: "^till", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.run(H2_JAR)?;
        java(scene, "Till", include_str!("load/Till.java"), H2.command, "till-")
    },
    ..LOCK
};

/// A lock that a library takes for one key of a map.
pub const MAP: Case = Case {
    name: "java_map",
    title: "Java, four threads and one key of a ConcurrentHashMap",
    command: "java Orders 30000",
    truth: "price computes inside of ConcurrentHashMap.compute, which lets one thread at a time have the key. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy], function: "price|book", ..Is::ANY }],
        vague: &[Is { who: "^clerk", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Orders", include_str!("load/Orders.java"), "java Orders 30000", "clerk-"),
    ..LOCK
};

/// Futures that queue for a pool.
pub const FUTURES: Case = Case {
    name: "java_futures",
    title: "Java, eight CompletableFutures and a pool of one thread",
    command: "java Quotes 70",
    truth: "main waits for its futures; the pool's one thread sleeps in fetchRate, 8 ms for each. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling, Serial, LockHeld], function: "fetchRate", ..Is::ANY }],
        vague: &[Is { who: "^pool-1", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Quotes", include_str!("load/Quotes.java"), "java Quotes 70", "pool-1-|\"main\""),
    ..LOCK
};

/// A semaphore with one permit, around native code.
pub const SEMAPHORE: Case = Case {
    name: "java_semaphore",
    title: "Java, four threads and a Semaphore of one permit",
    command: "java Uploads 150",
    truth: "compress, in zlib, has the only permit; the other uploaders are parked at it. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy, Serial], function: "deflate|compress", ..Is::ANY }],
        vague: &[Is { who: "^uploader", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Uploads", include_str!("load/Uploads.java"), "java Uploads 150", "uploader-"),
    ..LOCK
};

/// Tasks that are cut into pieces, but one.
pub const FORK: Case = Case {
    name: "java_fork",
    title: "Java, a ForkJoinPool and a leaf with most of the work",
    command: "java Tree 16",
    truth: "score computes for one leaf, while the pool's other threads have no task. jstack:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], function: "score|compute", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, Imbalance, CpuBound], who: "^java|^ForkJoin", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| java(scene, "Tree", include_str!("load/Tree.java"), "java Tree 16", "main\"|\"ForkJoinPool"),
    fix: Some(Fix {
        what: "leaves of one key, a pool of two",
        rate: |scene, fixed| {
            scene.write("Tree.java", include_str!("load/Tree.java"))?;
            speed(scene, "javac Tree.java", if fixed { "java Tree 16 fine" } else { "java Tree 16" })
        },
    }),
    ..LOCK
};

const H2_JAR: &str = "mvn -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
                      -Dartifact=com.h2database:h2:2.2.224 -DoutputDirectory=.";

/// Compiles `class` and records `command`; the truth from jstack of the threads whose names begin with `threads`.
fn java(scene: &Scene, class: &str, source: &str, command: &str, threads: &str) -> Result<Recorded> {
    scene.write(&format!("{class}.java"), source)?;
    ready(scene, &format!("javac {class}.java"))?;
    let truth = states(scene, command, threads)?;
    recorded(scene, ":", command, "java", truth)
}

/// In which states threads are, and where, while `command` runs unrecorded. `threads` are the beginnings of their names,
/// with `|"` between.
pub(super) fn states(scene: &Scene, command: &str, threads: &str) -> Result<String> {
    let load = scene.start(command)?;
    let mut dumps = String::new();
    for _ in 0..6 {
        sleep(Duration::from_millis(300));
        dumps += &scene.run(&format!("jstack {} || true", load.pid()))?;
    }
    let begins: Vec<String> = threads.split("|\"").map(|name| format!("\"{name}")).collect();
    let chosen = dumps.split("\n\n").filter(|thread| begins.iter().any(|begin| thread.contains(begin)));
    let seen: String = chosen
        .filter_map(|thread| {
            let state = thread.split("State: ").nth(1)?.split_whitespace().next()?;
            let method = |line: &str| Some(line.split("\tat ").nth(1)?.split('(').next()?.to_owned());
            let methods: Vec<String> = thread.lines().filter_map(method).collect();
            // The innermost one of the program itself, or else the innermost.
            let own = methods.iter().find(|m| !m.contains("java.") && !m.contains("jdk.")).or(methods.first())?;
            Some(format!("{state} in {own}\n"))
        })
        .collect();
    Ok(shares(&seen, 4) + ".")
}
