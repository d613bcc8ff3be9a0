//! Go: what goroutines wait for, which the kernel does not see.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, CpuBound, Gc, Imbalance, LockHeld, Serial};

use super::{ready, recorded};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port};
use crate::real::servers::instruments::{requests, wrk};

/// A reader-writer lock whose writer computes.
pub const RWMUTEX: Case = Case {
    name: "go_rwmutex",
    title: "Go, sync.RWMutex whose writer computes",
    command: "./forms rwmutex 300",
    needs: &["go"],
    truth: "(*table).reprice prices while it has the table for writing. The program's own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, LockHeld, Imbalance], who: "^forms$", function: "price", ..Is::ANY }],
        vague: &[Is { who: "^forms$", function: "main", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| form(scene, "", "rwmutex 300"),
    fix: None,
};

/// An unbuffered channel whose consumer is slow.
pub const CHANNEL: Case = Case {
    name: "go_channel",
    title: "Go, four producers and one slow consumer at an unbuffered channel",
    command: "./forms channel 10000",
    truth: "consume takes longer for a row than the producers. The program's own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], who: "^forms$", function: "price|consume", ..Is::ANY }],
        vague: &[Is { who: "^forms$", function: "main", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| form(scene, "", "channel 10000"),
    ..RWMUTEX
};

/// Collections that take a part of all CPU time.
pub const GARBAGE: Case = Case {
    name: "go_garbage",
    title: "Go, a heap that is collected all the time",
    command: "GOGC=20 ./forms garbage 400",
    truth: "Four goroutines build trees and drop them. The runtime's own count, and GODEBUG=gctrace=1:",
    expect: Expect {
        right: &[Is { kinds: &[Gc, CpuBound, Serial], who: "^forms$", function: "grow|^$", ..Is::ANY }],
        vague: &[Is { who: "^forms$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, &forms(scene)?)?;
        let said = scene.run("GOGC=20 GODEBUG=gctrace=1 ./forms garbage 400 2>&1 | tail -2 | sed 's/ ms cpu.*//'")?;
        recorded(
            scene,
            ":",
            "GOGC=20 ./forms garbage 400",
            "forms",
            said.split_whitespace().collect::<Vec<_>>().join(" "),
        )
    },
    ..RWMUTEX
};

/// Fewer threads for goroutines than CPUs.
pub const GOMAXPROCS: Case = Case {
    name: "go_maxprocs",
    title: "Go, GOMAXPROCS=1 on more CPUs",
    command: "GOMAXPROCS=1 ./forms compute 2000",
    truth: "Four goroutines compute on one thread. GODEBUG=schedtrace=100, goroutines in the queue:",
    expect: Expect {
        right: &[Is { kinds: &[CpuBound, Serial], who: "^forms$", function: "price", ..Is::ANY }],
        vague: &[Is { who: "^forms$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, &forms(scene)?)?;
        let queued = "GOMAXPROCS=1 GODEBUG=schedtrace=100 ./forms compute 2000 2>&1 | sed -n 's/.*runqueue=\\([0-9]*\\) \\(.*\\)/\\1 \\2/p'";
        let said = crate::real::scene::shares(&scene.run(queued)?, 2);
        recorded(scene, ":", "GOMAXPROCS=1 ./forms compute 2000", "forms", said)
    },
    ..RWMUTEX
};

/// A server that nobody asks.
pub const IDLE: Case = Case {
    name: "go_idle",
    title: "Go, an idle net/http server",
    command: "./idle PORT",
    needs: &["go", "curl"],
    truth: "Nobody asks it for anything. CPU time in /proc/PID/stat, in ticks of 10 ms:",
    expect: Expect { right: &[], vague: &[], nothing: true },
    record: |scene| {
        scene.write("idle.go", include_str!("load/idle.go"))?;
        ready(scene, "go build -o idle idle.go")?;
        let port = free_port()?;
        let server = scene.start_until(&format!("./idle {port}"), &format!("curl -s http://127.0.0.1:{port}/"))?;
        let pid = server.pid();
        let ticks = || scene.run(&format!("awk '{{print $14 + $15}}' /proc/{pid}/stat"));
        let (trace, truth) = scene.record_pid(pid, ticks)?;
        Ok(Recorded { trace, truth: truth.trim().to_owned(), focus: "idle" })
    },
    ..RWMUTEX
};

/// A server with a lock around what it computes.
pub const PAGES: Case = Case {
    name: "go_pages",
    title: "Go, net/http and a mutex around a map",
    command: "./pages PORT; wrk -t 1 -c 8",
    needs: &["go", "wrk", "curl"],
    truth: "render computes under the mutex, and the other requests wait in page. pprof, waits for mutexes:",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, LockHeld, Convoy],
            who: "^pages$",
            function: "main.render|main.page",
            ..Is::ANY
        }],
        vague: &[Is { who: "^pages$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        let (server, port) = pages(scene, "")?;
        let url = format!("http://127.0.0.1:{port}/");
        let _load = scene.start(&wrk(port, scene.load_seconds()))?;
        let (trace, _) = scene.record_pid(server.pid(), || Ok(String::new()))?;
        let profile = "debug/pprof/mutex?debug=1";
        let said = scene.run(&format!("curl -s '{url}{profile}' | grep -m 1 -o 'main\\.[a-z]*'"))?;
        Ok(Recorded { trace, truth: said.trim().to_owned() + ".", focus: "pages" })
    },
    fix: Some(Fix {
        what: "rendered before the lock",
        rate: |scene, fixed| {
            let (_server, port) = pages(scene, if fixed { "before" } else { "" })?;
            requests(scene, port)
        },
    }),
    ..RWMUTEX
};

/// Builds and starts it.
fn pages(scene: &Scene, how: &str) -> Result<(Running, u16)> {
    scene.write("pages.go", include_str!("load/pages.go"))?;
    ready(scene, "go build -o pages pages.go")?;
    let port = free_port()?;
    let server = scene.start_until(&format!("./pages {port} {how}"), &format!("curl -s http://127.0.0.1:{port}/"))?;
    Ok((server, port))
}

/// A group of goroutines of which one has most of the work.
pub const WAVES: Case = Case {
    name: "go_waves",
    title: "Go, a sync.WaitGroup of eight, one with most of the work",
    command: "./waves 18",
    truth: "grind runs in one goroutine while main waits for it and nobody has work. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], who: "^waves$", function: "grind", ..Is::ANY }],
        vague: &[Is { who: "^waves$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.write("waves.go", include_str!("load/waves.go"))?;
        ready(scene, "go build -o waves waves.go")?;
        let truth = scene.run("./waves 18")?;
        recorded(scene, ":", "./waves 18", "waves", truth.trim().to_owned() + ".")
    },
    ..RWMUTEX
};

fn forms(scene: &Scene) -> Result<String> {
    scene.write("forms.go", include_str!("load/forms.go"))?;
    Ok("go build -o forms forms.go".to_owned())
}

/// What the program says of a run, and a recording of another.
fn form(scene: &Scene, environment: &str, arguments: &str) -> Result<Recorded> {
    ready(scene, &forms(scene)?)?;
    let command = format!("{environment}./forms {arguments}");
    let truth = scene.run(&command)?;
    recorded(scene, ":", &command, "forms", truth.trim().to_owned())
}
