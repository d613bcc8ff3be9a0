//! OpenMP: one library, two ways to wait.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, Imbalance, LockHeld, Serial, Spin};

use super::instruments::stacks;
use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::Scene;

const PRODUCT: &str = "multiply";

/// Threads sleep at the barrier.
pub const OPENMP_PASSIVE: Case = Case {
    name: "openmp_passive",
    title: "OpenMP, uneven loop, OMP_WAIT_POLICY=passive",
    command: "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive ./product",
    needs: &["gcc", "gdb"],
    truth: "A sparse matrix whose long rows all fall to the first thread; the second waits at libgomp's barrier.",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], who: "^product$", function: PRODUCT, ..Is::ANY }],
        vague: &[Is { who: "^product$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| product(scene, "passive"),
    fix: Some(Fix {
        what: "schedule(dynamic, 256)",
        rate: |scene, fixed| speed(scene, &source(scene)?, &command("passive", fixed)),
    }),
};

/// Threads spin at the barrier.
pub const OPENMP_ACTIVE: Case = Case {
    name: "openmp_active",
    title: "OpenMP, uneven loop, OMP_WAIT_POLICY=active",
    command: "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=active ./product",
    truth: "The same, with the second thread spinning in libgomp.",
    expect: Expect {
        right: &[
            Is { kinds: &[Spin], who: "^product$", function: "multiply|gomp", ..Is::ANY },
            Is { kinds: &[Imbalance, Serial], who: "^product$", function: PRODUCT, ..Is::ANY },
        ],
        vague: &[Is { kinds: &[Spin], who: "^product$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| product(scene, "active"),
    fix: Some(Fix {
        what: "schedule(dynamic, 256)",
        rate: |scene, fixed| speed(scene, &source(scene)?, &command("active", fixed)),
    }),
    ..OPENMP_PASSIVE
};

/// Threads at one critical section.
pub const OPENMP_CRITICAL: Case = Case {
    name: "openmp_critical",
    title: "OpenMP, work inside a critical section",
    command: "./critical 60000",
    needs: &["gcc"],
    truth: "weigh runs inside the critical section. The program's own clock:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy], who: "^critical$", function: "weigh|main", ..Is::ANY }],
        vague: &[Is { who: "^critical$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.write("critical.c", include_str!("load/critical.c"))?;
        ready(scene, "gcc -O2 -g -fopenmp critical.c -o critical")?;
        let truth = scene.run("./critical 60000")?;
        recorded(scene, ":", "./critical 60000", "critical", truth.trim().to_owned())
    },
    fix: Some(Fix {
        what: "weighed before the section",
        rate: |scene, fixed| {
            scene.write("critical.c", include_str!("load/critical.c"))?;
            let command = if fixed { "./critical 60000 before" } else { "./critical 60000" };
            speed(scene, "gcc -O2 -g -fopenmp critical.c -o critical", command)
        },
    }),
    ..OPENMP_PASSIVE
};

fn source(scene: &Scene) -> Result<String> {
    scene.write("product.c", include_str!("load/product.c"))?;
    Ok("gcc -O2 -g -fopenmp product.c -o product".to_owned())
}

fn command(policy: &str, fixed: bool) -> String {
    let schedule = if fixed { "dynamic,256" } else { "static" };
    format!("OMP_NUM_THREADS=2 OMP_WAIT_POLICY={policy} OMP_SCHEDULE={schedule} ./product 250 >/dev/null")
}

fn product(scene: &Scene, policy: &str) -> Result<Recorded> {
    let prepare = source(scene)?;
    ready(scene, &prepare)?;
    let command = command(policy, false);
    let truth = stacks(scene, &format!("env {command}"), "product", "multiply[._a-z0-9]*|gomp_[a-z_]*")?;
    recorded(scene, &prepare, &command, "product", truth)
}
