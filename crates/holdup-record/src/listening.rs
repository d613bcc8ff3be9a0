//! Which processes are servers: they own a socket that listens, or one of UDP on a port that somebody chose.
//!
//! The tables of each network namespace name the sockets that listen, by inode; the links in /proc/PID/fd tell who holds
//! them. A look costs a microsecond or two for each descriptor, so it has a limit: what was not reached is not told of.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdup_spool::Side;

use crate::attach;
use crate::caps::Raised;
use crate::options::BUDGET;
use crate::proc::numbers;

/// How long a look takes at most before the recording begins, and after its end.
pub(crate) const OUTSIDE: Duration = Duration::from_millis(500);
/// How long one takes at most while the buffers fill.
pub(crate) const MEANWHILE: Duration = Duration::from_millis(20);
/// Looks are so many times their own length apart: they take a half percent of a CPU at most, of the usual budget,
const APART: f64 = 200.0;
/// and no less than this.
const LEAST_APART: Duration = Duration::from_millis(50);
/// So many descriptors of a process are looked at. A server opens what it listens on before it has clients.
const DESCRIPTORS: usize = 4_096;
/// The kernel gives ports from here on to those that ask for any, if nothing else was set.
const ANY_PORT: u16 = 32_768;
/// The flag of a local socket that listens, in /proc/net/unix.
const ACCEPTS: u32 = 1 << 16;

/// Whose processes are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whom {
    /// All.
    All,
    /// A process and those that it made, directly or not.
    Tree(u32),
}

/// A process, which process made it, and whether it is a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pid: u32,
    parent: u32,
    listens: bool,
}

impl Found {
    /// As something that was seen at time `t`.
    pub(crate) fn at(self, t: u64) -> Side {
        let Found { pid, parent, listens } = self;
        Side::Listener { t, pid, parent, listens }
    }
}

/// Looks from time to time, for processes that neither the first nor the last look can see.
#[derive(Debug)]
pub(crate) struct Looks {
    due: Instant,
    apart: u32,
    told: HashMap<u32, Found>,
}

impl Looks {
    /// `budget` is the share of the machine that recording may cost.
    pub(crate) fn new(budget: f64) -> Looks {
        let apart = (APART * (BUDGET / budget).clamp(1.0, 100.0)) as u32;
        Looks { due: Instant::now() + LEAST_APART, apart, told: HashMap::new() }
    }

    /// Tells what has changed since the look before, if it is time for another one.
    pub(crate) fn again(&mut self, whom: Whom, limit: Duration, t: u64, out: &mut Vec<Side>) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        for found in look(whom, limit, &Raised::all()) {
            if self.told.insert(found.pid, found) != Some(found) {
                out.push(found.at(t));
            }
        }
        self.due = Instant::now() + (now.elapsed() * self.apart).max(LEAST_APART);
    }
}

/// Looks at processes, the newest first: what `limit` leaves out has been there for a while, and will be when the
/// recording ends. Other users' processes are seen with capabilities alone, so they have to be taken up.
pub(crate) fn look(whom: Whom, limit: Duration, _: &Raised) -> Vec<Found> {
    let end = Instant::now() + limit;
    let mut pids: Vec<u32> = match whom {
        Whom::All => numbers(Path::new("/proc")).collect(),
        Whom::Tree(root) => tree(root, end),
    };
    pids.sort_unstable_by(|a, b| b.cmp(a));
    let Some(sockets) = listening(&pids, end) else { return Vec::new() };
    let found = |&pid: &u32| Some(Found { pid, listens: owns_any(pid, &sockets, end)?, parent: attach::parent(pid) });
    pids.iter().take_while(|_| Instant::now() < end).filter_map(found).collect()
}

/// `root` and its descendants. Kernels that keep no lists of children tell of the root alone.
fn tree(root: u32, end: Instant) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        for tid in numbers(Path::new(&format!("/proc/{pid}/task"))).take_while(|_| Instant::now() < end) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
            all.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    all
}

/// The sockets that listen in the network namespaces of `pids`; `None` if there was no time to read all of them.
///
/// A process may hold sockets of other namespaces than its own, but the inodes of sockets are the same everywhere.
fn listening(pids: &[u32], end: Instant) -> Option<HashSet<u64>> {
    let (mut namespaces, mut sockets) = (HashSet::new(), HashSet::new());
    for pid in pids {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Ok(namespace) = fs::metadata(process.join("ns/net")) else { continue };
        if namespaces.insert(namespace.ino()) {
            read(&process.join("net/tcp"), tcp, end, &mut sockets)?;
            read(&process.join("net/tcp6"), tcp, end, &mut sockets)?;
            read(&process.join("net/udp"), udp, end, &mut sockets)?;
            read(&process.join("net/udp6"), udp, end, &mut sockets)?;
            read(&process.join("net/unix"), local, end, &mut sockets)?;
        }
        if Instant::now() >= end {
            return None;
        }
    }
    Some(sockets)
}

/// The ports on which TCP sockets listen, in all network namespaces. What begins to listen later is seen by the programs in the kernel.
pub(crate) fn ports() -> BTreeSet<u16> {
    let (end, _raised) = (Instant::now() + OUTSIDE, Raised::all());
    let (mut namespaces, mut ports) = (HashSet::new(), BTreeSet::new());
    for pid in numbers(Path::new("/proc")).take_while(|_| Instant::now() < end) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Ok(namespace) = fs::metadata(process.join("ns/net")) else { continue };
        if namespaces.insert(namespace.ino()) {
            for table in ["net/tcp", "net/tcp6"] {
                let Ok(file) = File::open(process.join(table)) else { continue };
                let lines = BufReader::new(file).lines().skip(1).map_while(Result::ok);
                ports.extend(lines.map_while(|line| port(&line)));
            }
        }
    }
    ports
}

/// The port of a line of /proc/net/tcp whose socket listens.
fn port(line: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let address = fields.next()?;
    let (_, port) = address.rsplit_once(':')?;
    (fields.nth(1) == Some("0A")).then(|| u16::from_str_radix(port, 16).ok()).flatten()
}

/// What a line tells of a socket.
#[derive(Debug, PartialEq)]
enum Line {
    Listens(u64),
    Other,
    /// No socket behind this line listens.
    Last,
}

/// `None` if time is over. A table that cannot be opened is one that this kernel does not have.
fn read(table: &Path, line: fn(&str) -> Line, end: Instant, sockets: &mut HashSet<u64>) -> Option<()> {
    let Ok(file) = File::open(table) else { return Some(()) };
    for bytes in BufReader::new(file).split(b'\n').skip(1).map_while(Result::ok) {
        match line(&String::from_utf8_lossy(&bytes)) {
            Line::Listens(inode) => sockets.insert(inode),
            Line::Other => false,
            Line::Last => break,
        };
        if Instant::now() >= end {
            return None;
        }
    }
    Some(())
}

/// A line of /proc/net/tcp, where those that listen come first.
fn tcp(line: &str) -> Line {
    let mut fields = line.split_ascii_whitespace().skip(3);
    match (fields.next(), fields.nth(5).map(str::parse)) {
        (Some("0A"), Some(Ok(inode))) => Line::Listens(inode),
        _ => Line::Last,
    }
}

/// A line of /proc/net/udp: who serves has a port that its clients know, and takes what comes from any of them.
fn udp(line: &str) -> Line {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let [own, other] = [(); 2].map(|()| fields.next().and_then(port));
    match (own, other, fields.nth(6).map(str::parse)) {
        (Some(1..ANY_PORT), Some(0), Some(Ok(inode))) => Line::Listens(inode),
        _ => Line::Other,
    }
}

/// A line of /proc/net/unix, where they come in any order.
fn local(line: &str) -> Line {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let flags = fields.next().and_then(|flags| u32::from_str_radix(flags, 16).ok());
    let inode = fields.nth(2).map(str::parse);
    match (flags, inode, fields.next()) {
        (Some(flags), Some(Ok(inode)), path) if flags & ACCEPTS != 0 && !is_of_runtime(path) => Line::Listens(inode),
        _ => Line::Other,
    }
}

/// Whether a language's runtime listens there for debuggers, whatever its program does: that makes no server. Java does so once it was
/// asked for the names of its functions.
fn is_of_runtime(path: Option<&str>) -> bool {
    let name = path.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    name.starts_with(".java_pid") || name.starts_with("dotnet-diagnostic-")
}

/// Whether a process holds one of `sockets`; `None` if that can't be known: it is another user's, or has too many
/// descriptors, or time is over. Nor is it known of what has none, which is the kernel's own, or has ended.
fn owns_any(pid: u32, sockets: &HashSet<u64>, end: Instant) -> Option<bool> {
    let mut any = false;
    for (i, descriptor) in fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().enumerate() {
        if i >= DESCRIPTORS || Instant::now() >= end {
            return None;
        }
        any = true;
        let target = fs::read_link(descriptor.path()).ok();
        if target.and_then(|target| inode(target.as_os_str().as_bytes())).is_some_and(|i| sockets.contains(&i)) {
            return Some(true);
        }
    }
    any.then_some(false)
}

/// `socket:[INODE]`.
fn inode(target: &[u8]) -> Option<u64> {
    std::str::from_utf8(target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixListener;
    use std::process::{Child, Command, Stdio};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A process that waits, and holds `input`.
    struct Holder(Child);

    impl Holder {
        fn of(input: impl Into<Stdio>) -> Self {
            Holder(Command::new("sleep").arg("1000").stdin(input).stdout(Stdio::null()).spawn().expect("sleep"))
        }

        fn found(&self, listens: bool) -> Found {
            Found { pid: self.0.id(), parent: std::process::id(), listens }
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// What a look tells of the process.
    fn told(holder: &Holder, whom: Whom) -> Option<Found> {
        look(whom, LONG, &Raised::all()).into_iter().find(|found| found.pid == holder.0.id())
    }

    #[test]
    fn who_holds_a_socket_that_listens_is_a_server() {
        let dir = tempfile::tempdir().expect("dir");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("TCP");
        let connected = TcpStream::connect(tcp.local_addr().expect("address")).expect("connection");
        let unix = UnixListener::bind(dir.path().join("socket")).expect("UNIX");
        let chosen = (20_000..ANY_PORT).find_map(|port| UdpSocket::bind(("127.0.0.1", port)).ok()).expect("UDP");
        let any = UdpSocket::bind("127.0.0.1:0").expect("UDP");
        let stream = [(OwnedFd::from(tcp), true), (unix.into(), true), (connected.into(), false)];
        for (socket, listens) in stream.into_iter().chain([(chosen.into(), true), (any.into(), false)]) {
            let holder = Holder::of(socket);
            assert_eq!(told(&holder, Whom::All), Some(holder.found(listens)));
            assert_eq!(told(&holder, Whom::Tree(holder.0.id())), Some(holder.found(listens)));
        }
    }

    #[test]
    fn a_tree_is_the_process_and_those_below_it() {
        let holder = Holder::of(Stdio::null());
        let me = std::process::id();
        let pids: Vec<u32> = look(Whom::Tree(me), LONG, &Raised::all()).into_iter().map(|found| found.pid).collect();
        assert!(pids.contains(&holder.0.id()) && pids.contains(&me) && !pids.contains(&1), "{pids:?}");
    }

    #[test]
    fn without_time_nothing_is_told() {
        assert_eq!(look(Whom::All, Duration::ZERO, &Raised::all()), []);
    }

    #[test]
    fn only_what_changes_is_told_again() {
        let holder = Holder::of(Stdio::null());
        let (mut looks, mut out) = (Looks::new(BUDGET), Vec::new());
        let whom = Whom::Tree(holder.0.id());
        looks.again(whom, LONG, 4, &mut out);
        assert_eq!(out, [], "the first look has just been");
        looks.due = Instant::now();
        looks.again(whom, LONG, 5, &mut out);
        assert_eq!(out, [holder.found(false).at(5)]);
        assert!(looks.due >= Instant::now() + LEAST_APART / 2);
        looks.due = Instant::now();
        looks.again(whom, LONG, 6, &mut out);
        assert_eq!(out.len(), 1);
        // As if it had been something else before.
        looks.told.insert(holder.0.id(), holder.found(true));
        looks.due = Instant::now();
        looks.again(whom, LONG, 7, &mut out);
        assert_eq!(out[1..], [holder.found(false).at(7)]);
    }

    #[test]
    fn lines_of_the_kernels_tables() {
        let listens =
            "   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 4711 1 0";
        let connected =
            "   1: 0100007F:1538 0100007F:A0F4 01 00000000:00000000 00:00000000 00000000   999        0 4712 1 0";
        assert_eq!((tcp(listens), tcp(connected), tcp("")), (Line::Listens(4711), Line::Last, Line::Last));
        assert_eq!((port(listens), port(connected), port("0: :")), (Some(0x1538), None, None));
        let of = |own: &str, other: &str| {
            udp(&format!("  7: 0100007F:{own} {other} 07 00000000:00000000 00:00000000 00000000 0 0 4713 2 0 0"))
        };
        assert_eq!((of("0035", "00000000:0000"), of("0035", "0100007F:A0F4")), (Line::Listens(4713), Line::Other));
        assert_eq!((of("A0F4", "00000000:0000"), udp("7: :")), (Line::Other, Line::Other), "it asked for any port");
        let listens = "ffff8a1c0: 00000002 00000000 00010000 0001 01 1234 /run/a b";
        let connected = "ffff8a1c0: 00000003 00000000 00000000 0001 03 1235";
        let asked = "ffff: 00000002 00000000 00010000 0001 01 7 /tmp/.java_pid12";
        assert_eq!(local(asked), Line::Other, "for debuggers");
        assert_eq!((local(listens), local(connected), local("x")), (Line::Listens(1234), Line::Other, Line::Other));
        assert_eq!((inode(b"socket:[77]"), inode(b"pipe:[77]")), (Some(77), None));
    }
}
