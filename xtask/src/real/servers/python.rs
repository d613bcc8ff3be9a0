//! Python's server with threads: they compute one at a time.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, LockHeld};

use super::instruments::{cpu_share, requests, wrk, wrk_waits_for};
use crate::real::case::{Case, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Scene, free_port};

/// Threads that answer requests and want the interpreter's lock.
pub const GIL: Case = Case {
    name: "python_http",
    title: "Python, http.server with threads",
    command: "python3 ThreadingHTTPServer, 5 ms of json each; wrk -t 1 -c 8",
    needs: &["/usr/bin/python3", "wrk"],
    truth: "8 threads have one CPU between them, though the other is free: the interpreter's lock. CPU time of all its threads, \
            /proc/PID/stat:",
    expect: Expect {
        right: &[Is {
            kinds: &[LockHeld, Convoy],
            hung: "take_gil|RestoreThread|cond_timedwait|cond_wait|sem_|EvalFrame",
            ..Is::ANY
        }],
        vague: &[Is { who: "python3", ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "python3", ..Is::ANY }]),
    record: |scene| {
        let (port, command) = server(scene, 1)?;
        let running = scene.start_until(&command, &ready(port))?;
        let _load = scene.start(&wrk(port, scene.load_seconds()))?;
        let (trace, truth) = scene.record_pid(running.pid(), || cpu_share(running.pid(), 3))?;
        Ok(Recorded { trace, truth, focus: "python3" })
    },
    fix: Some(Fix {
        what: "2 processes",
        rate: |scene, fixed| {
            let (port, command) = server(scene, if fixed { 2 } else { 1 })?;
            let _running = scene.start_until(&command, &ready(port))?;
            requests(scene, port)
        },
    }),
};

const SERVER: &str = "\
import http.server, json, os, socket, sys
data = [{'id': n, 'name': 'row %d' % n, 'tags': ['a', 'b', 'c']} for n in range(400)]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    def do_GET(self):
        body = b''
        for _ in range(4):
            body = json.dumps(json.loads(json.dumps(data, indent=1)), indent=1).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0: break
Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

fn server(scene: &Scene, processes: usize) -> Result<(u16, String)> {
    scene.write("server.py", SERVER)?;
    let port = free_port()?;
    Ok((port, format!("/usr/bin/python3 server.py {port} {processes}")))
}

fn ready(port: u16) -> String {
    format!("wrk -t 1 -c 1 -d 1s http://127.0.0.1:{port}/ | grep -q Requests/sec")
}
