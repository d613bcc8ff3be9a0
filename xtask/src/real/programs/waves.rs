//! Parallel work with a serial end: the last part, the merge, the longest job.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Imbalance, LockHeld, Serial};

use super::instruments::at_once;
use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::Scene;

/// Two threads, and a file of one block and a bit.
pub const XZ_BLOCKS: Case = Case {
    name: "xz_blocks",
    title: "xz -T2 of a file of one block and a bit",
    command: "xz -3 -T2 -c in.tar",
    needs: &["tar", "xz"],
    truth: "The first block has 12 MiB, the second the rest, 2 MB; then one thread works alone.",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], who: "^xz$", function: "lzma|xz\\+0x", ..Is::ANY }],
        vague: &[Is { who: "^xz$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| wave(scene, BLOCKS, &blocks(""), "xz"),
    fix: Some(Fix {
        what: "--block-size=1MiB",
        rate: |scene, fixed| speed(scene, BLOCKS, &blocks(if fixed { "--block-size=1MiB" } else { "" })),
    }),
};

const BLOCKS: &str = "tar chf - -C /usr bin lib 2>/dev/null | head -c 14500000 >in.tar";

fn blocks(more: &str) -> String {
    format!("xz -3 -T2 {more} -c in.tar >/dev/null")
}

/// Parts are sorted side by side and merged through one tree.
pub const SORT: Case = Case {
    name: "sort",
    title: "GNU sort --parallel=2",
    command: "sort --parallel=2 -S 400M lines",
    needs: &["sort"],
    truth: "sort reads alone, sorts with two threads, which meet in the merge tree's locks, and writes alone.",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, Imbalance, LockHeld],
            who: "^sort$",
            function: "sort\\+0x|strcoll|merge|queue|compare|write|read|mem",
            ..Is::ANY
        }],
        vague: &[Is { who: "^sort$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| wave(scene, LINES, "LC_ALL=C.UTF-8 sort --parallel=2 -S 400M lines >/dev/null", "sort"),
    fix: None,
    ..XZ_BLOCKS
};

const LINES: &str = "find /usr/share /usr/lib /usr/include -type f -name '*[hstyp]' -size -200k 2>/dev/null | head -6000 | \
                     xargs -d '\\n' cat 2>/dev/null | strings -n 12 | head -c 90000000 | awk '{print (NR * 7919) % 100003 $0}' \
                     >lines; test -s lines";

/// The longest job comes last.
pub const XARGS: Case = Case {
    name: "xargs",
    title: "xargs -P2, the longest job last",
    command: "ls in/*.tar | xargs -P2 -n1 gzip -c",
    needs: &["xargs", "gzip", "tar"],
    truth: "Seven files of 6 MB are packed side by side, and then one of 30 MB alone.",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, Imbalance],
            who: "^gzip$",
            function: "gzip\\+0x|deflate|longest_match",
            ..Is::ANY
        }],
        vague: &[Is { who: "^gzip$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| wave(scene, JOBS, &xargs(""), "xargs"),
    fix: Some(Fix {
        what: "longest first",
        rate: |scene, fixed| speed(scene, JOBS, &xargs(if fixed { "-S" } else { "" })),
    }),
    ..XZ_BLOCKS
};

const JOBS: &str = "mkdir -p in && tar chf - -C /usr bin lib 2>/dev/null | head -c 30000000 >in/z.tar; for i in 1 2 3 4 5 6 7; \
                    do head -c 6000000 in/z.tar >in/$i.tar; done";

fn xargs(order: &str) -> String {
    format!("ls {order} in/*.tar | xargs -P2 -n1 gzip -c >/dev/null")
}

/// Records `command`, once who works in it at a time is known.
fn wave(scene: &Scene, prepare: &str, command: &str, focus: &'static str) -> Result<Recorded> {
    ready(scene, prepare)?;
    let truth = at_once(scene, command)?;
    recorded(scene, prepare, command, focus, truth)
}
