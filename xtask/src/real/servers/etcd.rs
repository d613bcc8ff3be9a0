//! etcd, a server in Go that answers once the disk has what it was told.

use holdup_analysis::report::FindingKind::{Disk, WakeLatency};

use super::instruments::attach_wall;
use crate::real::case::{Case, Expect, Is, Recorded};
use crate::real::scene::free_port;

/// Writes that wait for the log.
pub const PUTS: Case = Case {
    name: "etcd_puts",
    title: "etcd, writes that wait for the disk",
    command: "etcd; etcdctl check perf",
    needs: &["etcd", "etcdctl", "strace"],
    truth: "Each write is in the log before it is answered. strace -f -w, two seconds:",
    expect: Expect {
        right: &[Is { kinds: &[Disk], who: "^etcd$", ..Is::ANY }],
        vague: &[Is { kinds: &[WakeLatency], who: "^etcd$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let (clients, peers) = (free_port()?, free_port()?);
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (clients, peers) = (url(clients), url(peers));
        let command = format!(
            "etcd --data-dir data --log-level error --listen-client-urls {clients} --advertise-client-urls {clients} \
             --listen-peer-urls {peers} --initial-advertise-peer-urls {peers} --initial-cluster default={peers}"
        );
        let client = format!("env ETCDCTL_API=3 etcdctl --endpoints {clients}");
        let server = scene.start_until(&command, &format!("{client} endpoint health"))?;
        let _load = scene.start(&format!("{client} check perf --load s"))?;
        let (trace, _) = scene.record_pid(server.pid(), || Ok(String::new()))?;
        let truth = attach_wall(scene, server.pid(), &["fdatasync", "fsync", "write"])?;
        Ok(Recorded { trace, truth, focus: "etcd" })
    },
    fix: None,
};
