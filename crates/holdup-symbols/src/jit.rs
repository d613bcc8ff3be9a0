//! Functions compiled at run time, from the perf maps that Java, Node, .NET and Python write on request.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::demangle::plain;
use crate::files::open_regular;
use crate::meter::{Cut, Meter};

/// Largest map that is read.
const SIZE_LIMIT: u64 = 256 << 20;
/// How many entries before an address are tried: code is compiled again over the remains of older code.
const OVERLAP: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    size: u64,
    /// Place of the line in the file: later entries replace earlier ones.
    order: u32,
    /// Where the name begins and ends in `text`.
    name: (u32, u32),
}

/// The functions in one /tmp/perf-PID.map.
#[derive(Debug)]
pub(crate) struct PerfMap {
    text: Vec<u8>,
    entries: Vec<Entry>,
    meter: Arc<Meter>,
}

impl PerfMap {
    /// The map of a process: what it `told`, then what is in /tmp, or in the /tmp of its container: it was written later, as nobody is
    /// asked whose map is there. `Err` says why one that exists is not used.
    pub fn of_process(pid: u32, told: Option<Vec<u8>>, meter: &Arc<Meter>) -> Result<Option<PerfMap>, String> {
        let told = told.filter(|told| meter.hold(told.len() as u64));
        let mut problem = None;
        for path in candidates(pid) {
            match read_safely(&path, pid, meter) {
                Ok(Some(text)) => return Ok(Some(PerfMap::parse(both(told, &text), meter))),
                Ok(None) => {}
                Err(e) => problem = Some(format!("{}: {e}", path.display())),
            }
        }
        match (told, problem) {
            (Some(told), _) => Ok(Some(PerfMap::parse(told, meter))),
            (None, Some(problem)) => Err(problem),
            (None, None) => Ok(None),
        }
    }

    fn parse(text: Vec<u8>, meter: &Arc<Meter>) -> PerfMap {
        let mut entries = Vec::new();
        let mut at = 0;
        // A line of six bytes is an entry of forty.
        while at < text.len() && meter.hold(size_of::<Entry>() as u64) {
            let end = text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| at + n);
            entries.extend(entry(&text[at..end], at, entries.len()));
            at = end + 1;
        }
        entries.sort_unstable_by_key(|e| (e.start, e.order));
        PerfMap { text, entries, meter: meter.clone() }
    }

    /// Name, start and size of the function around `addr`.
    pub fn find(&self, addr: u64) -> Option<(String, u64, u64)> {
        let after = self.entries.partition_point(|e| e.start <= addr);
        let before = &self.entries[after.saturating_sub(OVERLAP)..after];
        let found = before.iter().filter(|e| addr - e.start < e.size).max_by_key(|e| e.order)?;
        let name = self.text.get(found.name.0 as usize..found.name.1 as usize)?;
        let name = plain(method(&String::from_utf8_lossy(name)), true);
        if !name.whole {
            self.meter.cut(Cut::Name);
        }
        Some((name.text, found.start, found.size))
    }
}

fn both(told: Option<Vec<u8>>, text: &[u8]) -> Vec<u8> {
    let mut both = told.unwrap_or_default();
    if !both.is_empty() {
        both.push(b'\n');
    }
    both.extend_from_slice(text);
    both
}

/// `Register.work` of `int Register.work(java.lang.Object, int)`, as Java writes its methods; other names as they are.
fn method(name: &str) -> &str {
    let is_type = |text: &str| {
        let plain = text.trim_end_matches("[]");
        !plain.is_empty() && plain.chars().all(|c| c.is_alphanumeric() || "._$/+-".contains(c))
    };
    let parts = || {
        let (before, parameters) = name.strip_suffix(')')?.split_once('(')?;
        let (returned, method) = before.split_once(' ')?;
        let is_method = method.split_once('.').is_some_and(|(class, _)| !class.is_empty());
        let characters = method.chars().all(|c| c.is_alphanumeric() || "._$/+-<>".contains(c));
        let takes = parameters.is_empty() || parameters.split(", ").all(is_type);
        (is_method && characters && is_type(returned) && takes).then_some(method)
    };
    parts().unwrap_or(name)
}

/// Start, size and name of a line of a perf map: `START SIZE name with spaces`, numbers in hexadecimal with or without `0x`.
pub fn perf_map_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let number = |word: &[u8]| u64::from_str_radix(std::str::from_utf8(word).ok()?.trim_start_matches("0x"), 16).ok();
    let mut words = line.strip_suffix(b"\r").unwrap_or(line).splitn(3, |&b| b == b' ');
    let (start, size, name) = (number(words.next()?)?, number(words.next()?)?, words.next()?);
    (!name.is_empty()).then_some((start, size, name))
}

fn entry(line: &[u8], line_start: usize, order: usize) -> Option<Entry> {
    let (start, size, name) = perf_map_line(line)?;
    let line_end = line.len() - usize::from(line.ends_with(b"\r"));
    let at = |offset: usize| u32::try_from(line_start + offset).ok();
    Some(Entry { start, size, order: order as u32, name: (at(line_end - name.len())?, at(line_end)?) })
}

fn candidates(pid: u32) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(format!("/tmp/perf-{pid}.map"))];
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let inner = status.lines().find_map(|l| l.strip_prefix("NSpid:")).and_then(|l| l.split_whitespace().last());
    if let Some(inner) = inner {
        paths.insert(0, PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inner}.map")));
    }
    paths
}

/// Anybody can put a file into /tmp: only one that the process's user (or root, or we) wrote is believed.
fn read_safely(path: &Path, pid: u32, meter: &Meter) -> Result<Option<Vec<u8>>, String> {
    let (file, meta) = match open_regular(path, false) {
        Ok(found) => found,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    if !trusted_owners(pid).contains(&meta.uid()) {
        return Err(format!("belongs to user {}, who does not own process {pid}: not used", meta.uid()));
    }
    if meta.len() > SIZE_LIMIT {
        return Err(format!("has {} bytes, more than the {SIZE_LIMIT} that are read", meta.len()));
    }
    if !meter.hold(meta.len()) {
        return Err("is left out: too much was read already".into());
    }
    read_all(file, meta.len()).map(Some)
}

/// As much as there was when the file was opened: what is added meanwhile is not accounted for.
fn read_all(file: File, len: u64) -> Result<Vec<u8>, String> {
    let mut text = Vec::with_capacity(len as usize);
    file.take(len).read_to_end(&mut text).map_err(|e| e.to_string())?;
    Ok(text)
}

/// Root, ourselves, whoever called sudo, and the process's user while it lives.
fn trusted_owners(pid: u32) -> Vec<u32> {
    let uid_of = |path: String| std::fs::metadata(path).ok().map(|m| m.uid());
    let sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    [Some(0), uid_of("/proc/self".into()), uid_of(format!("/proc/{pid}")), sudo].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Budget, Limits};

    fn meter() -> Arc<Meter> {
        Meter::new(&Budget::new(Limits::of_this_machine()))
    }

    #[test]
    fn later_entries_replace_earlier_ones() {
        let text = "7f0000001000 100 old\n0x7f0000001010 40 LazyCompile:*f /a b.js:3\nbad line\n7f0000002000 10 end";
        let map = PerfMap::parse(text.into(), &meter());
        assert_eq!(map.find(0x7f00_0000_1020).unwrap(), ("LazyCompile:*f /a b.js:3".into(), 0x7f00_0000_1010, 0x40));
        assert_eq!(map.find(0x7f00_0000_1060).unwrap().0, "old");
        assert_eq!(map.find(0x7f00_0000_200f).unwrap().0, "end");
        assert_eq!(map.find(0x7f00_0000_2010), None);
    }

    #[test]
    fn methods_of_java_are_short() {
        assert_eq!(method("int Register.work(java.lang.Object, int[])"), "Register.work");
        assert_eq!(method("void A$B.<init>()"), "A$B.<init>");
        let lambda = "void Main$$Lambda$14/0x0000000800c03000.run()";
        assert_eq!(method(lambda), "Main$$Lambda$14/0x0000000800c03000.run");
        // Node, .NET, C++, and what the machine makes for itself.
        for other in [
            "LazyCompile:*f (a b) /x.js:3",
            "void [System.Private.CoreLib] A::B(int32)[Tier1]",
            "void a::b(int)",
            "Interpreter",
            "f (x)",
            " .(",
            "a .)",
            "call_stub",
        ] {
            assert_eq!(method(other), other);
        }
    }

    #[test]
    fn what_is_written_later_counts() {
        let text = both(Some(b"1000 10 told".to_vec()), b"1000 10 written\n");
        let map = PerfMap::parse(text, &meter());
        assert_eq!(map.find(0x1001).unwrap().0, "written");
        assert_eq!(both(None, b"x"), b"x");
    }

    #[test]
    fn links_and_strangers_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("perf-1.map"), dir.path().join("perf-2.map"));
        std::fs::write(&real, "1000 10 f\n").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(read_safely(&real, std::process::id(), &meter()).unwrap().is_some());
        assert!(read_safely(&link, std::process::id(), &meter()).is_err());
        assert!(read_safely(dir.path(), std::process::id(), &meter()).is_err());
        assert!(read_safely(&dir.path().join("none"), 1, &meter()).unwrap().is_none());
    }
}
