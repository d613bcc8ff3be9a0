//! Programs that something else stops or delays: a signal, a tracer, a file system in user space, a name server, a disk by `io_getevents`,
//! and a partner of MPI that spins meanwhile.

use holdup_analysis::report::FindingKind::{Disk, Imbalance, OwnerNotRunning, Serial, SleepPolling, Spin};

use super::{ready, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::number_after;
use crate::real::servers::attach_wall;

/// A process with a file's lock is stopped for half a second each second.
pub const STOPPED: Case = Case {
    name: "stopped_lock",
    title: "Three processes and a file lock whose holder is stopped now and then",
    command: "4 × python3: flock, 1 ms of work; sh: kill -STOP; sleep 0.5; kill -CONT; sleep 0.3",
    needs: &["/usr/bin/python3"],
    truth: "Whenever the process that takes the lock all the time is stopped, it has it, mostly, and the three others wait until it goes on. How long they \
            waited for more than 0.1 s, by their own clock:",
    expect: Expect {
        right: &[Is { kinds: &[OwnerNotRunning], who: "python3", title: "stopped", ..Is::ANY }],
        vague: &[Is { who: "python3", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.write("ledger.py", LEDGER)?;
        let command = "/usr/bin/python3 ledger.py holder & P=$!; for i in 1 2 3; do /usr/bin/python3 ledger.py waiter & done; \
                       for i in 1 2 3 4 5; do sleep 0.3; kill -STOP $P; sleep 0.5; kill -CONT $P; done; kill $P; wait";
        let trace = scene.record_command(command)?;
        let truth = scene.run("cat waited.*")?.split_whitespace().collect::<Vec<_>>().join(", ");
        Ok(Recorded { trace, truth: format!("{truth} s"), focus: "python3" })
    },
    fix: None,
};

const LEDGER: &str = "\
import fcntl, os, sys, time
file, waited, begun = open('lock', 'w'), 0, time.time()
while time.time() - begun < 4:
    before = time.time()
    fcntl.flock(file, fcntl.LOCK_EX)
    locked = time.time()
    if locked - before > 0.1: waited += locked - before
    while time.time() - locked < 0.001: pass
    fcntl.flock(file, fcntl.LOCK_UN)
    if sys.argv[1] == 'waiter': time.sleep(0.002)
if sys.argv[1] == 'waiter': print(f'{waited:.2f}', file=open(f'waited.{os.getpid()}', 'w'))
";

/// Each system call stops twice.
pub const STRACE: Case = Case {
    name: "strace",
    title: "Python under strace",
    command: "strace -f -o /dev/null python3 walk.py (os.stat, 40,000 times)",
    needs: &["strace", "/usr/bin/python3"],
    truth: "Each call stops the program twice, and goes on when strace says so. As many calls without strace:",
    expect: Expect {
        right: &[Is { who: "strace", title: "traces the other", ..Is::ANY }],
        vague: &[Is { who: "strace", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.write("walk.py", WALK)?;
        let alone = speed(scene, ":", "/usr/bin/python3 walk.py")?.recip();
        let trace = scene.record_command("strace -f -o /dev/null /usr/bin/python3 walk.py")?;
        Ok(Recorded { trace, truth: format!("{alone:.2} s"), focus: "strace" })
    },
    fix: Some(Fix {
        what: "no strace",
        rate: |scene, fixed| {
            scene.write("walk.py", WALK)?;
            let tracer = if fixed { "" } else { "strace -f -o /dev/null " };
            speed(scene, ":", &format!("{tracer}/usr/bin/python3 walk.py"))
        },
    }),
};

const WALK: &str = "\
import os
for i in range(40000):
    os.stat('/etc')
    sum(range(50))
";

/// A file system that limits its rate of reading, and many short programs that read from it.
pub const FUSE: Case = Case {
    name: "fuse",
    title: "cat of many files on a slow file system in user space",
    command: "bindfs --read-rate=1M from to; for f in to/*; do cat $f; done",
    needs: &["bindfs", "strace"],
    truth: "Each cat waits for the kernel to read a page, and that for bindfs, which sleeps to keep its rate. strace -f -w of bindfs, for two seconds:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling], who: "bindfs", ..Is::ANY }],
        vague: &[Is { who: "bindfs", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.run("mkdir -p from to; for i in $(seq 200); do echo $i >from/$i; done")?;
        let dir = scene.dir.display();
        let system = scene
            .start_until(&format!("bindfs -f --no-allow-other --read-rate=1M {dir}/from {dir}/to"), "test -e to/1")?;
        let load = scene.start("sh -c 'while :; do for f in to/*; do cat $f; done; done'")?;
        let truth = attach_wall(scene, system.pid(), &["clock_nanosleep", "nanosleep"])?;
        let (trace, _) = scene.record_pid(load.pid(), || Ok(String::new()))?;
        drop(load);
        scene.run(&format!("umount -l {dir}/to"))?;
        Ok(Recorded { trace, truth, focus: "sh" })
    },
    fix: None,
};

/// A name server that does not answer.
pub const NAMES: Case = Case {
    name: "dns",
    title: "Python, names that no server tells",
    command: "unshare -m (resolv.conf: a nameserver that says nothing, timeout:1 attempts:1) python3: socket.getaddrinfo",
    needs: &["unshare", "/usr/bin/python3"],
    truth: "Each name takes the second after which the C library gives up. Its own clock:",
    expect: Expect {
        right: &[Is { who: "python3", title: "DNS", ..Is::ANY }],
        vague: &[Is { who: "python3", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.write("resolv.conf", "nameserver 127.9.9.9\noptions timeout:1 attempts:1\n")?;
        scene.write("ask.py", ASK)?;
        scene.write("silent.py", SILENT)?;
        let _silent = scene.start("/usr/bin/python3 silent.py")?;
        let trace = scene.record_command(
            "unshare -m sh -c 'mount --bind resolv.conf /etc/resolv.conf && for i in 1 2 3; do /usr/bin/python3 ask.py; done >asked'",
        )?;
        Ok(Recorded { trace, truth: scene.run("cat asked | tr '\\n' ' '")?.trim().to_owned(), focus: "python3" })
    },
    fix: None,
};

const SILENT: &str = "\
import socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.9.9.9', 53))
time.sleep(60)
";

const ASK: &str = "\
import socket, time
begun = time.time()
try: socket.getaddrinfo('db.internal.example', 80)
except OSError: pass
print(f'{time.time() - begun:.2f} s')
";

/// One read at a time.
pub const AIO: Case = Case {
    name: "fio_aio",
    title: "fio, one read at a time by libaio",
    command: "fio --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=1",
    needs: &["fio"],
    truth: "It waits for each read. Its own report:",
    expect: Expect {
        right: &[Is { kinds: &[Disk], who: "^fio$", ..Is::ANY }],
        vague: &[Is { who: "^fio$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.run(&format!("{FIO} --create_only=1"))?;
        let trace = scene.record_command(&format!("{FIO} --runtime=4 >report"))?;
        Ok(Recorded { trace, truth: scene.run("grep -m1 ' clat (' report")?.trim().to_owned(), focus: "fio" })
    },
    fix: Some(Fix {
        what: "iodepth=8",
        rate: |scene, fixed| {
            scene.run(&format!("{FIO} --create_only=1"))?;
            let depth = if fixed { "--iodepth=8" } else { "" };
            let said = scene.run(&format!("{FIO} {depth} --runtime=3 --minimal | cut -d';' -f8"))?;
            number_after(&format!("= {said}"), "=")
        },
    }),
};

const FIO: &str = "fio --name=reads --filename=data --size=200M --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=1 --time_based";

/// The other rank spins until the first has done its part.
pub const MPI: Case = Case {
    name: "mpi",
    title: "MPI, two ranks of which one has most of the work",
    command: "mpirun -n 2 ./relax",
    needs: &["mpirun", "mpicc"],
    truth: "Rank 1 is done with its part after a fifth of the time, and polls in MPI_Allreduce. Its own clock there, of all:",
    expect: Expect {
        right: &[Is { kinds: &[Spin, Serial, Imbalance], function: "relax|main", ..Is::ANY }],
        vague: &[Is { who: "^relax$", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.write("relax.c", RELAX)?;
        ready(scene, BUILD)?;
        let trace = scene.record_command(&mpirun("5"))?;
        Ok(Recorded { trace, truth: scene.run("cat report")?.trim().to_owned(), focus: "relax" })
    },
    fix: Some(Fix {
        what: "both have the same part",
        rate: |scene, fixed| {
            scene.write("relax.c", RELAX)?;
            speed(scene, BUILD, &mpirun(if fixed { "1" } else { "5" }))
        },
    }),
};

const RELAX: &str = "\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) double relax(long n) { double s = 0; for (long i = 1; i < n; i++) s += 1.0 / (i * (double)i); return s; }
int main(int c, char **v) {
    int rank, weight = atoi(v[1]);
    double sum = 0, all, waited = 0;
    MPI_Init(&c, &v);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begun = MPI_Wtime();
    long part = 4800000 / (weight + 1);
    for (int k = 0; k < 300; k++) {
        sum += relax(rank == 0 ? part * weight : part);
        double before = MPI_Wtime();
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        waited += MPI_Wtime() - before;
    }
    if (rank == 1) { FILE *f = fopen(\"report\", \"w\"); fprintf(f, \"%.2f of %.2f s\", waited, MPI_Wtime() - begun); fclose(f); }
    MPI_Finalize();
}
";

const BUILD: &str = "mpicc -O2 -fno-omit-frame-pointer relax.c -o relax";

fn mpirun(weight: &str) -> String {
    format!("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 ./relax {weight}")
}
