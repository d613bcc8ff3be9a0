//! The committed BPF object is what its sources say.

use std::path::Path;
use std::process::Command;

use holdup_testing::{Need, skip};

/// Other compilers emit other instructions.
const COMPILER: &str = "clang version 14.";

#[test]
fn the_committed_object_is_up_to_date() {
    let version =
        Command::new("clang").arg("--version").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let Ok(version) = version else { return skip(Need::Program("clang"), "it cannot be run") };
    if !version.contains(COMPILER) {
        let here = version.lines().next().unwrap_or("?");
        return skip(Need::Other { name: COMPILER, is_here: false }, &format!("it built the object, here is {here}"));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let temporary = tempfile::tempdir().expect("temporary folder");
    let built = temporary.path().join("recorder.bpf.o");
    let status = Command::new("sh").arg(folder.join("build.sh")).arg(&built).status().expect("sh");
    assert!(status.success(), "bpf/build.sh fails");
    let (new, old) =
        (std::fs::read(&built).expect("built"), std::fs::read(folder.join("recorder.bpf.o")).expect("old"));
    let (new, old) = (programs(&new), programs(&old));
    assert!(new.iter().any(|(name, _)| name == "tp_btf/sched_switch"), "{:?}", new.iter().map(|(n, _)| n));
    for ((name, new), (old_name, old)) in new.iter().zip(&old) {
        assert_eq!((name, new == old), (old_name, true), "run bpf/build.sh and commit recorder.bpf.o");
    }
}

/// The names and bytes of an ELF file's sections that hold instructions or BTF.
fn programs(elf: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize, n: usize| elf[at..at + n].iter().rev().fold(0usize, |v, &b| v << 8 | usize::from(b));
    let (table, size, count, names) = (number(40, 8), number(58, 2), number(60, 2), number(62, 2));
    let section = |i: usize| {
        let at = table + i * size;
        (number(at, 4), number(at + 4, 4), number(at + 24, 8), number(at + 32, 8))
    };
    let (_, _, strings, _) = section(names);
    (0..count)
        .map(section)
        .filter(|&(_, kind, _, _)| kind == 1)
        .map(|(name, _, offset, length)| {
            let text = &elf[strings + name..];
            let end = text.iter().position(|&b| b == 0).expect("terminated");
            (String::from_utf8_lossy(&text[..end]).into_owned(), elf[offset..offset + length].to_vec())
        })
        .filter(|(name, _)| name.contains('/') || name == "perf_event" || name == ".text" || name == ".BTF")
        .collect()
}
