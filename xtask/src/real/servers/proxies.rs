//! Servers before other servers: who asks one of them waits for what is behind it.

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind::{CpuBound, Network, Serial, SleepPolling};

use super::instruments::{by_its_clock, requests, wrk, wrk_waits_for};
use super::postgres;
use crate::real::case::{Case, Client, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port, number_after, run_as};

/// Each of its workers waits for an application that serves one request at a time.
pub const VARNISH: Case = Case {
    name: "varnish_backend",
    title: "Varnish before an application that serves one at a time",
    command: "varnishd -b application (HTTPServer, 20 ms of time.sleep each); wrk -t 1 -c 8",
    needs: &["varnishd", "wrk", "/usr/bin/python3"],
    truth: "Nothing may be kept in the cache: all eight requests wait in turn for the application, which sleeps. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling], who: "python3", function: "query_stock|sleep", ..Is::ANY }],
        vague: &[Is { who: "python3", ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "python3", ..Is::ANY }]),
    record: |scene| {
        let (server, _application, port) = varnish(scene, "0.02")?;
        by_its_clock(scene, (server, port), "varnishd")
    },
    fix: Some(Fix {
        what: "it sleeps 5 ms",
        rate: |scene, fixed| {
            let (_server, _application, port) = varnish(scene, if fixed { "0.005" } else { "0.02" })?;
            requests(scene, port)
        },
    }),
};

/// Its listen queue is as long as its clients are many, or connections would be tried again after a second.
const ONE_AT_A_TIME: &str = "\
import http.server, sys, time
asleep, begun = 0, time.time()
def query_stock():
    global asleep
    before = time.time()
    time.sleep(float(sys.argv[2]))
    asleep += time.time() - before
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query_stock()
        self.send_response(200)
        self.send_header('Cache-Control', 'no-store')
        self.send_header('Content-Length', '3')
        self.end_headers()
        self.wfile.write(b'ok\\n')
        with open('clock', 'w') as clock: clock.write(f'asleep for {asleep:.2f} s of {time.time() - begun:.2f} s')
    def log_message(self, *_): pass
http.server.HTTPServer.request_queue_size = 64
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

fn varnish(scene: &Scene, sleep: &str) -> Result<(Running, Running, u16)> {
    let (behind, port, dir) = (free_port()?, free_port()?, scene.dir.display());
    scene.write("stock.py", ONE_AT_A_TIME)?;
    let application = scene.start(&format!("/usr/bin/python3 stock.py {behind} {sleep}"))?;
    let command =
        format!("varnishd -F -a 127.0.0.1:{port} -b 127.0.0.1:{behind} -n {dir}/varnish -T none -s malloc,32m");
    let server = scene.start_until(&command, &format!("curl -sf http://127.0.0.1:{port}/"))?;
    Ok((server, application, port))
}

/// The application writes head and body apart, and its second write is held back.
pub const HAPROXY: Case = Case {
    name: "haproxy_nagle",
    title: "HAProxy before an application that writes head and body apart",
    command: "haproxy (server … maxconn 1) before ThreadingHTTPServer; wrk -t 1 -c 8",
    needs: &["haproxy", "wrk", "/usr/bin/python3"],
    truth: "The body waits in the application's kernel for an acknowledgement, 40 ms. Acknowledgements that were held back, of all of the \
            machine (/proc/net/netstat), in three seconds:",
    expect: Expect {
        right: &[Is { kinds: &[Network], title: "of `python3`", ..Is::ANY }],
        vague: &[Is { kinds: &[Network], ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client {
        process: "wrk",
        expect: Expect {
            right: &[Is { kinds: &[Network], title: "of `python3`", ..Is::ANY }],
            vague: &[Is { who: "python3|haproxy", ..Is::ANY }],
            nothing: false,
        },
    }),
    record: |scene| {
        let (server, _application, port) = haproxy(scene, false)?;
        let _load = scene.start(&wrk(port, scene.load_seconds()))?;
        let (trace, truth) = scene.record_pid(server.pid(), || {
            let before = held_back()?;
            std::thread::sleep(std::time::Duration::from_secs(3));
            Ok((held_back()? - before).to_string())
        })?;
        Ok(Recorded { trace, truth, focus: "haproxy" })
    },
    fix: Some(Fix {
        what: "one write for both",
        rate: |scene, fixed| {
            let (_server, _application, port) = haproxy(scene, fixed)?;
            requests(scene, port)
        },
    }),
};

const APART: &str = "\
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = int(sys.argv[2])
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '3')
        self.end_headers()
        self.wfile.write(b'ok\\n')
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

fn haproxy(scene: &Scene, at_once: bool) -> Result<(Running, Running, u16)> {
    let (behind, port) = (free_port()?, free_port()?);
    scene.write("apart.py", APART)?;
    let buffer = if at_once { 65_536 } else { 0 };
    let application = scene.start(&format!("/usr/bin/python3 apart.py {behind} {buffer}"))?;
    let conf = format!(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend front\n bind 127.0.0.1:{port}\n \
         default_backend back\nbackend back\n server app 127.0.0.1:{behind} maxconn 1\n"
    );
    scene.write("haproxy.cfg", &conf)?;
    let server = scene.start_until("haproxy -db -f haproxy.cfg", &format!("curl -sf http://127.0.0.1:{port}/"))?;
    Ok((server, application, port))
}

/// How many acknowledgements were held back, since the machine began.
fn held_back() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/net/netstat")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().context("TcpExt")?, lines.next().context("TcpExt")?);
    let found = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "DelayedACKs");
    Ok(found.context("DelayedACKs")?.1.parse()?)
}

/// All clients share one connection to the server.
pub const PGBOUNCER: Case = Case {
    name: "pgbouncer_pool",
    title: "PgBouncer, eight clients and a pool of one connection",
    command: "pgbouncer (pool_size = 1) before PostgreSQL; pgbench -c 8 -f sum.sql",
    needs: &["pgbouncer", "postgres", "pgbench", "psql"],
    truth: "Seven clients wait in PgBouncer for its one connection, whose backend computes. show pools: clients served, clients that wait, \
            connections that work:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], who: "postgres", function: "Exec|advance|Portal", ..Is::ANY }],
        vague: &[Is { who: "postgres", ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client {
        process: "pgbench",
        expect: Expect { right: &[Is { kinds: HELD_UP, who: "postgres", ..Is::ANY }], vague: &[], nothing: false },
    }),
    record: |scene| {
        let (server, pool) = (postgres::Server::start(scene, "")?, free_port()?);
        let running = pgbouncer(scene, &server, pool, 1)?;
        let _load = scene.start(&pgbench(pool, scene.load_seconds()))?;
        let (trace, truth) = scene.record_pid(running.pid(), || {
            std::thread::sleep(std::time::Duration::from_secs(1));
            let show =
                format!("psql -qAt -F ' ' -h 127.0.0.1 -p {pool} -U postgres pgbouncer -c 'show pools' | grep ^app");
            let pools = scene.run(&show)?;
            let columns: Vec<&str> = pools.split_whitespace().collect();
            Ok([2, 3, 6].map(|i| columns.get(i).copied().unwrap_or("?")).join(", "))
        })?;
        Ok(Recorded { trace, truth, focus: "pgbouncer" })
    },
    fix: Some(Fix {
        what: "a pool of two",
        rate: |scene, fixed| {
            let (server, pool) = (postgres::Server::start(scene, "")?, free_port()?);
            let _running = pgbouncer(scene, &server, pool, if fixed { 2 } else { 1 })?;
            number_after(&scene.run(&pgbench(pool, 3))?, "tps =")
        },
    }),
};

fn pgbouncer(scene: &Scene, server: &postgres::Server, port: u16, size: usize) -> Result<Running> {
    let behind = server.at.split(' ').find_map(|pair| pair.strip_prefix("PGPORT=")).context("PGPORT")?;
    let conf = format!(
        "[databases]\napp = host=127.0.0.1 port={behind} dbname=postgres user=postgres pool_size={size}\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nadmin_users = postgres\npool_mode = transaction\n\
         unix_socket_dir =\n"
    );
    let path = scene.write("pgbouncer.ini", &conf)?;
    scene.write("sum.sql", "select sum(i * i) from generate_series(1, 20000) i;\n")?;
    let command = format!("{} pgbouncer -q {}", run_as("postgres"), path.display());
    scene.start_until(&command, &format!("psql -h 127.0.0.1 -p {port} -U postgres app -c 'select 1'"))
}

fn pgbench(port: u16, seconds: u64) -> String {
    format!("pgbench -n -h 127.0.0.1 -p {port} -U postgres -c 8 -j 2 -T {seconds} -f sum.sql app")
}
