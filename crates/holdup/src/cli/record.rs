//! `holdup record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use holdup_record::{Condition, Keep, Ring};

use super::Source;

/// Examples.
pub const HELP: &str = "\
Examples:
  holdup record -- make -j16             a command and everything it starts
  holdup record -p 4711 --duration 10s   a running process; -p 4711,4712 for several
  holdup record -p 4711 -- ./load.sh     a running process, while a command runs
  holdup record -p nginx                 all processes of that name, until the last of them ends
  holdup record --cgroup system.slice/nginx.service
  holdup record -a --ring 30s            the last 30 seconds, written on Ctrl-C or SIGUSR1
  holdup record -a --ring 10m --ring-size 512MB    as much of the last 10 minutes as there is room for
  holdup record -a --ring 30s --until \"idle 50% 200ms\" --until \"log /var/log/app.log timeout\"
  holdup record -a --ring 30s --ring-size 512MB --until \"wait 5s postgres\" --count 3 --pause 5m
  holdup record -p postgres --span \"usdt:postgresql:query__start(str) ~~ query__done\"
  holdup record --span \"u:./server:handle_request(int)\" -- ./server

--until \"idle 50% 200ms\": for that long so many CPUs had no work, while a thread of the target waited in futex or uninterruptibly. \
\"queue 20ms\": a thread of the target, or called so, was ready and had no CPU. \"wait 5s NAME\": a thread or process called so waited in \
futex or uninterruptibly; with any, in whatever way. \"psi …\": the average of 10 seconds rises above it. \"log …\": a line with the text \
is added.

Recording needs root and a kernel with BTF; SECURITY.md says how others may be let record. The file is for its owner alone. The machine is recorded as a \
whole, so that culprits outside the program are found too.";

/// The work of a process that `holdup record --count` starts: a recording that is open becomes a trace.
#[derive(Debug, Args)]
pub struct KeepRing {
    /// The file to write
    #[arg(short, long)]
    pub output: PathBuf,
    /// The whole machine is in focus
    #[arg(long)]
    pub machine: bool,
    /// Where it is carried when it is written
    #[arg(long)]
    pub ship: Option<String>,
    /// Numbers of the open files, in their order
    #[arg(required = true)]
    pub parts: Vec<u32>,
}

/// `holdup record`
#[derive(Debug, Args)]
pub struct Record {
    /// The file to write
    #[arg(short, long, default_value = "trace.holdup", value_name = "FILE")]
    pub output: PathBuf,
    /// Keep only the last stretch of this length
    #[arg(long, value_parser = super::duration, value_name = "TIME")]
    pub ring: Option<Duration>,
    /// Keep no more than so much of the end on disk, such as 512MB; alone or beside --ring
    #[arg(long, value_parser = super::load::size, value_name = "SIZE")]
    pub ring_size: Option<usize>,
    /// End when this holds, or with --count write what --ring keeps; several, of which any will do. One of
    /// "idle 50% 200ms", "queue 20ms [NAME]", "wait 5s NAME [any]", "psi cpu|io|memory [some|full] 20%", "log PATH TEXT", "file PATH"
    #[arg(long, value_name = "COND")]
    pub until: Vec<Condition>,
    /// How long to go on after --until held
    #[arg(long, default_value = "1s", value_parser = super::duration, value_name = "TIME")]
    pub after: Duration,
    /// Write FILE-1, FILE-2, … each time --until holds or SIGUSR1 comes, so often, and go on meanwhile; 0 for without end
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// How long --until does not count after it held, with --count
    #[arg(long, default_value = "60s", value_parser = super::duration, value_name = "TIME", requires = "count")]
    pub pause: Duration,
    /// Add each trace that is written, with what was found in it, to a data set for `holdup fleet`: a folder, or s3://BUCKET/PATH. What a
    /// store does not take waits in holdup-queue beside FILE
    #[arg(long, value_name = "DIR|URL")]
    pub ship: Option<String>,
    /// Record units of work: calls of a function, u:PROGRAM:FUNCTION; what lies between two built-in probes,
    /// usdt:[PROGRAM:]PROVIDER:PROBE ~~ PROBE; requests that servers answer, net, or net(str) with their first bytes; marker, what programs write to trace_marker. Arguments by their kind, int, long, str, key or _: handle(int,str). Can be given again
    #[arg(long, value_name = "SPEC")]
    pub span: Vec<super::spans::SpanSpec>,
    /// The same as --machine
    #[arg(long = "all", id = "everything", hide = true)]
    pub everything: bool,
    /// What to record
    #[command(flatten)]
    pub source: Source,
}

impl Record {
    /// How much of the end is kept; `None` for everything.
    pub fn ring(&self) -> Option<Ring> {
        let (time, bytes) = (self.ring, self.ring_size.map(|bytes| bytes as u64));
        (time.is_some() || bytes.is_some()).then_some(Ring { time, bytes })
    }

    /// How often what is kept is written while recording goes on.
    pub fn keep(&self) -> Option<Keep> {
        self.count.map(|count| Keep { count, pause: self.pause })
    }
}
