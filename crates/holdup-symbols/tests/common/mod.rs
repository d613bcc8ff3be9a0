//! Compiling programs and copying the stacks of their blocked threads.
#![allow(dead_code)] // each test uses another part

pub mod elf;
pub mod server;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdup_testing::{Need, skip};
use holdup_trace::{Image, RawStack, Symbolizer, Unwinder};

/// Compiles; `None`, with a message, if the compiler is not there.
#[track_caller]
pub fn compile(compiler: &str, args: &[&str], sources: &[&str], out: &Path) -> Option<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let sources = sources.iter().map(|s| dir.join(s));
    let run = Command::new(compiler).args(sources).args(args).arg("-o").arg(out).output();
    if run.is_err() {
        skip(Need::Program(compiler), "it cannot be run");
    }
    let output = run.ok()?;
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// Runs a tool; `None`, with a message, if it is not there.
#[track_caller]
pub fn tool(name: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(name).args(args).output();
    if output.is_err() {
        skip(Need::Program(name), "it cannot be run");
    }
    let output = output.ok()?;
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The whole file as one mapping at `BASE`, for files whose code lies where its offset says.
pub fn flat_image(path: &Path) -> Arc<Image> {
    let end = BASE + std::fs::metadata(path).unwrap().len();
    let path = path.to_str().unwrap().to_owned();
    Arc::new(Image { start: BASE, end, file_offset: 0, path, build_id: None, pid: 0 })
}

pub const BASE: u64 = 0x7f00_0000_0000;

/// Where the code of a symbol lies in a file, by `nm` and `readelf`. GNU ld puts it at the address it has.
pub fn symbol(path: &Path, name: &str) -> u64 {
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let text = tool("nm", &[path.to_str().unwrap()]).unwrap();
    let line = text.lines().find(|l| l.ends_with(&format!(" {name}"))).unwrap_or_else(|| panic!("no {name}"));
    let address = hex(line.split_whitespace().next().unwrap());
    let headers = tool("readelf", &["-lW", path.to_str().unwrap()]).unwrap();
    let loads =
        headers.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).filter(|w| w.first() == Some(&"LOAD"));
    let mut segments = loads.map(|w| (hex(w[1]), hex(w[2]), hex(w[4])));
    let (offset, start, _) = segments.find(|&(_, start, size)| (start..start + size).contains(&address)).unwrap();
    address - start + offset
}

/// A running program, killed at the end.
pub struct Program(pub Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Starts it and waits until it says "ready" and each of these threads has its name and waits.
    pub fn start(path: &Path, threads: &[&str]) -> Program {
        let dir = path.parent().unwrap();
        let mut child =
            Command::new(path).env("LD_LIBRARY_PATH", dir).stdout(Stdio::piped()).spawn().expect("can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let program = Program(child);
        // Only ends a test that would hang.
        let end = Instant::now() + Duration::from_secs(120);
        let waits = |name: &&str| program.threads().iter().any(|t| t.name == **name && t.waits && t.blocked.is_some());
        while !threads.iter().all(&waits) {
            assert!(Instant::now() < end, "threads do not block: {:?}", program.threads());
            std::thread::sleep(Duration::from_millis(5));
        }
        program
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn images(&self) -> Vec<Arc<Image>> {
        images(self.pid())
    }

    pub fn threads(&self) -> Vec<Thread> {
        threads(self.pid())
    }

    /// The stack of the thread of that name, cut to `limit` bytes.
    pub fn stack(&self, name: &str, limit: u64) -> RawStack {
        let threads = self.threads();
        let thread = threads.iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no thread {name}: {threads:?}"));
        stack(self.pid(), thread, limit)
    }
}

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<Thread> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.map(|t| Thread::read(&t.path())).collect()
}

/// The stack of a blocked thread, cut to `limit` bytes.
pub fn stack(pid: u32, thread: &Thread, limit: u64) -> RawStack {
    let (sp, ip) = thread.blocked.unwrap_or_else(|| panic!("{} runs", thread.name));
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let end = maps.lines().filter_map(range).find(|&(start, end)| (start..end).contains(&sp)).unwrap().1;
    let mut bytes = vec![0; (end - sp).min(limit) as usize];
    File::open(format!("/proc/{pid}/mem")).unwrap().read_exact_at(&mut bytes, sp).unwrap();
    RawStack { pid, ip, sp, bp: frame_pointer(thread.tid), bytes, ..RawStack::default() }
}

#[derive(Debug)]
pub struct Thread {
    pub tid: i32,
    pub name: String,
    /// (sp, ip)
    pub blocked: Option<(u64, u64)>,
    /// Whether it is blocked in a call that these programs wait in, and not in one on the way there.
    pub waits: bool,
}

/// read, poll, nanosleep, futex, clock_nanosleep, ppoll; `restart_syscall` after a stop.
#[cfg(target_arch = "x86_64")]
const WAITS: [&str; 7] = ["0", "7", "35", "202", "230", "271", "219"];
/// The same where there is no poll.
#[cfg(not(target_arch = "x86_64"))]
const WAITS: [&str; 6] = ["63", "101", "98", "115", "73", "128"];

impl Thread {
    fn read(task: &Path) -> Thread {
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default().trim().to_owned();
        let call = std::fs::read_to_string(task.join("syscall")).unwrap_or_default();
        let words: Vec<&str> = call.split_whitespace().collect();
        let number = |i: usize| u64::from_str_radix(words[i].trim_start_matches("0x"), 16).unwrap();
        let blocked = (words.len() == 9).then(|| (number(7), number(8)));
        let waits = words.first().is_some_and(|number| WAITS.contains(number));
        Thread { tid: task.file_name().unwrap().to_str().unwrap().parse().unwrap(), name, blocked, waits }
    }
}

/// /proc tells a blocked thread's stack pointer, but not its frame pointer. The thread is stopped for a moment.
fn frame_pointer(tid: i32) -> u64 {
    let thread = nix::unistd::Pid::from_raw(tid);
    if nix::sys::ptrace::attach(thread).is_err() {
        return 0;
    }
    nix::sys::wait::waitpid(thread, Some(nix::sys::wait::WaitPidFlag::__WALL)).unwrap();
    #[cfg(target_arch = "x86_64")]
    let bp = nix::sys::ptrace::getregs(thread).unwrap().rbp;
    #[cfg(not(target_arch = "x86_64"))]
    let bp = 0;
    nix::sys::ptrace::detach(thread, None).unwrap();
    bp
}

fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

/// The executable mappings of a process.
pub fn images(pid: u32) -> Vec<Arc<Image>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let image = |line: &str| {
        let (start, end) = range(line)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let file_offset = u64::from_str_radix(words[2], 16).ok()?;
        let path = words.get(5..).unwrap_or_default().join(" ");
        words[1].contains('x').then(|| Arc::new(Image { start, end, file_offset, path, build_id: None, pid }))
    };
    maps.lines().filter_map(image).collect()
}

/// Function names of an unwound stack, inlined ones included, the leaf first; and whether it is complete.
pub fn names(
    unwinder: &mut dyn Unwinder,
    symbols: &mut dyn Symbolizer,
    images: &[Arc<Image>],
    raw: &RawStack,
) -> (Vec<String>, bool) {
    let (frames, complete) = unwinder.unwind(images, raw);
    let exact = |(i, &address): (usize, &u64)| if i == 0 { address } else { address - 1 };
    let names = frames.iter().enumerate().map(exact).flat_map(|a| symbols.locate(false, images, a));
    (names.map(|l| l.function).collect(), complete)
}

/// Checks that `wanted` occur in this order.
pub fn assert_order(names: &[String], wanted: &[&str]) {
    let mut rest = names.iter();
    for w in wanted {
        assert!(rest.any(|n| n == w), "{w} is missing in {names:#?}");
    }
}
