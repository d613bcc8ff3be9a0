//! What a thread does, by the functions that lead there.

use rustc_hash::FxHashMap;

/// Paths by what they have in common.
#[derive(Default)]
pub(super) struct Trie {
    pub(super) total: u32,
    nodes: FxHashMap<(u32, u64), (u32, u32)>,
}

impl Trie {
    pub(super) fn add(&mut self, path: &[u64], n: u32) {
        if path.is_empty() {
            return;
        }
        self.total += n;
        let mut at = 0;
        for function in path {
            let next = self.nodes.len() as u32 + 1;
            let node = self.nodes.entry((at, *function)).or_insert((next, 0));
            node.1 += n;
            at = node.0;
        }
    }

    /// How many lie below `path`.
    pub(super) fn through(&self, path: &[u64]) -> u32 {
        let mut found = (0, self.total);
        for function in path {
            let Some(&node) = self.nodes.get(&(found.0, *function)) else { return 0 };
            found = node;
        }
        found.1
    }

    /// How many frames at least half of the paths share with `path`, but for those that go through all of it.
    pub(super) fn shared(&self, path: &[u64]) -> usize {
        let mut counts = Vec::new();
        let mut at = 0;
        for function in path {
            let Some(&(node, n)) = self.nodes.get(&(at, *function)) else { break };
            counts.push(n);
            at = node;
        }
        let own = if counts.len() == path.len() { counts.last().copied().unwrap_or(0) } else { 0 };
        let others = self.total - own;
        counts.iter().take_while(|&&n| others > 0 && 2 * (n - own) >= others).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_shares_least_with_the_work() {
        let mut work = Trie::default();
        work.add(&[1, 2, 3, 4], 60);
        work.add(&[1, 2, 3, 5], 30);
        work.add(&[1, 9], 10);
        // Home, a place in the middle of the work, and one where the work itself waits.
        assert_eq!([&[1, 9][..], &[1, 2, 3, 7], &[1, 2, 3, 4]].map(|path| work.shared(path)), [1, 3, 3]);
        assert_eq!(
            [work.through(&[1, 2]), work.through(&[1, 9]), work.through(&[7]), work.through(&[])],
            [90, 10, 0, 100]
        );
    }
}
