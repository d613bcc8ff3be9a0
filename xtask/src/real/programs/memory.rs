//! Locks that nobody wrote: malloc's, the address space's, the loader's.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, LockHeld};

use super::instruments::stacks;
use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Scene, number_after};

const LOCK: Is = Is { kinds: &[LockHeld, Convoy], ..Is::ANY };

/// Eight threads, one arena.
pub const ARENAS: Case = Case {
    name: "malloc_arena",
    title: "malloc, one arena for eight threads",
    command: "MALLOC_ARENA_MAX=1 ./arena",
    needs: &["gcc", "gdb"],
    truth: "Threads wait for the arena's mutex in malloc and free, below it __lll_lock_wait_private.",
    expect: Expect {
        right: &[
            Is { hung: "malloc|free|_int_", ..LOCK },
            Is { function: "malloc|free|_int_", ..LOCK },
            Is { title: "malloc|arena", ..LOCK },
        ],
        vague: &[LOCK],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let of_interest = "__lll_lock_wait_private|_int_malloc|_int_free|malloc|free|worker";
        sampled(scene, &arena(scene)?, "env MALLOC_ARENA_MAX=1 ./arena 3000000", "arena", of_interest)
    },
    fix: Some(Fix {
        what: "as many arenas as it wants",
        rate: |scene, fixed| {
            let arenas = if fixed { "" } else { "MALLOC_ARENA_MAX=1 " };
            speed(scene, &arena(scene)?, &format!("{arenas}./arena 2000000"))
        },
    }),
};

fn arena(scene: &Scene) -> Result<String> {
    compile(scene, "arena", include_str!("load/arena.c"))
}

/// Mappings come and go in one address space.
pub const MMAP: Case = Case {
    name: "mmap_lock",
    title: "Threads that map, touch and unmap memory",
    command: "./maps 12000",
    needs: &["gcc", "gdb"],
    truth: "mmap and munmap lock the address space against each other and against page faults. gdb, which sees system \
            calls only:",
    expect: Expect {
        right: &[Is { hung: "mmap|munmap|vm_|mm_|fault", ..LOCK }, Is { function: "mmap|munmap|reader", ..LOCK }],
        vague: &[LOCK, Is { function: "reader", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| sampled(scene, &maps(scene)?, "./maps 12000", "maps", "mmap|__mmap|munmap|__munmap|reader"),
    fix: Some(Fix {
        what: "one mapping for each thread, used again",
        rate: |scene, fixed| speed(scene, &maps(scene)?, if fixed { "./maps 12000 again" } else { "./maps 12000" }),
    }),
    ..ARENAS
};

fn maps(scene: &Scene) -> Result<String> {
    compile(scene, "maps", include_str!("load/maps.c"))
}

/// Plugins come and go.
pub const DLOPEN: Case = Case {
    name: "dlopen",
    title: "Threads that open plugins",
    command: "./plugins 4",
    needs: &["gcc", "gdb"],
    truth: "dlopen and dlclose run under the loader's one lock, dl_load_lock.",
    expect: Expect {
        right: &[Is { hung: "dl_open|dl_close|dlopen|dlclose", ..LOCK }, Is { function: "dl_|dlopen|dlclose", ..LOCK }],
        vague: &[LOCK],
        nothing: false,
    },
    record: |scene| {
        sampled(
            scene,
            &plugins(scene)?,
            "./plugins 4",
            "plugins",
            "__GI___lll_lock_wait|__lll_lock_wait|_dl_[a-z_]+|dl_[a-z_]+",
        )
    },
    fix: Some(Fix {
        what: "each opened once beforehand",
        rate: |scene, fixed| {
            ready(scene, &plugins(scene)?)?;
            number_after(&scene.run(if fixed { "./plugins 3 kept" } else { "./plugins 3" })?, "opened ")
        },
    }),
    ..ARENAS
};

fn plugins(scene: &Scene) -> Result<String> {
    compile(scene, "plugins", include_str!("load/plugins.c"))
}

fn compile(scene: &Scene, name: &str, source: &str) -> Result<String> {
    scene.write(&format!("{name}.c"), source)?;
    Ok(format!("gcc -O2 -g -pthread {name}.c -o {name}"))
}

/// Records `command`, once gdb has said where its threads are.
fn sampled(scene: &Scene, prepare: &str, command: &str, name: &'static str, of_interest: &str) -> Result<Recorded> {
    ready(scene, prepare)?;
    let truth = stacks(scene, command, name, of_interest)?;
    recorded(scene, prepare, command, name, truth)
}
