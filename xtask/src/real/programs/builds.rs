//! Builds, and what else starts many processes.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Imbalance, Serial};

use super::instruments::at_once;
use super::{crate_sources, ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::Scene;

/// Parallel compilation, then links that optimise the whole program, one process each.
pub const MAKE: Case = Case {
    name: "make",
    title: "configure and make -j2 of zlib, optimised at link time",
    command: "CFLAGS='-O3 -flto' ./configure; make -j2",
    needs: &["make", "gcc"],
    truth: "Compilers run side by side, and then lto1-ltrans of the last links alone or with one another.",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], who: "^lto1|^lto-wrapper|^ld$|^collect2", ..Is::ANY }],
        vague: &[Is { who: "lto1|cc1|configure|^sh$|^make$|^gcc$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| build(scene, &zlib(scene)?, &make("-O3 -flto"), "make"),
    fix: Some(Fix {
        what: "-O1, no -flto",
        rate: |scene, fixed| speed(scene, &zlib(scene)?, &make(if fixed { "-O1" } else { "-O3 -flto" })),
    }),
};

fn zlib(scene: &Scene) -> Result<String> {
    let zlib = crate_sources("libbpf-sys-")?.join("zlib");
    Ok(format!("cp -r {} {}/zlib && chmod -R u+rwx zlib", zlib.display(), scene.dir.display()))
}

fn make(flags: &str) -> String {
    format!("cd zlib && {{ make distclean; CFLAGS='{flags}' ./configure && make -j2; }} >/dev/null 2>&1")
}

/// One crate after the other is needed, and the last step optimises all of them as one.
pub const CARGO_LTO: Case = Case {
    name: "cargo_lto",
    title: "cargo build with lto = \"fat\"",
    command: "touch src/main.rs; cargo build --release",
    needs: &["cargo"],
    truth: "One thread of rustc optimises the program as a whole (LLVM), while cargo and rustc's main thread wait.",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, Imbalance],
            who: "^rustc$|lto|opt|cgu|ld",
            function: "llvm|LLVM|lto|PassManager|optimize|codegen_llvm::back",
            ..Is::ANY
        }],
        vague: &[Is { who: "rustc|lto|opt", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| build(scene, &small_crate(scene)?, CARGO, "cargo"),
    fix: Some(Fix {
        what: "lto = \"off\"",
        rate: |scene, fixed| {
            speed(
                scene,
                &small_crate(scene)?,
                &format!("{}{CARGO}", if fixed { "CARGO_PROFILE_RELEASE_LTO=off " } else { "" }),
            )
        },
    }),
    ..MAKE
};

const CARGO: &str = "cargo build --release --offline -q --config build.jobs=2 --manifest-path small/Cargo.toml \
                     --target-dir \"$PWD/out-${CARGO_PROFILE_RELEASE_LTO:-fat}\"";

/// A crate that reads JSON; its dependencies are those of the workspace, built beforehand both ways.
fn small_crate(scene: &Scene) -> Result<String> {
    std::fs::create_dir_all(scene.dir.join("small/src"))?;
    scene.write(
        "small/Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nserde_json = \"1\"\n\
         [profile.release]\nlto = \"fat\"\n[workspace]\n",
    )?;
    scene.write(
        "small/src/main.rs",
        "fn main() {\n    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();\n    let value: \
         serde_json::Value = serde_json::from_str(&text).unwrap();\n    println!(\"{}\", value);\n}\n",
    )?;
    Ok(format!("{CARGO} && CARGO_PROFILE_RELEASE_LTO=off {CARGO}"))
}

/// Parallel search for deltas between parts that are not equally long.
pub const GIT_REPACK: Case = Case {
    name: "git_repack",
    title: "git repack -adf",
    command: "git -c pack.threads=2 repack -adfq --depth=50 --window=100",
    needs: &["git"],
    truth: "Two threads look for deltas; before and after, one of git's threads works alone.",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, Imbalance, CpuBound],
            who: "^git$",
            function: "git\\+0x|delta|pack|object",
            ..Is::ANY
        }],
        vague: &[Is { who: "^git$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| build(scene, &history()?, REPACK, "git"),
    fix: None,
    ..MAKE
};

const REPACK: &str = "git -C repo -c pack.threads=2 repack -adfq --depth=50 --window=100";

/// A history of real sources: each of some crates is a commit in the place of the one before.
fn history() -> Result<String> {
    let registry = crate_sources("libbpf-sys-")?;
    let registry = registry.parent().map(|p| p.display().to_string()).unwrap_or_default();
    Ok(format!(
        "git init -q repo && cd repo && git config user.email a@b && git config user.name a && for c in \
         {registry}/[rs]*; do rm -rf tree && cp -r $c tree && git add -A && git commit -qm $(basename $c); \
         done; git config gc.auto 0"
    ))
}

/// A shell loop that starts a process for next to nothing.
pub const FORK_STORM: Case = Case {
    name: "fork_storm",
    title: "thousands of short processes",
    command: "for i in $(seq 3000); do /bin/true; done",
    needs: &["bash", "strace"],
    truth: "3,000 times: bash forks, the child becomes /bin/true and ends at once, bash waits for it. strace -f -c:",
    expect: Expect {
        right: &[
            Is { who: "^(bash|true)$", title: "process", ..Is::ANY },
            Is { who: "^(bash|true)$", function: "fork|clone|exec|exit|make_child|wait_for", ..Is::ANY },
        ],
        vague: &[Is { who: "^(bash|true)$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        let counts =
            scene.run(&format!("strace -f -c -o calls {LOOP}; awk '/clone|execve|wait4/{{print $4, $NF}}' calls"))?;
        recorded(scene, ":", LOOP, "bash", counts.lines().collect::<Vec<_>>().join(", ") + ".")
    },
    fix: Some(Fix {
        what: "bash's own true",
        rate: |scene, fixed| speed(scene, ":", &if fixed { LOOP.replace("/bin/", "") } else { LOOP.to_owned() }),
    }),
    ..MAKE
};

/// A script that finds out with hundreds of small programs what the system has.
pub const CONFIGURE: Case = Case {
    name: "configure",
    title: "configure, as made by autoconf",
    command: "./configure",
    needs: &["autoconf", "gcc", "strace"],
    truth: "The shell starts compilers, linkers, sed and the like, and waits for each. strace -f -c:",
    expect: Expect {
        right: &[Is { kinds: &[Serial], who: "^(bash|sh|dash|configure)$", title: "one after another", ..Is::ANY }],
        vague: &[Is { who: "^(bash|sh|dash|configure|cc1|gcc|ld|as)$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, CHECKS)?;
        let counts = scene.run(
            "strace -f -c -o calls sh -c 'cd ac && ./configure >/dev/null'; awk '/execve|wait4/{print $4, $NF}' calls",
        )?;
        let truth = counts.lines().collect::<Vec<_>>().join(", ") + ".";
        recorded(scene, CHECKS, "cd ac && ./configure >/dev/null", "sh", truth)
    },
    fix: Some(Fix {
        what: "the answers of an earlier run (-C)",
        rate: |scene, fixed| {
            ready(scene, CHECKS)?;
            if fixed {
                scene.run("cd ac && ./configure -C >/dev/null")?;
            }
            speed(
                scene,
                CHECKS,
                if fixed { "cd ac && ./configure -C >/dev/null" } else { "cd ac && ./configure >/dev/null" },
            )
        },
    }),
    ..MAKE
};

/// A script with what many programs ask for.
const CHECKS: &str = "rm -rf ac && mkdir ac && cd ac && printf '%s\\n' 'AC_INIT([t],[1])' AC_PROG_CC \
    'AC_CHECK_HEADERS([sys/time.h sys/mman.h poll.h sys/epoll.h netinet/in.h arpa/inet.h sys/socket.h sys/wait.h dlfcn.h pthread.h])' \
    'AC_CHECK_FUNCS([mmap poll epoll_create select strlcpy getrandom pread pwrite clock_gettime nanosleep])' \
    'AC_CHECK_SIZEOF([long])' AC_OUTPUT >configure.ac && touch install-sh && autoconf && cd ..";

const LOOP: &str = "bash -c 'for i in $(seq 3000); do /bin/true; done'";

/// Records the build `command` from a clean state, once who works in it at a time is known.
fn build(scene: &Scene, prepare: &str, command: &str, focus: &'static str) -> Result<Recorded> {
    ready(scene, prepare)?;
    scene.run(CLEAN)?;
    let truth = at_once(scene, command)?;
    scene.run(CLEAN)?;
    recorded(scene, prepare, command, focus, truth)
}

/// What a build would find up to date else.
const CLEAN: &str = "if [ -d small ]; then touch small/src/main.rs; fi";
