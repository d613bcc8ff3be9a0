//! Two that talk: requests, replies, and what lies between.

use anyhow::Result;
use holdup_analysis::report::FindingKind::Serial;

use super::{interpreter, recorded};
use crate::real::case::{Case, Client, Expect, Fix, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port, number_after};

/// An event loop that computes.
pub const NODE: Case = Case {
    name: "node_event_loop",
    title: "Node.js, a computation in the event loop",
    command: "node server.js; python3 http_clients.py",
    needs: &["node", "python3"],
    truth: "pbkdf2Sync (OpenSSL's PBKDF2 with SHA-512) blocks the only thread, and all clients with it.",
    expect: Expect {
        right: &[Is { who: "^node$", function: "(?i)pbkdf2|sha512|sha_|hmac|digest", ..Is::ANY }],
        vague: &[Is { who: "^node$", kinds: &[Serial], ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client {
        process: "python3",
        expect: Expect {
            right: &[Is { who: "^node$", function: "(?i)pbkdf2|sha512|sha_|hmac|digest", ..Is::ANY }],
            vague: &[Is { who: "^node$", ..Is::ANY }],
            nothing: false,
        },
    }),
    record: |scene| {
        let (server, port) = node(scene)?;
        let clients = http_clients(scene, port, "")?;
        let _clients = scene.start(&format!("{clients} >>clients"))?;
        let (trace, ()) = (scene.record_pid(server.pid(), || Ok(String::new()))?.0, drop(server));
        let late = scene.run("grep -h late log")?;
        Ok(Recorded { trace, truth: format!("monitorEventLoopDelay: {}.", late.trim()), focus: "node" })
    },
    fix: None,
};

fn node(scene: &Scene) -> Result<(Running, u16)> {
    scene.write("server.js", include_str!("load/server.js"))?;
    let port = free_port()?;
    let server = scene.start_until(&format!("node server.js {port}"), &format!("curl -s http://127.0.0.1:{port}/"))?;
    Ok((server, port))
}

fn http_clients(scene: &Scene, port: u16, more: &str) -> Result<String> {
    scene.write("http_clients.py", include_str!("load/http_clients.py"))?;
    Ok(format!("{} http_clients.py {port} {} {more}", interpreter(scene)?, scene.load_seconds()))
}

/// A client and a server that take turns.
pub const REDIS: Case = Case {
    name: "redis_turns",
    title: "Redis, one client on a Unix socket",
    command: "redis-benchmark -s redis.sock -c 1 -n 100000 -t set",
    needs: &["redis-server", "redis-benchmark", "redis-cli"],
    truth: "One request at a time: client and server take turns, and neither has to wait longer than the other works.",
    expect: Expect {
        right: &[Is { who: "redis", title: "turns|round trip|request|answer|reply", ..Is::ANY }],
        vague: &[Is { who: "redis", kinds: &[Serial], ..Is::ANY }],
        nothing: true,
    },
    client: None,
    record: |scene| {
        let _server = redis(scene)?;
        let command = turns(1);
        let said = scene.run(&command)?;
        let rate = number_after(&said, "SET:")?;
        recorded(scene, ":", &command, "redis-benchmark", format!("{:.0} µs a round trip.", 1e6 / rate))
    },
    fix: Some(Fix {
        what: "16 requests at a time (-P 16)",
        rate: |scene, fixed| {
            let _server = redis(scene)?;
            number_after(&scene.run(&turns(if fixed { 16 } else { 1 }))?, "SET:")
        },
    }),
};

fn redis(scene: &Scene) -> Result<Running> {
    scene.start_until(
        "redis-server --port 0 --unixsocket redis.sock --save ''",
        "redis-cli -s redis.sock ping | grep -q PONG",
    )
}

/// Its last line has the rate.
fn turns(pipelined: u32) -> String {
    format!("redis-benchmark -s redis.sock -c 1 -P {pipelined} -n 100000 -q -t set | tr '\\r' '\\n' | tail -2")
}

/// Small writes that the network stack holds back.
pub const DELAYED_ACK: Case = Case {
    name: "delayed_ack",
    title: "TCP, write-write-read: Nagle against delayed acknowledgement",
    command: "python3 small_writes.py",
    needs: &["python3"],
    truth: "The second write is held back until the peer's delayed acknowledgement, 40 ms later.",
    expect: Expect {
        right: &[Is { title: "(?i)acknowledg|nagle|delayed|held back|network stack", ..Is::ANY }],
        vague: &[Is { who: "python", title: "network|reply|answer", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let command = small_writes(scene, "")?;
        let counts = "awk '/^TcpExt/{if(!h[1])split($0,h);else split($0,v)} END{for(i in h)if(h[i]==\"DelayedACKs\")print \
                      v[i]}' /proc/net/netstat";
        let before: f64 = scene.run(counts)?.trim().parse()?;
        let trips = number_after(&scene.run(&command)?, "round trips")?;
        let acknowledged = scene.run(counts)?.trim().parse::<f64>()? - before;
        let truth = format!(
            "{:.1} ms a round trip; {acknowledged} delayed acknowledgements (/proc/net/netstat) for {trips}.",
            3e3 / trips
        );
        recorded(scene, ":", &command, "python3", truth)
    },
    fix: Some(Fix {
        what: "TCP_NODELAY",
        rate: |scene, fixed| {
            number_after(&scene.run(&small_writes(scene, if fixed { "nodelay" } else { "" })?)?, "round trips")
        },
    }),
};

fn small_writes(scene: &Scene, more: &str) -> Result<String> {
    scene.write("small_writes.py", include_str!("load/small_writes.py"))?;
    Ok(format!("{} small_writes.py 3 {more}", interpreter(scene)?))
}
