//! Programs on which no rule was ever tuned.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Disk, LockHeld, Serial};

use super::instruments::at_once;
use super::pipes::pipeline;
use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Scene, free_port};

/// Threads of an interpreter that has one lock.
pub const RUBY: Case = Case {
    name: "ruby_gvl",
    title: "Ruby, four threads that compute",
    command: "ruby prices.rb",
    needs: &["ruby"],
    truth: "Ruby's threads run one at a time (GVL): CPU time is no more than time. Its own clocks:",
    expect: Expect {
        right: &[
            Is { kinds: &[LockHeld], who: "ruby|prices", ..Is::ANY },
            Is { kinds: &[Serial], who: "ruby|prices", title: "one at a time", ..Is::ANY },
        ],
        vague: &[Is { kinds: &[Serial, CpuBound], who: "ruby|prices", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        scene.write("prices.rb", PRICES)?;
        let truth = scene.run("ruby prices.rb")?;
        recorded(scene, ":", "ruby prices.rb", "ruby", truth.trim().to_owned() + ".")
    },
    fix: Some(Fix {
        what: "4 processes",
        rate: |scene, fixed| {
            scene.write("prices.rb", PRICES)?;
            speed(scene, ":", if fixed { "ruby prices.rb processes" } else { "ruby prices.rb" })
        },
    }),
};

const PRICES: &str = "\
def digest(n) = n.times.reduce(0) { |h, i| (h * 31 + i) & 0xffffffff }
begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
work = -> { 300.times { digest(20000) } }
if ARGV.empty? then 4.times.map { Thread.new(&work) }.each(&:join)
else 4.times.map { fork(&work) }.each { |pid| Process.wait(pid) } end
took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun
puts format('%.2f s, %.2f s of CPU time', took, Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID))
";

/// An encoder behind a decoder that is much faster.
pub const FLAC_LAME: Case = Case {
    name: "flac_lame",
    title: "flac | lame",
    command: "flac -dc in.flac | lame -q 2 - out.mp3",
    needs: &["flac", "lame", "python3", "bash"],
    truth: "lame computes all the time, and flac waits for its pipe.",
    expect: Expect {
        right: &[Is { kinds: &[Serial], who: "^lame$", function: "lame", ..Is::ANY }],
        vague: &[Is { who: "^lame$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        let stages = [("flac", "flac -s -dc in.flac"), ("lame", "lame --quiet -q 2 - out.mp3")];
        pipeline(scene, &format!("python3 -c '{SOUND}' && flac -s in.wav"), &stages, "lame")
    },
    fix: None,
    ..RUBY
};

const SOUND: &str = "\
import math, random, wave
sound = wave.open(\"in.wav\", \"wb\")
sound.setparams((2, 2, 44100, 0, \"NONE\", \"\"))
points = (int(8000 * math.sin(i * 0.03) + random.randrange(-999, 999)) for i in range(60 * 44100))
sound.writeframes(b\"\".join(p.to_bytes(2, \"little\", signed=True) * 2 for p in points))";

/// A build whose longest step comes last.
pub const NINJA: Case = Case {
    name: "ninja",
    title: "ninja -j2, one file that takes as long as all others",
    command: "ninja -j2",
    needs: &["ninja", "g++", "python3"],
    truth: "cc1plus compiles the large file alone, long after the small ones.",
    expect: Expect {
        right: &[Is { kinds: &[Serial], who: "^cc1plus$", ..Is::ANY }],
        vague: &[Is { who: "^cc1plus$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, &format!("python3 -c '{PROJECT}'"))?;
        let truth = at_once(scene, "ninja -j2; ninja -t clean")?;
        recorded(scene, ":", "ninja -j2", "ninja", truth)
    },
    fix: None,
    ..RUBY
};

const PROJECT: &str = "\
names = [f\"part{i}\" for i in range(6)] + [\"tables\"]
line = \"struct S%d {}; int g%d() { std::map<int, std::vector<S%d>> m; m[1].push_back({}); return m.size(); }\"
for name in names:
    text = \"#include <map>\\n#include <vector>\\n\"
    count = 160 if name == \"tables\" else 1
    text += \"\\n\".join(line % (i, i, i) for i in range(count) if name == \"tables\")
    open(name + \".cpp\", \"w\").write(text + \"\\n\")
rules = \"rule cc\\n command = g++ -O1 -c $in -o $out\\n\"
open(\"build.ninja\", \"w\").write(rules + \"\".join(f\"build {n}.o: cc {n}.cpp\\n\" for n in names))";

/// A process for each request.
pub const CGI: Case = Case {
    name: "lighttpd_cgi",
    title: "lighttpd, a CGI script for each request",
    command: "lighttpd (mod_cgi); wrk -t 1 -c 4 /hello.pl",
    needs: &["lighttpd", "perl", "wrk"],
    truth: "For each request perl starts, loads its modules and ends. Processes started in two seconds, /proc/stat:",
    expect: Expect {
        right: &[Is { kinds: &[CpuBound], who: "^perl$|hello", title: "processes of", ..Is::ANY }],
        vague: &[Is { who: "^perl$|hello", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        scene.write(
            "hello.pl",
            "use POSIX; use Data::Dumper; print \"Content-type: text/plain\\r\\n\\r\\nhello\\n\";\n",
        )?;
        let (port, dir) = (free_port()?, scene.dir.display().to_string());
        let config = "server.modules = (\"mod_cgi\")\ncgi.assign = (\".pl\" => \"/usr/bin/perl\")";
        let config =
            format!("server.document-root = \"{dir}\"\nserver.port = {port}\nserver.bind = \"127.0.0.1\"\n{config}\n");
        scene.write("lighttpd.conf", &config)?;
        let url = format!("http://127.0.0.1:{port}/hello.pl");
        let ready = format!("wrk -t 1 -c 1 -d 1s {url} | grep -q Requests/sec");
        let server = scene.start_until("lighttpd -D -f lighttpd.conf", &ready)?;
        let _load = scene.start(&format!("wrk -t 1 -c 4 -d {}s {url}", scene.load_seconds() + 4))?;
        let started = "grep processes /proc/stat | cut -d ' ' -f 2";
        let truth = scene.run(&format!("a=$({started}); sleep 2; echo $(($({started}) - a))"))?;
        let (trace, _) = scene.record_pid(server.pid(), || Ok(String::new()))?;
        Ok(Recorded { trace, truth: truth.trim().to_owned(), focus: "lighttpd" })
    },
    fix: None,
    ..RUBY
};

/// Two threads, of which one looks for matches for the other.
pub const SEVEN_ZIP: Case = Case {
    name: "seven_zip",
    title: "7z -mmt2, LZMA",
    command: "7z a -mmt2 out.7z in.tar",
    needs: &["7z", "tar"],
    truth: "The thread that looks for matches works nearly all the time, the one that encodes waits for it.",
    expect: Expect {
        right: &[Is { kinds: &[Serial, LockHeld], who: "^7z", function: "Match|Bt|Hc|7z", ..Is::ANY }],
        vague: &[Is { who: "^7z", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, "tar chf - -C /usr bin 2>/dev/null | head -c 16000000 >in.tar")?;
        let command = "7z a -mmt2 -mx5 out.7z in.tar >/dev/null; rm -f out.7z";
        let truth = at_once(scene, command)?;
        recorded(scene, ":", command, "7z", truth)
    },
    fix: None,
    ..RUBY
};

/// A copy of many files, each on the disk before the next.
pub const RSYNC: Case = Case {
    name: "rsync_fsync",
    title: "rsync --fsync of small files",
    command: "rsync -a --fsync from/ to/",
    needs: &["rsync", "strace"],
    truth: "Its receiver waits for the disk with each file. strace -f -w:",
    expect: Expect {
        right: &[Is { kinds: &[Disk], who: "^rsync$", ..Is::ANY }],
        vague: &[Is { who: "^rsync$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        let files = "mkdir from; for i in $(seq 4000); do head -c 2000 /dev/urandom >from/$i; done; sync";
        ready(scene, files)?;
        let command = "rm -rf to; rsync -a --fsync from/ to/";
        let truth = strace(scene, command)?;
        recorded(scene, ":", command, "rsync", truth)
    },
    fix: None,
    ..RUBY
};

fn strace(scene: &Scene, command: &str) -> Result<String> {
    crate::real::servers::strace_wall(scene, command, &["fsync", "read", "write"])
}
