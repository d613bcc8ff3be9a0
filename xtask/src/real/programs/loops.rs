//! Node.js: its event loop, its pool, its workers.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Imbalance, LockHeld, Serial};

use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port};

/// A callback that computes in JavaScript; V8 says where its functions are.
pub const REPORT: Case = Case {
    name: "node_report",
    title: "Node.js, a callback that computes, with --perf-basic-prof",
    command: "node --perf-basic-prof app.js; wrk /report",
    needs: &["node", "curl", "wrk"],
    truth: "buildReport sorts and joins in the only thread. monitorEventLoopDelay:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], who: "^node$", function: "buildReport", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, CpuBound], who: "^node$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| app(scene, "--perf-basic-prof", "report"),
    fix: None,
};

/// The same as most run it: names are read from the program's memory.
pub const NAMELESS: Case = Case {
    name: "node_nameless",
    title: "Node.js, a callback that computes, as it comes",
    command: "node app.js; wrk /report",
    record: |scene| app(scene, "", "report"),
    ..REPORT
};

/// One thread in the pool, eight requests for it.
pub const POOL: Case = Case {
    name: "node_pool",
    title: "Node.js, UV_THREADPOOL_SIZE=1 and eight requests for a key",
    command: "UV_THREADPOOL_SIZE=1 node app.js; wrk -c 8 /key",
    truth: "Seven of eight keys wait for the one thread of the pool, and the event loop for none. Its own clock:",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, CpuBound],
            who: "^node|libuv",
            function: "(?i)pbkdf2|sha512|hmac|digest",
            ..Is::ANY
        }],
        ..REPORT.expect
    },
    record: |scene| app(scene, "", "key"),
    ..REPORT
};

/// Workers at a lock of their own making.
pub const ATOMICS: Case = Case {
    name: "node_atomics",
    title: "Node.js, worker_threads and a lock by Atomics.wait",
    command: "node --perf-basic-prof atomics.js",
    needs: &["node"],
    truth: "rebuildIndex runs under the lock. Its own clock:",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, LockHeld, Imbalance],
            who: "^node|Worker",
            function: "rebuildIndex",
            ..Is::ANY
        }],
        ..REPORT.expect
    },
    record: |scene| {
        scene.write("atomics.js", include_str!("load/atomics.js"))?;
        let truth = scene.run("node atomics.js")?;
        recorded(scene, ":", "node --perf-basic-prof atomics.js", "node", truth.trim().to_owned())
    },
    fix: Some(Fix {
        what: "computed before the lock",
        rate: |scene, fixed| {
            scene.write("atomics.js", include_str!("load/atomics.js"))?;
            speed(scene, ":", if fixed { "node atomics.js before" } else { "node atomics.js" })
        },
    }),
    ..REPORT
};

/// A real framework whose handler computes.
pub const EXPRESS: Case = Case {
    name: "node_express",
    title: "Express under load, a handler that computes",
    command: "node --perf-basic-prof shop.js; wrk -c 8",
    needs: &["node", "npm", "curl", "wrk"],
    truth: "The handler prices a cart in JavaScript between Express' layers. monitorEventLoopDelay:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], who: "^node$", function: "priceCart|renderCart", ..Is::ANY }],
        ..REPORT.expect
    },
    record: |scene| {
        scene.write("shop.js", include_str!("load/shop.js"))?;
        ready(scene, "npm install --silent --no-audit --no-fund express@4 >/dev/null 2>&1")?;
        served(scene, "node --perf-basic-prof shop.js", "")
    },
    ..REPORT
};

/// The synchronous form of what has an asynchronous one.
pub const GZIP: Case = Case {
    name: "node_gzip",
    title: "Node.js, zlib.gzipSync in a handler",
    command: "node --perf-basic-prof gzip.js; wrk -c 8",
    truth: "exportRows compresses in the only thread. monitorEventLoopDelay:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], who: "^node$", function: "exportRows|deflate", ..Is::ANY }],
        ..REPORT.expect
    },
    record: |scene| {
        scene.write("gzip.js", include_str!("load/gzip.js"))?;
        served(scene, "node --perf-basic-prof gzip.js", "")
    },
    ..REPORT
};

/// One worker thread for all requests.
pub const WORKER: Case = Case {
    name: "node_worker",
    title: "Node.js, eight requests and one worker thread",
    command: "node --perf-basic-prof shrink.js; wrk -c 8",
    truth: "shrinkPicture runs in the one worker while seven pictures wait for it, and the event loop for none. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], who: "^node|Worker", function: "shrinkPicture", ..Is::ANY }],
        ..REPORT.expect
    },
    record: |scene| {
        scene.write("shrink.js", include_str!("load/shrink.js"))?;
        served(scene, "node --perf-basic-prof shrink.js", "")
    },
    ..REPORT
};

fn app(scene: &Scene, flag: &str, path: &str) -> Result<Recorded> {
    scene.write("app.js", include_str!("load/app.js"))?;
    let size = if path == "key" { "env UV_THREADPOOL_SIZE=1 " } else { "" };
    served(scene, &format!("{size}node {flag} app.js"), path)
}

/// A server under eight connections' load; what it says of itself when it ends.
fn served(scene: &Scene, command: &str, path: &str) -> Result<Recorded> {
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}/");
    let server = scene.start_until(&format!("{command} {port}"), &format!("curl -s {url}"))?;
    let _load: Running =
        scene.start(&format!("wrk -t 1 -c 8 -d {} --timeout 10s {url}{path}", scene.load_seconds()))?;
    let (trace, _) = scene.record_pid(server.pid(), || Ok(String::new()))?;
    drop(server);
    let late = scene.run("grep -h 'event loop' log")?;
    Ok(Recorded { trace, truth: format!("{}.", late.trim()), focus: "node" })
}
