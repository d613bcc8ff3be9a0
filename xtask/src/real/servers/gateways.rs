//! Web servers before a language's workers, of which there are too few: PHP-FPM, mod_wsgi, Puma.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Imbalance, LockHeld, Serial, SleepPolling};

use super::instruments::{attach_wall, by_its_clock, cpu_share, requests, wrk, wrk_waits_for};
use crate::real::case::{Case, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port};

/// One child, which sleeps 20 ms for each request.
pub const PHP: Case = Case {
    name: "php_pool",
    title: "nginx before PHP-FPM with one child, whose script sleeps",
    command: "php-fpm (pm = static, max_children = 1) behind nginx; index.php: Report::fetch has usleep(20000); wrk -t 1 -c 8",
    needs: &["php-fpm8.2|php-fpm8.4|php-fpm8.3", "nginx", "wrk", "strace"],
    truth: "Seven of eight requests wait for the one child, which sleeps. strace -f -w of php-fpm, for two seconds:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling], who: "php-fpm", function: "Report::fetch", ..Is::ANY }],
        vague: &[Is { who: "php-fpm", ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "php-fpm", ..Is::ANY }]),
    record: |scene| {
        let (server, _nginx, port) = php(scene, 1)?;
        let _load = scene.start(&wrk(port, scene.load_seconds() + 3))?;
        let child = scene.run(&format!("pgrep -P {} | head -1", server.pid()))?.trim().parse()?;
        let truth = attach_wall(scene, child, &["clock_nanosleep"])?;
        let (trace, _) = scene.record_pid(server.pid(), || Ok(String::new()))?;
        Ok(Recorded { trace, truth, focus: "php-fpm8.2" })
    },
    fix: Some(Fix {
        what: "two children",
        rate: |scene, fixed| {
            let (_server, _nginx, port) = php(scene, if fixed { 2 } else { 1 })?;
            requests(scene, port)
        },
    }),
};

fn php(scene: &Scene, children: u32) -> Result<(Running, Running, u16)> {
    let (behind, port, dir) = (free_port()?, free_port()?, scene.dir.display());
    scene.write(
        "index.php",
        "<?php class Report { static function fetch() { usleep(20000); } } Report::fetch(); echo \"hello\\n\";",
    )?;
    scene.run(&format!("chmod 755 {dir}; chmod 644 index.php"))?;
    scene.write(
        "fpm.conf",
        &format!(
            "[global]\nerror_log={dir}/fpm.log\ndaemonize=no\n[www]\nuser=root\ngroup=root\nlisten=127.0.0.1:{behind}\npm=static\n\
             pm.max_children={children}\n"
        ),
    )?;
    scene.write(
        "nginx.conf",
        &format!(
            "daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.log; events {{}}\nhttp {{ access_log off; server {{ \
             listen 127.0.0.1:{port}; location / {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME {dir}/index.php; \
             fastcgi_pass 127.0.0.1:{behind}; }} }} }}\n"
        ),
    )?;
    let server = scene.start("$(ls /usr/sbin/php-fpm8.* | head -1) -R -y fpm.conf")?;
    let nginx = scene.start_until(
        &format!("nginx -c {dir}/nginx.conf"),
        &format!("curl -sf http://127.0.0.1:{port}/ | grep -q hello"),
    )?;
    Ok((server, nginx, port))
}

/// One daemon process of one thread.
pub const WSGI: Case = Case {
    name: "apache_wsgi",
    title: "Apache with mod_wsgi, one thread, whose handler sleeps",
    command: "apache2 (mpm_event; WSGIDaemonProcess threads=1); application: time.sleep(0.015); wrk -t 1 -c 8",
    needs: &["apache2", "wrk", "curl"],
    truth: "All requests wait in turn for the one thread of mod_wsgi's daemon process, which sleeps. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling], who: "apache2", function: "application|sleep", ..Is::ANY }],
        vague: &[Is { kinds: &[SleepPolling], ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "apache2", ..Is::ANY }]),
    record: |scene| by_its_clock(scene, apache(scene, 1)?, "apache2"),
    fix: Some(Fix {
        what: "two threads",
        rate: |scene, fixed| {
            let (_server, port) = apache(scene, if fixed { 2 } else { 1 })?;
            requests(scene, port)
        },
    }),
};

const SLEEPS: &str = "\
import time
asleep, begun = 0, time.time()
def application(env, start):
    global asleep
    before = time.time()
    time.sleep(0.015)
    asleep += time.time() - before
    with open('DIR/clock', 'w') as clock: clock.write(f'asleep for {asleep:.2f} s of {time.time() - begun:.2f} s')
    start('200 OK', [('Content-Type', 'text/plain')])
    return [b'ok']
";

fn apache(scene: &Scene, threads: u32) -> Result<(Running, u16)> {
    let (port, dir) = (free_port()?, scene.dir.display());
    scene.write("app.wsgi", &SLEEPS.replace("DIR", &dir.to_string()))?;
    let modules = "/usr/lib/apache2/modules";
    scene.write(
        "apache.conf",
        &format!(
            "ServerRoot {dir}\nPidFile {dir}/pid\nErrorLog {dir}/apache.log\nListen 127.0.0.1:{port}\nServerName x\nUser www-data\nGroup \
             www-data\nLoadModule mpm_event_module {modules}/mod_mpm_event.so\nLoadModule authz_core_module \
             {modules}/mod_authz_core.so\nLoadModule wsgi_module {modules}/mod_wsgi.so\nWSGISocketPrefix {dir}/ws\nWSGIDaemonProcess app \
             processes=1 threads={threads}\nWSGIScriptAlias / {dir}/app.wsgi process-group=app application-group=%{{GLOBAL}}\n<Directory \
             />\nRequire all granted\n</Directory>\n"
        ),
    )?;
    scene.run(&format!("chmod 777 {dir}; touch clock; chmod 666 clock; chmod 644 app.wsgi"))?;
    let ready = format!("curl -sf http://127.0.0.1:{port}/");
    Ok((scene.start_until(&format!("apache2 -f {dir}/apache.conf -DFOREGROUND"), &ready)?, port))
}

/// Four threads of one Ruby.
pub const PUMA: Case = Case {
    name: "puma",
    title: "Puma, four threads that compute their pages in Ruby",
    command: "puma -t 4:4; run ->(env) { JSON.generate(JSON.parse(…)) }; wrk -t 1 -c 8",
    needs: &["puma", "wrk", "curl"],
    truth: "One thread of a Ruby process runs at a time. All its threads together, by /proc:",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, LockHeld, Imbalance],
            who: "puma",
            function: "rb_|vm_|json|JSON|parse|generate",
            ..Is::ANY
        }],
        vague: &[Is { who: "puma", ..Is::ANY }],
        nothing: false,
    },
    client: wrk_waits_for(&[Is { kinds: HELD_UP, who: "puma", ..Is::ANY }]),
    record: |scene| {
        let (server, port) = puma(scene, 0)?;
        let _load = scene.start(&wrk(port, scene.load_seconds()))?;
        let (trace, truth) = scene.record_pid(server.pid(), || cpu_share(server.pid(), 2))?;
        Ok(Recorded { trace, truth, focus: "puma" })
    },
    fix: Some(Fix {
        what: "two processes",
        rate: |scene, fixed| {
            let (_server, port) = puma(scene, if fixed { 2 } else { 0 })?;
            requests(scene, port)
        },
    }),
};

const PAGE: &str = "\
require 'json'
D = (0...300).to_h { |i| [i.to_s, (0...20).to_a] }
def page = JSON.generate(JSON.parse(JSON.generate(D)))
run ->(env) { [200, {'content-type' => 'text/plain'}, [page]] }
";

fn puma(scene: &Scene, workers: u32) -> Result<(Running, u16)> {
    let port = free_port()?;
    scene.write("config.ru", PAGE)?;
    let command = format!("puma -w {workers} -t 4:4 -b tcp://127.0.0.1:{port}");
    Ok((scene.start_until(&command, &format!("curl -sf http://127.0.0.1:{port}/"))?, port))
}
