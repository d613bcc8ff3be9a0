//! Which NUMA node a CPU belongs to.

use std::fs;
use std::sync::OnceLock;

use crate::harness::affinity;

/// The NUMA nodes of this machine with their CPUs; one node with all CPUs where the kernel tells none.
pub fn nodes() -> &'static [(usize, Vec<usize>)] {
    static NODES: OnceLock<Vec<(usize, Vec<usize>)>> = OnceLock::new();
    NODES.get_or_init(|| {
        let folder = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
        let node = |entry: fs::DirEntry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let cpus = parse_list(&fs::read_to_string(entry.path().join("cpulist")).ok()?);
            (!cpus.is_empty()).then_some((number, cpus))
        };
        let mut nodes: Vec<_> = folder.filter_map(node).collect();
        nodes.sort_unstable();
        if nodes.is_empty() { vec![(0, affinity::allowed())] } else { nodes }
    })
}

/// Bytes of the largest cache of a CPU; `None` where the kernel does not tell.
pub fn last_cache(cpu: usize) -> Option<usize> {
    let folder = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}/cache")).ok()?;
    let size = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        text.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1024)
    };
    folder.flatten().filter_map(size).max()
}

/// The NUMA node of the CPU that runs the calling thread.
pub fn current_node() -> usize {
    if nodes().len() == 1 {
        return nodes()[0].0;
    }
    let cpu = affinity::current_cpu();
    nodes().iter().find(|(_, cpus)| cpus.contains(&cpu)).map_or(0, |(node, _)| *node)
}

/// The numbers of a list like `0-3,8`.
pub fn parse_list(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().ok()?;
        let last: usize = last.trim().parse().ok()?;
        // A list of the kernel's is short; a damaged one must not fill memory.
        (last < 1 << 16).then_some(first..=last)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_list("0-2,8\n"), [0, 1, 2, 8]);
        assert!(parse_list("").is_empty());
        assert!(parse_list("0-99999999999").is_empty());
        assert!(nodes().iter().any(|(node, _)| *node == current_node()));
    }
}
