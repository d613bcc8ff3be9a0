//! memcached: one thread that serves all, with nothing to wait for.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Serial, WakeLatency};

use super::instruments::cpu_share;
use crate::real::case::{Case, Client, Expect, HELD_UP, Is, Recorded};
use crate::real::scene::{Scene, free_port, run_as};

/// A single worker thread under more load than it can take.
pub const ONE_THREAD: Case = Case {
    name: "memcached",
    title: "memcached, one thread",
    command: "memcached -t 1; memcslap --concurrency=16 --non-blocking",
    needs: &["memcached", "memcslap"],
    truth: "Its thread works, mostly for the kernel's sockets; nobody waits for a lock or a disk. CPU time of all its threads, \
            /proc/PID/stat:",
    expect: Expect {
        right: &[Is { kinds: &[CpuBound, Serial], who: "memcached|mc-worker", ..Is::ANY }],
        vague: &[
            Is { who: "memcslap", ..Is::ANY },
            // It is woken for each request, and that costs a part of its time.
            Is { kinds: &[WakeLatency], who: "memcached|mc-worker", ..Is::ANY },
        ],
        nothing: true,
    },
    client: Some(Client {
        process: "memcslap",
        expect: Expect {
            right: &[Is { kinds: HELD_UP, who: "memcached|memcslap", ..Is::ANY }],
            vague: &[],
            nothing: false,
        },
    }),
    record: |scene| {
        let (port, user) = (free_port()?, run_as("nobody"));
        let user = user.replace("--regid=nobody", "--regid=nogroup");
        let command = format!("{user} memcached -l 127.0.0.1 -p {port} -U 0 -t 1");
        let running = scene.start_until(&command, &format!("memcping --servers=127.0.0.1:{port}"))?;
        let _load = load(scene, port)?;
        let (trace, truth) = scene.record_pid(running.pid(), || cpu_share(running.pid(), 3))?;
        Ok(Recorded { trace, truth, focus: "memcached" })
    },
    fix: None,
};

fn load(scene: &Scene, port: u16) -> Result<crate::real::scene::Running> {
    scene.start(&format!(
        "sh -c 'while :; do memcslap --servers=127.0.0.1:{port} --concurrency=16 --execute-number=20000 --test=get --binary; done'"
    ))
}
