//! Go, as the standard toolchain compiles it.

use super::row::{Scheduler, Wakes, any};
use crate::runtime;

pub(super) const GO: Scheduler = Scheduler {
    task: "goroutine",
    is_own,
    is_of_library: |module, function| {
        let tells = |package: &str| {
            let mut parts = package.split('/');
            PACKAGES.contains(&first(package)) && !parts.any(|part| ["runtime", "internal"].contains(&part))
        };
        package(module, function).is_some_and(tells)
    },
    waits: &[
        "runtime.futex",
        "runtime.futexsleep",
        "runtime.notesleep",
        "runtime.notetsleep",
        "runtime.notetsleepg",
        "runtime.notetsleep_internal",
        "runtime.mPark",
        "runtime.usleep",
        "runtime.semasleep",
        "runtime.epollwait",
        "runtime.netpoll",
        "internal/runtime/syscall*",
        "runtime/internal/syscall*",
    ],
    homes: &["runtime.stopm", "runtime.stoplockedm", "runtime.findRunnable", "runtime.findrunnable"],
    design: &[
        "runtime.sysmon",
        "runtime.templateThread",
        "os/signal.signal_recv",
        // Naps of microseconds between looks at the queues of others.
        "runtime.stealWork",
        "runtime.runqgrab",
        "runtime.runqsteal",
    ],
    migrates: true,
    is_task: |module, function| {
        any(&["runtime.goexit", "runtime.main", "runtime.systemstack"], function) || is_of_goroutine(module, function)
    },
    wakes: &[CHANNELS, SYNC, BEGUN, NETWORK, PAUSES],
    collects: &[
        "runtime.gcBgMarkWorker*",
        "runtime.gcAssistAlloc*",
        "runtime.gcDrain*",
        "runtime.bgsweep",
        "runtime.gcStart*",
    ],
    collector: "Let the heap grow further between collections (GOGC, GOMEMLIMIT), or allocate less{}.",
    idles: &["runtime.stopm", "runtime.findRunnable", "runtime.findrunnable"],
    unseen: "goroutines that wait for each other, for a time or for input do so inside of the program, where the kernel does not see it. \
             pprof's profiles of goroutines, blocking and mutexes tell.",
    works: "Spread {} over goroutines, or make it shorter. Who waits for it meanwhile is not seen by the kernel: \
            pprof's block and mutex profiles tell.",
    busy: "If goroutines wait for a CPU (GODEBUG=schedtrace=1000 counts them), raise GOMAXPROCS; else spread {} over goroutines.",
    ..Scheduler::NONE
};

const CHANNELS: Wakes = Wakes {
    by: "channel operations",
    advice: "Let more goroutines do what {} does, give the channel a buffer, or make {} shorter: the others wait for it at a channel.",
    functions: &[
        "runtime.chansend*",
        "runtime.chanrecv*",
        "runtime.send",
        "runtime.send.*",
        "runtime.recv",
        "runtime.recv.*",
        "runtime.selectgo*",
        "runtime.closechan*",
    ],
    is_lock: false,
};

const SYNC: Wakes = Wakes {
    by: "locks and wait groups of package sync",
    advice: "Do less between Lock and Unlock: move the work of {} out, or lock smaller parts. (If the others waited for a \
             sync.WaitGroup, spread {} instead.)",
    functions: &["runtime.readyWithTime*", "runtime.semrelease*", "sync.*", "internal/sync.*"],
    is_lock: true,
};

const BEGUN: Wakes = Wakes {
    by: "the start of goroutines",
    advice: "Spread {} over goroutines, or make it shorter.",
    functions: &["runtime.newproc*"],
    is_lock: false,
};

const NETWORK: Wakes = Wakes {
    by: "the network",
    advice: "Spread {} over goroutines, or make it shorter.",
    functions: &["runtime.netpoll*", "runtime.injectglist*"],
    is_lock: false,
};

const PAUSES: Wakes = Wakes {
    by: "the end of a pause for the garbage collector",
    advice: "Make {} shorter, or allocate less in it.",
    functions: &["runtime.startTheWorldWithSema*"],
    is_lock: false,
};

/// The standard library's packages, up to the first slash.
const PACKAGES: &[&str] = &[
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
    "weak",
];

/// What C compilers put behind the name of a part or a copy of a function, which looks like a function of a package.
const SUFFIXES: &[&str] =
    &["isra", "part", "cold", "constprop", "lto_priv", "llvm", "omp_outlined", "_omp_fn", "clone"];

/// Whether a function lies in Go's standard library: `crypto/sha256.(*digest).Write`, but not `main.price`, nor
/// `github.com/x/log.Print`, nor C's `index.part.0`.
fn is_own(module: &str, function: &str) -> bool {
    // Its package of system calls is outside of it.
    let is_it = |package: &str| PACKAGES.contains(&first(package)) || package.starts_with("golang.org/x/sys/");
    package(module, function).is_some_and(is_it)
}

/// Whether only goroutines run a function: the program's own, or one of a package below another of the library. Of a large stack the part
/// that tells where it begins may be missing.
fn is_of_goroutine(module: &str, function: &str) -> bool {
    let of_library = |package: &str| {
        package.contains('/')
            && PACKAGES.contains(&first(package))
            && !["runtime", "internal"].contains(&first(package))
    };
    package(module, function).is_some_and(|package| package == "main" || of_library(package))
}

fn first(package: &str) -> &str {
    package.split('/').next().unwrap_or(package)
}

/// The package of a function of Go's; `None` if it looks like C's, or is interpreted: those have names with dots, too.
fn package<'f>(module: &str, function: &'f str) -> Option<&'f str> {
    if runtime::is_interpreted(module, function) {
        return None;
    }
    // Types in brackets have packages of their own.
    let end = function.find(['[', '(']).unwrap_or(function.len());
    let last = function[..end].rfind('/').map_or(0, |slash| slash + 1);
    let (package, name) = function[last..].split_once('.')?;
    let package = &function[..last + package.len()];
    // Go's own assembly says so.
    let is_assembly = name.ends_with(".abi0");
    let is_numbered = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_suffix = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| !c.is_alphabetic());
    let is_of_c = is_numbered || !is_assembly && SUFFIXES.iter().any(|s| name.strip_prefix(s).is_some_and(is_suffix));
    (!is_of_c && !package.contains([' ', ':', '<'])).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goroutines_are_known_by_what_they_run() {
        let is = |function: &str| is_of_goroutine("app", function);
        assert!(
            ["main.(*SessionStore).Touch", "main.price", "main.main.func1", "crypto/sha256.Sum256"]
                .map(is)
                .iter()
                .all(|is| *is)
        );
        assert!(
            !["main.cold", "main.part.0", "runtime.stopm", "internal/runtime/syscall.EpollWait", "io.copy"]
                .map(is)
                .iter()
                .any(|is| *is)
        );
        assert!(!is_of_goroutine("[jit]", "main.Application.run"));
        // Python's functions in functions, and methods.
        assert!(!is_of_goroutine("/srv/app.py", "main.<locals>.one") && !is_own("/srv/app.py", "sync.<locals>.one"));
        assert!(is_own("app", "sync.(*Mutex).Lock"));
    }
}
