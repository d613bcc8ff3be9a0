//! What tests need of a machine, and how to see whether it is there.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that a machine may lack.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// The user is root.
    Root,
    /// A recording: the capabilities for it, and a kernel that describes its types.
    Recording,
    /// A file system can be mounted.
    Mounts,
    /// Control groups can be made.
    ControlGroups,
    /// Capabilities can be given to a file in the folder for temporary files, and take effect there.
    FileCapabilities,
    /// The addresses of the kernel's functions are shown to this user.
    KernelAddresses,
    /// A program, on the search path or where systems keep those of administrators and servers.
    Program(&'a str),
    /// A Java that Cassandra 5 runs on.
    Java,
    /// Sections of code that the kernel restarts (rseq): glibc 2.35, Linux 4.18, a processor that we know.
    RestartableSequences,
    /// Traces of other machines, which are too large for the repository.
    SharedTraces,
    /// Anything else, of which the test itself has seen whether it is there.
    Other {
        /// Its name, as in "no {name}".
        name: &'a str,
        /// Whether it is there.
        is_here: bool,
    },
}

/// Bits of `CapEff`.
const SETFCAP: u32 = 31;
const SYS_ADMIN: u32 = 21;
const SYSLOG: u32 = 34;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

impl Need<'_> {
    /// Whether this machine has it.
    pub fn is_here(&self) -> bool {
        match *self {
            Need::Root => is_root(),
            Need::Recording => {
                is_root()
                    && (may(SYS_ADMIN) || may(BPF) && may(PERFMON))
                    && Path::new("/sys/kernel/btf/vmlinux").exists()
            }
            Need::Mounts => may(SYS_ADMIN),
            Need::ControlGroups => is_root() && mounts().any(|m| m.kind.starts_with("cgroup") && m.has("rw")),
            Need::FileCapabilities => {
                is_root()
                    && may(SETFCAP)
                    && program("setcap")
                    && program("setpriv")
                    && takes_effect_in_temporary_folder()
            }
            Need::KernelAddresses => may(SYSLOG) && !read("/proc/sys/kernel/kptr_restrict").starts_with('2'),
            Need::Program(name) => program(name),
            Need::Java => java(),
            Need::RestartableSequences => {
                cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
                    && glibc().is_some_and(|version| version >= (2, 35))
                    && numbers(&read("/proc/sys/kernel/osrelease")).is_some_and(|version| version >= (4, 18))
            }
            Need::SharedTraces => shared_traces().is_dir(),
            Need::Other { is_here, .. } => is_here,
        }
    }
}

impl fmt::Display for Need<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Need::Root => "root",
            Need::Recording => "right to record (root with CAP_BPF, a kernel with BTF)",
            Need::Mounts => "right to mount a file system",
            Need::ControlGroups => "control groups that can be written",
            Need::FileCapabilities => {
                "files with capabilities (root, setcap, setpriv, a temporary folder that is not nosuid)"
            }
            Need::KernelAddresses => "kernel addresses in /proc/kallsyms",
            Need::Java => "Java 17 or 11",
            Need::RestartableSequences => "restartable sequences (glibc 2.35, Linux 4.18)",
            Need::SharedTraces => "shared traces (HOLDUP_SHARED_TRACES names their folder)",
            Need::Program(name) | Need::Other { name, .. } => name,
        })
    }
}

pub fn shared_traces() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    std::env::var_os("HOLDUP_SHARED_TRACES").map_or_else(beside, PathBuf::from)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A line of `/proc/self/status`.
fn status(name: &str) -> Option<String> {
    read("/proc/self/status").lines().find_map(|l| Some(l.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

fn is_root() -> bool {
    status("Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

/// Whether the capability of this number is in effect.
fn may(capability: u32) -> bool {
    let effective = status("CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
    effective.is_some_and(|set| set >> capability & 1 == 1)
}

fn program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let administrators = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    // Debian keeps each version's programs in a folder of its own.
    let servers = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|v| v.path().join("bin"));
    std::env::split_paths(&path).chain(administrators).chain(servers).any(|folder| folder.join(name).is_file())
}

fn java() -> bool {
    let Ok(output) = Command::new("java").arg("-version").output() else { return false };
    let text = String::from_utf8_lossy(&output.stderr);
    ["\"17.", "\"17\"", "\"11."].iter().any(|version| text.contains(version))
}

fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    numbers(String::from_utf8_lossy(&output.stdout).strip_prefix("glibc ")?)
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut words = version.split(|c: char| !c.is_ascii_digit());
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

struct Mount {
    folder: PathBuf,
    kind: String,
    options: String,
}

impl Mount {
    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|o| o == option)
    }
}

fn mounts() -> impl Iterator<Item = Mount> {
    let text = read("/proc/self/mounts");
    let mounts: Vec<Mount> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1).map(str::to_owned);
            Some(Mount { folder: words.next()?.into(), kind: words.next()?, options: words.next()? })
        })
        .collect();
    mounts.into_iter()
}

fn takes_effect_in_temporary_folder() -> bool {
    let folder = std::env::temp_dir();
    let of = mounts().filter(|m| folder.starts_with(&m.folder)).max_by_key(|m| m.folder.as_os_str().len());
    of.is_some_and(|mount| !mount.has("nosuid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_what_every_machine_has() {
        assert_eq!(numbers("6.1.0-13-amd64\n"), Some((6, 1)));
        assert_eq!(numbers("2.36\n"), Some((2, 36)));
        assert_eq!(numbers("sid"), None);
        assert!(Need::Program("sh").is_here() && !Need::Program("").is_here());
        assert!(mounts().any(|m| m.folder == Path::new("/")));
        let id = Command::new("id").arg("-u").output().expect("id");
        assert_eq!(Need::Root.is_here(), id.stdout == b"0\n");
    }
}
