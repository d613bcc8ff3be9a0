//! Python: what holds its interpreter's lock, its pools, its event loop, a server with workers.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, CpuBound, Disk, Imbalance, LockHeld, Serial, SleepPolling};

use super::{interpreter, recorded, speed};
use crate::real::case::{Case, Client, Expect, Fix, Is, Recorded};
use crate::real::scene::{Scene, free_port, shares};

/// One call in C that keeps the interpreter's lock for long.
pub const REGEX: Case = Case {
    name: "python_regex",
    title: "Python, a regular expression that backtracks, and three threads that answer",
    command: "python3 search.py 25",
    needs: &["python3"],
    truth: "find_all matches in C with the interpreter's lock, and the others wait in take_gil. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy, Serial], function: "find_all|sre|match", ..Is::ANY }],
        vague: &[Is { kinds: &[LockHeld, Convoy, Serial], who: "^python", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| timed(scene, "search.py", include_str!("load/search.py"), "25"),
    fix: Some(Fix {
        what: "two processes",
        rate: |scene, fixed| {
            scene.write("search.py", include_str!("load/search.py"))?;
            let python = interpreter(scene)?;
            let half = |n: u32| format!("{python} search.py {n}");
            speed(scene, ":", &if fixed { format!("{} & {}; wait", half(12), half(13)) } else { half(25) })
        },
    }),
};

/// Tasks that queue for one thread.
pub const POOL: Case = Case {
    name: "python_pool",
    title: "Python, eight threads and a ThreadPoolExecutor of one",
    command: "python3 keys.py 150",
    truth: "Seven of eight keys wait for the pool's one thread, which computes in derive (OpenSSL's PBKDF2). Its own clock:",
    expect: Expect {
        right: &[Is {
            kinds: &[Serial, CpuBound, LockHeld],
            function: "(?i)derive|pbkdf2|sha512|hmac|digest",
            ..Is::ANY
        }],
        vague: &[Is { kinds: &[Serial, CpuBound, LockHeld], who: "^python|^Thread", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| timed(scene, "keys.py", include_str!("load/keys.py"), "150"),
    fix: None,
    ..REGEX
};

/// A coroutine that computes.
pub const ASYNCIO: Case = Case {
    name: "python_asyncio",
    title: "asyncio, a coroutine that computes",
    command: "python3 loop.py; wrk -t 1 -c 8",
    needs: &["python3", "py-spy", "wrk"],
    truth: "render computes in the only thread, and seven of eight connections wait for it. py-spy:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], function: "render", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, CpuBound], who: "^python", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.write("loop.py", include_str!("load/loop.py"))?;
        let port = free_port()?;
        served(scene, &format!("{} loop.py {port}", interpreter(scene)?), port)
    },
    fix: None,
    ..REGEX
};

/// A server with one worker, which waits for somebody else.
pub const GUNICORN: Case = Case {
    name: "python_gunicorn",
    title: "gunicorn, one synchronous worker that waits 10 ms for each answer",
    command: "gunicorn -w 1 quotes:app; wrk -t 1 -c 8",
    needs: &["python3", "gunicorn", "py-spy", "wrk"],
    truth: "The one worker sleeps in fetch_quote, 10 ms for each request; nobody computes. py-spy:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, SleepPolling], function: "fetch_quote", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, SleepPolling], who: "^python|^gunicorn", ..Is::ANY }],
        nothing: false,
    },
    // Its connections are those of a program outside of the focus: with that one in focus the sleep holds it up.
    client: Some(Client {
        process: "wrk",
        expect: Expect {
            right: &[Is {
                kinds: &[Serial, SleepPolling],
                who: "^python|^gunicorn",
                function: "fetch_quote",
                ..Is::ANY
            }],
            vague: &[],
            nothing: false,
        },
    }),
    record: |scene| {
        scene.write("quotes.py", include_str!("load/quotes.py"))?;
        let port = free_port()?;
        // It may belong to another Python than the first one.
        let python = scene.run("head -n 1 $(command -v gunicorn) | cut -c 3-")?;
        served(scene, &format!("{} -m gunicorn -w 1 -b 127.0.0.1:{port} quotes:app", python.trim()), port)
    },
    fix: None,
};

/// Processes that share out uneven parts.
pub const PROCESSES: Case = Case {
    name: "python_processes",
    title: "Python, a multiprocessing.Pool of two and uneven parts",
    command: "python3 parts.py 10",
    truth: "One of eight parts has most of the work: one process is in count, the other waits for the next round.",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], function: "^count$", ..Is::ANY }],
        vague: &[Is { kinds: &[Serial, Imbalance, CpuBound], who: "^python", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.write("parts.py", include_str!("load/parts.py"))?;
        let command = format!("{} parts.py 10", interpreter(scene)?);
        let truth = super::instruments::at_once(scene, &command)?;
        recorded(scene, ":", &command, "python3", truth)
    },
    fix: None,
    ..REGEX
};

/// A bounded queue whose consumer computes.
pub const QUEUE: Case = Case {
    name: "python_queue",
    title: "Python, three readers, a queue.Queue of four rows and one loader",
    command: "python3 feeder.py 250",
    truth: "load_rows parses with the interpreter's lock, and the readers wait in put. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[LockHeld, Convoy, Serial], function: "load_rows", ..Is::ANY }],
        vague: &[Is { who: "^python", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| timed(scene, "feeder.py", include_str!("load/feeder.py"), "250"),
    fix: Some(Fix {
        what: "two loaders in processes",
        rate: |scene, fixed| {
            scene.write("feeder.py", include_str!("load/feeder.py"))?;
            let how = if fixed { "processes" } else { "" };
            speed(scene, ":", &format!("{} feeder.py 250 {how}", interpreter(scene)?))
        },
    }),
    ..REGEX
};

/// A disk under a lock.
pub const AUDIT: Case = Case {
    name: "python_audit",
    title: "Python, four threads, a threading.Lock and fsync inside",
    command: "python3 audit.py 2000",
    truth: "append waits for the disk with the lock. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Disk, LockHeld, Convoy], function: "append", ..Is::ANY }],
        vague: &[Is { who: "^python", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| timed(scene, "audit.py", include_str!("load/audit.py"), "2000"),
    fix: None,
    ..REGEX
};

/// Records the program `name`, whose own clock tells the truth in its output.
fn timed(scene: &Scene, name: &str, source: &str, argument: &str) -> Result<Recorded> {
    scene.write(name, source)?;
    let command = format!("{} {name} {argument}", interpreter(scene)?);
    let truth = scene.run(&command)?;
    recorded(scene, ":", &command, "python3", truth.trim().to_owned() + ".")
}

/// Records the server `command` under eight connections, once py-spy has sampled it under the same load.
fn served(scene: &Scene, command: &str, port: u16) -> Result<Recorded> {
    let url = format!("http://127.0.0.1:{port}/");
    let wrk = format!("wrk -t 1 -c 8 -d {}s {url}", scene.load_seconds() + 4);
    let server = scene.start_until(command, &format!("wrk -t 1 -c 1 -d 1s {url} | grep -q Requests/sec"))?;
    let _load = scene.start(&wrk)?;
    let pid = server.pid();
    scene.run(&format!("py-spy record --nonblocking -s -i -d 3 -r 50 -f raw -o spy.raw -p {pid} >spy.log 2>&1"))?;
    let spied = std::fs::read_to_string(scene.dir.join("spy.raw"))?;
    let (trace, _) = scene.record_pid(pid, || Ok(String::new()))?;
    Ok(Recorded { trace, truth: shares(&innermost(&spied), 3) + ".", focus: "python3" })
}

/// The innermost function of each sample in py-spy's raw stacks, one a line.
fn innermost(stacks: &str) -> String {
    let sampled = stacks.lines().filter_map(|line| {
        let (stack, times) = line.rsplit_once(' ')?;
        let function = stack.rsplit(';').next()?.split(" (").next()?;
        Some(format!("{function}\n").repeat(times.parse::<usize>().ok()?.min(10_000)))
    });
    sampled.collect()
}
