//! Pipelines, in which one program sets the pace.

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind::{IdleByDesign, Network, Serial, SleepPolling};

use super::instruments::cpu_of_stages;
use super::{recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port, program};

/// A tar of the machine's own programs and libraries.
const TAR: &str = "tar chf - -C /usr bin lib 2>/dev/null | head -c 60000000 >in.tar";
const DEFLATE: &str = "deflate|longest_match|fill_window|gzip\\+0x";

/// One program compresses, the other only reads.
pub const TAR_GZIP: Case = Case {
    name: "tar_gzip",
    title: "tar | gzip",
    command: "tar cf - in.tar | gzip >out.gz",
    needs: &["tar", "gzip", "pigz", "bash"],
    truth: "gzip computes all the time on one of two CPUs, and tar waits for its pipe.",
    expect: Expect {
        right: &[Is { kinds: &[Serial], who: "^gzip$", function: DEFLATE, ..Is::ANY }],
        vague: &[Is { who: "^gzip$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| pipeline(scene, TAR, &[("tar", "tar cf - in.tar"), ("gzip", "gzip")], "gzip"),
    fix: Some(Fix {
        what: "pigz -p 2 for gzip",
        rate: |scene, fixed| {
            let gzip = if fixed { "pigz -p 2" } else { "gzip" };
            speed(scene, TAR, &format!("tar cf - in.tar | {gzip} >/dev/null"))
        },
    }),
};

const BZ2: &str = "tar chf - -C /usr bin lib 2>/dev/null | head -c 60000000 >in.tar; bzip2 -k in.tar";

/// A parallel compressor behind a producer that isn't.
pub const BZIP2_PIGZ: Case = Case {
    name: "bzip2_pigz",
    title: "pigz behind a slow producer",
    command: "bzip2 -dc in.tar.bz2 | pigz -1 -p 2 >out.gz",
    needs: &["tar", "bzip2", "pigz", "bash"],
    truth: "bzip2 unpacks all the time on one CPU; pigz's threads wait for input.",
    expect: Expect {
        right: &[Is { kinds: &[Serial], who: "^bzip2$", function: "BZ2_|bzip2\\+0x|libbz2", ..Is::ANY }],
        vague: &[Is { who: "^bzip2$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| pipeline(scene, BZ2, &[("bzip2", "bzip2 -dc in.tar.bz2"), ("pigz", "pigz -1 -p 2")], "pigz"),
    fix: Some(Fix {
        what: "unpacked input",
        rate: |scene, fixed| {
            let producer = if fixed { "cat in.tar" } else { "bzip2 -dc in.tar.bz2" };
            speed(scene, BZ2, &format!("{producer} | pigz -1 -p 2 >/dev/null"))
        },
    }),
    ..TAR_GZIP
};

const XZ: &str = "tar chf - -C /usr bin lib 2>/dev/null | head -c 60000000 >in.tar; xz -1 -T2 -k in.tar";

/// The same of another pair.
pub const XZ_ZSTD: Case = Case {
    name: "xz_zstd",
    title: "zstd -T2 behind a slow producer",
    command: "xz -T1 -dc in.tar.xz | zstd -T2 -1 -q >out.zst",
    needs: &["tar", "xz", "zstd", "bash"],
    truth: "xz unpacks all the time on one CPU; zstd's threads wait for input.",
    expect: Expect {
        right: &[Is { kinds: &[Serial], who: "^xz$", function: "lzma|xz\\+0x", ..Is::ANY }],
        vague: &[Is { who: "^xz$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| pipeline(scene, XZ, &[("xz", "xz -T1 -dc in.tar.xz"), ("zstd", "zstd -T2 -1 -q")], "zstd"),
    fix: Some(Fix {
        what: "unpacked input",
        rate: |scene, fixed| {
            let producer = if fixed { "cat in.tar" } else { "xz -T1 -dc in.tar.xz" };
            speed(scene, XZ, &format!("{producer} | zstd -T2 -1 -q >/dev/null"))
        },
    }),
    ..TAR_GZIP
};

/// A producer whose server lets it wait.
pub const CURL_XZ: Case = Case {
    name: "curl_xz",
    title: "xz -T2 behind a download",
    command: "curl -s http://…/in.tar | xz -1 -T2 >out.xz (nginx: limit_rate 2m)",
    needs: &["tar", "curl", "xz", "nginx", "bash"],
    truth: "nginx sends 2 MB each second and sleeps between: curl waits for it, and xz for curl.",
    expect: Expect {
        right: &[
            Is { kinds: &[SleepPolling], who: "^nginx$", ..Is::ANY },
            Is { kinds: &[Network, IdleByDesign], who: "^curl$|^nginx$", ..Is::ANY },
        ],
        vague: &[Is { who: "^curl$|^nginx$", ..Is::ANY }],
        nothing: true,
    },
    record: |scene| {
        let (_server, url) = serve(scene, "2m")?;
        pipeline(scene, ":", &[("curl", &format!("curl -s {url}")), ("xz", "xz -1 -T2")], "xz")
    },
    fix: Some(Fix {
        what: "no limit_rate",
        rate: |scene, fixed| {
            let (_server, url) = serve(scene, if fixed { "0" } else { "2m" })?;
            speed(scene, ":", &format!("curl -s {url} | xz -1 -T2 >/dev/null"))
        },
    }),
    ..TAR_GZIP
};

/// A web server for 8 MB that sends no faster than `rate`, and where they are.
fn serve(scene: &Scene, rate: &str) -> Result<(Running, String)> {
    let (port, dir) = (free_port()?, scene.dir.display());
    scene.run("tar chf - -C /usr bin lib 2>/dev/null | head -c 8000000 >in.tar; chmod 755 .; chmod 644 in.tar")?;
    let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
    scene.write(
        "nginx.conf",
        &format!(
            "{user} daemon off; pid nginx.pid; error_log error.log; events {{}} http {{ access_log off; server {{ listen \
             127.0.0.1:{port}; root {dir}; limit_rate {rate}; }} }}"
        ),
    )?;
    let url = format!("http://127.0.0.1:{port}/in.tar");
    let nginx = program("nginx").context("nginx")?;
    Ok((scene.start_until(&format!("{} -p {dir} -c nginx.conf", nginx.display()), &format!("curl -sfI {url}"))?, url))
}

/// Records the pipeline of `stages`, once bash has timed each of them.
pub(super) fn pipeline(scene: &Scene, prepare: &str, stages: &[(&str, &str)], focus: &'static str) -> Result<Recorded> {
    super::ready(scene, prepare)?;
    let truth = cpu_of_stages(scene, stages)?;
    let commands = stages.iter().map(|(_, command)| *command).collect::<Vec<_>>().join(" | ");
    recorded(scene, prepare, &format!("{commands} >/dev/null"), focus, truth)
}
