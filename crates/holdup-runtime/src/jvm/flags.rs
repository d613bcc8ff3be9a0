//! Whether a machine was told not to be asked. One that was prints the stacks of all its threads at SIGQUIT, into its output.

use std::fs::File;
use std::io::Read;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

/// The flag, without the sign that sets or clears it.
const FLAG: &str = "DisableAttachMechanism";
/// Most that is read of arguments and of the environment, in bytes.
const WORDS_LIMIT: u64 = 4 << 20;
/// Most that is read of a file of options, in bytes, and of how many.
const FILE_LIMIT: u64 = 256 << 10;
const FILES: usize = 16;
/// Variables that hold options of the machine.
const VARIABLES: &[&str] = &["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
/// Options that name a file of options.
const FILE_OPTIONS: &[&str] = &["@", "-XX:Flags=", "-XX:VMOptionsFile="];

/// Where the flag is said to be set, if it is anywhere. Files that cannot be read are not believed to hold it.
pub(super) fn that_forbid(pid: u32) -> Option<&'static str> {
    let arguments = words(pid, "cmdline");
    if arguments.iter().any(|word| is_set(word)) {
        return Some("on its command line");
    }
    let variables: Vec<String> = words(pid, "environ").into_iter().filter(|word| is_variable(word)).collect();
    if variables.iter().any(|word| is_set(word)) {
        return Some("in its environment");
    }
    let options = arguments.iter().map(String::as_str).chain(variables.iter().flat_map(|v| v.split([' ', '\t', '\n'])));
    let named = options.filter_map(|word| FILE_OPTIONS.iter().find_map(|option| word.strip_prefix(option)));
    let mut files = named.filter(|path| !path.is_empty()).take(FILES).filter_map(|path| text_of(pid, path));
    files.any(|text| is_set(&text)).then_some("in a file of options")
}

/// The last sign counts, as for the machine.
fn is_set(text: &str) -> bool {
    text.rfind(FLAG).is_some_and(|at| text[..at].ends_with("-XX:+") || text[..at].ends_with('+'))
}

fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| VARIABLES.contains(&name))
}

/// What stands in a file of /proc/PID between zero bytes.
fn words(pid: u32, file: &str) -> Vec<String> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/{file}")) {
        let _ = file.take(WORDS_LIMIT).read_to_end(&mut bytes);
    }
    bytes.split(|&b| b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// A regular file as the process sees it. Nothing waits for a writer, no link leads out of its root.
fn text_of(pid: u32, path: &str) -> Option<String> {
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, format!("/proc/{pid}/root"), place, Mode::empty()).ok()?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let rule = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&root, folder.join(path), flags, Mode::empty(), rule).ok()?;
    let is_regular = fstat(&file).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    let mut bytes = Vec::new();
    let read = is_regular && File::from(file).take(FILE_LIMIT).read_to_end(&mut bytes).is_ok();
    read.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn the_last_sign_counts() {
        assert!(is_set("-XX:+DisableAttachMechanism"));
        assert!(!is_set("-XX:-DisableAttachMechanism") && !is_set("-Xmx1g"));
        assert!(!is_set("-XX:+DisableAttachMechanism\n-XX:-DisableAttachMechanism"));
        assert!(is_set("X -XX:-DisableAttachMechanism -XX:+DisableAttachMechanism"));
    }

    fn said_by(command: &mut Command) -> Option<&'static str> {
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child: Child = spawned.unwrap();
        // Its arguments are there a moment after it has begun.
        while words(child.id(), "cmdline").len() < 3 || words(child.id(), "environ").len() < 2 {
            std::thread::yield_now();
        }
        let said = that_forbid(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        said
    }

    #[test]
    fn arguments_environment_and_files_are_looked_at() {
        let flag = "-XX:+DisableAttachMechanism";
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("options"), format!("-Xmx1g\n{flag}\n")).unwrap();
        let sleep = || {
            let mut sleep = Command::new("sh");
            sleep.args(["-c", "sleep 60 & wait"]).current_dir(&dir);
            sleep
        };
        assert_eq!(said_by(&mut sleep()), None);
        assert_eq!(said_by(sleep().arg(flag)), Some("on its command line"));
        assert_eq!(said_by(sleep().env("JAVA_TOOL_OPTIONS", flag)), Some("in its environment"));
        assert_eq!(said_by(sleep().env("OTHER", flag)), None);
        assert_eq!(said_by(sleep().arg("@options")), Some("in a file of options"));
        let whole = format!("-XX:Flags={}", dir.path().join("options").display());
        assert_eq!(said_by(sleep().arg(whole)), Some("in a file of options"));
        assert_eq!(said_by(sleep().args(["@", "@/dev/zero", "@.", "@none"])), None);
    }
}
