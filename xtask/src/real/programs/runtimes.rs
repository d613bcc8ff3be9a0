//! Runtimes with locks and pauses of their own: Python, Java, Go.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, LockHeld, Serial};

use super::instruments::stacks;
use super::java::states;
use super::{interpreter, ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::Scene;

/// Threads that the interpreter lets run one at a time.
pub const PYTHON_GIL: Case = Case {
    name: "python_gil",
    title: "Python, four threads that compute",
    command: "python3 json_threads.py",
    needs: &["python3", "gdb"],
    truth: "One thread runs, the others wait in take_gil for the interpreter's lock.",
    expect: Expect {
        right: &[
            Is { kinds: &[LockHeld, Convoy], hung: "take_gil", ..Is::ANY },
            Is { kinds: &[LockHeld, Convoy, Serial], title: "(?i)\\bGIL\\b|interpreter", ..Is::ANY },
        ],
        vague: &[Is { kinds: &[LockHeld, Convoy, Serial], who: "python", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let command = json_threads(scene)?;
        let name = command.split([' ', '/']).rfind(|part| part.starts_with("python")).unwrap_or("python3").to_owned();
        let truth = stacks(scene, &command, &name, "take_gil|encoder_[a-z_]*|scan_[a-z_]*|scanner_[a-z_]*")?;
        recorded(scene, ":", &command, "python3", truth)
    },
    fix: Some(Fix {
        what: "processes",
        rate: |scene, fixed| speed(scene, ":", &(json_threads(scene)? + if fixed { " processes" } else { "" })),
    }),
};

fn json_threads(scene: &Scene) -> Result<String> {
    scene.write("json_threads.py", include_str!("load/json_threads.py"))?;
    Ok(format!("{} json_threads.py 1500", interpreter(scene)?))
}

/// A synchronized method that computes.
pub const JAVA_MONITOR: Case = Case {
    name: "java_monitor",
    title: "Java, four threads and one synchronized method",
    command: "java Register 300000",
    needs: &["java", "javac", "jstack"],
    truth: "Register.register computes in the monitor of its class; the other workers are blocked at it. jstack:",
    expect: Expect {
        right: &[
            Is { kinds: &[LockHeld, Convoy], function: "register|digest|work", ..Is::ANY },
            Is { kinds: &[LockHeld, Convoy], hung: "ObjectMonitor", who: "^worker", ..Is::ANY },
        ],
        vague: &[Is { who: "^worker", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, &register(scene)?)?;
        let truth = states(scene, "java Register 300000", "worker-")?;
        recorded(scene, ":", "java Register 300000", "java", truth)
    },
    fix: Some(Fix {
        what: "computed before the lock",
        rate: |scene, fixed| {
            speed(scene, &register(scene)?, &format!("java Register 300000{}", if fixed { " before" } else { "" }))
        },
    }),
    ..PYTHON_GIL
};

fn register(scene: &Scene) -> Result<String> {
    scene.write("Register.java", include_str!("load/Register.java"))?;
    Ok("javac Register.java".to_owned())
}

/// A collector that stops the world and uses one CPU.
pub const JAVA_GC: Case = Case {
    name: "java_gc",
    title: "Java, serial garbage collector",
    command: "java -XX:+UseSerialGC -Xmx600m Caches 2500000",
    needs: &["java", "javac"],
    truth: "The world stands still while VM Thread collects alone. GC log:",
    expect: Expect {
        right: &[Is { who: "^VM Thread", ..Is::ANY }, Is { title: "(?i)garbage|collect", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial], function: "(?i)gen|gc|collect|copy", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.write("Caches.java", include_str!("load/Caches.java"))?;
        ready(scene, "javac Caches.java")?;
        let trace = scene.record_command(&format!("{CACHES} -Xlog:gc:file=gc.log Caches 2500000"))?;
        let pauses =
            scene.run("awk '/Pause/{n++; s+=$NF} END{printf \"%d pauses of %.2f s in all.\", n, s/1000}' gc.log")?;
        Ok(Recorded { trace, truth: pauses, focus: "java" })
    },
    fix: Some(Fix {
        what: "a young generation of 400 MB",
        rate: |scene, fixed| {
            scene.write("Caches.java", include_str!("load/Caches.java"))?;
            let young = if fixed { "-Xmx1600m -Xmn1g" } else { "" };
            speed(scene, "javac Caches.java", &format!("{CACHES} {young} Caches 2500000"))
        },
    }),
    ..PYTHON_GIL
};

const CACHES: &str = "java -XX:+UseSerialGC -Xmx600m";

/// A mutex whose waiters are goroutines, not threads.
pub const GO_MUTEX: Case = Case {
    name: "go_mutex",
    title: "Go, eight goroutines and one sync.Mutex",
    command: "./registry 60000",
    needs: &["go"],
    truth: "add hashes under the registry's mutex. Goroutines in the dump of SIGQUIT:",
    expect: Expect {
        right: &[Is {
            kinds: &[LockHeld, Convoy, Serial],
            who: "^registry$",
            function: "registry|digest|Sum256|blockSHANI|sha256",
            ..Is::ANY
        }],
        vague: &[Is { who: "^registry$", function: "sha256|main", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, &registry(scene)?)?;
        let dump = scene.run(
            "GOTRACEBACK=all ./registry 60000 2>dump >/dev/null & sleep 1; kill -QUIT $!; wait $! || \
             sed -n 's/^goroutine [0-9]* .*\\[\\(.*\\)\\]:/\\1/p' dump",
        )?;
        recorded(scene, ":", "./registry 60000", "registry", crate::real::scene::shares(&dump, 4) + ".")
    },
    fix: Some(Fix {
        what: "hashed before the lock",
        rate: |scene, fixed| {
            speed(scene, &registry(scene)?, if fixed { "./registry 60000 before" } else { "./registry 60000" })
        },
    }),
    ..PYTHON_GIL
};

fn registry(scene: &Scene) -> Result<String> {
    scene.write("registry.go", include_str!("load/registry.go"))?;
    Ok("go build -o registry registry.go".to_owned())
}
