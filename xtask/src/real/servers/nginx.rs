//! nginx: a worker that has too much to do, and one that waits for what is behind it.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Serial, SleepPolling};

use super::instruments::{cpu_share, wrk_waits_for};
use crate::real::case::{Case, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port, number_after};

/// Compresses each answer, in its only worker.
pub const ONE_WORKER: Case = Case {
    name: "nginx_gzip",
    title: "nginx, one worker that compresses",
    command: "worker_processes 1; gzip on; wrk -t 1 -c 16 -H 'Accept-Encoding: gzip'",
    needs: &["nginx", "wrk"],
    truth: "The worker has one CPU and no more; the other CPU has nothing to do. CPU time of its worker, /proc/PID/stat:",
    expect: Expect {
        right: &[Is { kinds: &[CpuBound, Serial], function: "deflate|gzip|libz", who: "nginx", ..Is::ANY }],
        vague: &[Is { kinds: &[CpuBound, Serial], who: "nginx", ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "nginx", ..Is::ANY }]),
    record: |scene| {
        let server = Server::start(scene, 1, GZIP)?;
        let _load = scene.start(&server.wrk(scene.load_seconds()))?;
        let (trace, truth) = scene.record_pid(server.running.pid(), || cpu_share(server.running.pid(), 3))?;
        Ok(Recorded { trace, truth, focus: "nginx" })
    },
    fix: Some(Fix {
        what: "2 workers",
        rate: |scene, fixed| {
            let server = Server::start(scene, if fixed { 2 } else { 1 }, GZIP)?;
            number_after(&scene.run(&server.wrk(3))?, "Requests/sec:")
        },
    }),
};

const GZIP: &str = "gzip on; gzip_comp_level 6; gzip_types *;";

/// Waits for an application that sleeps.
pub const SLOW_BACKEND: Case = Case {
    name: "nginx_backend",
    title: "nginx before an application that sleeps",
    command: "proxy_pass to http.server whose handler sleeps 30 ms; wrk -t 1 -c 8",
    needs: &["nginx", "wrk", "/usr/bin/python3"],
    truth: "Its requests take as long as the application's answers, which are 30 ms of time.sleep each. Last request, nginx' log:",
    expect: Expect {
        right: &[
            Is { kinds: &[SleepPolling], who: "python3", function: "sleep", ..Is::ANY },
            Is { kinds: &[SleepPolling, Serial], who: "python3", ..Is::ANY },
        ],
        vague: &[Is { who: "python3", ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "python3", ..Is::ANY }]),
    record: |scene| {
        let port = free_port()?;
        scene.write("slow.py", SLOW)?;
        let _slow = scene.start(&format!("/usr/bin/python3 slow.py {port} 0.03"))?;
        let server = Server::start(scene, 1, &proxy(port))?;
        let _load = scene.start(&server.wrk(scene.load_seconds()))?;
        let (trace, _) = scene.record_pid(server.running.pid(), || Ok(String::new()))?;
        let truth = scene.run("tail -n 1 access")?.trim().to_owned();
        Ok(Recorded { trace, truth, focus: "nginx" })
    },
    fix: Some(Fix {
        what: "it sleeps 5 ms",
        rate: |scene, fixed| {
            let port = free_port()?;
            scene.write("slow.py", SLOW)?;
            let _slow =
                scene.start(&format!("/usr/bin/python3 slow.py {port} {}", if fixed { 0.005 } else { 0.03 }))?;
            let server = Server::start(scene, 1, &proxy(port))?;
            number_after(&scene.run(&server.wrk(3))?, "Requests/sec:")
        },
    }),
};

const SLOW: &str = "\
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    def do_GET(self):
        time.sleep(float(sys.argv[2]))
        self.send_response(200)
        self.send_header('Content-Length', '3')
        self.end_headers()
        self.wfile.write(b'ok\\n')
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

fn proxy(port: u16) -> String {
    format!(
        "log_format times '$request_time s, of the application $upstream_response_time s'; access_log access times;\nupstream app {{ server 127.0.0.1:{port}; keepalive 16; }}"
    )
}

struct Server {
    running: Running,
    port: u16,
}

impl Server {
    fn start(scene: &Scene, workers: usize, http: &str) -> Result<Server> {
        let port = free_port()?;
        let dir = scene.dir.display();
        let text: String = (0..20_000).map(|n| format!("{} line of text\n", n * 7919 % 10_007)).collect();
        scene.write("page.txt", &text)?;
        let location = match http.contains("upstream") {
            true => "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }",
            false => "access_log off;",
        };
        let conf = format!(
            "worker_processes {workers}; daemon off; user root; pid {dir}/pid; error_log {dir}/error;\n\
             events {{ worker_connections 256; }}\n\
             http {{ root {dir}; {http}\nserver {{ listen 127.0.0.1:{port} reuseport; {location} }} }}\n"
        );
        let conf = scene.write("nginx.conf", &conf)?;
        let running = scene.start_until(
            &format!("/usr/sbin/nginx -p {dir} -c {}", conf.display()),
            &format!("wrk -t 1 -c 1 -d 1s http://127.0.0.1:{port}/page.txt | grep -q Requests/sec"),
        )?;
        Ok(Server { running, port })
    }

    fn wrk(&self, seconds: u64) -> String {
        format!("wrk -t 1 -c 16 -d {seconds}s -H 'Accept-Encoding: gzip' http://127.0.0.1:{}/page.txt", self.port)
    }
}
