//! The namespace of processes in which the recorder runs: a container's processes have numbers of their own.
//!
//! /proc, perf and whoever names a process by its number speak of the recorder's namespace; the kernel's programs see the whole
//! machine's numbers, and translate them. What is outside keeps the machine's number, above all that there can be.

use std::fs;

use holdup_trace::{Error, Result};

/// The kernel's number of the namespace that everything lies in.
const WHOLE_MACHINE: u32 = 0xefff_fffc;

/// What a recording within a container lacks.
pub(crate) const NOTE: &str = "recorded inside a container: of processes outside it, only names are known";

/// The recorder's place among processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// Its number; 0 for that of the whole machine.
    pub number: u32,
    /// The recorder's process in it.
    pub own: u32,
}

/// Where the recorder's process lies in the whole machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub tgid: u32,
    pub level: u32,
}

impl Namespace {
    /// That of this process.
    ///
    /// # Errors
    /// If /proc is that of another one: then nothing that it says can be used.
    pub(crate) fn of_self() -> Result<Namespace> {
        let link = |name: &str| fs::read_link(format!("/proc/{name}")).map(|path| path.display().to_string());
        let own = std::process::id();
        if link("self").ok().as_deref() != Some(own.to_string().as_str()) {
            let what = "/proc is not that of this namespace of processes: mount it (mount -t proc proc /proc), as \
                        `unshare --pid --fork --mount-proc` does";
            return Err(Error::Unsupported(what.into()));
        }
        let number = link("self/ns/pid").ok().and_then(|text| number(&text));
        Ok(Namespace { number: number.filter(|n| *n != WHOLE_MACHINE).unwrap_or(0), own })
    }

    /// Whether it is that of the whole machine.
    pub(crate) fn is_whole(self) -> bool {
        self.number == 0
    }
}

/// From `pid:[4026531836]`.
fn number(link: &str) -> Option<u32> {
    link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_namespaces_are_understood() {
        assert_eq!((number("pid:[4026531836]"), number("mnt:[1]"), number("")), (Some(WHOLE_MACHINE), None, None));
        let here = Namespace::of_self().expect("/proc is this machine's or container's");
        assert_eq!(here.own, std::process::id());
    }
}
