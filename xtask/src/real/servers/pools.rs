//! Servers in which one thread takes the requests and a pool too small works for them.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{LockHeld, SleepPolling};

use super::instruments::{by_its_clock, requests, wrk_waits_for};
use crate::real::case::{Case, Expect, Fix, HELD_UP, Is};
use crate::real::scene::{Running, Scene, free_port};

/// The answer comes from the thread that took the request, when the pool's is done.
pub const EXECUTOR: Case = Case {
    name: "python_executor",
    title: "asyncio and an executor of one thread, which sleeps",
    command: "python3 reports.py PORT 1 (run_in_executor: time.sleep(0.01)); wrk -t 1 -c 8",
    needs: &["python3", "wrk", "curl"],
    truth: "Seven of eight requests wait for the executor's one thread, which sleeps. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling], who: "python3", function: "report|sleep", ..Is::ANY }],
        vague: &[Is { kinds: &[SleepPolling], ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "python3", ..Is::ANY }]),
    record: |scene| by_its_clock(scene, python(scene, 1)?, "python3"),
    fix: Some(Fix {
        what: "two threads",
        rate: |scene, fixed| {
            let (_server, port) = python(scene, if fixed { 2 } else { 1 })?;
            requests(scene, port)
        },
    }),
};

/// The answer comes from the pool's threads, of which one at a time may ask the database.
pub const CONNECTIONS: Case = Case {
    name: "java_connections",
    title: "Java, an HttpServer of 16 threads and one connection to its database",
    command: "java Rows PORT 1 (Semaphore.acquire; Thread.sleep(8)); wrk -t 1 -c 8",
    needs: &["java", "javac", "wrk", "curl"],
    truth: "Seven of eight requests wait for the one connection, whose owner sleeps. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling, LockHeld], function: "query|sleep", ..Is::ANY }],
        vague: &[Is { kinds: &[SleepPolling, LockHeld], ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "java|pool", ..Is::ANY }]),
    record: |scene| by_its_clock(scene, java(scene, 1)?, "java"),
    fix: Some(Fix {
        what: "two connections",
        rate: |scene, fixed| {
            let (_server, port) = java(scene, if fixed { 2 } else { 1 })?;
            requests(scene, port)
        },
    }),
};

const REPORTS: &str = "\
import asyncio, concurrent.futures, sys, time
asleep, begun = 0, time.time()
pool = concurrent.futures.ThreadPoolExecutor(int(sys.argv[2]))
def report():
    global asleep
    before = time.time()
    time.sleep(0.01)
    asleep += time.time() - before
    with open('clock', 'w') as clock: clock.write(f'asleep for {asleep:.2f} s of {time.time() - begun:.2f} s')
    return b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok'
async def serve(reader, writer):
    try:
        while await reader.readuntil(b'\\r\\n\\r\\n'):
            writer.write(await asyncio.get_running_loop().run_in_executor(pool, report))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
";

fn python(scene: &Scene, threads: u32) -> Result<(Running, u16)> {
    scene.write("reports.py", REPORTS)?;
    start(scene, &|port| format!("python3 reports.py {port} {threads}"))
}

fn java(scene: &Scene, connections: u32) -> Result<(Running, u16)> {
    scene.write("Rows.java", include_str!("load/Rows.java"))?;
    scene.run("javac Rows.java")?;
    start(scene, &|port| format!("java Rows {port} {connections}"))
}

fn start(scene: &Scene, command: &dyn Fn(u16) -> String) -> Result<(Running, u16)> {
    let port = free_port()?;
    let ready = format!("curl -sf http://127.0.0.1:{port}/");
    Ok((scene.start_until(&command(port), &ready)?, port))
}
